//! Storing the defaults of embedded extensions in objects that exist, where a schema asks for it.
//! [`EmbedMachine`] decides which write stores what is missing, and whether a read proves it.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::spawn_blocking;
use tokio::time::Instant;
use tracing::{debug, info};

use crate::cluster::{Cluster, GenerationCheck, Pace};
use crate::operator::object::reconcile::{Caller, DriveState, ObjectReconciler};
use crate::operator::options::now;
use crate::operator::policy_lookup::PolicyLookup;
use etch_admission::Lacking;
use etch_admission::checked_schema::CheckedSchema;
use etch_admission::tally::{FORBIDDEN, INCOMPLETE, OWNERS_LOST, Stop};
use etch_core::api::Mode;
use etch_core::call_error::CallError;
use etch_core::crd::{Crd, Resource};
use etch_core::engine::stop_reason::StopReason;
use etch_core::object::Object;
use etch_core::object_machine::{EmbedMachine, Kept, Machine, Rest, Rules};
use etch_core::pace::limits::PaceMode;
use etch_core::plan::{HiddenEvidence, Outcome, RejectionKind, Terms, Write};
use etch_core::prediction::record_of;
use etch_core::scope::Scope;

/// How long the objects of a resource wait for webhooks and API servers that do not answer, in one check: the
/// checks of all other objects wait meanwhile.
const UNANSWERED_AT_MOST: Duration = Duration::from_secs(30);

/// What writes need, whichever the resource.
pub(super) struct Store {
    pub(super) cluster: Cluster,
    pub(super) policies: Option<PolicyLookup>,
    pub(super) pace: Arc<Pace>,
}

/// The objects of one resource, as they may be written now.
pub(super) struct Writer<'s> {
    store: &'s Store,
    resource: Resource,
    reconciler: ObjectReconciler,
    hidden: Arc<HiddenEvidence>,
    /// Name and labels of the CRD: policies select by them.
    about: Value,
    unanswered: Mutex<Unanswered>,
}

/// What may end the writes by one schema.
struct Limits<'w, F> {
    writer: &'w Writer<'w>,
    schema: &'w CheckedSchema,
    is_current: &'w F,
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
        let hidden = record_of(status.as_ref(), &document, &crd, now()).hidden;
        let policy = self.policies.as_ref().and_then(|policies| policies.of(&about));
        let per_second = policy.and_then(|governing| governing.settings.max_writes_per_second);
        let own_pace = Pace::of_one_crd(1, per_second, PaceMode::Gentle);
        let generation_check = Arc::new(GenerationCheck::new(&crd, Some(asked)));
        let (terms, since) = (Terms::default(), Arc::default());
        let rules = Rules { crd: Arc::new(crd), terms, mode: Mode::Persist, since };
        let reconciler = ObjectReconciler {
            own_pace: Some(Arc::new(own_pace)),
            generation_check,
            ..ObjectReconciler::of_command(&self.cluster, rules, &Scope::All, &self.pace)
        };
        let writer = Writer {
            store: self,
            resource: resource.clone(),
            reconciler,
            hidden,
            about,
            unanswered: Mutex::default(),
        };
        match writer.withheld() {
            Some(stop) => Err(stop),
            None => Ok(writer),
        }
    }
}

impl Writer<'_> {
    /// Notes that a write had no answer: no further one is sent once they have taken too long together.
    fn unanswered(&self, why: &str, took: Duration) {
        let mut unanswered = self.unanswered.lock();
        unanswered.took += took;
        if unanswered.took >= UNANSWERED_AT_MOST {
            let message = format!("{why}; Etch writes no further {} until the next check", self.resource);
            unanswered.stop = Some(Stop { reason: INCOMPLETE, message });
        }
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
        let limits = Limits { writer: self, schema, is_current };
        let (crd, read) = (self.reconciler.rules.crd.clone(), std::mem::take(object));
        let (mut machine, mut step) = EmbedMachine::begin(crd, self.hidden.clone(), read);
        let mut state = DriveState::new(Instant::now(), None);
        let ended = loop {
            match self.reconciler.drive(&mut machine, step, &mut state, &limits).await {
                Ok(Rest::Kept(kept)) => break Ok(kept),
                Ok(Rest::Lacking) if !self.selects(machine.object()) => break Ok(Kept::NotSelected),
                Ok(Rest::Lacking) => {}
                Err(StopReason::Ended) if let Some(stop) = limits.stop() => break Err(stop),
                Err(reason) => break Err(in_words(&reason)),
            }
            let Some(lacking) = self.lacking(schema, machine.object()).await else {
                break Ok(Kept::Unknown);
            };
            step = machine.lacks(&lacking.changes, lacking.breaks);
        };
        match &ended {
            Ok(Kept::Stored) if machine.has_written() => {
                info!(object = %machine.object().identity(), schema = schema.name, "stored defaults of an \
                    extension");
            }
            Ok(Kept::Held(why)) => {
                debug!(object = %machine.object().identity(), reason = why.as_str(), "held");
            }
            _ => {}
        }
        *object = machine.into_object();
        ended
    }

    /// What an object lacks by a schema; `None` if that failed. Rules may cost some time.
    async fn lacking(&self, schema: &CheckedSchema, object: &Object) -> Option<Lacking> {
        let (schema, resource, object) = (schema.clone(), self.resource.clone(), object.clone());
        let found =
            spawn_blocking(move || schema.schema.lacking(&resource, object.json(), &schema.inputs.facts));
        // It fails only by a panic, which was logged.
        found.await.ok()
    }
}

impl<F: Fn(&CheckedSchema) -> bool> Limits<'_, F> {
    /// Why nothing more may begin.
    fn stop(&self) -> Option<Stop> {
        let changed = || {
            let message = "the schema or a fact has changed meanwhile".to_owned();
            (!(self.is_current)(self.schema)).then_some(Stop { reason: INCOMPLETE, message })
        };
        self.writer.withheld().or_else(changed)
    }
}

impl<F: Fn(&CheckedSchema) -> bool + Sync> Caller for Limits<'_, F> {
    /// Nothing wakes it: what it depends on counts when a write is about to begin, and it is polled then.
    async fn stopped(&self) -> StopReason {
        poll_fn(|_| match self.stop() {
            Some(_) => Poll::Ready(StopReason::Ended),
            None => Poll::Pending,
        })
        .await
    }

    fn wrote(&self, _: &Object, _: &Write, outcome: &Result<Outcome, CallError>, took: Duration) {
        match outcome {
            Ok(Outcome::Rejected(rejection)) if rejection.kind == RejectionKind::Unavailable => {
                self.writer.unanswered(&rejection.message, took);
            }
            Ok(_) => {}
            Err(_) => self.writer.unanswered("the API server does not answer writes", took),
        }
    }
}

/// Why no further object may be written, as the status shows it.
fn in_words(reason: &StopReason) -> Stop {
    let word = match reason {
        StopReason::Forbidden(_) => FORBIDDEN,
        StopReason::OwnersLost { .. } => OWNERS_LOST,
        StopReason::Pause | StopReason::Ended | StopReason::CrdChanged | StopReason::FieldsDropped { .. } => {
            INCOMPLETE
        }
    };
    Stop { reason: word, message: reason.to_string() }
}

impl Store {
    /// A store that writes one object at a time, and so many per second at most.
    pub(super) fn new(
        cluster: Cluster,
        policies: Option<PolicyLookup>,
        per_second: Option<u32>,
    ) -> Arc<Self> {
        let pace = Arc::new(Pace::new(1, per_second, PaceMode::Gentle));
        Arc::new(Self { cluster, policies, pace })
    }
}
