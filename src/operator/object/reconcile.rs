//! Reconciles one object: decide, write, and decide again from a fresh read for as long as others write too.
//! It must not race other writers: theirs stands.

use std::time::Duration;

use tokio::sync::SemaphorePermit;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, info, warn};

use crate::cluster::{Backoff, CallError, Cluster, GenerationCheck, Pace, Scope};
use crate::operator::object::follow::FollowChanges;
use crate::operator::object::outcome::counted;
use crate::operator::object::pause::PauseWatch;
use crate::operator::object::refusal_log::RefusalLog;
use crate::operator::spans::in_words;
use etch_core::api::Mode;
use etch_core::crd::Crd;
use etch_core::object::Object;
use etch_core::object_state::{ObjectState, Skipped};
use etch_core::plan::{
    HiddenFields, Outcome, Plan, Proof, Record, Rejection, Since, Strategy, Terms, Write, decide, has_gap,
    hidden, likely, pinned, rewritten, unproved, with_lag_check,
};
use etch_core::rbac::{MissingPermissions, Verb};
use etch_core::report::changed_defaults::ChangedDefaults;
use etch_core::report::dropped_fields::DroppedFields;
use kube_structural_schema::path::Path;

/// How often an object is decided about again, or a write repeated that the server could not answer.
const ATTEMPTS: u32 = 6;

/// The turn of an object to be decided about, which is the next one's as soon as its first write begins or it needs none. None where
/// it has not waited for one.
pub(in crate::operator) type Turn<'a> = Option<SemaphorePermit<'a>>;

/// Everything that reconciling objects of one CRD needs.
#[derive(Clone, Copy)]
pub(in crate::operator) struct ObjectReconciler<'a> {
    pub(in crate::operator) cluster: &'a Cluster,
    pub(in crate::operator) pace: &'a Pace,
    /// The CRD's own, beside the one that all share: what is broken about one CRD slows down that one alone.
    pub(in crate::operator) own_pace: Option<&'a Pace>,
    /// Says when a pause begins or ends: no further write begins then. None where there is none to obey.
    pub(in crate::operator) pause_watch: Option<&'a PauseWatch>,
    /// Cancelled when nothing more is to be begun.
    pub(in crate::operator) cancelled: Option<&'a CancellationToken>,
    pub(in crate::operator) crd: &'a Crd,
    /// Which of its objects are meant.
    pub(in crate::operator) scope: &'a Scope,
    pub(in crate::operator) terms: Terms,
    pub(in crate::operator) mode: Mode,
    /// Since when each default has been in the schema.
    pub(in crate::operator) since: &'a Since,
    /// The defaults that have changed.
    pub(in crate::operator) changes: &'a ChangedDefaults,
    /// The fields that writes have dropped under `hiddenFields: Drop`.
    pub(in crate::operator) dropped: &'a DroppedFields,
    /// Whether the CRD is still the one that this was made for.
    pub(in crate::operator) generation_check: &'a GenerationCheck,
    pub(in crate::operator) refusal_log: &'a RefusalLog,
}

/// What became of an object, and what was missing in it.
#[derive(Debug)]
pub(in crate::operator) struct Reconciled {
    pub(in crate::operator) state: ObjectState,
    pub(in crate::operator) missing: Vec<Path>,
    /// The resource version in which it was rejected.
    pub(in crate::operator) left_at: Option<String>,
}

impl Reconciled {
    /// An object that has come to this without a write.
    pub(in crate::operator) fn of(state: ObjectState, missing: Vec<Path>) -> Self {
        Self { state, missing, left_at: None }
    }
}

/// Why no further object of the CRD may be processed.
#[derive(Debug, thiserror::Error)]
pub enum StopReason {
    /// A permission is missing.
    #[error("a permission is missing: {0}")]
    Forbidden(MissingPermissions),
    /// A policy has paused writes, or has taken its pause back. Writes that had begun have ended.
    #[error("a policy paused or resumed writes")]
    Pause,
    /// It was cancelled. Writes that had begun have ended.
    #[error("interrupted")]
    Ended,
    /// A write made the server forget owners.
    #[error(
        "a write to {object} made the API server drop the field owners {managers:?}; Etch writes nothing more"
    )]
    OwnersLost {
        /// Which object.
        object: String,
        /// Whose entries are gone.
        managers: Vec<String>,
    },
    /// The CRD is another one by now.
    #[error("the CRD changed while its objects were written")]
    CrdChanged,
    /// A write has dropped fields that the object showed.
    #[error(
        "the answer to a write of {object} lacks the fields {paths}: the API server's schema no longer has them, or admission removed \
         them; Etch writes nothing more before it has read the CRD again"
    )]
    FieldsDropped {
        /// Which object.
        object: String,
        /// The fields, without the keys of maps.
        paths: String,
    },
}

impl StopReason {
    /// The reason without the name of an object.
    pub fn without_names(&self) -> String {
        match self {
            Self::OwnersLost { managers, .. } => {
                format!(
                    "a write made the API server drop the field owners {managers:?}; Etch writes nothing more"
                )
            }
            Self::FieldsDropped { paths, .. } => {
                format!(
                    "the answer to a write lacks the fields {paths}: the API server's schema no longer has them, or admission removed them"
                )
            }
            other => other.to_string(),
        }
    }
}

impl ObjectReconciler<'_> {
    /// Reconciles one object as it had been read by `read`; of one that `is_proved` to store its defaults, only what may follow a changed one.
    ///
    /// # Errors
    /// [`StopReason`], if no further object may be processed. Any other failure is the object's state.
    pub(in crate::operator) async fn reconcile(
        self,
        object: Object,
        read: Instant,
        record: &Record,
        is_proved: bool,
        turn: Turn<'_>,
    ) -> Result<Reconciled, StopReason> {
        let mut following = FollowChanges::new(self.changes, &object, record);
        let stored = is_proved.then(|| (object.resource_version().to_owned(), ObjectState::Stored));
        match self.reconcile_and_follow(object, read, record, stored, &mut following, turn).await {
            Ok(reconciled) => Ok(Reconciled { state: following.finish(reconciled.state), ..reconciled }),
            Err(stop) => {
                following.count_interrupted();
                Err(stop)
            }
        }
    }

    async fn reconcile_and_follow(
        self,
        mut object: Object,
        mut read: Instant,
        record: &Record,
        // The version in which its defaults are stored, and what is said of it: what follows a changed default comes after that.
        mut stored: Option<(String, ObjectState)>,
        following: &mut FollowChanges<'_>,
        mut turn: Turn<'_>,
    ) -> Result<Reconciled, StopReason> {
        let is_audit = self.mode == Mode::Audit;
        let mut backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(10));
        let mut missing = Vec::new();
        let mut needs_rewrite: Option<Write> = None;
        // A write of ours that changed the object and did not prove that its defaults are stored.
        let mut unproved = false;
        let mut suspicion = Suspicion::default();
        let (mut record, nothing) = (record, record.of_nothing());
        for attempt in 1..=ATTEMPTS {
            // Read again, it may have come from another server than before.
            self.changes.note_suspect(&object);
            let is_stored = stored.as_ref().is_some_and(|(version, _)| version == object.resource_version());
            let plan = match is_stored {
                true => Plan::Stored(Proof::UnchangedSincePass),
                false => decide(&object, self.crd, &self.terms, record),
            };
            let plan = following.plan(plan, &object, self.crd, &self.terms, is_audit);
            let write = match (needs_rewrite.take(), plan) {
                (Some(write), Plan::Write(_)) => rewritten(&object, self.crd, &self.terms, &write),
                (None, Plan::Write(write)) => write,
                (_, plan) => {
                    let state = match stored.filter(|_| matches!(plan, Plan::Stored(_))) {
                        Some((_, state)) => state,
                        None => self.state_without_write(&object, plan),
                    };
                    return Ok(Reconciled::of(state, missing));
                }
            };
            // A second proof would be one more write of an object that each write changes: this one proves as much.
            let write = Write { prove: write.prove && !suspicion.altered, ..write };
            if write.strategy != Strategy::Follow {
                let likely = likely(&object, self.crd, &self.terms, &write, self.since);
                if is_audit {
                    let state = if likely.changes { ObjectState::Due } else { ObjectState::Unproved };
                    return Ok(Reconciled::of(state, likely.missing));
                }
                if stored.is_none() {
                    missing = likely.missing;
                }
            }
            let write = match following.has_moved() {
                // The values are in etcd by now, as they were sent.
                true => write,
                false => {
                    let changes = self.changes.list();
                    let write = pinned(write, &object, self.crd, &self.terms, changes);
                    match self.changes.servers_may_lag() {
                        true => with_lag_check(write, &object, changes),
                        false => write,
                    }
                }
            };
            let at_risk = self.at_risk(&object);
            let outcome = self.perform(&object, read, &write, attempt, &mut turn).await?;
            if let Ok(outcome) = &outcome {
                self.record_dropped(&object, &at_risk, outcome);
            }
            let state = match outcome {
                Ok(Outcome::Written { resource_version, .. }) if suspicion.altered => {
                    return Ok(self.mutated(&object, Rejection::mutated(), resource_version));
                }
                Ok(Outcome::Written { resource_version, .. }) => {
                    if missing.is_empty() {
                        // A default that seemed to be stored was not; the answer does not show which.
                        missing.clone_from(&write.missing);
                    }
                    debug!(object = %object.identity(), strategy = write.strategy.as_str(), "stored defaults");
                    ObjectState::Written { resource_version }
                }
                Ok(Outcome::AlreadyStored(_)) if stored.is_some() => {
                    ObjectState::Written { resource_version: object.resource_version().to_owned() }
                }
                // Proved now, by a repeat that changed nothing (Proof::RepeatChangedNothing).
                Ok(Outcome::AlreadyStored(_)) if unproved => {
                    debug!(object = %object.identity(), strategy = write.strategy.as_str(), "stored defaults");
                    ObjectState::Written { resource_version: object.resource_version().to_owned() }
                }
                Ok(Outcome::AlreadyStored(_)) => {
                    missing.clear();
                    ObjectState::AlreadyStored
                }
                Ok(Outcome::Followed(after)) => {
                    debug!(object = %after.identity(), values = write.missing.len(), "followed changed defaults");
                    following.moved(&after, write);
                    (object, read) = (*after, Instant::now());
                    continue;
                }
                Ok(Outcome::Mutated { resource_version }) => {
                    return Ok(self.mutated(&object, Rejection::mutated(), resource_version));
                }
                Ok(Outcome::Gone) => ObjectState::Gone,
                Ok(Outcome::Rejected(rejection)) if write.strategy == Strategy::Follow => {
                    self.log_refusal(&object, &rejection.message, "following rejected");
                    following.rejected(rejection);
                    continue;
                }
                Ok(Outcome::Rejected(rejection)) => {
                    self.log_refusal(&object, &rejection.message, "write rejected");
                    ObjectState::Rejected(rejection)
                }
                Ok(Outcome::Forbidden { verb }) if self.may_write_others(verb).await => {
                    self.log_refusal(&object, verb.as_str(), "forbidden for this object");
                    ObjectState::Rejected(Rejection::forbidden(verb))
                }
                Ok(Outcome::Forbidden { verb }) => {
                    return Err(StopReason::Forbidden(MissingPermissions::of(
                        &self.crd.resource(),
                        vec![verb],
                    )));
                }
                Ok(Outcome::OwnersLost { managers }) => {
                    let owners = managers.join(", ");
                    error!(object = %object.identity(), owners, "owners lost");
                    return Err(StopReason::OwnersLost { object: object.identity().to_string(), managers });
                }
                Ok(Outcome::FieldsDropped { paths }) => {
                    let paths = in_words(&paths);
                    error!(object = %object.identity(), paths, "dropped fields that the schema no longer has");
                    return Err(StopReason::FieldsDropped { object: object.identity().to_string(), paths });
                }
                Ok(Outcome::CrdChanged) => return Err(StopReason::CrdChanged),
                again @ (Ok(
                    Outcome::Conflict
                    | Outcome::Unproved
                    | Outcome::Altered
                    | Outcome::NeedsRewrite
                    | Outcome::Harmful { .. },
                )
                | Err(_)) => {
                    unproved |= matches!(again, Ok(Outcome::Unproved | Outcome::Altered));
                    if unproved || again.is_err() {
                        // The object may be as a write of ours has left it, and that proves nothing (fact W6).
                        record = &nothing;
                    }
                    suspicion.altered |= matches!(again, Ok(Outcome::Altered));
                    if let Ok(Outcome::NeedsRewrite) = again {
                        needs_rewrite = Some(write);
                    }
                    let error = again.as_ref().err();
                    let reason = error.map(ToString::to_string);
                    let outcome = counted(&again).as_str();
                    debug!(object = %object.identity(), outcome, reason, "deciding again");
                    let asked = error.and_then(CallError::retry_after);
                    tokio::select! {
                        stop = self.stopped() => return Err(stop),
                        () = tokio::time::sleep(backoff.failed(asked)) => {}
                    }
                    if !self.read_again(&mut object, &mut read).await {
                        return Ok(Reconciled::of(ObjectState::Gone, missing));
                    }
                    if matches!(again, Ok(Outcome::Unproved)) && suspicion.is_stripped(&object, self.crd) {
                        let left_at = object.resource_version().to_owned();
                        return Ok(self.mutated(&object, Rejection::stripped(), left_at));
                    }
                    continue;
                }
            };
            if write.strategy == Strategy::Rewrite && state.is_stored() && following.is_open() {
                let version = match &state {
                    ObjectState::Written { resource_version } => resource_version,
                    _ => object.resource_version(),
                };
                stored = Some((version.to_owned(), state));
                if !self.read_again(&mut object, &mut read).await {
                    return Ok(Reconciled::of(ObjectState::Gone, missing));
                }
                continue;
            }
            let left_at =
                matches!(state, ObjectState::Rejected(_)).then(|| object.resource_version().to_owned());
            return Ok(Reconciled { state, missing, left_at });
        }
        debug!(object = %object.identity(), "postponed the object");
        Ok(Reconciled::of(ObjectState::Unknown, missing))
    }

    /// Reads an object again, if the server answers, and notes when; whether it is there.
    async fn read_again(&self, object: &mut Object, read: &mut Instant) -> bool {
        match self.cluster.object(&self.crd.resource(), &object.identity()).await {
            Ok(Some(fresh)) => (*object, *read) = (fresh, Instant::now()),
            Ok(None) => return false,
            Err(error) => debug!(object = %object.identity(), %error, "cannot read again"),
        }
        true
    }

    /// Whether other objects than one that was forbidden may be written, as far as the server answers that.
    async fn may_write_others(&self, verb: Verb) -> bool {
        self.cluster.is_permitted(&self.crd.resource(), self.scope, verb).await.unwrap_or_default()
    }

    /// The fields that a write of an object dropped, if etcd holds them.
    fn at_risk(&self, object: &Object) -> Vec<Path> {
        match self.terms.hidden_fields {
            HiddenFields::Hold => Vec::new(),
            HiddenFields::Drop => self.dropped.at_risk(&object.identity(), hidden(object, self.crd)),
        }
    }

    /// Records what etcd does not hold any more after a write.
    fn record_dropped(&self, object: &Object, at_risk: &[Path], outcome: &Outcome) {
        let dropped = match outcome {
            Outcome::Written { .. }
            | Outcome::Followed(_)
            | Outcome::Unproved
            | Outcome::Altered
            | Outcome::Mutated { .. }
            | Outcome::OwnersLost { .. } => true,
            // Nor does etcd hold anything that such a write would drop (fact W1, Proof::WriteChangedNothing).
            Outcome::AlreadyStored(_) => false,
            _ => return,
        };
        if dropped && !at_risk.is_empty() {
            info!(object = %object.identity(), paths = in_words(at_risk), "dropped fields that the schema no longer has");
        }
        self.dropped.clear(&object.identity(), at_risk, dropped);
    }

    fn state_without_write(&self, object: &Object, plan: Plan) -> ObjectState {
        match plan {
            Plan::Skip(why) => {
                debug!(object = %object.identity(), why = why.as_str(), "skipped");
                ObjectState::Skipped(Skipped { why, lacks: !unproved(object, self.crd).is_empty() })
            }
            Plan::Hold(held) => {
                debug!(object = %object.identity(), reason = held.reason.as_str(), "held");
                ObjectState::Held(held.without_keys())
            }
            Plan::Stored(_) | Plan::Write(_) => ObjectState::Stored,
        }
    }

    /// What becomes of an object that each write changes again.
    fn mutated(&self, object: &Object, rejection: Rejection, left_at: String) -> Reconciled {
        self.log_refusal(object, &rejection.message, "write undone");
        Reconciled { state: ObjectState::Rejected(rejection), missing: Vec::new(), left_at: Some(left_at) }
    }

    /// Logs that an object was refused: the first few as warnings.
    fn log_refusal(&self, object: &Object, reason: &str, what: &str) {
        match self.refusal_log.has_room() {
            true => warn!(object = %object.identity(), reason, "{what}"),
            false => debug!(object = %object.identity(), reason, "{what}"),
        }
    }

    /// How many writes of this CRD's objects are not answered for so long that others no longer wait for them.
    pub(in crate::operator) fn writes_without_slot(&self) -> usize {
        self.own_pace.map_or(0, Pace::without_slot)
    }

    /// Waits until there is one more of them; may be dropped at any time.
    pub(in crate::operator) async fn slot_released(&self) {
        match self.own_pace {
            Some(pace) => pace.released().await,
            None => std::future::pending().await,
        }
    }

    /// Waits until a pause begins or ends.
    pub(in crate::operator) async fn pause_changed(&self) {
        match self.pause_watch {
            Some(pause_watch) => pause_watch.changed().await,
            None => std::future::pending().await,
        }
    }

    /// Waits until a pause begins or ends, or the work is cancelled.
    pub(in crate::operator) async fn stopped(&self) -> StopReason {
        let ended = async {
            match self.cancelled {
                Some(ended) => ended.cancelled().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.pause_changed() => StopReason::Pause,
            () = ended => StopReason::Ended,
        }
    }
}

/// What makes it likely that admission undoes what writes do.
#[derive(Default)]
struct Suspicion {
    /// A repeat changed the object again, and none of its owners wrote in between.
    altered: bool,
    /// How many answers lacked a default that the object shows when it is read: a server that lags behind gives such an
    /// answer as well, but not each time.
    stripped: u32,
}

impl Suspicion {
    /// How many such answers are enough.
    const ENOUGH: u32 = 3;

    /// Counts an answer that lacked a default, for the object as it was read then; whether there were enough.
    fn is_stripped(&mut self, read: &Object, crd: &Crd) -> bool {
        self.stripped += u32::from(!has_gap(read, crd));
        self.stripped >= Self::ENOUGH
    }
}
