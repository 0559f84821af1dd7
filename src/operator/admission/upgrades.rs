//! The check of an upgrade of a CRD, within the request that asks for it: what its policy wants, and what it
//! does to objects. It must not write anything, nor log what is found.
//!
//! ```text
//! read both CRDs ─> is it the stored one ─> report ─> list, page by page ─> effect of each object ─> findings ─> decision
//!                  `until` ends any of it: what is known by then counts
//! ```

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::TryStreamExt;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout_at};

use crate::cluster::{Cluster, ObjectPage, ObjectPages, ObjectSource, ReadError, Scope};
use crate::operator::policy_lookup::{GoverningPolicy, PolicyLookup};
use crate::server::admission::Update;
use etch_core::api::{DefaultsReportStatus, Settings};
use etch_core::crd::{Crd, Version};
use etch_core::impact::Upgrade;
use etch_core::plan::Witness;
use etch_core::prediction::{record_of, upgrade_under_policy};
use etch_core::upgrade::{
    ALLOW_ANNOTATION, Extent, Findings, FindingsBuilder, GuardDecision, GuardMode, NewViolations, decide,
    digest, new_violations,
};
use kube_structural_schema::json::{Json, same};
use kube_structural_schema::schema::DEEPEST;

/// How many upgrades are checked at once: each lists all objects of a CRD.
const AT_ONCE: usize = 2;

/// Looks at upgrades on this replica; cheap to clone.
#[derive(Clone)]
pub struct UpgradeGuard {
    cluster: Cluster,
    policies: PolicyLookup,
    places: Arc<Semaphore>,
}

/// Both states of a CRD, read.
struct Crds {
    old: Crd,
    new: Crd,
    violations: NewViolations,
    /// The stored CRD, as the request has it.
    document: Json,
}

/// How far a check has come.
struct Progress {
    builder: FindingsBuilder,
    /// How many objects there are, if the first page says so.
    of: Option<Option<u64>>,
}

/// Ends a check whose answer nobody waits for any more.
#[derive(Clone, Default)]
struct Stop(Arc<AtomicBool>);

impl UpgradeGuard {
    /// Lists objects through this connection, and follows these policies.
    pub fn new(cluster: Cluster, policies: PolicyLookup) -> Self {
        Self { cluster, policies, places: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    /// Judges an update by what is known of it at `until`, at the latest.
    pub async fn judge(&self, update: Update, until: Instant) -> GuardDecision {
        let Some(GoverningPolicy { settings, guard_mode }) = self.policies.of(&update.new) else {
            return GuardDecision::default();
        };
        if guard_mode == GuardMode::Off {
            return GuardDecision::default();
        }
        let name = text(&update.new, "/metadata/name").to_owned();
        let at = format!("/metadata/annotations/{}", ALLOW_ANNOTATION.replace('/', "~1"));
        let allowed = update.new.pointer(&at).and_then(Value::as_str).map(str::to_owned);
        let (findings, digest) = self.check(update, settings, until).await;
        decide(&name, guard_mode, &findings, &digest, allowed.as_deref())
    }

    /// What the upgrade does, and the digest of its schemas, which is empty where there was no time to find
    /// out anything.
    async fn check(&self, update: Update, settings: Settings, until: Instant) -> (Findings, String) {
        let late = || (unknown("no time was left to check it"), String::new());
        let Ok(Ok(place)) = timeout_at(until, self.places.clone().acquire_owned()).await else {
            return (unknown("too many upgrades at once"), String::new());
        };
        let uid = text(&update.old, "/metadata/uid").to_owned();
        let old = Json::from(update.old.clone());
        let Ok(Ok((read, digest))) =
            timeout_at(until, spawn_blocking(move || (read(&update), digest(&update.new)))).await
        else {
            return late();
        };
        let crds = match read {
            Ok(crds) => crds,
            Err(why) => return (unknown(why), digest),
        };
        match timeout_at(until, self.cluster.crd(crds.old.name())).await {
            Ok(Ok(Some(stored))) if is_stored(&old, &stored) => {}
            // Somebody else was first, and then the API server asks again; or nobody upgrades this CRD.
            Ok(Ok(_)) => return (unknown("the CRD in the request is not the stored one"), digest),
            Ok(Err(error)) => return (unknown(&unreadable(error.code(), "the CRD")), digest),
            Err(_) => return late(),
        }
        // Requests for its objects would be answered with built-in ones.
        if crds.old.is_shadowed() {
            return (Findings::default(), digest);
        }
        let report = timeout_at(until, self.cluster.report(crds.old.name(), &uid)).await;
        let report = report.ok().and_then(Result::ok).flatten().and_then(|report| report.status);
        (self.objects(crds, settings, report, until, place).await, digest)
    }

    /// What the upgrade does to objects, as far as there is time for them.
    async fn objects(
        &self,
        crds: Crds,
        settings: Settings,
        report: Option<DefaultsReportStatus>,
        until: Instant,
        place: OwnedSemaphorePermit,
    ) -> Findings {
        let (violations, name) = (crds.violations.clone(), crds.old.name().to_owned());
        let (source, resource) = (ObjectSource::from(self.cluster.clone()), crds.old.resource());
        let progress =
            Arc::new(Mutex::new(Progress { builder: FindingsBuilder::new(settings.terms), of: None }));
        let (send, pages) = mpsc::channel(1);
        let stop = Stop::default();
        let evaluated = {
            let (progress, stop) = (progress.clone(), stop.clone());
            spawn_blocking(move || {
                evaluate(&crds, &settings, report.as_ref(), pages, &progress, &stop);
                drop(place);
            })
        };
        let checked = timeout_at(until, async {
            feed(source.pages(vec![resource], &Scope::All), send, &progress).await?;
            // It has failed only by a panic, which was logged.
            Ok::<_, ReadError>(evaluated.await.is_ok())
        });
        let why = match checked.await {
            Ok(Ok(true)) => None,
            Ok(Ok(false)) => Some("the check failed".to_owned()),
            Ok(Err(error)) => Some(unreadable(error.code(), &name)),
            Err(_) => Some("the time limit expired".to_owned()),
        };
        stop.0.store(true, Ordering::Relaxed);
        let progress = lock(&progress);
        let extent = why.map_or(Extent::Whole, |why| Extent::Part { why, of: progress.of.flatten() });
        progress.builder.findings(&violations, &extent)
    }
}

/// Whether a request is about the CRD as it is stored: objects are listed for that one only.
fn is_stored(old: &Json, stored: &Json) -> bool {
    let at = |pointer| {
        (old.pointer(pointer).unwrap_or(&Value::Null), stored.pointer(pointer).unwrap_or(&Value::Null))
    };
    ["/metadata/uid", "/metadata/generation", "/spec"]
        .map(at)
        .into_iter()
        .all(|(old, stored)| same(old, stored))
}

/// Reads both states of a CRD.
fn read(update: &Update) -> Result<Crds, &'static str> {
    let Update { old, new } = update;
    let (before, after) = (Crd::read(old).ok(), Crd::read(new).ok());
    let violations = new_violations((old, before.as_ref()), (new, after.as_ref()));
    let (Some(before), Some(after)) = (before, after) else { return Err("cannot read the CRD") };
    let is_deep = |version: &Version| version.schema.depth() > DEEPEST;
    if before.versions().iter().chain(after.versions()).any(is_deep) {
        return Err("the schema is nested too deep");
    }
    Ok(Crds { old: before, new: after, violations, document: Json::from(old.clone()) })
}

/// Passes the objects on, page by page.
async fn feed(
    mut pages: ObjectPages<'_>,
    send: mpsc::Sender<ObjectPage>,
    progress: &Mutex<Progress>,
) -> Result<(), ReadError> {
    while let Some(page) = pages.try_next().await? {
        lock(progress).of.get_or_insert(page.total);
        if send.send(page).await.is_err() {
            break;
        }
    }
    Ok(())
}

/// Takes in what happens to each object, on a thread that may be busy for as long as it takes.
fn evaluate(
    crds: &Crds,
    settings: &Settings,
    report: Option<&DefaultsReportStatus>,
    mut pages: mpsc::Receiver<ObjectPage>,
    progress: &Mutex<Progress>,
    stop: &Stop,
) {
    let Crds { old, new, document, .. } = crds;
    let mut record = record_of(report, document, old);
    let upgrade = upgrade_under_policy(Upgrade::new(old, new), old, new, Some(settings), report);
    while let Some(page) = pages.blocking_recv() {
        for object in page.views() {
            if stop.0.load(Ordering::Relaxed) {
                return;
            }
            Witness::of(&object).into_iter().for_each(|witness| record.clock.hear(witness));
            let (effect, _) = upgrade.on_record(&object, &record);
            lock(progress).builder.add(&object, old, effect);
        }
    }
}

/// Nothing but why nothing is known.
fn unknown(why: &str) -> Findings {
    FindingsBuilder::default()
        .findings(&NewViolations::default(), &Extent::Part { why: why.to_owned(), of: None })
}

/// Why objects cannot be listed. The server's own words may quote values.
pub(super) fn unreadable(code: Option<u16>, crd: &str) -> String {
    match code {
        Some(403) => format!("Etch may not list {crd}, see `etch rbac`"),
        Some(code) => format!("the API server answered {code} to the list"),
        None => "the API server did not answer".to_owned(),
    }
}

fn text<'j>(document: &'j Json, pointer: &str) -> &'j str {
    document.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn lock(progress: &Mutex<Progress>) -> MutexGuard<'_, Progress> {
    progress.lock().unwrap_or_else(PoisonError::into_inner)
}
