//! A pass of the operator's: how it begins, what is reported of it meanwhile, and what is known at its end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::error::CrdError;
use super::protocol::Note;
use super::task::Task;
use crate::api::{Counts, DefaultsReportStatus};
use crate::condition::Reason;
use crate::engine::canary::{AfterTrials, CanaryLimit};
use crate::engine::pass::{Interrupted, Limits, Pass, Verified};
use crate::engine::pass_state::PassState;
use crate::engine::retries::Retries;
use crate::engine::status::Status;
use crate::engine::stop_reason::StopReason;
use crate::engine::{Now, updates};
use crate::object_machine::Rules;
use crate::plan::{Clock, HiddenEvidence};
use crate::report::checkpoint::Checkpoint;
use crate::report::open_report::OpenReport;
use crate::report::rejected::Rejected;
use crate::report::state::{ReportState, Times, is_finished};
use crate::report::tally::Tally;
use crate::report::versions::ObjectVersions;

/// How often the log shows the progress of a pass.
const LOG_EVERY: Duration = Duration::from_secs(30);

/// A pass that is under way.
#[derive(Clone, Debug)]
pub(super) struct Passing<H> {
    pub(super) pass: Pass<H>,
    /// The part of the report that does not depend on the objects.
    state: ReportState,
    /// The report of an earlier pass that was finished: then nothing is reported until something is written.
    report: Option<Arc<DefaultsReportStatus>>,
    times: Times,
    /// Whether it verifies what was written under a schema that has changed since.
    verifies: bool,
    /// Whether it writes a few objects before all others.
    is_canary: bool,
    /// The resource version at which the record was.
    covered: Option<u64>,
    /// Whether the report turned out to be another one than was known: what was known of the objects may be
    /// about another past.
    pub(super) is_report_other: bool,
    report_at: Instant,
    is_reporting: bool,
    log_at: Instant,
}

/// What a pass is for.
pub(super) enum Purpose {
    /// To store what is not stored.
    Store,
    /// It is time to verify what was written since the schema changed, too.
    Verify,
    /// To store the defaults of a few objects before all others.
    Canary(CanaryLimit),
}

/// Why another pass follows, with what is reported and known until then.
pub(super) struct Repeats {
    pub(super) error: CrdError,
    pub(super) report: DefaultsReportStatus,
    pub(super) checkpoint: Checkpoint,
}

/// A pass that was completed.
pub(super) struct Passed {
    pub(super) state: PassState,
    /// The report that holds still: nothing was written, and nothing is known otherwise.
    pub(super) unchanged: Option<Arc<DefaultsReportStatus>>,
    /// How many objects needed a request.
    pub(super) asked: u64,
}

impl<H> Passing<H> {
    /// Begins a pass over all objects, of which those that `checkpoint` covers need no request.
    pub(super) fn begin(
        task: &Task,
        rules: Rules,
        open: OpenReport,
        status: &mut Status,
        purpose: Purpose,
        mut checkpoint: Checkpoint,
        now: Now,
    ) -> Self {
        let OpenReport { state, mut ledger } = open;
        let is_of_these = |report: &&Arc<DefaultsReportStatus>| {
            is_finished(report, &task.crd) && report.objects.as_ref() == state.selection().selector()
        };
        let report = status.report().filter(is_of_these).cloned();
        let verify_at = state.verify_at();
        let may_lag = task.writes() && verify_at.is_some();
        let verifies = may_lag && matches!(purpose, Purpose::Verify);
        let canary = if let Purpose::Canary(limit) = purpose { Some(limit) } else { None };
        if verifies {
            ledger.changes.servers_have_caught_up();
        }
        if is_begin_reported(task, status, report.is_some()) {
            status.set_conditions(task.in_progress(&Tally::default(), None));
        }
        let is_of_all = checkpoint.record.through.is_some() && checkpoint.upto.is_none();
        if !is_of_all {
            ledger.changes.record_is_lost();
        }
        ledger.changes.pass_begins(checkpoint.record.through.is_some());
        let lag_matters = !state.is_lag_harmless();
        if verifies && lag_matters && ledger.changes.misses_suspects() {
            // What a server that lagged behind showed of objects is on record.
            checkpoint.record = checkpoint.record.of_exceptions(&task.crd);
        }
        if verifies && task.proves_versions() {
            // A server that lagged behind may have taken an object for stored that is at an old version.
            checkpoint.record = checkpoint.record.of_exceptions(&task.crd);
            (checkpoint.proved, checkpoint.upto) = (ObjectVersions::default(), None);
        }
        let covered = checkpoint.record.through;
        // What was written since the record asks for an answer in any case.
        let asks_about_writes = covered.is_none() || checkpoint.record.versions_disagree;
        checkpoint.record.hidden = Arc::new(HiddenEvidence {
            cleared: ledger.dropped.cleared(),
            former: state.former_defaults().to_vec(),
        });
        // A pass that continues from a record asks about what was written since when it is time, and not
        // twice.
        checkpoint.record.servers_lag = match task.writes() {
            true => may_lag && lag_matters && (verifies || asks_about_writes),
            false => checkpoint.record.servers_lag || verify_at.is_some() && lag_matters,
        };
        // What writes proves everything itself.
        checkpoint.record.clock = match task.writes() {
            true => Clock::default(),
            false => task.shown_by_crd.clock.clone(),
        };
        let limits = Limits {
            stop_after_rejected: task.settings.stop_after_rejected,
            canary,
            shows_rejected: task.canary.hold().is_some(),
            verifies: task.writes(),
            moves_record: true,
            keeps_record: may_lag && !verifies && !asks_about_writes,
            ..Limits::default()
        };
        Self {
            pass: Pass::begin(rules, limits, checkpoint, ledger),
            state,
            report,
            times: Times { started: Some(now.date), finished: None, verify_at },
            verifies,
            is_canary: canary.is_some(),
            covered,
            report_at: now.at + updates::EVERY,
            is_report_other: false,
            is_reporting: false,
            log_at: now.at + LOG_EVERY,
        }
    }

    /// Whether it verifies what was written under a schema that has changed since.
    pub(super) fn verifies(&self) -> bool {
        self.verifies
    }

    /// Handles the outcomes for the objects of a canary, if it writes one, in a pass that was not completed.
    pub(super) fn canary_interrupted(&mut self, task: &mut Task, interrupted: &Interrupted) {
        if let Some(counts) = interrupted.canary {
            task.canary.swept(counts, false, &mut self.state);
        }
    }

    /// Handles the outcomes for the objects of a canary, if it writes one.
    pub(super) fn canary_completed(&mut self, task: &mut Task, verified: &Verified) {
        match verified.canary {
            Some(counts) => task.canary.swept(counts, true, &mut self.state),
            None if self.is_canary => {
                task.canary.covers_all(verified.last.tally.counts().written, &mut self.state);
            }
            None => {}
        }
    }

    /// Records that it has verified what was written since the schema changed: what was written after it was
    /// not written where an earlier schema was served.
    pub(super) fn verified(&mut self, task: &Task, passed: &mut Passed) {
        if let Some(through) = passed.state.finished_through {
            self.state.served_everywhere_since(through, &task.crd);
            let hidden = Arc::make_mut(&mut passed.state.record.hidden);
            hidden.former = self.state.former_defaults().to_vec();
        }
    }

    /// What remains of the report once it has ended.
    pub(super) fn into_open_report(mut self) -> OpenReport {
        OpenReport { ledger: self.pass.take_ledger(), state: self.state }
    }

    /// Begins nothing more, because a pause has begun or ended: that is reported before the writes under way
    /// have ended.
    pub(super) fn pause(&mut self, now: Instant) {
        self.pass.stop(StopReason::Pause);
        (self.report_at, self.is_reporting) = (now, false);
    }

    /// Notes that a sweep has ended, and its end is reported.
    pub(super) fn sweep_ended(&mut self, now: Instant) {
        self.report_at = now + updates::EVERY;
    }

    /// When progress is reported next, unless something else is still being reported.
    pub(super) fn due(&self) -> Instant {
        self.report_at
    }

    /// Handles the time: reports progress where that is due, and returns what to log.
    pub(super) fn take_time(&mut self, task: &Task, status: &mut Status, now: Instant) -> Option<Note> {
        if !status.is_idle() {
            return None;
        }
        if std::mem::take(&mut self.is_reporting) {
            self.report_at = self.report_at.max(now + updates::PROGRESS);
        }
        if self.report_at > now {
            return None;
        }
        self.is_reporting = true;
        self.report_progress(task, status);
        (self.log_at <= now).then(|| {
            self.log_at = now + LOG_EVERY;
            let (tally, verifies) = (self.pass.tally(), self.pass.earlier().is_some());
            Note::PassUnderWay { counts: tally.counts(), expected: tally.expected(), verifies }
        })
    }

    /// Reports how far a sweep has come, by its own numbers or, where it verifies another, by that one's.
    pub(super) fn report_progress(&self, task: &Task, status: &mut Status) {
        let so_far = self.pass.tally();
        let verifies = self.pass.earlier().is_some();
        let counts = so_far.counts();
        let is_known =
            self.report.is_some() && !verifies && counts.written + counts.rejected + counts.unknown == 0;
        if is_known && status.is_persisted() || !task.has_pause_changed() && (counts.objects == 0 || is_known)
        {
            return;
        }
        let shown = match self.pass.earlier() {
            Some(earlier) => earlier.tally.clone(),
            None => {
                let mut shown = so_far.clone();
                shown.add_earlier_writes(&self.pass.checkpoint().writes);
                shown
            }
        };
        let crd_status = task.in_progress(&shown, verifies.then_some(counts.objects));
        let place = if verifies { shown.place() } else { so_far.place() };
        // What was done before the report turned out to be another one may be about another past.
        let place = place.filter(|_| task.writes() && !self.is_report_other && !self.is_canary);
        let through = place.and_then(|place| self.pass.record_through(Some(place.through)));
        let mut report =
            self.state.counted(self.pass.ledger(), crd_status.reason, &shown, through, self.times);
        report.upto = place.map(|place| place.upto.clone());
        if let Some(canary) = report.canary.as_mut().filter(|_| self.is_canary) {
            let written = self.pass.earlier().map_or(counts, |earlier| earlier.tally.counts()).written;
            canary.written += written;
        }
        status.set_conditions(crd_status);
        status.set_report(report);
    }

    /// Why another pass follows at once, though this one came to its end; `None` if a watch of the objects
    /// follows instead.
    pub(super) fn repeats(
        &self,
        task: &mut Task,
        verified: &mut Verified,
        retries: &mut Retries,
        now: Instant,
    ) -> Option<Repeats> {
        let tally = &verified.last.tally;
        let report = || self.state.counted(self.pass.ledger(), Reason::InProgress, tally, None, self.times);
        if let Some(counts) = verified.canary {
            let error = match task.canary.end_trials() {
                AfterTrials::Hold => None,
                AfterTrials::Others(written) => Some(CrdError::CanaryPassed(written)),
                AfterTrials::Again => Some(CrdError::CanaryUnanswered(counts.unanswered)),
            };
            if let Some(error) = error {
                let report = report();
                return Some(Repeats { error, report, checkpoint: std::mem::take(&mut verified.before) });
            }
        }
        tally.overflows_with_unknown().then(|| {
            let rejected = match retries.take_rejected(now) {
                true => Rejected::default(),
                false => Rejected::of_tally(tally),
            };
            let checkpoint = Checkpoint { rejected, ..std::mem::take(&mut verified.checkpoint) };
            Repeats { error: CrdError::Incomplete, report: report(), checkpoint }
        })
    }

    /// What is known after it came to its end.
    pub(super) fn passed(
        &self,
        task: &Task,
        verified: Verified,
        watch_failure: Option<String>,
        now: Now,
    ) -> Passed {
        let Verified { last, mut checkpoint, through, requests: asked, .. } = verified;
        let now_known = self.state.status("", &last.tally, None, self.times, &self.pass.ledger().dropped);
        // A verification is one of all objects, so the record moves with it: what is held or rejected by now
        // may have been written since, through a server that lagged behind, and nothing but the record would
        // keep it from being taken for stored. Under another generation, other versions may be served: what
        // was written before it was judged now, and is not to be judged again.
        let is_current = |report: &&Arc<DefaultsReportStatus>| {
            !task.writes() || report.generation == task.crd.generation()
        };
        let holds =
            |report: &&Arc<DefaultsReportStatus>| !self.verifies && asked == 0 && is_same(&now_known, report);
        let unchanged = self.report.as_ref().filter(is_current).filter(holds).cloned();
        let finished_through = if unchanged.is_some() { self.covered } else { through };
        checkpoint.record.servers_lag &= !task.writes();
        if let Some(through) = finished_through {
            checkpoint.record.through = checkpoint.record.through.map(|_| through);
        }
        let verify_at = self.times.verify_at.filter(|_| !self.verifies);
        let state = PassState {
            record: checkpoint.record,
            proved: checkpoint.proved,
            tally: last.tally,
            watch_from: last.watch_from,
            counted: last.counted.for_watch(),
            times: Times { finished: Some(now.date), verify_at, ..self.times },
            finished_through,
            watch_failure,
        };
        Passed { state, unchanged, asked }
    }
}

/// Whether the CRD's status shows that a pass begins: what an earlier attempt has reported holds until there
/// is something newer.
fn is_begin_reported(task: &Task, status: &Status, is_finished: bool) -> bool {
    match status.reason() {
        None => {
            let is_new = |reason| !status.is_persisted() && !status.has_reason(reason);
            let is_over = status.held_for().is_some_and(|reason| Some(reason) != task.hold_reason());
            !is_finished || is_over || task.hold_reason().is_some_and(is_new)
        }
        // A pause takes back nothing that is proved.
        Some(Reason::Settling | Reason::AllPersisted) => !is_finished,
        Some(reason) => Some(reason).filter(|reason| reason.is_pause_or_canary()) != task.hold_reason(),
    }
}

/// Whether two reports agree on how many objects there are, and on which are not stored.
fn is_same(one: &DefaultsReportStatus, other: &DefaultsReportStatus) -> bool {
    let numbers = |counts: Counts| {
        let Counts {
            objects,
            due,
            unproved,
            held,
            rejected,
            ignored,
            terminating,
            too_deep,
            not_selected,
            unknown,
            ..
        } = counts;
        [objects, due, unproved, held, rejected, ignored, terminating, too_deep, not_selected, unknown]
    };
    let named = |status: &DefaultsReportStatus| {
        let DefaultsReportStatus { held, rejected, ignored, terminating, too_deep, .. } = status.clone();
        [held, rejected, ignored, terminating, too_deep]
    };
    numbers(one.counts) == numbers(other.counts) && named(one) == named(other)
}
