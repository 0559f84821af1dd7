//! The check of an upgrade of a CRD, within the request that asks for it: what its policy wants, and what it
//! does to objects. It only reads, and must not log what it finds.
//!
//! ```text
//! read both CRDs ─> is it the stored one ─> report ─> listing ─> effect of each object ─> findings ─> decision
//!                  `until` ends any of it: what is known by then counts
//! ```

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout_at};

use super::listing::{Listing, Objects};
use crate::cluster::Cluster;
use crate::operator::options::now;
use crate::operator::policy_lookup::PolicyLookup;
use crate::server::admission::{CrdRequest, Update};
use etch_core::api::{DefaultsReportStatus, Settings};
use etch_core::call_error::unreadable;
use etch_core::crd::Crd;
use etch_core::impact::Upgrade;
use etch_core::policy_index::GoverningPolicy;
use etch_core::prediction::{record_of, upgrade_under_policy};
use etch_core::upgrade::guarded::{Crds, decided, is_stored, read, text, unserved};
use etch_core::upgrade::{Extent, Findings, FindingsBuilder, GuardDecision, GuardMode, Guarded, digest};
use kube_structural_schema::json::Json;

/// How many requests are checked at once: each lists all objects of a CRD.
const AT_ONCE: usize = 2;

/// Looks at upgrades and deletions of CRDs, and at migrations of their objects, on this replica; cheap to
/// clone.
#[derive(Clone)]
pub struct UpgradeGuard {
    pub(super) cluster: Cluster,
    pub(super) policies: PolicyLookup,
    pub(super) places: Arc<Semaphore>,
}

impl UpgradeGuard {
    /// Lists objects through this connection, and follows these policies.
    pub fn new(cluster: Cluster, policies: PolicyLookup) -> Self {
        Self { cluster, policies, places: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    /// Judges a request by what is known about it at `until`, at the latest.
    pub async fn judge(&self, request: CrdRequest, until: Instant) -> GuardDecision {
        match request {
            CrdRequest::Update(update) => self.judge_update(update, until).await,
            CrdRequest::Deletion(crd) => self.judge_deletion(crd, until).await,
            CrdRequest::Migration(migration) => self.judge_migration(&migration, until).await,
        }
    }

    async fn judge_update(&self, update: Update, until: Instant) -> GuardDecision {
        // An update that changes the labels may choose its policy, and must not escape the one it had.
        let (old, new) = (self.policies.of(&update.old), self.policies.of(&update.new));
        let guard_mode = old.iter().chain(&new).map(|governing| governing.guard_mode).max();
        let (Some(guard_mode), Some(GoverningPolicy { settings, .. })) = (guard_mode, new.or(old)) else {
            return GuardDecision::default();
        };
        if guard_mode == GuardMode::Off {
            return GuardDecision::default();
        }
        let metadata: Json = update.new["metadata"].clone().into();
        let (findings, digest) = self.check(update, settings, until).await;
        decided(
            text(&metadata, "/name"),
            &metadata,
            Guarded::Upgrade { digest: &digest },
            guard_mode,
            &findings,
        )
    }

    /// The policy for a CRD as this document has it; `None` if its requests are not judged.
    pub(super) fn guarded(&self, document: &Json) -> Option<GoverningPolicy> {
        self.policies.of(document).filter(|governing| governing.guard_mode != GuardMode::Off)
    }

    /// What the upgrade does, and its digest, which is empty where there was no time to find out anything.
    async fn check(&self, update: Update, settings: Settings, until: Instant) -> (Findings, String) {
        let late = || (Findings::unknown("no time was left to check it"), String::new());
        let Ok(Ok(place)) = timeout_at(until, self.places.clone().acquire_owned()).await else {
            return (Findings::unknown("too many requests at once"), String::new());
        };
        let old = update.old.clone();
        let Ok(Ok((read, digest))) = timeout_at(
            until,
            spawn_blocking(move || (read(&update.old, &update.new), digest(&update.old, &update.new))),
        )
        .await
        else {
            return late();
        };
        let crds = match read {
            Ok(crds) => crds,
            Err(why) => return (Findings::unknown(why), digest),
        };
        match timeout_at(until, self.cluster.crd(crds.old.name())).await {
            Ok(Ok(Some(stored))) if is_stored(&old, &stored) => {}
            // Another client was first, and then the API server asks again; or no client upgrades this CRD.
            Ok(Ok(_)) => return (Findings::unknown("the CRD in the request is not the stored one"), digest),
            Ok(Err(error)) => return (Findings::unknown(&unreadable(error.code(), "the CRD")), digest),
            Err(_) => return late(),
        }
        // Requests for its objects would be answered with built-in ones.
        if crds.old.is_shadowed() {
            return (Findings::default(), digest);
        }
        let report = match timeout_at(until, self.report(&crds.old)).await {
            Ok(Ok(report)) => report,
            Ok(Err(why)) => return (Findings::unknown(&why), digest),
            Err(_) => return late(),
        };
        (self.objects(crds, settings, report, until, place).await, digest)
    }

    /// What is on record of a CRD; `None` if nothing is.
    ///
    /// # Errors
    /// Why that cannot be read, in words for a warning.
    pub(super) async fn report(&self, crd: &Crd) -> Result<Option<DefaultsReportStatus>, String> {
        let report = self.cluster.report(crd.name(), crd.uid()).await;
        let report = report.map_err(|error| unreadable(error.code(), "its DefaultsReport"))?;
        Ok(report.and_then(|report| report.status))
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
        let violations = crds.violations.clone();
        let builder = FindingsBuilder::new(&crds.old, &crds.new, settings.terms.clone());
        let storage = crds.old.storage();
        if !storage.served {
            let why = unserved(&storage.name);
            return builder.findings(&violations, &Extent::Part { why, of: None });
        }
        let resource = crds.old.resource();
        let listing = Listing { cluster: self.cluster.clone(), resource, until, place };
        let evaluate = move |objects| evaluate(&crds, &settings, report.as_ref(), objects);
        listing.evaluated(builder, evaluate, |builder, extent| builder.findings(&violations, extent)).await
    }
}

/// Records what happens to each object, on a thread that may be busy for as long as it takes.
fn evaluate(
    crds: &Crds,
    settings: &Settings,
    report: Option<&DefaultsReportStatus>,
    objects: Objects<FindingsBuilder>,
) {
    let Crds { old, new, document, .. } = crds;
    let upgrade = upgrade_under_policy(Upgrade::new(old, new), Some(settings), report, Some(document));
    objects.each(record_of(report, document, old, now()), |objects, object, record| {
        let (effect, _) = upgrade.on_record(object, record);
        objects.build(|builder| builder.add(object, old, record, effect));
    });
}
