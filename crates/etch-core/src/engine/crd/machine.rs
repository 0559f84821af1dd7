//! In which order an attempt goes on.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use kube_structural_schema::json::Json;
use kube_structural_schema::path::Path;

use super::error::{CrdError, Sign};
use super::opening::{self, Opening};
use super::passing::{Passed, Passing, Purpose};
use super::protocol::{Answer, Command, Next, Note, Question};
use super::steady::{self, Outcome, Steady};
use super::task::Task;
use super::versions::{COUNT_AGAIN, VersionCount};
use crate::api::{DefaultsReport, DefaultsReportStatus, Pause};
use crate::call_error::CallError;
use crate::condition::Reason;
use crate::crd::Unserved;
use crate::engine::Now;
use crate::engine::backoff::Backoff;
use crate::engine::canary::{AfterTrials, CanaryLimit};
use crate::engine::pass::{self, Pass, Verified};
use crate::engine::pass_state::PassState;
use crate::engine::restore_check::RestoreCheck;
use crate::engine::retries::Retries;
use crate::engine::status::Status;
use crate::engine::stop_reason::StopReason;
use crate::engine::sweep::SweepError;
use crate::engine::watching::{self, Change, End, Watching};
use crate::namespaces::Namespaces;
use crate::object::Identity;
use crate::plan::record_on;
use crate::rbac::{Allowed, MissingPermissions};
use crate::report::checkpoint::Checkpoint;
use crate::report::open_report::OpenReport;
use crate::report::rejected::Rejected;
use crate::report::state::{LAG, ReportState};
use crate::report::stored_versions;
use crate::stored_versions::VersionTally;

/// How often a missing permission is asked for again, at first and at most, while the schema settles.
const ASK_AGAIN: [Duration; 2] = [Duration::from_secs(30), Duration::from_secs(600)];
/// The waits after errors.
const RETRY: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(120)];

/// One CRD under one policy. `H` is what is held while an object is processed.
#[derive(Clone, Debug)]
pub struct CrdMachine<H> {
    task: Task,
    status: Status,
    /// The report as it was last opened; none before it was read, where what is counted is to be read again, and
    /// while a pass or the steady state has it.
    open: Option<OpenReport>,
    /// What is known of the objects, from before the last pass ended.
    checkpoint: Option<Checkpoint>,
    /// Whether the report is not the one that Etch wrote last: until a pass begins it is no source of a
    /// checkpoint.
    is_restored: bool,
    /// What writes have dropped that were planned for an earlier generation, until it is on record.
    dropped: Vec<(Identity, Vec<Path>)>,
    retries: Retries,
    verification: Verification,
    backoff: Backoff,
    permission_backoff: Backoff,
    /// When the schema will have stood long enough.
    settled_at: Option<Instant>,
    /// What was missing when it was last asked, while the schema settles.
    missing: Option<MissingPermissions>,
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

/// Whether what was written since the pass is to be verified once more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Verification {
    /// As the report says.
    #[default]
    Unknown,
    /// At this time, by both clocks.
    At(Timestamp, Instant),
    /// It was: a report that could not be written may still ask for it.
    Done,
}

/// How far an attempt has come.
#[derive(Clone, Debug)]
enum Phase<H> {
    /// It goes on like this as soon as everything is written.
    Writes(Then),
    /// An answer is waited for.
    Asks(Asked),
    /// A pass is under way.
    Passes(Box<Passing<H>>),
    /// The objects are watched.
    Watches(Box<Steady<H>>),
    /// The attempt has ended.
    Over,
}

#[derive(Clone, Debug)]
enum Then {
    ReadReport(Box<Opening>),
    CheckPermissions,
    /// The steady state has ended.
    ReportEnd(CrdError, Next),
    End(Next),
}

/// Why something was asked.
#[derive(Clone, Debug)]
enum Asked {
    /// The report is opened.
    Report(Box<Opening>),
    /// What the CRD itself carries of an earlier pass.
    Record(Box<Opening>),
    /// At which versions the objects are stored.
    Versions(Box<Opening>),
    /// The schema settles for so long.
    Settling(Duration),
    /// A pass is about to begin.
    Permissions,
    Server,
    Migration,
    /// The CRD's objects are not served.
    WhyNotServed(CrdError),
    /// A write has dropped fields.
    Generation(CrdError),
    /// What has ended the steady state is about to be reported.
    Ended(CrdError, Next),
}

impl<H> CrdMachine<H> {
    /// For a CRD that was read. `restore_check` says when its report is read again; `seed` spreads the waits
    /// of those who fail together.
    pub fn new(task: Task, status: Status, restore_check: RestoreCheck, seed: u64) -> Self {
        let [[first, last], [ask_first, ask_last]] = [RETRY, ASK_AGAIN];
        Self {
            task,
            status,
            open: None,
            checkpoint: None,
            is_restored: false,
            dropped: Vec::new(),
            retries: Retries::new(seed),
            verification: Verification::Unknown,
            backoff: Backoff::new(first, last, seed),
            permission_backoff: Backoff::new(ask_first, ask_last, seed),
            settled_at: None,
            missing: None,
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

    /// Takes in what writes have dropped while the CRD changed.
    pub fn add_dropped(&mut self, dropped: Vec<(Identity, Vec<Path>)>) {
        self.dropped.extend(dropped);
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

    /// Takes in the pause that is in force now.
    pub fn set_pause(&mut self, now: Instant, pause: Option<Pause>) {
        self.task.pause = pause;
        if self.task.has_pause_changed() {
            self.pause(now);
        }
    }

    /// Takes in the generation that somebody has resumed after its canary.
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

    /// Takes in since when, and why, changes of CRDs or policies are not noticed.
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

    /// Takes in what the watch brings.
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

    /// The watch has expired: it goes on where nothing has happened to any object since `delivered`.
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
                Phase::Writes(_) => self.everything_written(),
                Phase::Passes(_) => self.go_on_passing(now),
                Phase::Watches(_) => self.go_on_watching(now),
                Phase::Asks(_) | Phase::Over => false,
            };
            if !goes_on {
                return self.next_command(now);
            }
        }
    }

    /// Begins anew where the report is another one than was known. An attempt that has yet to read it finds that
    /// out by itself; a pass goes on writing, for another writer of reports may come again before each attempt,
    /// and proves nothing.
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

    /// Takes in an answer to [`Command::Ask`].
    pub fn answered(&mut self, now: Now, answer: Answer) {
        if let Phase::Watches(steady) = &mut self.phase {
            return match steady.answered(&self.task, &self.status, answer) {
                Ok(outcome) => self.go_on_beside(outcome, now),
                Err(error) => self.halt(error, now),
            };
        }
        let asked = match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Asks(asked) => asked,
            phase => return self.phase = phase,
        };
        match (asked, answer) {
            (Asked::Report(opening), Answer::Report(Ok(report))) => self.open(opening, report, now),
            (Asked::Report(_), Answer::Report(Err(error))) => self.halt(CrdError::call(error), now),
            (Asked::Record(opening), Answer::Crd(document)) => {
                let is_this = |document: &Json| document["metadata"]["uid"] == self.task.crd.uid();
                let document = document.ok().flatten().filter(is_this);
                let record = document.and_then(|document| record_on(&document, &self.task.crd));
                self.checkpoint = record.map(|record| Checkpoint { record, ..Checkpoint::default() });
                self.settle_or_pass(&opening, now);
            }
            (Asked::Versions(opening), Answer::StoredVersions(answer)) => {
                self.versions_counted(answer, now);
                self.opened_report(opening, now);
            }
            (Asked::Settling(left), Answer::Permissions(answer)) => self.settle(left, answer, now),
            (Asked::Permissions, Answer::Permissions(answer)) => match answer {
                Ok(Allowed::Missing(missing)) => self.halt(CrdError::Forbidden(missing), now),
                Ok(allowed) => self.read_within(allowed.within()),
                Err(error) => self.halt(CrdError::call(error), now),
            },
            (Asked::Server, Answer::Server(answer)) => match answer {
                Ok(()) if self.task.writes() => self.ask(Question::Migration, Asked::Migration),
                Ok(()) => self.begin_pass(now),
                Err(error) => self.halt(CrdError::call(error), now),
            },
            (Asked::Migration, Answer::Migration(answer)) => match answer {
                Ok(Some(migration)) => self.halt(CrdError::Migrated(migration), now),
                // Two that write the same are slower, and harm nothing: it is no reason to stay idle.
                Ok(None) | Err(_) => self.begin_pass(now),
            },
            (Asked::WhyNotServed(error), Answer::Crd(document)) => {
                let unserved = document.ok().flatten().as_ref().and_then(Unserved::of);
                self.respond(unserved.map_or(error, CrdError::NotServed), now);
            }
            (Asked::Generation(error), Answer::Generation(answer)) => {
                let next = match answer {
                    Ok(false) => Next::Changed,
                    // The server that answered lags behind, or admission removes fields.
                    Ok(true) => Next::Wait(self.backoff.failed(now.at, None)),
                    Err(failed) => Next::Wait(self.backoff.failed(now.at, failed.retry_after())),
                };
                self.end(error, next);
            }
            (Asked::Ended(error, next), Answer::Report(answer)) => self.report_end(&error, next, answer, now),
            (asked, _) => self.phase = Phase::Asks(asked),
        }
    }

    fn ask(&mut self, question: Question, asked: Asked) {
        self.commands.push_back(Command::Ask(question));
        self.phase = Phase::Asks(asked);
    }

    /// Goes on after everything was written; whether it does.
    fn everything_written(&mut self) -> bool {
        if !self.status.is_idle() {
            return false;
        }
        match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Writes(Then::ReadReport(opening)) => self.ask(Question::Report, Asked::Report(opening)),
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

    /// Opens the report that was read, and finds out whether anything is to be done.
    fn open(&mut self, opening: Box<Opening>, report: Option<Box<DefaultsReport>>, now: Now) {
        let is_other = self.status.report().is_some() && !self.status.is_ours(report.as_deref());
        self.status.report_read(report);
        if is_other {
            let note = Note::RecordIgnored(CrdError::Restored(Sign::Report).to_string());
            self.commands.push_back(Command::Log(note));
            (self.checkpoint, self.is_restored) = (None, true);
            self.verification = Verification::Unknown;
        }
        let report = self.status.report().cloned();
        let mut open = self.opened(report.as_deref(), now);
        self.task.canary.open(self.task.may_write(), &mut open.state);
        self.open = Some(open);
        match self.version_count.is_due(&self.task, now.at) {
            true => self.ask(Question::StoredVersions, Asked::Versions(opening)),
            false => self.opened_report(opening, now),
        }
    }

    /// Takes in at which versions the objects are stored.
    fn versions_counted(&mut self, answer: Result<VersionTally, CallError>, now: Now) {
        self.version_count.counted(now.at);
        let crd = &self.task.crd;
        let counted = match answer {
            Ok(tally) => stored_versions::of_tally(crd, &tally),
            Err(error) => stored_versions::unread(crd, &error),
        };
        if let Some(open) = &mut self.open {
            open.state.set_stored_versions(Some(counted));
        }
    }

    /// Finds out whether anything is to be done, by the report that was opened.
    fn opened_report(&mut self, opening: Box<Opening>, now: Now) {
        let Some(open) = self.open.take() else { return };
        let report = self.status.report().cloned();
        if opening.is_idle(&self.task, &open, report.as_deref()) {
            if let Some(report) = opening.report_at_rest(&open, report.as_deref()) {
                self.status.set_report(report);
            }
            if let Some(no_defaults) = opening.no_defaults() {
                self.status.set_conditions(no_defaults.clone());
            }
            let next = match open.state.stored_versions() {
                Some(_) if self.task.reports_versions() => Next::Wait(COUNT_AGAIN),
                _ => Next::Idle,
            };
            self.open = Some(open);
            self.phase = Phase::Writes(Then::End(next));
            return;
        }
        // A restart must not cost the owners of one more object.
        let about_this = report.as_ref().filter(|report| open.state.is_about(report));
        let lost = about_this.and_then(|report| report.owners_lost.clone());
        self.open = Some(open);
        if let Some(lost) = lost {
            return self.respond(lost.into(), now);
        }
        let recorded = report.as_ref().filter(|_| !self.is_restored);
        if self.checkpoint.is_none() {
            self.checkpoint = recorded.and_then(|report| Checkpoint::from_report(report, &self.task.crd));
        }
        if let (None, Some(_), Some(report)) = (&self.checkpoint, self.task.canary.hold(), recorded) {
            let rejected = Rejected::from_report(report);
            self.checkpoint = Some(Checkpoint { rejected, ..Checkpoint::empty(&self.task.crd) });
        }
        // What writes proves everything again.
        let is_unknown = self.checkpoint.is_none() && !self.is_restored;
        if is_unknown && !self.task.writes() && opening.has_defaults() {
            return self.ask(Question::Crd, Asked::Record(opening));
        }
        self.settle_or_pass(&opening, now);
    }

    /// The report as it was read, with what continues it.
    fn opened(&mut self, report: Option<&DefaultsReportStatus>, now: Now) -> OpenReport {
        let Task { crd, settings, revision, .. } = &self.task;
        let before = self.open.take().map(|open| open.ledger);
        let mut open = OpenReport::new(report, crd, settings, revision, now.date, before);
        let verify_at = self.schedule_verification(open.state.verify_at(), now);
        open.state.set_verify_at(verify_at);
        if verify_at.is_some() {
            open.ledger.changes.watch_suspects();
        }
        for (identity, paths) in std::mem::take(&mut self.dropped) {
            open.ledger.dropped.lose(&identity, &paths);
            self.commands.push_back(Command::Log(Note::Dropped(identity, paths)));
        }
        open
    }

    /// Takes in when the report asks for a verification, unless that is known; returns when it is to be
    /// reported.
    ///
    /// The wall clock is asked once: it may be set, and other machines' clocks differ.
    fn schedule_verification(&mut self, asked: Option<Timestamp>, now: Now) -> Option<Timestamp> {
        if let (Verification::Unknown, Some(asked)) = (self.verification, asked) {
            let left = Duration::try_from(asked.duration_since(now.date)).unwrap_or_default();
            self.verification = Verification::At(asked, now.at + left.min(LAG));
        }
        match self.verification {
            Verification::Unknown | Verification::Done => None,
            Verification::At(asked, _) => Some(asked),
        }
    }

    /// Waits for as long as the schema must stand unchanged before objects are written, or makes a pass.
    fn settle_or_pass(&mut self, opening: &Opening, now: Now) {
        let Some(open) = &self.open else { return };
        // Where no default is left and none is followed, and no object is moved, nothing is written: what is only
        // counted need not settle.
        let may_write =
            opening.has_defaults() || self.task.moves_objects() || !self.task.settings.follow.is_empty();
        if self.checkpoint.is_none() && may_write {
            let stood = Duration::try_from(now.date.duration_since(open.state.first_seen()));
            let left = self.task.settings.settle.saturating_sub(stood.unwrap_or_default());
            // The wall clock is asked once: it may be set, and other machines' clocks differ.
            let end = *self.settled_at.get_or_insert(now.at + left);
            let left = end.saturating_duration_since(now.at);
            if !left.is_zero() {
                // What is missing is found out now, and not when it is too late to be granted in time.
                let (verbs, namespaces) = (self.task.verbs(), self.task.namespaces());
                return self.ask(Question::Permissions(verbs, namespaces), Asked::Settling(left));
            }
        }
        // A wait would be no use: another writer of reports may come again before each attempt.
        if std::mem::take(&mut self.is_restored)
            && let Some(crd_status) = CrdError::Restored(Sign::Report).crd_status(&self.task.findings)
        {
            self.status.set_conditions(self.task.shown(crd_status));
        }
        self.phase = Phase::Writes(Then::CheckPermissions);
    }

    /// Reports that the schema settles.
    fn settle(&mut self, left: Duration, answer: Result<Allowed, CallError>, now: Now) {
        let Some(open) = &self.open else { return };
        match answer {
            Ok(Allowed::Everywhere | Allowed::Within(_)) => self.missing = None,
            Ok(Allowed::Missing(missing)) | Err(CallError::MissingPermission(missing)) => {
                self.missing = Some(missing);
            }
            Err(_) => {}
        }
        let (crd_status, report) = opening::settling(&self.task, open, self.missing.as_ref());
        self.status.set_conditions(crd_status);
        self.status.set_report(report);
        let ask_again = match self.missing {
            Some(_) => self.permission_backoff.failed(now.at, None),
            None => opening::ASK_WHILE_IDLE,
        };
        self.phase = Phase::Writes(Then::End(Next::Settle(left.min(ask_again))));
    }

    /// Goes on with the objects of these namespaces, or with all.
    fn read_within(&mut self, within: Option<Namespaces>) {
        if let Some(open) = &mut self.open {
            open.state.set_within(within.clone());
        }
        self.task.within = within;
        self.ask(Question::Server, Asked::Server);
    }

    fn begin_pass(&mut self, now: Now) {
        let checkpoint = self.checkpoint.take().unwrap_or_else(|| Checkpoint::empty(&self.task.crd));
        let Some(mut open) = self.open.take() else { return };
        let canary = self.begin_canary(&checkpoint, &mut open.state);
        let purpose = match (canary, self.verification) {
            (Some(limit), _) => Purpose::Canary(limit),
            (None, Verification::At(_, at)) if at <= now.at => Purpose::Verify,
            (None, _) => Purpose::Store,
        };
        let rules = self.task.rules(&open.state);
        self.commands.push_back(Command::Begin(rules.clone()));
        let passing = Passing::begin(&self.task, rules, open, &mut self.status, purpose, checkpoint, now);
        if passing.verifies() {
            self.commands.push_back(Command::Log(Note::PassVerifies));
        }
        self.phase = Phase::Passes(Box::new(passing));
        if self.task.has_pause_changed() {
            self.pause(now.at);
        }
    }

    /// The canary that the pass begins with, if any is needed.
    fn begin_canary(&mut self, checkpoint: &Checkpoint, report: &mut ReportState) -> Option<CanaryLimit> {
        let Checkpoint { record, upto, .. } = checkpoint;
        let is_same_selection = record.selection == self.task.settings.terms.selection;
        let is_on_record =
            record.through.is_some() && upto.is_none() && !record.storage_changed && is_same_selection;
        let writes = self.task.writes();
        writes.then(|| self.task.canary.begin_pass(is_on_record, report)).flatten()
    }

    /// Goes on with a pass; whether it does.
    fn go_on_passing(&mut self, now: Now) -> bool {
        let Phase::Passes(passing) = &mut self.phase else { return false };
        match passing.pass.poll() {
            Some(pass::Command::End(Ok(verified))) => self.pass_completed(*verified, now),
            Some(pass::Command::End(Err(interrupted))) => {
                passing.canary_interrupted(&mut self.task, &interrupted);
                if passing.is_report_other {
                    self.forget_record();
                } else {
                    self.checkpoint = Some(interrupted.checkpoint);
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
            self.open = Some(passing.into_open_report());
            return self.halt(CrdError::Restored(Sign::Report), now);
        }
        if verified.postponed > 0 {
            self.retries.postpone(now.at);
        }
        if let Some(counts) = verified.canary {
            let error = match self.task.canary.end_trials() {
                AfterTrials::Hold => None,
                AfterTrials::Others(written) => Some(CrdError::CanaryPassed(written)),
                AfterTrials::Again => Some(CrdError::CanaryUnanswered(counts.unanswered)),
            };
            if let Some(error) = error {
                self.status.set_report(passing.unfinished(&verified));
                self.checkpoint = Some(verified.before);
                self.open = Some(passing.into_open_report());
                return self.halt(error, now);
            }
        }
        if let Some(report) = passing.incomplete(&verified) {
            self.status.set_report(report);
            self.checkpoint = Some(verified.checkpoint);
            self.open = Some(passing.into_open_report());
            return self.halt(CrdError::Incomplete, now);
        }
        let before = std::mem::take(&mut verified.before);
        let Passed { state, unchanged, asked } =
            passing.passed(&self.task, verified, self.watch_failure.clone(), now);
        let verifies = passing.verifies();
        let OpenReport { state: report_state, mut ledger } = passing.into_open_report();
        if verifies {
            self.verification = Verification::Done;
            ledger.changes.forget_suspects();
        }
        match unchanged {
            // A finished report stays as it is, save for the CRD and policy that it names.
            Some(report) => {
                let crd_status = self.task.after_pass(&ledger, &state, &self.task.settings);
                let reason = crd_status.reason;
                self.status.set_report(report_state.confirmed(&ledger, &report, reason, state.times));
                self.status.set_conditions(crd_status);
            }
            None => self.task.publish(&mut self.status, &report_state, &ledger, &state, None),
        }
        let (counts, phantoms, reason) = (state.tally.counts(), state.tally.phantoms(), self.status.reason());
        self.commands.push_back(Command::Log(Note::PassEnds { counts, phantoms, asked, reason }));
        ledger.changes.set_processed();
        self.backoff.works(now.at);
        if self.task.has_nothing_left(&state.tally) {
            self.open = Some(OpenReport { state: report_state, ledger });
            return self.halt(CrdError::NothingLeft, now);
        }
        self.watch(OpenReport { state: report_state, ledger }, state, before, now);
    }

    fn watch(&mut self, open: OpenReport, state: PassState, before: Checkpoint, now: Now) {
        let OpenReport { state: report, ledger } = open;
        let writes = self.task.writes();
        let verify_at = match self.verification {
            Verification::At(_, at) if writes => Some(at),
            Verification::At(..) | Verification::Unknown | Verification::Done => None,
        };
        self.restore_check.checked(now.at);
        self.commands.push_back(Command::Watch(state.watch_from.clone()));
        let (rules, retries) = (self.task.rules(&report), self.retries.clone());
        let watching = Watching::begin(rules, state, ledger, retries, verify_at, writes, now.at);
        let mut steady = Steady::new(watching, report, before);
        steady.want_trim(&self.task, now.at);
        self.phase = Phase::Watches(Box::new(steady));
        if self.task.has_pause_changed() {
            self.pause(now.at);
        }
    }

    /// Goes on with the steady state; whether it does.
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

    /// Goes on with what is done beside the objects that are watched.
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

    /// Ends what is under way about objects, keeps what is known of them, and finds out what follows.
    fn halt(&mut self, error: CrdError, now: Now) {
        match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Watches(steady) => {
                self.commands.push_back(Command::Abandon);
                self.has_watched = true;
                self.keep(*steady, &error);
            }
            Phase::Passes(passing) => {
                self.commands.push_back(Command::Abandon);
                self.open = Some(passing.into_open_report());
            }
            Phase::Writes(_) | Phase::Asks(_) | Phase::Over => {}
        }
        if error.is_not_served() {
            return self.ask(Question::Crd, Asked::WhyNotServed(error));
        }
        self.respond(error, now);
    }

    /// Keeps what is known of the objects after they were watched.
    fn keep(&mut self, steady: Steady<H>, error: &CrdError) {
        let Steady { watching, state: report, before, .. } = steady;
        let (state, retries, ledger) = watching.into_parts();
        self.retries = retries;
        let rejected = match error {
            // What was rejected and has not changed would be again.
            CrdError::Verify => {
                let known = report.counted(
                    &ledger,
                    Reason::InProgress,
                    &state.tally,
                    state.finished_through,
                    state.times,
                );
                Rejected::from_report(&known)
            }
            _ => Rejected::default(),
        };
        self.open = Some(OpenReport { state: report, ledger });
        // Who does not write learns nothing about what is stored, and keeps what was known before.
        self.checkpoint = match self.task.writes() {
            true => state.into_checkpoint().map(|checkpoint| Checkpoint { rejected, ..checkpoint }),
            false => Some(before),
        };
    }

    /// Decides what follows an error.
    fn respond(&mut self, error: CrdError, now: Now) {
        match &error {
            CrdError::Interrupted(SweepError::Stop(StopReason::FieldsDropped { .. })) => {
                return self.ask(Question::Generation, Asked::Generation(error));
            }
            // What follows a changed default is counted anew from the report.
            CrdError::Interrupted(SweepError::Stop(StopReason::Pause)) => self.open = None,
            CrdError::Restored(_) => self.forget_record(),
            _ => {}
        }
        let next = error.next(&mut self.backoff, now.at);
        self.end(error, next);
    }

    /// Forgets what is on record, which is about another past.
    fn forget_record(&mut self) {
        self.checkpoint = Some(Checkpoint::empty(&self.task.crd));
        self.status.forget_report();
    }

    /// Reports why it does not go on, and ends. What ends the steady state may be a restore of etcd, and only
    /// the report shows that: it is read before it is replaced.
    fn end(&mut self, error: CrdError, next: Next) {
        self.commands.push_back(Command::Log(Note::Halted(error.to_string(), next.clone())));
        let is_known = matches!(error, CrdError::Restored(_));
        let is_reported = error.crd_status(&self.task.findings).is_some();
        if std::mem::take(&mut self.has_watched) && is_reported && !is_known {
            self.phase = Phase::Writes(Then::ReportEnd(error, next));
            return;
        }
        self.set_conditions_of(&error);
        self.set_report_of(&error);
        self.phase = Phase::Writes(Then::End(next));
    }

    fn report_end(
        &mut self,
        error: &CrdError,
        next: Next,
        answer: Result<Option<Box<DefaultsReport>>, CallError>,
        now: Now,
    ) {
        // A report that cannot be read is not replaced.
        if let Ok(report) = answer {
            if !self.status.is_ours(report.as_deref()) {
                return self.respond(CrdError::Restored(Sign::Report), now);
            }
            self.set_report_of(error);
        }
        self.set_conditions_of(error);
        self.phase = Phase::Writes(Then::End(next));
    }

    fn set_conditions_of(&mut self, error: &CrdError) {
        if let Some(crd_status) = error.crd_status(&self.task.findings) {
            self.status.set_conditions(self.task.shown(crd_status));
        }
    }

    fn set_report_of(&mut self, error: &CrdError) {
        let (Some(crd_status), Some(open)) = (error.crd_status(&self.task.findings), &self.open) else {
            return;
        };
        let state = crd_status.reason.as_str();
        let about_this = self.status.report().filter(|report| open.state.is_about(report));
        let report = match about_this {
            Some(report) => open.state.with_state(report, state, &open.ledger.dropped),
            None => open.state.idle(state, &open.ledger.dropped),
        };
        self.status.set_report(DefaultsReportStatus { owners_lost: error.owners_lost(), ..report });
    }
}
