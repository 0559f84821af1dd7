//! Drives the [`Machine`] of one object: performs its steps, and logs the outcome. The operator,
//! `etch persist`, `existing: Persist` and `etch revert` have their objects driven here.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, error, info, warn};

use crate::cluster::{Backoff, Cluster, GenerationCheck, Pace};
use crate::operator::object::pause::PauseWatch;
use crate::operator::object::refusal_log::RefusalLog;
use etch_core::call_error::CallError;
use etch_core::engine::Ended;
use etch_core::engine::stop_reason::StopReason;
use etch_core::namespaces::Namespaces;
use etch_core::object::Object;
use etch_core::object_machine::{Again, Machine, ObjectMachine, Rules, Step, Stop};
use etch_core::object_state::ObjectState;
use etch_core::plan::counted::{counted, in_words};
use etch_core::plan::{Outcome, RejectionKind, Write};
use etch_core::rbac::{MissingPermissions, Verb};
use etch_core::scope::Scope;

/// The waits before an object is read again.
const FIRST_WAIT: Duration = Duration::from_millis(200);
const LAST_WAIT: Duration = Duration::from_secs(10);

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
    /// The writes under way. Once it is closed, none begins.
    pub(crate) writes: TaskTracker,
}

/// What has objects driven.
pub(crate) trait Caller: Sync {
    /// Is ready as soon as nothing more may begin. It is polled before each write begins, and may be dropped
    /// at any time.
    fn stopped(&self) -> impl Future<Output = StopReason> + Send;

    /// Handles the outcome of a write, and how long it took.
    fn wrote(&self, _: &Object, _: &Write, _: &Result<Outcome, CallError>, _took: Duration) {}
}

/// How far an object has come, beside its machine.
pub(crate) struct DriveState {
    /// When the object was read, at the latest.
    pub(super) read: Instant,
    pub(super) turn: Turn,
    backoff: Backoff,
    /// How long the server asked Etch to wait.
    asked: Option<Duration>,
}

impl DriveState {
    /// Of an object that had been read by `read`.
    pub(crate) fn new(read: Instant, turn: Turn) -> Self {
        Self { read, turn, backoff: Backoff::new(FIRST_WAIT, LAST_WAIT), asked: None }
    }
}

impl ObjectReconciler {
    /// For a command, whose writes no policy paces or pauses.
    pub(crate) fn of_command(cluster: &Cluster, rules: Rules, scope: &Scope, pace: &Arc<Pace>) -> Self {
        Self {
            cluster: cluster.clone(),
            pace: pace.clone(),
            own_pace: None,
            pause_watch: None,
            cancelled: None,
            scope: scope.clone(),
            generation_check: Arc::new(GenerationCheck::new(&rules.crd, None)),
            rules,
            refusal_log: Arc::default(),
            writes: TaskTracker::new(),
        }
    }

    /// Drives the machine of an object to its end, from this step on; the object had been read by `read`.
    pub(crate) async fn reconcile(
        &self,
        mut machine: ObjectMachine,
        step: Step,
        read: Instant,
        turn: Turn,
    ) -> Ended {
        let result = self.drive(&mut machine, step, &mut DriveState::new(read, turn), self).await;
        match &result {
            Ok(reconciled) => self.log_end(machine.object(), &reconciled.state),
            Err(_) => machine.interrupt(),
        }
        Ended { result, found: machine.into_found() }
    }

    /// Drives a machine until it is done, from this step on.
    ///
    /// # Errors
    /// [`StopReason`], if no further object may be processed. Any other failure is part of the machine's end.
    pub(crate) async fn drive<M: Machine>(
        &self,
        machine: &mut M,
        mut step: Step<M::End>,
        state: &mut DriveState,
        caller: &impl Caller,
    ) -> Result<M::End, StopReason> {
        loop {
            step = match step {
                Step::Write => self.write(machine, state, caller).await?,
                Step::ReadAgain { waits } => {
                    let wait = if waits { state.backoff.failed(state.asked.take()) } else { Duration::ZERO };
                    self.read_again(machine, state, wait, caller).await?
                }
                Step::AskOthers(verb) => {
                    let may = self.may_write_others(machine.object(), verb).await;
                    if may == Some(true) {
                        self.log_refusal(machine.object(), verb.as_str(), "forbidden for this object");
                    }
                    machine.may_write_others(verb, may)
                }
                Step::Done(end) => return Ok(end),
                Step::Stop(stop) => return Err(self.stop_reason(machine.object(), stop)),
            };
        }
    }

    /// Performs the write that is planned.
    async fn write<M: Machine>(
        &self,
        machine: &mut M,
        state: &mut DriveState,
        caller: &impl Caller,
    ) -> Result<Step<M::End>, StopReason> {
        let object = machine.object();
        let Some(write) = machine.planned() else { return Ok(machine.wrote(None)) };
        let outcome = self.perform(object, write, machine.attempts(), state, caller).await?;
        let dropped = outcome.as_ref().map_or(&[][..], |outcome| machine.dropped(outcome));
        if !dropped.is_empty() {
            let paths = in_words(dropped);
            info!(object = %object.identity(), paths, "dropped what etcd may have held of these fields");
        }
        if let Ok(Outcome::Rejected(rejection)) = &outcome {
            self.log_refusal(object, &rejection.message, "write rejected");
        }
        if let Ok(Outcome::Followed(_)) = &outcome {
            state.read = Instant::now();
        }
        state.asked = outcome.as_ref().err().and_then(CallError::retry_after);
        let (counted, reason) = (counted(&outcome), outcome.as_ref().err().map(ToString::to_string));
        let step = machine.wrote(outcome.ok());
        if let Step::ReadAgain { waits: true } = step {
            let object = machine.object().identity();
            debug!(%object, outcome = counted.as_str(), reason, "deciding again");
        }
        Ok(step)
    }

    /// Reads an object again after a wait, and notes when it was.
    async fn read_again<M: Machine>(
        &self,
        machine: &mut M,
        state: &mut DriveState,
        wait: Duration,
        caller: &impl Caller,
    ) -> Result<Step<M::End>, StopReason> {
        if !wait.is_zero() {
            tokio::select! {
                biased;
                stop = caller.stopped() => return Err(stop),
                () = tokio::time::sleep(wait) => {}
            }
        }
        let identity = machine.object().identity();
        let again = match self.cluster.object(&self.rules.crd.resource(), &identity).await {
            Ok(Some(fresh)) => {
                state.read = Instant::now();
                Again::Read(Box::new(fresh))
            }
            Ok(None) => Again::Gone,
            Err(error) if error.code() == Some(403) => return Ok(Step::AskOthers(Verb::Get)),
            Err(error) => {
                debug!(object = %identity, %error, "cannot read again");
                Again::Unanswered
            }
        };
        Ok(machine.read(again))
    }

    /// Why no further object may be processed, in words and in the log.
    fn stop_reason(&self, object: &Object, stop: Stop) -> StopReason {
        match stop {
            Stop::Forbidden(verb) => {
                let missing = MissingPermissions::of(&self.rules.crd.resource(), vec![verb]);
                let namespace = object.namespace().filter(|_| matches!(self.scope, Scope::Namespaces(_)));
                let namespaces = Namespaces::new(namespace.map(str::to_owned));
                StopReason::Forbidden(missing.in_namespaces(namespaces))
            }
            Stop::OwnersLost(managers) => {
                error!(object = %object.identity(), owners = managers.join(", "), "owners lost");
                StopReason::OwnersLost { object: object.identity().to_string(), managers }
            }
            Stop::FieldsDropped(paths) => {
                let (object, paths) = (object.identity().to_string(), in_words(&paths));
                error!(object, paths, "a write dropped fields, by a change of the CRD or by admission");
                StopReason::FieldsDropped { object, paths }
            }
            Stop::CrdChanged => StopReason::CrdChanged,
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

    /// Whether other objects than one that was forbidden may be written; `None` if the server does not
    /// answer.
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
}

impl Caller for ObjectReconciler {
    /// Waits until a pause begins or ends, or the work is cancelled.
    async fn stopped(&self) -> StopReason {
        let cancelled = async {
            match &self.cancelled {
                Some(cancelled) => cancelled.stopped().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.pause_changed() => StopReason::Pause,
            stopped = cancelled => stopped,
        }
    }

    fn wrote(&self, object: &Object, write: &Write, outcome: &Result<Outcome, CallError>, _: Duration) {
        if let Ok(Outcome::Followed(_)) = outcome {
            debug!(object = %object.identity(), values = write.missing.len(), "followed changed defaults");
        }
    }
}

impl Caller for CancellationToken {
    async fn stopped(&self) -> StopReason {
        self.cancelled().await;
        StopReason::Ended
    }
}
