//! Reconciles one object: performs what its [`ObjectMachine`] asks for, and logs the outcome.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, info, warn};

use crate::cluster::{Backoff, Cluster, GenerationCheck, Pace, Scope};
use crate::operator::object::outcome::counted;
use crate::operator::object::pause::PauseWatch;
use crate::operator::object::refusal_log::RefusalLog;
use crate::operator::spans::in_words;
use etch_core::call_error::CallError;
use etch_core::engine::Ended;
use etch_core::engine::stop_reason::StopReason;
use etch_core::namespaces::Namespaces;
use etch_core::object::Object;
use etch_core::object_machine::{Again, ObjectMachine, Reconciled, Rules, Step, Stop};
use etch_core::object_state::ObjectState;
use etch_core::plan::{Outcome, RejectionKind, Strategy, Write};
use etch_core::rbac::{MissingPermissions, Verb};

/// The turn of an object to be decided about, which passes to the next one as soon as its first write begins
/// or it needs none. `None` if it has not waited for one.
pub(crate) type Turn = Option<OwnedSemaphorePermit>;

/// What drives the machines of objects of one CRD.
pub(crate) struct ObjectReconciler {
    pub(crate) cluster: Cluster,
    pub(crate) pace: Arc<Pace>,
    /// The CRD's own, beside the one that all share: a problem of one CRD slows down only that CRD.
    pub(crate) own_pace: Option<Arc<Pace>>,
    /// Shows when a pause begins or ends: no further write begins then. `None` if no pause applies.
    pub(crate) pause_watch: Option<PauseWatch>,
    /// Cancelled when no new work may begin.
    pub(crate) cancelled: Option<CancellationToken>,
    /// Which objects of the CRD are meant.
    pub(crate) scope: Scope,
    pub(crate) rules: Rules,
    /// Whether the CRD is still the one that this was made for.
    pub(crate) generation_check: Arc<GenerationCheck>,
    pub(crate) refusal_log: Arc<RefusalLog>,
}

impl ObjectReconciler {
    /// Drives the machine of an object to its end, from this step on; the object had been read by `read`.
    pub(crate) async fn reconcile(
        &self,
        mut machine: ObjectMachine,
        step: Step,
        read: Instant,
        turn: Turn,
    ) -> Ended {
        let result = self.drive(&mut machine, step, read, turn).await;
        if result.is_err() {
            machine.interrupt();
        }
        Ended { result, found: machine.into_found() }
    }

    /// # Errors
    /// [`StopReason`], if no further object may be processed. Any other failure is the object's state.
    async fn drive(
        &self,
        machine: &mut ObjectMachine,
        mut step: Step,
        mut read: Instant,
        mut turn: Turn,
    ) -> Result<Reconciled, StopReason> {
        let mut backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(10));
        let mut asked = None;
        loop {
            let next = match step {
                Step::Write => self.write(machine, &mut read, &mut asked, &mut turn).await,
                Step::ReadAgain { waits } => {
                    let wait = if waits { backoff.failed(asked.take()) } else { Duration::ZERO };
                    self.read_again(machine, &mut read, wait).await
                }
                Step::AskOthers(verb) => {
                    let may = self.may_write_others(machine.object(), verb).await;
                    if may == Some(true) {
                        self.log_refusal(machine.object(), verb.as_str(), "forbidden for this object");
                    }
                    Ok(machine.may_write_others(verb, may))
                }
                Step::Done(reconciled) => {
                    self.log_end(machine.object(), &reconciled.state);
                    return Ok(reconciled);
                }
                Step::Stop(stop) => return Err(self.stop_reason(machine.object(), stop)),
            };
            step = next?;
        }
    }

    /// Performs the write that is planned; `read` is when the object was, and `asked` how long the server
    /// asked Etch to wait.
    async fn write(
        &self,
        machine: &mut ObjectMachine,
        read: &mut Instant,
        asked: &mut Option<Duration>,
        turn: &mut Turn,
    ) -> Result<Step, StopReason> {
        let object = machine.object();
        let Some(write) = machine.planned() else { return Ok(machine.wrote(None)) };
        let outcome = self.perform(object, *read, write, machine.attempts(), turn).await?;
        self.log_outcome(object, write, &outcome);
        let dropped = outcome.as_ref().map_or(&[][..], |outcome| machine.dropped(outcome));
        if !dropped.is_empty() {
            let paths = in_words(dropped);
            info!(object = %object.identity(), paths, "dropped what etcd may have held of these fields");
        }
        if let Ok(Outcome::Followed(_)) = &outcome {
            *read = Instant::now();
        }
        *asked = outcome.as_ref().err().and_then(CallError::retry_after);
        Ok(machine.wrote(outcome.ok()))
    }

    /// Reads an object again after a wait, and notes when it was.
    async fn read_again(
        &self,
        machine: &mut ObjectMachine,
        read: &mut Instant,
        wait: Duration,
    ) -> Result<Step, StopReason> {
        if !wait.is_zero() {
            tokio::select! {
                stop = self.stopped() => return Err(stop),
                () = tokio::time::sleep(wait) => {}
            }
        }
        let again = match self.cluster.object(&self.rules.crd.resource(), &machine.object().identity()).await
        {
            Ok(Some(fresh)) => Again::Read(Box::new(fresh)),
            Ok(None) => Again::Gone,
            Err(error) => {
                debug!(object = %machine.object().identity(), %error, "cannot read again");
                Again::Unanswered
            }
        };
        if let Again::Read(_) = again {
            *read = Instant::now();
        }
        Ok(machine.read(again))
    }

    fn stop_reason(&self, object: &Object, stop: Stop) -> StopReason {
        match stop {
            Stop::Forbidden(verb) => {
                let missing = MissingPermissions::of(&self.rules.crd.resource(), vec![verb]);
                let namespace = object.namespace().filter(|_| matches!(self.scope, Scope::Namespaces(_)));
                let namespaces = Namespaces::new(namespace.map(str::to_owned));
                StopReason::Forbidden(missing.in_namespaces(namespaces))
            }
            Stop::OwnersLost(managers) => {
                StopReason::OwnersLost { object: object.identity().to_string(), managers }
            }
            Stop::FieldsDropped(paths) => {
                StopReason::FieldsDropped { object: object.identity().to_string(), paths: in_words(&paths) }
            }
            Stop::CrdChanged => StopReason::CrdChanged,
        }
    }

    /// Logs the outcome of a write.
    fn log_outcome(&self, object: &Object, write: &Write, outcome: &Result<Outcome, CallError>) {
        match outcome {
            Ok(Outcome::Followed(_)) => {
                debug!(object = %object.identity(), values = write.missing.len(), "followed changed defaults");
            }
            Ok(Outcome::Rejected(rejection)) => {
                let what =
                    if write.strategy == Strategy::Follow { "following rejected" } else { "write rejected" };
                self.log_refusal(object, &rejection.message, what);
            }
            Ok(Outcome::OwnersLost { managers }) => {
                error!(object = %object.identity(), owners = managers.join(", "), "owners lost");
            }
            Ok(Outcome::FieldsDropped { paths }) => {
                let paths = in_words(paths);
                error!(object = %object.identity(), paths, "dropped fields that the schema no longer has");
            }
            Ok(
                Outcome::Written { .. }
                | Outcome::AlreadyStored(_)
                | Outcome::Gone
                | Outcome::Mutated { .. }
                | Outcome::Forbidden { .. }
                | Outcome::CrdChanged,
            ) => {}
            Ok(_) | Err(_) => {
                let reason = outcome.as_ref().err().map(ToString::to_string);
                debug!(object = %object.identity(), outcome = counted(outcome).as_str(), reason, "deciding again");
            }
        }
    }

    /// Logs the outcome for an object.
    fn log_end(&self, object: &Object, state: &ObjectState) {
        match state {
            ObjectState::Written { .. } => debug!(object = %object.identity(), "stored defaults"),
            ObjectState::Skipped(skipped) => {
                debug!(object = %object.identity(), why = skipped.why.as_str(), "skipped");
            }
            ObjectState::Held(held) => {
                debug!(object = %object.identity(), reason = held.reason.as_str(), "held");
            }
            ObjectState::Rejected(rejection) if rejection.kind == RejectionKind::Mutated => {
                self.log_refusal(object, &rejection.message, "write undone");
            }
            ObjectState::Unknown => debug!(object = %object.identity(), "postponed the object"),
            _ => {}
        }
    }

    /// Whether other objects than one that was forbidden may be written; `None` if the server does not answer.
    async fn may_write_others(&self, object: &Object, verb: Verb) -> Option<bool> {
        let scope = self.scope.around(object.namespace());
        let may = self.cluster.is_permitted(&self.rules.crd.resource(), &scope, verb).await;
        may.inspect_err(|error| debug!(%error, "cannot read the permissions")).ok()
    }

    /// Logs that an object was refused: the first few as warnings.
    fn log_refusal(&self, object: &Object, reason: &str, what: &str) {
        match self.refusal_log.has_room() {
            true => warn!(object = %object.identity(), reason, "{what}"),
            false => debug!(object = %object.identity(), reason, "{what}"),
        }
    }

    /// How many writes of this CRD's objects have waited for an answer for so long that others no longer wait
    /// for them.
    pub(crate) fn writes_without_slot(&self) -> usize {
        self.own_pace.as_deref().map_or(0, Pace::without_slot)
    }

    /// Waits until there is one more of them; may be dropped at any time.
    pub(crate) async fn slot_released(&self) {
        match &self.own_pace {
            Some(pace) => pace.released().await,
            None => std::future::pending().await,
        }
    }

    /// Waits until a pause begins or ends.
    pub(crate) async fn pause_changed(&self) {
        match &self.pause_watch {
            Some(pause_watch) => pause_watch.changed().await,
            None => std::future::pending().await,
        }
    }

    /// Waits until a pause begins or ends, or the work is cancelled.
    pub(crate) async fn stopped(&self) -> StopReason {
        let ended = async {
            match &self.cancelled {
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
