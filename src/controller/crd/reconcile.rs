//! Reconciling a CRD: whatever has changed, it is brought to do what its policy says, and nothing else.
//! It must not touch an object: that is the work of the CRD's own task.
//!
//! Level-triggered: it looks at the index and at what it keeps in the CRD's [`Slot`], never at the event that called for it.
//!
//! 1. Which policy governs the CRD? None: take back what was said on it, and rest.
//! 2. Has the CRD or its policy changed? Stop what is under way, read the CRD anew, and check it.
//! 3. Is there anything to do for its objects? Settling and missing permissions are waits, that is requeues.
//! 4. Start the task that makes a pass over the objects and watches them; its end asks for the next reconciliation.

use std::sync::Arc;
use std::time::Duration;

use kube::ResourceExt;
use kube::runtime::controller::Action;
use tracing::{error, warn};

use super::slot::{ASK_AGAIN, Phase, Slot, Wanted, Why};
use super::task::{CrdTask, Next};
use crate::cluster::CrdMeta;
use crate::controller::context::Context;
use crate::controller::error::Error;
use crate::controller::spans::seconds;
use crate::controller::status::message;
use crate::controller::status::writer::Recorder;

/// The state of the report on a CRD that no policy selects any more.
const NOT_SELECTED: &str = "NotSelected";

/// Brings one CRD to where it should be.
///
/// # Errors
/// Where the API server does not answer as it should; [`retry`] says when to try again.
pub(in crate::controller) async fn reconcile(
    crd: Arc<CrdMeta>,
    context: Arc<Context>,
) -> Result<Action, Error> {
    let name = crd.name_any();
    let slot = context.slot(&name);
    let mut slot = slot.lock().await;
    let Some(wanted) = context.wanted(&name) else {
        slot.stop().await;
        return Ok(Action::await_change());
    };
    slot.conditions_are(wanted.conditions);
    slot.pause_is(wanted.settings.as_ref().and_then(|settings| settings.pause.as_ref()));
    if !slot.is_for(&wanted) {
        slot.stop().await;
        begin(&mut slot, &name, wanted, &context).await?;
    }
    proceed(&mut slot, &name, &context).await
}

/// When to reconcile again after an error.
pub(in crate::controller) fn retry(crd: Arc<CrdMeta>, failed: &Error, context: Arc<Context>) -> Action {
    let (name, again_in) = (crd.name_any(), context.back_off(&crd.name_any(), failed));
    warn!(crd = name, error = %failed, retry_in_seconds = seconds(again_in), "cannot reconcile");
    Action::requeue(again_in)
}

/// Reads the CRD, checks it, and says what can be said at once.
async fn begin(slot: &mut Slot, name: &str, wanted: Wanted, context: &Arc<Context>) -> Result<(), Error> {
    if wanted.settings.is_none() && wanted.conditions.is_none() {
        context.cluster.metrics().forget(name);
        slot.begin(wanted, Phase::Idle);
        return Ok(());
    }
    let Some((checked, mut recorder)) = context.check(name, &wanted, slot).await? else { return Ok(()) };
    let wanted = Wanted { generation: checked.generation, ..wanted };
    let phase = match (&wanted.settings, checked.crd) {
        (None, _) => {
            recorder.unsay().await;
            recorder.restate(NOT_SELECTED, "", false).await?;
            Phase::Resting(Box::new(recorder))
        }
        (Some(settings), None) => {
            let verdict = message::unreadable(&checked.judged);
            let state = verdict.reason.as_str();
            recorder.say(verdict).await;
            recorder.restate(state, &settings.policy, true).await?;
            Phase::Resting(Box::new(recorder))
        }
        (Some(settings), Some(crd)) => {
            let task = context.task(crd, checked.judged, checked.revision, settings.clone(), recorder, slot);
            Phase::Due(Box::new(task))
        }
    };
    slot.begin(wanted, phase);
    Ok(())
}

/// Goes on from where the CRD stands, as far as that is possible now.
async fn proceed(slot: &mut Slot, name: &str, context: &Arc<Context>) -> Result<Action, Error> {
    loop {
        let (phase, action) = match slot.take() {
            Phase::Idle => (Phase::Idle, Some(Action::await_change())),
            Phase::Resting(mut recorder) => {
                let check = keep_said(&mut recorder).await;
                (Phase::Resting(recorder), Some(check.map_or(Action::await_change(), Action::requeue)))
            }
            Phase::Waiting(mut task, mut wait) => match wait.left(&mut task, context).await {
                Some(left) => {
                    let check = keep_said(&mut task.recorder).await;
                    let next = check.map_or(left, |check| check.min(left));
                    (Phase::Waiting(task, wait), Some(Action::requeue(next)))
                }
                None => (Phase::Due(task), None),
            },
            Phase::Due(mut task) => {
                let next = match task.prepare().await {
                    Ok(next) => next,
                    Err(halt) => task.ended(&halt).await,
                };
                match next {
                    Next::Work => (context.work(name, task), Some(Action::await_change())),
                    next => (after(task, next), None),
                }
            }
            Phase::Working(mut work) => match work.end().await {
                None => (Phase::Working(work), Some(Action::await_change())),
                Some(Ok((task, next))) => (after(task, next), None),
                Some(Err(panicked)) => {
                    error!(crd = name, "task panicked; restarting");
                    slot.forget();
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

/// The phase after a task has said what is to be done next.
fn after(task: Box<CrdTask>, next: Next) -> Phase {
    match next {
        Next::Work => Phase::Due(task),
        Next::Rest => Phase::Resting(Box::new(task.recorder)),
        Next::Wait(wait) => Phase::waiting(task, wait, Why::Backoff),
        Next::Settle(wait) => Phase::waiting(task, wait, Why::Settling),
        Next::Permission(verbs) => Phase::waiting(task, ASK_AGAIN, Why::Permission(verbs)),
    }
}

/// Repairs what was said, where somebody may have changed it; how long until it is to be checked next.
async fn keep_said(recorder: &mut Recorder) -> Option<Duration> {
    if recorder.due_in()?.is_zero() {
        recorder.repeat().await;
    }
    recorder.due_in()
}
