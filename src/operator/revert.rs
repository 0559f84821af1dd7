//! Removes, for `etch revert`, what passes have stored, after a CRD was rolled back.
//! [`RevertMachine`] decides about each object as it is read.

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::cluster::{Cluster, ObjectSource, Pace, ReadError};
use crate::operator::object::reconcile::{DriveState, ObjectReconciler};
use etch_core::api::Mode;
use etch_core::crd::Crd;
use etch_core::engine::stop_reason::StopReason;
use etch_core::object::{Identity, Object};
use etch_core::object_machine::{RevertMachine, Reverted, Rules};
use etch_core::plan::{Terms, Unstorable};
use etch_core::scope::Scope;

/// How many objects are processed at once.
const AT_ONCE: usize = 8;

/// What is to be done.
#[derive(Clone, Debug)]
pub struct Reversion {
    /// The CRD, as the cluster has it.
    pub crd: Arc<Crd>,
    /// Which of its objects; no other one is read or written.
    pub scope: Scope,
    /// What can be removed.
    pub unstorable: Arc<Unstorable>,
    /// Whether it is removed; otherwise it is only shown.
    pub removes: bool,
    /// The limits of writing.
    pub pace: Arc<Pace>,
    /// Cancelled when nothing more is to be begun. What is under way is brought to its end.
    pub ended: CancellationToken,
}

/// Why a reversion was not completed. What was removed until then is removed.
#[derive(Debug, thiserror::Error)]
pub enum RevertError {
    /// The objects cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// No further object may be processed by this run.
    #[error("{0}; run the command again to remove the rest")]
    Again(StopReason),
    /// No further object may be processed.
    #[error(transparent)]
    Stop(StopReason),
}

impl From<StopReason> for RevertError {
    fn from(reason: StopReason) -> Self {
        match reason {
            StopReason::Forbidden(_) | StopReason::OwnersLost { .. } => Self::Stop(reason),
            StopReason::Ended
            | StopReason::Pause
            | StopReason::CrdChanged
            | StopReason::FieldsDropped { .. } => Self::Again(reason),
        }
    }
}

/// Decides about each object of a CRD and, where that is asked for, removes what goes; `each` takes the
/// outcome for each.
///
/// # Errors
/// See [`RevertError`]. Objects that are refused or held stop nothing.
pub async fn revert(
    cluster: &Cluster,
    reversion: &Reversion,
    each: &mut (dyn FnMut(Identity, Reverted) + Send),
) -> Result<(), RevertError> {
    let Reversion { crd, scope, pace, .. } = reversion;
    let rules =
        Rules { crd: crd.clone(), terms: Terms::default(), mode: Mode::Persist, since: Arc::default() };
    let reconciler = ObjectReconciler::of_command(cluster, rules, scope, pace);
    let source = ObjectSource::from(cluster.clone());
    let mut pages = source.pages(vec![crd.resource()], scope);
    loop {
        let read = Instant::now();
        let Some(page) = pages.try_next().await? else { return Ok(()) };
        let objects = page.views().map(|object| one(&reconciler, reversion, object, read));
        let mut objects = stream::iter(objects).buffer_unordered(AT_ONCE);
        let mut stopped = None;
        while let Some((identity, reverted, ended)) = objects.next().await {
            each(identity, reverted);
            // What is under way is brought to its end.
            if let Err(reason) = ended {
                reversion.ended.cancel();
                stopped = stopped.or(Some(reason));
            }
        }
        if let Some(reason) = stopped {
            return Err(reason.into());
        }
    }
}

/// Drives one object until it is done.
async fn one(
    reconciler: &ObjectReconciler,
    reversion: &Reversion,
    object: Object,
    read: Instant,
) -> (Identity, Reverted, Result<(), StopReason>) {
    let Reversion { crd, unstorable, removes, ended, .. } = reversion;
    let identity = object.identity();
    let (mut machine, step) = RevertMachine::begin(crd.clone(), unstorable.clone(), *removes, object);
    let ended = reconciler.drive(&mut machine, step, &mut DriveState::new(read, None), ended).await;
    (identity, machine.into_reverted(), ended)
}
