//! Storing the defaults of embedded extensions in objects that exist, where a schema asks for it.
//! `etch_core` decides what is missing, and which write stores it.
//!
//! ```text
//! lacking ─> embed ─> dry run, write, release (`WriteMachine`) ─> read again: are they there, and are the owners as they were?
//! ```

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};
use tracing::{debug, error, info, warn};

use super::checked_schema::CheckedSchema;
use crate::cluster::{Backoff, Cluster, GenerationCheck, Pace, PaceMode};
use crate::operator::object::outcome::{counted, pressure};
use crate::operator::policy_lookup::PolicyLookup;
use crate::operator::spans::in_words;
use etch_admission::Lacking;
use etch_admission::tally::{INCOMPLETE, Kept, Stop};
use etch_core::call_error::CallError;
use etch_core::crd::{Crd, Resource};
use etch_core::object::Object;
use etch_core::plan::{
    Embedding, FormerDefault, Outcome, RejectionKind, Skip, Terms, Withheld, Write, embed, harmed,
};
use etch_core::prediction::record_of;

/// How often an object is decided about again.
const ATTEMPTS: u32 = 6;
const FIRST_WAIT: Duration = Duration::from_millis(200);
const LAST_WAIT: Duration = Duration::from_secs(10);

/// How long the objects of a resource wait for webhooks and API servers that do not answer, in one check: the
/// checks of all other objects wait meanwhile.
const UNANSWERED_AT_MOST: Duration = Duration::from_secs(30);

const NOT_KEPT: &str = "the API server does not keep the defaults: the CRD prunes them, or they are in a \
                        subresource, or admission removes them";

/// What writes need, whichever the resource.
pub(super) struct Store {
    pub(super) cluster: Cluster,
    pub(super) policies: Option<PolicyLookup>,
    pub(super) pace: Pace,
}

/// The objects of one resource, as they may be written now.
pub(super) struct Writer<'s> {
    store: &'s Store,
    resource: Resource,
    crd: Crd,
    generation_check: GenerationCheck,
    /// Fields of its objects that had a default once: etcd may hold it.
    former: Vec<FormerDefault>,
    /// Name and labels of the CRD: policies select by them.
    about: Value,
    /// What the policy allows, beside the pace of all resources.
    own_pace: Pace,
    unanswered: Mutex<Unanswered>,
}

/// The writes of a resource without an answer.
#[derive(Default)]
struct Unanswered {
    /// How long they took.
    took: Duration,
    /// Why no further one is sent.
    stop: Option<Stop>,
}

impl Store {
    /// Finds out whether the objects of a resource may be written, and how.
    pub(super) async fn writer(&self, resource: &Resource) -> Result<Writer<'_>, Stop> {
        let unsupported = |why: String| Stop { reason: "NotSupported", message: why };
        let name = format!("{}.{}", resource.plural, resource.group);
        let asked = Instant::now();
        let read = self.cluster.crd(&name).await.map_err(|error| Stop {
            reason: "Incomplete",
            message: format!("cannot read the CRD {name}: {error}"),
        })?;
        let Some(document) = read else {
            return Err(unsupported(format!(
                "{name} is not a custom resource, so Etch stores nothing in its objects"
            )));
        };
        let metadata = &document["metadata"];
        let about = json!({ "metadata": { "name": name, "labels": metadata["labels"] } });
        let read = spawn_blocking(move || Crd::read(&document).map(|crd| (crd, document))).await;
        let Ok(Ok((crd, document))) = read else {
            return Err(unsupported(format!("cannot read the CRD {name}")));
        };
        if crd.is_shadowed() || crd.storage().name != resource.version || !crd.storage().served {
            let version = &crd.storage().name;
            return Err(unsupported(format!(
                "{resource} is not at the storage version of {name}: {version}"
            )));
        }
        let report = self.cluster.report(crd.name(), crd.uid()).await.map_err(|error| Stop {
            reason: "Incomplete",
            message: format!("cannot read the DefaultsReport {name}: {error}"),
        })?;
        let status = report.and_then(|report| report.status);
        let former = record_of(status.as_ref(), &document, &crd).hidden.former.clone();
        let generation_check = GenerationCheck::new(&crd, Some(asked));
        let policy = self.policies.as_ref().and_then(|policies| policies.of(&about));
        let per_second = policy.and_then(|governing| governing.settings.max_writes_per_second);
        let own_pace = Pace::of_one_crd(1, per_second, PaceMode::Gentle);
        let writer = Writer {
            store: self,
            resource: resource.clone(),
            crd,
            generation_check,
            former,
            about,
            own_pace,
            unanswered: Mutex::default(),
        };
        match writer.withheld() {
            Some(stop) => Err(stop),
            None => Ok(writer),
        }
    }
}

impl Writer<'_> {
    /// Counts a write without an answer.
    ///
    /// # Errors
    /// They have taken too long together.
    fn unanswered(&self, why: &str, took: Duration) -> Result<(), Stop> {
        let mut unanswered = self.unanswered.lock();
        unanswered.took += took;
        if unanswered.took < UNANSWERED_AT_MOST {
            return Ok(());
        }
        let message = format!("{why}; Etch writes no further {} until the next check", self.resource);
        Err(unanswered.stop.insert(Stop { reason: INCOMPLETE, message }).clone())
    }

    /// Why no write may begin now.
    fn withheld(&self) -> Option<Stop> {
        if let Some(stop) = &self.unanswered.lock().stop {
            return Some(stop.clone());
        }
        let (reason, message) = self.store.policies.as_ref()?.withheld(&self.about)?;
        Some(Stop { reason, message })
    }

    /// Whether the policy selects an object.
    fn selects(&self, object: &Object) -> bool {
        self.store.policies.as_ref().is_none_or(|policies| policies.selects(&self.about, object))
    }

    /// Stores the defaults that a schema gives an object, and leaves the object as it was read last.
    /// `is_current` returns whether the schema and its facts are still the same.
    ///
    /// # Errors
    /// Why no further object of the resource may be written.
    pub(super) async fn store(
        &self,
        schema: &CheckedSchema,
        object: &mut Object,
        is_current: &(impl Fn(&CheckedSchema) -> bool + Sync),
    ) -> Result<Kept, Stop> {
        let may_write = || match self.withheld() {
            Some(stop) => Err(stop),
            None if is_current(schema) => Ok(()),
            None => {
                let message = "the schema or a fact has changed meanwhile".to_owned();
                Err(Stop { reason: INCOMPLETE, message })
            }
        };
        let mut backoff = Backoff::new(FIRST_WAIT, LAST_WAIT);
        for _ in 0..ATTEMPTS {
            may_write()?;
            if !self.selects(object) {
                return Ok(Kept::NotSelected);
            }
            let Some(lacking) = self.lacking(schema, object).await else { return Ok(Kept::Unknown) };
            let write = match embed(object, &self.crd, &lacking.changes, &self.former) {
                Embedding::Skip(Skip::Terminating) => return Ok(Kept::Gone),
                Embedding::Skip(Skip::Ignored | Skip::IgnoredUnclear) => return Ok(Kept::Ignored),
                Embedding::Skip(Skip::NotSelected) => return Ok(Kept::NotSelected),
                Embedding::Skip(Skip::TooDeep) => return Ok(Kept::Unknown),
                Embedding::Stored => return Ok(Kept::Stored),
                Embedding::Hold(why) => return Ok(Kept::Held(why)),
                Embedding::Write(write) => match lacking.breaks {
                    Some(rule) => return Ok(Kept::Breaks(rule)),
                    None => write,
                },
            };
            let own = self.own_pace.admit().await;
            let permit = self.store.pace.admit().await;
            may_write()?;
            let begun = Instant::now();
            let outcome = self.perform(object, &write).await;
            self.store.cluster.metrics().write(counted(&outcome));
            permit.finish_both(pressure(&outcome), own, pressure(&outcome));
            let changed_nothing = matches!(outcome, Ok(Outcome::AlreadyStored(_)));
            let asked = match outcome {
                Ok(Outcome::Written { resource_version, .. }) => {
                    match self.proved(schema, object, &resource_version).await? {
                        Some(kept) => return Ok(kept),
                        None => None,
                    }
                }
                Ok(Outcome::Gone) => return Ok(Kept::Gone),
                Ok(Outcome::Harmful { managers }) => {
                    debug!(object = %object.identity(), managers = managers.join(", "), "held");
                    return Ok(Kept::Held(Withheld::Owned));
                }
                Ok(Outcome::NeedsRewrite) => return Ok(Kept::Held(Withheld::Owned)),
                Ok(Outcome::Rejected(rejection)) if rejection.kind == RejectionKind::Unavailable => {
                    warn!(object = %object.identity(), reason = %rejection.message, "write not answered");
                    self.unanswered(&rejection.message, begun.elapsed())?;
                    return Ok(Kept::Unanswered(rejection.message));
                }
                Ok(Outcome::Rejected(rejection)) => {
                    warn!(object = %object.identity(), reason = %rejection.message, "write rejected");
                    return Ok(Kept::Rejected(rejection.message));
                }
                Ok(Outcome::Forbidden { verb }) => return Err(self.forbidden(verb.as_str())),
                Ok(Outcome::OwnersLost { managers }) => return Err(owners_lost(object, &managers)),
                Ok(Outcome::FieldsDropped { paths }) => {
                    return Err(fields_dropped(object, &in_words(&paths)));
                }
                Ok(Outcome::CrdChanged) => return Err(crd_changed()),
                Ok(
                    Outcome::Followed(_)
                    | Outcome::AlreadyStored(_)
                    | Outcome::Conflict
                    | Outcome::IdentityWritten
                    | Outcome::Unproved
                    | Outcome::Altered
                    | Outcome::Mutated { .. },
                ) => None,
                Err(error) => {
                    self.unanswered("the API server does not answer writes", begun.elapsed())?;
                    error.retry_after()
                }
            };
            sleep(backoff.failed(asked)).await;
            match self.read(object).await? {
                // It lacks the defaults as before: no other client has stored them.
                Ok(Some(fresh))
                    if changed_nothing && fresh.resource_version() == object.resource_version() =>
                {
                    return Ok(Kept::Rejected(NOT_KEPT.to_owned()));
                }
                Ok(Some(fresh)) => *object = fresh,
                Ok(None) => return Ok(Kept::Gone),
                Err(error) => debug!(object = %object.identity(), %error, "cannot read again"),
            }
        }
        Ok(Kept::Unknown)
    }

    async fn perform(&self, object: &Object, write: &Write) -> Result<Outcome, CallError> {
        let Self { store, crd, generation_check, .. } = self;
        store.cluster.perform(crd, object, Instant::now(), write, &Terms::default(), generation_check).await
    }

    /// What an object lacks by a schema; `None` if that failed. Rules may cost some time.
    async fn lacking(&self, schema: &CheckedSchema, object: &Object) -> Option<Lacking> {
        let (schema, resource, object) = (schema.clone(), self.resource.clone(), object.clone());
        let found =
            spawn_blocking(move || schema.schema.lacking(&resource, object.json(), &schema.inputs.facts));
        // It fails only by a panic, which was logged.
        found.await.ok()
    }

    /// Reads an object from etcd again after its write, and returns the outcome; `None` if another client has
    /// written it meanwhile.
    async fn proved(
        &self,
        schema: &CheckedSchema,
        object: &mut Object,
        revision: &str,
    ) -> Result<Option<Kept>, Stop> {
        let fresh = match self.read(object).await? {
            Ok(Some(fresh)) => fresh,
            Ok(None) => return Ok(Some(Kept::Gone)),
            Err(_) => return Ok(None),
        };
        let is_ours = fresh.resource_version() == revision;
        let managers = if is_ours { harmed(object, &fresh) } else { Vec::new() };
        if !managers.is_empty() {
            return Err(owners_lost(object, &managers));
        }
        *object = fresh;
        match self.lacking(schema, object).await.map(|lacking| lacking.is_nothing()) {
            None => Ok(Some(Kept::Unknown)),
            Some(true) => {
                info!(object = %object.identity(), schema = schema.name, "stored defaults of an extension");
                Ok(Some(Kept::Stored))
            }
            Some(false) if is_ours => Ok(Some(Kept::Rejected(NOT_KEPT.to_owned()))),
            Some(false) => Ok(None),
        }
    }

    /// A read of what etcd holds now: one that names no resource version goes to a quorum.
    async fn read(&self, object: &Object) -> Result<Result<Option<Object>, CallError>, Stop> {
        match self.store.cluster.object(&self.resource, &object.identity()).await {
            Err(error) if error.code() == Some(403) => Err(self.forbidden("get")),
            answer => Ok(answer),
        }
    }

    fn forbidden(&self, verb: &str) -> Stop {
        let Resource { group, plural, .. } = &self.resource;
        Stop {
            reason: "Forbidden",
            message: format!("Etch may not {verb} {plural}.{group}, see `etch rbac`"),
        }
    }
}

fn owners_lost(object: &Object, managers: &[String]) -> Stop {
    let owners = managers.join(", ");
    error!(object = %object.identity(), owners, "owners lost");
    let object = object.identity();
    let message = format!(
        "a write to {object} made the API server change fields of the owners {owners}; Etch writes nothing more"
    );
    Stop { reason: "OwnersLost", message }
}

fn fields_dropped(object: &Object, paths: &str) -> Stop {
    let object = object.identity();
    error!(%object, paths, "dropped fields that the schema no longer has");
    let message = format!(
        "a write to {object} made the API server drop the fields {paths}, which its schema no longer has"
    );
    Stop { reason: "Incomplete", message }
}

fn crd_changed() -> Stop {
    Stop { reason: "Incomplete", message: "the CRD changed while its objects were written".to_owned() }
}

impl Store {
    /// A store that writes one object at a time, and so many per second at most.
    pub(super) fn new(
        cluster: Cluster,
        policies: Option<PolicyLookup>,
        per_second: Option<u32>,
    ) -> Arc<Self> {
        Arc::new(Self { cluster, policies, pace: Pace::new(1, per_second, PaceMode::Gentle) })
    }
}
