//! The task of one CRD at one generation under one policy: it performs what the CRD's machine asks for.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use tracing::{Span, debug, info, warn};

use crate::cluster::{GenerationCheck, Pace, Permissions, ScopedWatch, WatchUpdate};
use crate::operator::crd::READ_PATIENCE;
use crate::operator::crd::log;
use crate::operator::object::driver::{Admission, Event, ObjectDriver, received};
use crate::operator::object::pause::PauseWatch;
use crate::operator::object::reconcile::ObjectReconciler;
use crate::operator::object::refusal_log::RefusalLog;
use crate::operator::options::restored;
use crate::operator::spans;
use crate::operator::status::writer::{self, StatusWriter, recheck_if_due};
use etch_core::api::{Counts, Pause};
use etch_core::call_error::CallError;
use etch_core::crd::Crd;
use etch_core::engine::crd::machine::CrdMachine;
use etch_core::engine::crd::protocol::{Answer, Command, Next, Note, Question};
use etch_core::engine::pass;
use etch_core::engine::status::{CrdRevision, Status};
use etch_core::engine::watching::Change;
use etch_core::object_machine::Rules;
use etch_core::plan::counted::in_words;
use etch_core::scope::Scope;

/// What happens around a CRD that its machine is to know.
pub(crate) struct Signals {
    /// The pause that is in force.
    pub(crate) pause: watch::Receiver<Option<Pause>>,
    /// Whether another policy is in force, so that a pass under way is to end.
    pub(crate) is_superseded: watch::Receiver<bool>,
    /// The generation that a user has resumed after its canary.
    pub(crate) resumed: watch::Receiver<Option<i64>>,
    /// Since when, and why, changes of CRDs or policies are not noticed; `None` while they are.
    pub(crate) watch_failure: watch::Receiver<Option<String>>,
    /// See [`Slot::shown`](super::slot::Slot::shown).
    pub(crate) shown: watch::Receiver<CrdRevision>,
    /// Changes when something shows that etcd may have been restored; `None` if nothing does.
    pub(crate) restore_sign: Option<watch::Receiver<()>>,
    pub(crate) permissions: Permissions,
}

/// What a task is made of.
pub(crate) struct CrdTask {
    pub(crate) machine: Box<CrdMachine<Admission>>,
    pub(crate) writer: StatusWriter,
    pub(crate) signals: Signals,
    pub(crate) pace: Arc<Pace>,
    /// This CRD's own, beside the one that all share.
    pub(crate) own_pace: Arc<Pace>,
    pub(crate) generation_check: Arc<GenerationCheck>,
    pub(crate) refusal_log: Arc<RefusalLog>,
    /// See [`ObjectReconciler::writes`].
    pub(crate) writes: TaskTracker,
    /// Notifies it that another policy is in force.
    pub(crate) superseded: watch::Sender<bool>,
    /// Its turn to be read, kept until its first conditions are written; `None` if it has some, or has
    /// defaults.
    pub(crate) turn: Option<OwnedSemaphorePermit>,
}

/// What is under way for a task that runs.
struct Work {
    writes: FuturesUnordered<BoxFuture<'static, writer::Answer>>,
    question: Option<BoxFuture<'static, Answer>>,
    objects: Option<ObjectDriver>,
    watch: Option<ScopedWatch>,
    pass: PassSpan,
    /// Until when the turn lasts at most.
    turn_ends: Instant,
    /// Whether it only ends its pass, for another policy is in force.
    is_ending: bool,
}

/// The span of a pass, and since when objects are processed.
struct PassSpan {
    span: Span,
    began: Instant,
}

impl CrdTask {
    /// Makes an attempt to bring the CRD to where it should be, which lasts until something ends it; returns
    /// what is to be done next.
    pub(crate) fn run(&mut self) -> BoxFuture<'_, Next> {
        Box::pin(self.attempt())
    }

    async fn attempt(&mut self) -> Next {
        let Self { machine, signals, generation_check, writer, .. } = self;
        let now = writer.now().at;
        machine.set_pause(now, signals.pause.borrow_and_update().clone());
        machine.set_resumed(now, *signals.resumed.borrow_and_update());
        machine.set_watch_failure(now, signals.watch_failure.borrow_and_update().clone());
        let dropped = generation_check.take_dropped(&machine.task().crd);
        machine.add_dropped(dropped);
        machine.start();
        let mut work = Work {
            writes: FuturesUnordered::new(),
            question: None,
            objects: None,
            watch: None,
            pass: PassSpan { span: Span::none(), began: Instant::now() },
            turn_ends: Instant::now() + READ_PATIENCE,
            is_ending: false,
        };
        loop {
            work.measure(&mut self.machine);
            while let Some(command) = self.machine.poll(self.writer.now()) {
                if let Some(next) = self.perform(&mut work, command) {
                    return next;
                }
            }
            if let Some(objects) = &mut work.objects {
                objects.read_ahead();
            }
            if !self.machine.is_opening() {
                self.turn = None;
            }
            if *self.signals.is_superseded.borrow_and_update() {
                let is_first = !std::mem::replace(&mut work.is_ending, true);
                if is_first && self.machine.pass().is_some() {
                    self.machine.end_pass(self.writer.now().at);
                    continue;
                }
                if is_first || self.machine.watching().is_some() {
                    return Next::Changed;
                }
            }
            self.wait(&mut work).await;
        }
    }

    /// Continues with what the task before has found out, which another policy has ended.
    pub(crate) fn continue_after(&mut self, before: Self) {
        self.machine.continue_after(*before.machine);
    }

    /// The CRD.
    pub(crate) fn crd(&self) -> &Arc<Crd> {
        &self.machine.task().crd
    }

    /// Conditions and report, and what notices that another client may have changed them.
    pub(crate) fn into_status(self) -> (Status, watch::Receiver<CrdRevision>) {
        (self.machine.into_status(), self.signals.shown)
    }

    /// Whether a pause has begun, changed or ended, or a canary was resumed, since the last attempt began.
    pub(crate) fn has_pause_changed(&self) -> bool {
        let task = self.machine.task();
        *self.signals.pause.borrow() != task.settings.pause
            || task.canary.is_resumed_by(*self.signals.resumed.borrow())
    }

    /// Repairs our conditions if another client may have changed them; returns the time until the next check.
    pub(crate) async fn recheck_if_due(&mut self) -> Option<Duration> {
        let Self { machine, signals, writer, .. } = self;
        recheck_if_due(writer, machine.status(), &mut signals.shown).await
    }

    /// Waits until something happens, and hands it to the machine. This future may be dropped at any time.
    async fn wait(&mut self, work: &mut Work) {
        let Self { machine, writer, signals, turn, .. } = self;
        let Work { writes, question, objects, watch, turn_ends, .. } = work;
        let Signals { pause, is_superseded, resumed, watch_failure, shown, restore_sign, permissions } =
            signals;
        let (is_watching, wants_changes) = (machine.watching().is_some(), machine.wants_changes());
        if let Some(watch) = watch.as_mut().filter(|_| !wants_changes) {
            watch.rest();
        }
        let reconciler = objects.as_ref().filter(|objects| objects.is_busy());
        let reconciler = reconciler.map(|objects| objects.reconciler().clone());
        tokio::select! {
            Some(answer) = writes.next() => answer.give(machine.status(), writer.now()),
            answer = next_answer(question) => machine.answered(writer.now(), answer),
            (event, objects) = next_event(objects.as_mut()) => take_in(event, objects, machine),
            update = next_update(watch.as_mut()), if wants_changes => match update {
                Ok(update) => {
                    if let Some(watching) = machine.watching() {
                        watching.set_other_failing(watch.as_ref().is_some_and(ScopedWatch::fails));
                    }
                    take_in_update(update, machine, writer);
                }
                Err(expired) => {
                    let delivered = watch.as_ref().and_then(ScopedWatch::delivered);
                    machine.watch_expired(writer.now(), expired, delivered);
                }
            },
            () = slot_released(reconciler.as_deref()) => {}
            () = sleep_until(machine.timeout()) => {}
            Ok(()) = pause.changed() => {
                machine.set_pause(writer.now().at, pause.borrow_and_update().clone());
            }
            Ok(()) = is_superseded.changed() => {}
            Ok(()) = resumed.changed() => {
                machine.set_resumed(writer.now().at, *resumed.borrow_and_update());
            }
            Ok(()) = watch_failure.changed() => {
                machine.set_watch_failure(writer.now().at, watch_failure.borrow_and_update().clone());
            }
            Ok(()) = shown.changed() => {
                let revision = shown.borrow_and_update().clone();
                machine.status().crd_shown(writer.now().at, revision);
            }
            () = permissions.changed(), if is_watching => machine.permissions_changed(),
            () = restored(restore_sign.as_mut()), if is_watching => machine.restore_sign(writer.now().at),
            // A CRD that takes long does not hold up the others.
            () = tokio::time::sleep_until(*turn_ends), if turn.is_some() => *turn = None,
        }
    }

    /// Performs a command; what is to be done next where it is the last one.
    fn perform(&mut self, work: &mut Work, command: Command<Admission>) -> Option<Next> {
        match command {
            Command::Status(command) => {
                let request = self.writer.perform(self.machine.status().subject(), command);
                work.writes.extend(request);
            }
            Command::Ask(question) => work.question = Some(self.ask(question, work.watch.as_ref())),
            Command::Begin(rules) => {
                let digest = self.crd().digest();
                work.pass.span.in_scope(|| info!(%digest, "pass started"));
                work.pass.began = Instant::now();
                work.objects = Some(ObjectDriver::new(self.reconciler(rules), false));
            }
            Command::Pass(pass::Command::SweepEnds { .. }) => {
                if let (Some(objects), Some(pass)) = (&mut work.objects, self.machine.pass()) {
                    objects.end_sweep(pass.tally().counts());
                }
            }
            Command::Pass(command) => {
                if let Some(objects) = &mut work.objects {
                    objects.perform(command, &work.pass.span);
                }
            }
            Command::Object(command) => {
                if let Some(objects) = &mut work.objects {
                    objects.perform_watching(command);
                }
            }
            Command::Watch(from) => {
                let crd = self.crd();
                let watch = ScopedWatch::new(&self.writer.cluster, &crd.resource(), &self.scope(), &from);
                work.watch = Some(watch.served_by(crd));
            }
            Command::Resume(from) => {
                debug!("the watch expired, and no object has changed");
                if let Some(watch) = &mut work.watch {
                    watch.resume_from(&from);
                }
            }
            Command::Abandon => (work.objects, work.watch, work.question) = (None, None, None),
            Command::Log(note) => self.log(&mut work.pass, note),
            Command::End(next) => return Some(next),
        }
        None
    }

    /// The objects that the attempt is about.
    fn scope(&self) -> Scope {
        self.machine.task().within.as_ref().into()
    }

    /// What drives the machines of objects by these rules.
    fn reconciler(&self, rules: Rules) -> ObjectReconciler {
        let begun_under = self.machine.task().settings.pause.clone();
        ObjectReconciler {
            cluster: self.writer.cluster.clone(),
            pace: self.pace.clone(),
            own_pace: Some(self.own_pace.clone()),
            pause_watch: Some(PauseWatch::new(
                self.signals.pause.clone(),
                begun_under,
                self.signals.is_superseded.clone(),
            )),
            cancelled: None,
            scope: self.scope(),
            rules,
            generation_check: self.generation_check.clone(),
            refusal_log: self.refusal_log.clone(),
            writes: self.writes.clone(),
        }
    }

    /// Asks what the machine wants to know; `watch` is that of the objects.
    fn ask(&self, question: Question, watch: Option<&ScopedWatch>) -> BoxFuture<'static, Answer> {
        let (cluster, crd) = (self.writer.cluster.clone(), self.crd().clone());
        let check = self.generation_check.clone();
        let delivered = match (&question, watch) {
            (Question::ResumePoint { through, .. }, Some(watch)) => watch.each_delivered(*through),
            _ => Vec::new(),
        };
        Box::pin(async move {
            match question {
                Question::Report => {
                    let report = cluster.report(crd.name(), crd.uid()).await;
                    Answer::Report(
                        unless(report, "cannot read the report").map(|report| report.map(Box::new)),
                    )
                }
                Question::Crd => Answer::Crd(cluster.crd(crd.name()).await),
                Question::Permissions(verbs, namespaces) => {
                    let allowed = cluster.allowed(&crd.resource(), namespaces.as_ref(), verbs).await;
                    Answer::Permissions(unless(allowed, "cannot read the permissions"))
                }
                Question::Server => Answer::Server(cluster.check_server(&(&*crd).into()).await),
                Question::Migration => Answer::Migration(cluster.running_migration(&crd).await),
                Question::Generation => Answer::Generation(cluster.confirm_again(&check).await),
                Question::StoredVersions => {
                    let counted = cluster.stored_versions(&crd).await;
                    Answer::StoredVersions(unless(counted, "cannot count objects by version"))
                }
                Question::Trim(versions) => {
                    let trimmed = cluster.trim_stored_versions(&crd, &versions).await;
                    log::trimmed(&versions, &trimmed);
                    Answer::Trimmed(trimmed)
                }
                Question::ResumePoint { objects, .. } => {
                    let from = cluster.resume_point(&crd.resource(), &delivered, objects).await;
                    Answer::ResumePoint(unless(from, "cannot find out whether objects have changed"))
                }
            }
        })
    }

    fn log(&self, pass: &mut PassSpan, note: Note) {
        let (name, cluster) = (self.crd().name(), &self.writer.cluster);
        match note {
            Note::PassBegins => {
                let task = self.machine.task();
                pass.span = spans::pass(&task.crd, &task.settings.policy);
            }
            Note::PassVerifies => {
                pass.span.in_scope(|| info!("verifying the objects written since the schema changed"));
            }
            Note::PassUnderWay { counts: Counts { objects, written, .. }, expected, verifies } => {
                pass.span.in_scope(|| info!(objects, expected, written, verifies, "pass under way"));
            }
            Note::PassEnds { counts, phantoms, asked, reason } => {
                cluster.metrics().phantom_objects(name, phantoms);
                cluster.metrics().pass_duration.observe(pass.began.elapsed().as_secs_f64());
                let span = std::mem::replace(&mut pass.span, Span::none());
                span.in_scope(|| log::pass_ended(counts, asked));
                spans::finish(&span, counts, reason);
            }
            Note::ObjectsChanged { counts, phantoms } => {
                cluster.metrics().phantom_objects(name, phantoms);
                let Counts { objects, written, held, rejected, unknown, .. } = counts;
                info!(objects, written, held, rejected, unknown, "objects changed");
            }
            Note::Dropped(object, paths) => {
                let paths = in_words(&paths);
                warn!(%object, paths, "a write dropped fields, by a change of the CRD or by admission");
            }
            Note::RecordIgnored(reason) => info!(reason, "ignoring the recorded pass"),
            Note::Halted(reason, next) => {
                let span = std::mem::replace(&mut pass.span, Span::none());
                spans::fail_pass(&span, &reason);
                match next {
                    Next::Changed => info!(reason, "reading the CRD again"),
                    Next::Permission(_) => info!(reason, "waiting for the permission"),
                    Next::Idle => warn!(reason, "stopped"),
                    Next::Wait(wait) | Next::Settle(wait) => {
                        let retry_in_seconds = spans::seconds(wait);
                        info!(reason, retry_in_seconds, "restarting the CRD task");
                    }
                }
            }
        }
    }
}

impl Work {
    /// Hands in what the machine is to know before it decides.
    fn measure(&self, machine: &mut CrdMachine<Admission>) {
        let Some(objects) = &self.objects else { return };
        let slow = objects.reconciler().writes_without_slot();
        if let Some(pass) = machine.pass() {
            pass.set_slow_writes(slow);
        } else if let Some(watching) = machine.watching() {
            watching.set_slow_writes(slow);
            watching.set_delivered(self.watch.as_ref().and_then(ScopedWatch::delivered));
        }
    }
}

/// The answer to the open question; pending if there is none.
async fn next_answer(question: &mut Option<BoxFuture<'static, Answer>>) -> Answer {
    match question {
        Some(asked) => {
            let answer = asked.await;
            *question = None;
            answer
        }
        None => std::future::pending().await,
    }
}

/// What ends next about an object; pending if no objects are processed.
async fn next_event(objects: Option<&mut ObjectDriver>) -> (Event, &mut ObjectDriver) {
    match objects {
        Some(objects) => (objects.next().await, objects),
        None => std::future::pending().await,
    }
}

fn take_in(event: Event, objects: &mut ObjectDriver, machine: &mut CrdMachine<Admission>) {
    if let Some(pass) = machine.pass() {
        objects.take_in(event, pass);
    } else if let Some(watching) = machine.watching() {
        objects.take_in_watching(event, watching);
    }
}

/// What the watch brings next; pending if there is none.
async fn next_update(watch: Option<&mut ScopedWatch>) -> Result<WatchUpdate, CallError> {
    match watch {
        Some(watch) => watch.next().await,
        None => std::future::pending().await,
    }
}

fn take_in_update(update: WatchUpdate, machine: &mut CrdMachine<Admission>, writer: &StatusWriter) {
    let now = writer.now();
    let change = match update {
        WatchUpdate::Created(object) => Change::Created(received(object)),
        WatchUpdate::Applied(object) => Change::Applied(received(object)),
        WatchUpdate::Deleted(object) => Change::Deleted(object.into_parts().0),
        WatchUpdate::Failed(error, again_in) => {
            debug!(%error, retry_in_seconds = spans::seconds(again_in), "the watch failed");
            return machine.watch_failed(now, error);
        }
        WatchUpdate::Resumed => {
            debug!("the watch works again");
            Change::Resumed
        }
    };
    machine.object_changed(now.at, change);
}

/// Waits until a write no longer holds up others; forever if nothing is under way.
async fn slot_released(reconciler: Option<&ObjectReconciler>) {
    match reconciler {
        Some(reconciler) => reconciler.slot_released().await,
        None => std::future::pending().await,
    }
}

/// Waits until a moment, and forever if there is none; may be dropped at any time.
async fn sleep_until(moment: Option<std::time::Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(Instant::from_std(moment)).await,
        None => std::future::pending().await,
    }
}

/// The answer, and a line in the log where there is none.
fn unless<T>(answer: Result<T, CallError>, what: &str) -> Result<T, CallError> {
    answer.inspect_err(|error| debug!(%error, "{what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size<A, F: Future>(_: impl Fn(A) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn a_crd_that_is_watched_holds_no_room_for_what_lasts_a_moment() {
        assert!(size(CrdTask::attempt) <= 8 << 10, "{} bytes", size(CrdTask::attempt));
    }
}
