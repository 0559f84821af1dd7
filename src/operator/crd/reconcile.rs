//! Reconciles a CRD with its policy.
//! Objects are the work of the CRD's own task.
//!
//! Level-triggered: it reads the index and the CRD's [`Slot`], never the event that called for it.
//!
//! 1. Which policy governs the CRD? None: remove our conditions, and be idle.
//! 2. Has the CRD or its policy changed? Stop what is under way, writes only if the CRD has; read the CRD
//!    again, and check it.
//! 3. Is there anything to do for its objects? Settling and missing permissions are waits, that is requeues.
//! 4. Start the task that makes a pass over the objects and watches them; its end asks for the next
//!    reconciliation.

use std::sync::Arc;
use std::time::Duration;

use kube::ResourceExt;
use kube::runtime::controller::Action;
use tracing::{error, warn};

use super::slot::{ASK_AGAIN, Error, Phase, Slot, WaitReason};
use super::task::CrdTask;
use crate::cluster::CrdMeta;
use crate::operator::context::Context;
use crate::operator::spans::seconds;
use crate::operator::status::writer::recheck_if_due;
use etch_core::engine::crd::protocol::Next;
use etch_core::engine::crd::target::Target;
use etch_core::message;

/// The state of the report on a CRD that no policy selects any more.
const NOT_SELECTED: &str = "NotSelected";
/// How often Etch tries to write the report on a CRD that it does not process, if another replica writes it
/// meanwhile.
const REPORT_ATTEMPTS: usize = 3;

/// Reconciles one CRD.
///
/// # Errors
/// Where the API server does not answer as it should; [`retry`] decides when to try again.
pub(crate) async fn reconcile(crd: Arc<CrdMeta>, context: Arc<Context>) -> Result<Action, Error> {
    let name = crd.name_any();
    let slot = context.slot(&name);
    let mut slot = slot.lock().await;
    let Some(target) = context.target(&name) else {
        slot.stop().await;
        return Ok(Action::await_change());
    };
    slot.set_shown(&target.revision);
    slot.set_pause(target.settings.as_ref().and_then(|settings| settings.pause.as_ref()));
    slot.set_resumed(target.resumed);
    if !slot.is_current(&target) {
        let before = match slot.is_of(&target) {
            true => slot.stop_after_writes().await,
            false => {
                slot.stop().await;
                None
            }
        };
        begin(&mut slot, &name, target, before, &context).await?;
    }
    proceed(&mut slot, &name, &context).await
}

/// When to reconcile again after an error.
pub(crate) fn retry(crd: Arc<CrdMeta>, failed: &Error, context: Arc<Context>) -> Action {
    let (name, again_in) = (crd.name_any(), context.back_off(&crd.name_any(), failed));
    warn!(crd = name, error = %failed, retry_in_seconds = seconds(again_in), "cannot reconcile");
    Action::requeue(again_in)
}

/// Reads the CRD, checks it, and sets what conditions do not depend on its objects. `before` is the task that
/// another policy has ended.
async fn begin(
    slot: &mut Slot,
    name: &str,
    target: Target,
    before: Option<Box<CrdTask>>,
    context: &Arc<Context>,
) -> Result<(), Error> {
    if target.settings.is_none() && target.revision.entry.is_none() && !slot.was_governed() {
        context.cluster.metrics().forget(name);
        slot.begin(target, Phase::Unmanaged);
        return Ok(());
    }
    let Some((checked, mut status, turn)) = context.check(name, &target).await? else {
        // The index knows another CRD of this name: the watch that feeds it may be silent.
        context.cluster.relist();
        return Ok(());
    };
    if slot.has_panicked() {
        status.set_conditions(message::panicked(&checked.findings));
    }
    // Only a restore of etcd lets a generation fall, and the watch of CRDs may be silent after one. Until the
    // list that follows, the CRD that was read is the one that the index means.
    if checked.generation < target.generation {
        context.cluster.relist();
    }
    let target = Target { generation: checked.generation.max(target.generation), ..target };
    let at_rest = match (&target.settings, &checked.crd) {
        (None, _) => Some((NOT_SELECTED, "", false)),
        (Some(settings), None) => {
            let crd_status = message::unreadable(&checked.findings);
            let state = crd_status.reason.as_str();
            status.set_conditions(crd_status);
            Some((state, &*settings.policy, true))
        }
        (Some(_), Some(_)) => None,
    };
    let phase = match (at_rest, target.settings.clone(), checked.crd.clone()) {
        (None, Some(settings), Some(crd)) => {
            let settings = checked.findings.permitted(settings);
            let mut task = context.task(crd, checked, settings, status, turn, slot);
            if let Some(before) = before {
                task.continue_after(*before);
            }
            Phase::Ready(Box::new(task))
        }
        (at_rest, ..) => {
            context.cluster.metrics().forget_phantom_objects(name);
            context.writer.write(&mut status).await;
            // Another replica may write it in between, until it notices that this one leads.
            for _ in 0..REPORT_ATTEMPTS {
                context.writer.read_report(&mut status).await?;
                if let Some((state, policy, forget)) = at_rest {
                    status.set_report_state(state, policy, forget);
                }
                context.writer.write(&mut status).await;
                if !status.take_other() {
                    break;
                }
            }
            // Last: what fails before is tried again for as long as the CRD carries them.
            if target.settings.is_none() {
                status.remove_conditions();
                context.writer.write(&mut status).await;
            }
            Phase::Idle(Box::new(status), slot.shown())
        }
    };
    slot.begin(target, phase);
    Ok(())
}

/// Continues from the CRD's phase.
async fn proceed(slot: &mut Slot, name: &str, context: &Arc<Context>) -> Result<Action, Error> {
    loop {
        let (phase, action) = match slot.take() {
            Phase::Unmanaged => (Phase::Unmanaged, Some(Action::await_change())),
            Phase::Idle(mut status, mut changed) => {
                let check = recheck_if_due(&context.writer, &mut status, &mut changed).await;
                let action = check.map_or(Action::await_change(), Action::requeue);
                (Phase::Idle(status, changed), Some(action))
            }
            Phase::Waiting(mut task, mut wait) => match wait.left(&mut task, &context.cluster).await {
                Some(left) => {
                    let check = task.recheck_if_due().await;
                    let next = check.map_or(left, |check| check.min(left));
                    (Phase::Waiting(task, wait), Some(Action::requeue(next)))
                }
                None => (Phase::Ready(task), None),
            },
            Phase::Ready(task) => (context.start_task(name, task), Some(Action::await_change())),
            Phase::Running(mut work) => match work.end().await {
                None => (Phase::Running(work), Some(Action::await_change())),
                Some(Ok((_, Next::Changed))) => return Ok(begin_again(slot)),
                Some(Ok((task, next))) => {
                    if next == Next::Idle {
                        context.cluster.metrics().forget_phantom_objects(name);
                    }
                    (after(task, next), None)
                }
                Some(Err(panicked)) => {
                    error!(crd = name, "task panicked; restarting");
                    slot.panicked();
                    return Err(panicked);
                }
            },
        };
        slot.put(phase);
        if let Some(action) = action {
            return Ok(action);
        }
    }
}

/// Has the CRD read again: it is another one, whether or not the index knows that yet.
fn begin_again(slot: &mut Slot) -> Action {
    slot.forget();
    Action::requeue(Duration::ZERO)
}

/// The phase for a task's next step.
fn after(task: Box<CrdTask>, next: Next) -> Phase {
    match next {
        Next::Changed => Phase::Ready(task),
        Next::Idle => {
            let (status, changed) = task.into_status();
            Phase::Idle(Box::new(status), changed)
        }
        Next::Wait(wait) => Phase::waiting(task, wait, WaitReason::Backoff),
        Next::Settle(wait) => Phase::waiting(task, wait, WaitReason::Settling),
        Next::Permission(missing) => Phase::waiting(task, ASK_AGAIN, WaitReason::Permission(missing)),
    }
}
