//! What is kept of a CRD between reconciliations: its target, and how far it has come.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_util::task::TaskTracker;

use super::task::CrdTask;
use crate::cluster::{Backoff, Cluster, Dropped, GenerationCheck, random};
use etch_core::api::Pause;
use etch_core::call_error::CallError;
use etch_core::crd::{Crd, Resource};
use etch_core::engine::crd::protocol::Next;
use etch_core::engine::crd::target::Target;
use etch_core::engine::status::{CrdRevision, Status};
use etch_core::rbac::MissingPermissions;
use etch_core::scope::Scope;

/// How often a missing permission is asked for again. Where Etch has few permissions, every CRD asks.
pub(super) const ASK_AGAIN: Duration = Duration::from_secs(30);
/// How long a task may take to report what it has found out, where another policy follows.
const HANDOVER: Duration = Duration::from_secs(5);
/// So that CRDs do not all ask at the same moment after permissions have changed.
const SPREAD: Duration = Duration::from_secs(3);

/// Why a CRD could not be reconciled.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Call(#[from] CallError),
    #[error("a task panicked")]
    Panicked,
}

impl Error {
    /// How long the server asked us to wait.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Call(error) => error.retry_after(),
            Self::Panicked => None,
        }
    }
}

/// One CRD.
pub(crate) struct Slot {
    target: Option<Target>,
    phase: Phase,
    /// Whether a policy governed it when it was last begun: it has our conditions, whatever `managedFields`
    /// names.
    was_governed: bool,
    /// Notifies the status writer at which revision the CRD is: another client may have changed our
    /// conditions.
    shown: watch::Sender<CrdRevision>,
    /// Notifies the task that writes are paused, or may continue.
    pause: watch::Sender<Option<Pause>>,
    /// Notifies the task which generation a user has resumed.
    resumed: watch::Sender<Option<i64>>,
    pub(crate) backoff: Backoff,
    /// Whether the last task panicked.
    has_panicked: bool,
    /// That of the last task: what its writes have dropped outlives it.
    generation_check: Option<Arc<GenerationCheck>>,
    /// The digest by which objects were counted last.
    counted_by: String,
}

/// How far a CRD has come.
pub(crate) enum Phase {
    /// Nothing to do, and no condition of ours on it.
    Unmanaged,
    /// Nothing to do; conditions and report are kept in place.
    Idle(Box<Status>, watch::Receiver<CrdRevision>),
    /// An attempt is to be made.
    Ready(Box<CrdTask>),
    /// An attempt is to be made later.
    Waiting(Box<CrdTask>, Wait),
    /// A task makes an attempt.
    Running(RunningTask),
}

/// Until when a CRD waits. The wait ends as soon as a pause begins or ends, or a canary is resumed: then the
/// condition changes.
pub(crate) struct Wait {
    until: Instant,
    why: WaitReason,
}

/// Why a CRD waits.
pub(super) enum WaitReason {
    /// Something failed.
    Backoff,
    /// The schema is given time.
    Settling,
    /// This has to be permitted.
    Permission(MissingPermissions),
}

/// A task of its own; it ends when this is dropped.
pub(crate) struct RunningTask {
    task: JoinHandle<()>,
    outcome: oneshot::Receiver<Option<(Box<CrdTask>, Next)>>,
    /// Notifies it that another policy is in force.
    superseded: watch::Sender<bool>,
    /// See [`ObjectReconciler::writes`](crate::operator::object::reconcile::ObjectReconciler::writes).
    writes: TaskTracker,
}

impl Slot {
    pub(crate) fn new() -> Self {
        Self {
            target: None,
            phase: Phase::Unmanaged,
            was_governed: false,
            shown: watch::Sender::default(),
            pause: watch::Sender::default(),
            resumed: watch::Sender::default(),
            backoff: Backoff::new(Duration::from_secs(1), Duration::from_secs(120)),
            has_panicked: false,
            generation_check: None,
            counted_by: String::new(),
        }
    }

    /// See [`Target::is_met_by`].
    pub(super) fn is_current(&self, target: &Target) -> bool {
        self.target.as_ref().is_some_and(|begun| target.is_met_by(begun))
    }

    /// See [`Target::is_of`].
    pub(super) fn is_of(&self, target: &Target) -> bool {
        self.target.as_ref().is_some_and(|begun| target.is_of(begun))
    }

    /// Records at which revision the CRD is.
    pub(super) fn set_shown(&self, revision: &CrdRevision) {
        self.shown.send_if_modified(|before| std::mem::replace(before, revision.clone()) != *revision);
    }

    /// Notifies the task whether writes are paused. It continues: writes under way finish, and its state is
    /// kept.
    pub(super) fn set_pause(&self, pause: Option<&Pause>) {
        self.pause.send_if_modified(|before| {
            let is_new = before.as_ref() != pause;
            *before = pause.cloned();
            is_new
        });
    }

    /// Notifies the task which generation a user has resumed after its canary.
    pub(super) fn set_resumed(&self, resumed: Option<i64>) {
        self.resumed.send_if_modified(|before| std::mem::replace(before, resumed) != resumed);
    }

    /// The generation that a user has resumed after its canary.
    pub(crate) fn resumed(&self) -> watch::Receiver<Option<i64>> {
        self.resumed.subscribe()
    }

    /// The pause that is in force.
    pub(crate) fn pause(&self) -> watch::Receiver<Option<Pause>> {
        self.pause.subscribe()
    }

    /// At which revision the CRD is.
    pub(crate) fn shown(&self) -> watch::Receiver<CrdRevision> {
        self.shown.subscribe()
    }

    /// Whether it may carry our conditions where none of `managedFields` shows it.
    pub(super) fn was_governed(&self) -> bool {
        self.was_governed
    }

    pub(super) fn begin(&mut self, target: Target, phase: Phase) {
        self.was_governed = target.settings.is_some();
        self.target = Some(target);
        self.phase = phase;
        // A task that panics again waits longer.
        if !std::mem::take(&mut self.has_panicked) {
            self.backoff.succeeded();
        }
    }

    /// Begins from the start at the next reconciliation, because the task panicked.
    pub(super) fn panicked(&mut self) {
        self.has_panicked = true;
        self.forget();
    }

    /// Whether the last task panicked.
    pub(super) fn has_panicked(&self) -> bool {
        self.has_panicked
    }

    /// Keeps what notes the writes of the next task; what those of the last one have dropped, now that the
    /// CRD was read again.
    pub(crate) fn renew_generation_check(
        &mut self,
        crd: &Crd,
        generation_check: Arc<GenerationCheck>,
    ) -> Vec<Dropped> {
        let last = self.generation_check.replace(generation_check);
        last.map(|check| check.take_dropped(crd)).unwrap_or_default()
    }

    /// Records the digest by which objects are counted from now on; whether it is another one.
    pub(crate) fn counts_by(&mut self, digest: String) -> bool {
        let is_other = self.counted_by != digest;
        self.counted_by = digest;
        is_other
    }

    pub(super) fn take(&mut self) -> Phase {
        std::mem::replace(&mut self.phase, Phase::Unmanaged)
    }

    pub(super) fn put(&mut self, phase: Phase) {
        self.phase = phase;
    }

    /// Begins from the start at the next reconciliation.
    pub(super) fn forget(&mut self) {
        self.target = None;
    }

    /// Ends what is under way after its writes: no further one begins, and those under way come to their end.
    /// Under another policy, none may follow that completes them. Returns the task if it has ended by itself,
    /// with what it has found out.
    pub(super) async fn stop_after_writes(&mut self) -> Option<Box<CrdTask>> {
        let mut ended = None;
        if let Phase::Running(work) = &mut self.phase {
            work.superseded.send_replace(true);
            work.writes.close();
            work.writes.wait().await;
            ended = timeout(HANDOVER, &mut work.outcome).await.ok().and_then(Result::ok).flatten();
        }
        self.stop().await;
        ended.map(|(task, _)| task)
    }

    /// Ends what is under way, and waits until it has ended: no write of it follows.
    pub(crate) async fn stop(&mut self) {
        self.forget();
        if let Phase::Running(mut work) = self.take() {
            work.task.abort();
            // An error here means that it was aborted.
            let _ = (&mut work.task).await;
        }
    }
}

impl Phase {
    pub(super) fn waiting(task: Box<CrdTask>, wait: Duration, why: WaitReason) -> Self {
        Self::Waiting(task, Wait { until: Instant::now() + wait, why })
    }
}

impl Wait {
    /// How long it still lasts; `None` if it is over.
    pub(super) async fn left(&mut self, task: &mut CrdTask, cluster: &Cluster) -> Option<Duration> {
        if task.has_pause_changed() {
            return None;
        }
        if !matches!(self.why, WaitReason::Backoff) && task.signals.permissions.have_changed() {
            let part = (random() % 16) as u32;
            self.until = self.until.min(Instant::now() + SPREAD * part / 16);
        }
        let left = self.until.saturating_duration_since(Instant::now());
        if !left.is_zero() {
            return Some(left);
        }
        // This asks only about the first missing verb, and in one namespace: the task asks about the others
        // when it continues.
        let WaitReason::Permission(missing) = &self.why else { return None };
        let first = &missing.verbs[..missing.verbs.len().min(1)];
        let namespace = missing.namespaces.as_ref().and_then(|namespaces| namespaces.names().first());
        let scope = namespace.map_or(Scope::All, |namespace| Scope::Namespace(namespace.clone()));
        let MissingPermissions { group, plural, .. } = missing;
        let resource = Resource { group: group.clone(), plural: plural.clone(), ..task.crd().resource() };
        if let Ok(None) = cluster.missing_in(&resource, &scope, first).await {
            return None;
        }
        self.until = Instant::now() + ASK_AGAIN;
        Some(ASK_AGAIN)
    }
}

impl RunningTask {
    /// Starts a task; `ended` is called when it has ended.
    pub(crate) fn start(
        mut task: Box<CrdTask>,
        span: tracing::Span,
        ended: impl FnOnce() + Send + 'static,
    ) -> Self {
        use tracing::Instrument as _;
        let (sender, outcome) = oneshot::channel();
        let (writes, superseded) = (task.writes.clone(), task.superseded.clone());
        let work = async move {
            let worked = AssertUnwindSafe(async {
                let next = task.run().await;
                (task, next)
            });
            // This fails if the task was stopped: the receiver is gone then.
            let _ = sender.send(worked.catch_unwind().await.ok());
            ended();
        };
        Self { task: tokio::spawn(work.instrument(span)), outcome, superseded, writes }
    }

    /// The task, and what is to be done next; `None` while it works.
    pub(super) async fn end(&mut self) -> Option<Result<(Box<CrdTask>, Next), Error>> {
        match self.outcome.try_recv() {
            Ok(Some(end)) => Some(Ok(end)),
            Err(oneshot::error::TryRecvError::Empty) => None,
            Ok(None) | Err(oneshot::error::TryRecvError::Closed) => Some(Err(Error::Panicked)),
        }
    }
}

impl Drop for RunningTask {
    fn drop(&mut self) {
        self.task.abort();
    }
}
