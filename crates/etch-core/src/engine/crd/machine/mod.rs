//! The order of the steps of an attempt: its inputs and its commands. `start` and `end` have its beginning
//! and its end.

mod end;
mod start;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use kube_structural_schema::path::Path;

use super::error::{CrdError, Sign};
use super::known::{Known, Verification};
use super::opening::Opening;
use super::passing::{Passed, Repeats};
use super::phase::{Asked, Phase, Then};
use super::protocol::{Answer, Command, Next, Note, Question};
use super::settling::Settling;
use super::steady::{self, Outcome, Steady};
use super::task::Task;
use super::versions::VersionCount;
use crate::api::Pause;
use crate::call_error::CallError;
use crate::engine::Now;
use crate::engine::backoff::Backoff;
use crate::engine::pass::{self, Pass, Verified};
use crate::engine::pass_state::PassState;
use crate::engine::restore_check::RestoreCheck;
use crate::engine::status::Status;
use crate::engine::stop_reason::StopReason;
use crate::engine::sweep::SweepError;
use crate::engine::watching::{self, Change, End, Watching};
use crate::object::Identity;
use crate::report::checkpoint::Checkpoint;
use crate::report::open_report::OpenReport;

/// The waits after errors.
const RETRY: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(120)];

/// One CRD under one policy. `H` is what is held while an object is processed.
#[derive(Clone, Debug)]
pub struct CrdMachine<H> {
    task: Task,
    status: Status,
    known: Known,
    backoff: Backoff,
    settling: Settling,
    /// When the objects were listed to find out at which versions they are stored.
    version_count: VersionCount,
    /// When to read the report, while nothing happens.
    restore_check: RestoreCheck,
    /// Since when, and why, changes of CRDs or policies are not noticed.
    watch_failure: Option<String>,
    /// Whether the steady state has ended, and that is not reported yet.
    has_watched: bool,
    phase: Phase<H>,
    commands: VecDeque<Command<H>>,
}

impl<H> CrdMachine<H> {
    /// For a CRD that was read. `restore_check` decides when its report is read again; `seed` spreads the
    /// waits of those who fail together.
    pub fn new(task: Task, status: Status, restore_check: RestoreCheck, seed: u64) -> Self {
        let [first, last] = RETRY;
        Self {
            task,
            status,
            known: Known::new(seed),
            backoff: Backoff::new(first, last, seed),
            settling: Settling::new(seed),
            version_count: VersionCount::default(),
            restore_check,
            watch_failure: None,
            has_watched: false,
            phase: Phase::Over,
            commands: VecDeque::new(),
        }
    }

    /// What it was given.
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// Conditions and report.
    pub fn status(&mut self) -> &mut Status {
        &mut self.status
    }

    /// Conditions and report, of a CRD about which nothing is to be done.
    pub fn into_status(self) -> Status {
        self.status
    }

    /// The pass that is under way: pages, room and ends of objects go to it.
    pub fn pass(&mut self) -> Option<&mut Pass<H>> {
        match &mut self.phase {
            Phase::Passes(passing) => Some(&mut passing.pass),
            _ => None,
        }
    }

    /// The steady state: ends of objects go to it.
    pub fn watching(&mut self) -> Option<&mut Watching<H>> {
        match &mut self.phase {
            Phase::Watches(steady) => Some(&mut steady.watching),
            _ => None,
        }
    }

    /// Whether changes of objects are wanted.
    pub fn wants_changes(&self) -> bool {
        match &self.phase {
            Phase::Watches(steady) => steady.wants_changes(),
            _ => false,
        }
    }

    /// Whether the report has not been opened yet, or nothing is to be done.
    pub fn is_opening(&self) -> bool {
        matches!(
            self.phase,
            Phase::Writes(Then::ReadReport(_) | Then::End(Next::Idle)) | Phase::Asks(Asked::Report(_))
        )
    }

    /// Records what writes have dropped while the CRD changed.
    pub fn add_dropped(&mut self, dropped: Vec<(Identity, Vec<Path>)>) {
        self.known.add_dropped(dropped);
    }

    /// Begins an attempt.
    pub fn start(&mut self) {
        self.task.settings.pause.clone_from(&self.task.pause);
        self.task.canary.begin_attempt();
        let opening = Opening::of(&self.task);
        if let Some(at_rest) = opening.at_rest() {
            self.status.set_conditions(at_rest.clone());
        }
        self.phase = Phase::Writes(Then::ReadReport(Box::new(opening)));
    }

    /// Records the pause that is in force now.
    pub fn set_pause(&mut self, now: Instant, pause: Option<Pause>) {
        self.task.pause = pause;
        if self.task.has_pause_changed() {
            self.pause(now);
        }
    }

    /// Records the generation that a user has resumed after its canary.
    pub fn set_resumed(&mut self, now: Instant, resumed: Option<i64>) {
        self.task.canary.set_resumed(resumed);
        if self.task.has_pause_changed() {
            self.pause(now);
        }
    }

    fn pause(&mut self, now: Instant) {
        match &mut self.phase {
            Phase::Passes(passing) => passing.pause(now),
            Phase::Watches(steady) if !steady.watching.is_ending() => {
                let crd_status = self.task.after_pause(steady.watching.ledger(), steady.watching.pass());
                self.status.set_conditions(crd_status);
                steady.watching.end(End::Stop(StopReason::Pause));
            }
            _ => {}
        }
    }

    /// Records since when, and why, changes of CRDs or policies are not noticed.
    pub fn set_watch_failure(&mut self, now: Instant, failure: Option<String>) {
        self.watch_failure.clone_from(&failure);
        if let Some(watching) = self.watching() {
            watching.set_watch_failure(now, failure);
        }
    }

    /// What we may do has changed.
    pub fn permissions_changed(&mut self) {
        if let Phase::Watches(steady) = &mut self.phase {
            steady.permissions_changed();
        }
    }

    /// Something shows that etcd may have been restored.
    pub fn restore_sign(&mut self, now: Instant) {
        let had_unreported = self.watching().is_some_and(|watching| watching.had_unreported(now));
        self.restore_check.sign(now, had_unreported);
    }

    /// Records what the watch brings.
    pub fn object_changed(&mut self, now: Instant, change: Change<H>) {
        if let Some(watching) = self.watching() {
            watching.changed(now, change);
        }
    }

    /// The watch has failed; another follows, unless the machine abandons it.
    pub fn watch_failed(&mut self, now: Now, error: CallError) {
        let Some(watching) = self.watching() else { return };
        if steady::is_lasting(&error) {
            return self.halt(CrdError::watch(error), now);
        }
        watching.changed(now.at, Change::Failed(now.date, error.to_string()));
    }

    /// The watch has expired: it continues where nothing has happened to any object since `delivered`.
    pub fn watch_expired(&mut self, now: Now, error: CallError, delivered: Option<u64>) {
        let Phase::Watches(steady) = &mut self.phase else { return };
        if let Err(error) = steady.expired(error, delivered) {
            self.halt(error, now);
        }
    }

    /// When to come back though nothing has happened.
    pub fn timeout(&self) -> Option<Instant> {
        let of_phase = match &self.phase {
            Phase::Passes(passing) => Some(passing.due()).filter(|_| self.status.is_idle()),
            Phase::Watches(steady) => steady.timeout(&self.status, &self.restore_check),
            Phase::Writes(_) | Phase::Asks(_) | Phase::Over => None,
        };
        of_phase.into_iter().chain(self.status.timeout()).min()
    }

    /// What is to be done now; none until something is taken in, or the time has come.
    pub fn poll(&mut self, now: Now) -> Option<Command<H>> {
        loop {
            self.take_other_report(now);
            if let Some(command) = self.next_command(now) {
                return Some(command);
            }
            let goes_on = match &mut self.phase {
                Phase::Writes(_) => self.everything_written(now),
                Phase::Passes(_) => self.go_on_passing(now),
                Phase::Watches(_) => self.go_on_watching(now),
                Phase::Asks(_) | Phase::Over => false,
            };
            if !goes_on {
                return self.next_command(now);
            }
        }
    }

    /// Starts again if the report is another one than was known. An attempt that has yet to read it finds
    /// that out by itself; a pass goes on writing, for another writer of reports may come again before each
    /// attempt, and proves nothing.
    fn take_other_report(&mut self, now: Now) {
        if !self.status.take_other() {
            return;
        }
        match &mut self.phase {
            Phase::Writes(Then::ReadReport(_)) | Phase::Over => {}
            Phase::Passes(passing) => passing.is_report_other = true,
            _ => self.halt(CrdError::Restored(Sign::Report), now),
        }
    }

    fn next_command(&mut self, now: Now) -> Option<Command<H>> {
        self.commands.pop_front().or_else(|| self.status.poll(now).map(Command::Status))
    }

    /// Handles an answer to [`Command::Ask`].
    pub fn answered(&mut self, now: Now, answer: Answer) {
        if let Phase::Watches(steady) = &mut self.phase {
            let check = &mut self.restore_check;
            return match steady.answered(&self.task, &self.status, check, answer, now.at) {
                Ok(outcome) => self.go_on_beside(outcome, now),
                Err(error) => self.halt(error, now),
            };
        }
        let asked = match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Asks(asked) => asked,
            phase => return self.phase = phase,
        };
        match (asked, answer) {
            (Asked::Report(opening), Answer::Report(answer)) => self.report_read(opening, answer, now),
            (Asked::Versions(opening), Answer::StoredVersions(answer)) => {
                self.versions_counted(opening, answer, now);
            }
            (Asked::Settling(left), Answer::Permissions(answer)) => self.settle(left, answer, now),
            (Asked::Permissions, Answer::Permissions(answer)) => self.permissions_read(answer, now),
            (Asked::Server, Answer::Server(answer)) => self.server_checked(answer, now),
            (Asked::Migration, Answer::Migration(answer)) => self.migration_read(answer, now),
            (Asked::WhyNotServed(error), Answer::Crd(answer)) => self.unserved_crd_read(error, answer, now),
            (Asked::Generation(error), Answer::Generation(answer)) => {
                self.generation_read(error, answer, now);
            }
            (Asked::Ended(error, next), Answer::Report(answer)) => self.report_end(&error, next, answer, now),
            (asked, _) => self.phase = Phase::Asks(asked),
        }
    }

    fn ask(&mut self, question: Question, asked: Asked) {
        self.commands.push_back(Command::Ask(question));
        self.phase = Phase::Asks(asked);
    }

    /// Continues after everything was written; whether it does.
    fn everything_written(&mut self, now: Now) -> bool {
        if !self.status.is_idle() {
            return false;
        }
        match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Writes(Then::ReadReport(opening)) => self.ask(Question::Report, Asked::Report(opening)),
            Phase::Writes(Then::CheckReport) => match self.is_report_of_these() {
                true => self.phase = Phase::Writes(Then::CheckPermissions),
                false => self.halt(CrdError::Unreported, now),
            },
            Phase::Writes(Then::CheckPermissions) => {
                self.commands.push_back(Command::Log(Note::PassBegins));
                let (verbs, namespaces) = (self.task.verbs(), self.task.namespaces());
                self.ask(Question::Permissions(verbs, namespaces), Asked::Permissions);
            }
            Phase::Writes(Then::ReportEnd(error, next)) => {
                self.ask(Question::Report, Asked::Ended(error, next));
            }
            Phase::Writes(Then::End(next)) => self.commands.push_back(Command::End(next)),
            phase => self.phase = phase,
        }
        true
    }

    /// Continues with a pass; whether it does.
    fn go_on_passing(&mut self, now: Now) -> bool {
        let Phase::Passes(passing) = &mut self.phase else { return false };
        match passing.pass.poll() {
            Some(pass::Command::End(Ok(verified))) => self.pass_completed(*verified, now),
            Some(pass::Command::End(Err(interrupted))) => {
                passing.canary_interrupted(&mut self.task, &interrupted);
                match passing.is_report_other {
                    true => self.forget_record(),
                    false => self.known.checkpoint = Some(interrupted.checkpoint),
                }
                self.halt(interrupted.reason.into(), now);
            }
            Some(command) => {
                if let pass::Command::SweepEnds { is_complete } = command {
                    // What follows a completed sweep reports it.
                    if !is_complete {
                        passing.report_progress(&self.task, &mut self.status);
                    }
                    passing.sweep_ended(now.at);
                }
                self.commands.push_back(Command::Pass(command));
            }
            None => {
                let note = passing.take_time(&self.task, &mut self.status, now.at);
                self.commands.extend(note.map(Command::Log));
                return false;
            }
        }
        true
    }

    fn pass_completed(&mut self, mut verified: Verified, now: Now) {
        let Phase::Passes(mut passing) = std::mem::replace(&mut self.phase, Phase::Over) else { return };
        passing.canary_completed(&mut self.task, &verified);
        if passing.is_report_other {
            self.known.report = Some(passing.into_open_report());
            return self.halt(CrdError::Restored(Sign::Report), now);
        }
        if verified.postponed > 0 {
            self.known.retries.postpone(now.at);
        }
        let repeats = passing.repeats(&mut self.task, &mut verified, &mut self.known.retries, now.at);
        if let Some(Repeats { error, report, checkpoint }) = repeats {
            self.status.set_report(report);
            self.known.checkpoint = Some(checkpoint);
            self.known.report = Some(passing.into_open_report());
            return self.halt(error, now);
        }
        let before = std::mem::take(&mut verified.before);
        let mut passed = passing.passed(&self.task, verified, self.watch_failure.clone(), now);
        let verifies = passing.verifies();
        if verifies {
            passing.verified(&self.task, &mut passed);
        }
        let mut open = passing.into_open_report();
        if verifies {
            self.known.verification = Verification::Done;
            open.ledger.changes.forget_suspects();
        }
        self.report_pass(&open, &passed);
        open.ledger.changes.set_processed();
        self.backoff.works(now.at);
        if self.task.has_nothing_left(&passed.state.tally) {
            self.known.report = Some(open);
            return self.halt(CrdError::NothingLeft, now);
        }
        self.watch(open, passed.state, before, now);
    }

    /// Reports a pass that is followed by the steady state.
    fn report_pass(&mut self, open: &OpenReport, passed: &Passed) {
        let OpenReport { state: report, ledger } = open;
        let Passed { state, unchanged, asked } = passed;
        match unchanged {
            // A finished report stays as it is, except for the CRD and policy that it names.
            Some(known) => {
                let crd_status = self.task.after_pass(ledger, state, &self.task.settings);
                let mut confirmed = report.confirmed(ledger, known, crd_status.reason, state.times);
                if !self.task.trims() {
                    // It may have asked for that before, and was hindered.
                    confirmed.stored_versions =
                        self.task.proved_versions(state).or(confirmed.stored_versions);
                }
                self.status.set_report(confirmed);
                self.status.set_conditions(crd_status);
            }
            None => self.task.publish(&mut self.status, report, ledger, state, None),
        }
        let (mut counts, phantoms, reason) =
            (state.tally.counts(), state.tally.phantoms(), self.status.reason());
        if let Some(report) = self.status.report() {
            (counts.followed, counts.kept) = (report.counts.followed, report.counts.kept);
        }
        self.commands.push_back(Command::Log(Note::PassEnds { counts, phantoms, asked: *asked, reason }));
    }

    fn watch(&mut self, open: OpenReport, state: PassState, before: Checkpoint, now: Now) {
        let OpenReport { state: report, ledger } = open;
        let writes = self.task.writes();
        let verify_at = self.known.verification.due().filter(|_| writes);
        self.restore_check.checked(now.at);
        self.commands.push_back(Command::Watch(state.watch_from.clone()));
        let (rules, retries) = (self.task.rules(&report), self.known.retries.clone());
        let watching = Watching::begin(rules, state, ledger, retries, verify_at, writes, now.at);
        let mut steady = Steady::new(watching, report, before);
        steady.want_trim(&self.task, now.at);
        self.phase = Phase::Watches(Box::new(steady));
        if self.task.has_pause_changed() {
            self.pause(now.at);
        }
    }

    /// Continues with the steady state; whether it does.
    fn go_on_watching(&mut self, now: Now) -> bool {
        let Phase::Watches(steady) = &mut self.phase else { return false };
        let outcome = steady.go_on(&self.task, &mut self.status, &mut self.restore_check, now.at);
        if outcome.is_some() {
            self.go_on_beside(outcome, now);
            return true;
        }
        match steady.watching.poll(now.at) {
            Some(watching::Command::Publish) => steady.want_publish(),
            Some(watching::Command::End(end)) => {
                let error = match end {
                    End::Verify => CrdError::Verify,
                    End::Overflow => CrdError::Overflow,
                    End::Stop(stop) => SweepError::from(stop).into(),
                };
                self.halt(error, now);
            }
            Some(command) => self.commands.push_back(Command::Object(command)),
            None => return false,
        }
        true
    }

    /// Continues with what is done beside the objects that are watched.
    fn go_on_beside(&mut self, outcome: Option<Outcome>, now: Now) {
        let (Phase::Watches(steady), Some(outcome)) = (&mut self.phase, outcome) else { return };
        match outcome {
            Outcome::Publish => {
                steady.watching.publishes(now.date);
                let state = steady.watching.pass();
                let (counts, phantoms) = (state.tally.counts(), state.tally.phantoms());
                self.commands.push_back(Command::Log(Note::ObjectsChanged { counts, phantoms }));
                let ledger = steady.watching.ledger();
                let hindrance = steady.hindrance();
                self.task.publish(&mut self.status, &steady.state, ledger, state, hindrance);
                steady.want_trim(&self.task, now.at);
            }
            Outcome::Published if self.task.has_nothing_left(&steady.watching.pass().tally) => {
                self.halt(CrdError::NothingLeft, now);
            }
            Outcome::Published => steady.watching.published(now.at),
            Outcome::Ask(question) => self.commands.push_back(Command::Ask(question)),
            Outcome::Resume(from) => self.commands.push_back(Command::Resume(from)),
        }
    }
}
