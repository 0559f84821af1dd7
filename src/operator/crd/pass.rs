//! The operator's pass over the objects of a CRD, and its status; `sweeps` drives it.
//! It must not report a pass as finished before every object was processed.

use std::time::Duration;

use futures::future::BoxFuture;
use tokio::time::Instant;
use tracing::info;

use crate::operator::crd::sweeps::{Admission, Moment, Observer, Sweeps};
use crate::operator::crd::task::{CrdTask, Verification};
use crate::operator::crd::watch::at;
use crate::operator::error::TaskError;
use etch_core::api::{Counts, DefaultsReportStatus, Mode, Settings};
use etch_core::condition::{CrdStatus, Reason};
use etch_core::engine::pass::{Limits, Pass, Verified};
use etch_core::engine::pass_state::PassState;
use etch_core::engine::updates;
use etch_core::message;
use etch_core::report::checkpoint::Checkpoint;
use etch_core::report::open_report::OpenReport;
use etch_core::report::state::{Times, is_finished};
use etch_core::report::tally::Tally;

/// How often the log says how far a pass has come.
const LOG_EVERY: Duration = Duration::from_secs(30);

/// Whether two reports agree on how many objects there are, and on which are not stored.
fn is_same(one: &DefaultsReportStatus, other: &DefaultsReportStatus) -> bool {
    let numbers = |counts: Counts| {
        let Counts { objects, due, unproved, held, rejected, ignored, terminating, unknown, .. } = counts;
        [objects, due, unproved, held, rejected, ignored, terminating, unknown]
    };
    let named = |status: &DefaultsReportStatus| {
        let DefaultsReportStatus { held, rejected, ignored, terminating, .. } = status.clone();
        [held, rejected, ignored, terminating]
    };
    numbers(one.counts) == numbers(other.counts) && named(one) == named(other)
}

/// What reports the progress of a pass: conditions and report follow it at a bounded rate.
struct PassProgress<'a> {
    task: &'a mut CrdTask,
    open: &'a OpenReport,
    /// Whether an earlier pass has finished: then nothing is reported until something is written.
    quiet: bool,
    times: Times,
    /// When the log says next how far it has come.
    log_at: Instant,
}

impl Observer for PassProgress<'_> {
    const FIRST: Duration = updates::EVERY;
    const EVERY: Duration = updates::EVERY;

    fn report<'s>(&'s mut self, pass: &Pass<Admission>, moment: Moment) -> BoxFuture<'s, ()> {
        // What follows a completed sweep reports it.
        if moment == Moment::Completed {
            return Box::pin(std::future::ready(()));
        }
        let so_far = pass.tally().clone();
        let shown = match pass.earlier() {
            Some(earlier) => earlier.tally.clone(),
            None => {
                let mut shown = so_far.clone();
                shown.add_earlier_writes(&pass.checkpoint().writes);
                shown
            }
        };
        let verifies = pass.earlier().is_some();
        Box::pin(self.report_progress(so_far, shown, verifies))
    }
}

impl PassProgress<'_> {
    /// Reports how far a sweep has come, by its own numbers and by those that are shown: where it `verifies`
    /// another, that one's.
    async fn report_progress(&mut self, so_far: Tally, shown: Tally, verifies: bool) {
        let Self { task, open, quiet, times, log_at } = self;
        let counts = so_far.counts();
        if *log_at <= Instant::now() {
            *log_at = Instant::now() + LOG_EVERY;
            let expected = so_far.expected();
            info!(objects = counts.objects, expected, written = counts.written, verifies, "pass under way");
        }
        let pause_changed = task.settings.pause != *task.pause.borrow();
        let is_known = *quiet && !verifies && counts.written + counts.rejected + counts.unknown == 0;
        if is_known && task.status_writer.is_persisted()
            || !pause_changed && (counts.objects == 0 || is_known)
        {
            return;
        }
        let crd_status = task.in_progress(&shown, verifies.then_some(counts.objects));
        let reason = crd_status.reason;
        task.status_writer.set_conditions(crd_status).await;
        let place = if verifies { shown.place() } else { so_far.place() };
        let place = place.filter(|_| task.writes());
        let mut status = open.status(reason, &shown, place.map(|place| place.through), *times);
        status.upto = place.map(|place| place.upto.clone());
        task.status_writer.write_report(status).await;
    }
}

impl CrdTask {
    /// Whether it is for a pause that nothing is written.
    fn is_paused(&self) -> bool {
        self.settings.mode == Mode::Persist && self.settings.pause.is_some()
    }

    /// A pass over all objects, of which those that `checkpoint` covers need no request. What is known when
    /// it cannot be ended is left in `checkpoint`.
    pub(crate) async fn pass(
        &mut self,
        open: &OpenReport,
        checkpoint: &mut Checkpoint,
        report: Option<&DefaultsReportStatus>,
    ) -> Result<PassState, TaskError> {
        info!(digest = %self.crd.compiled().digest(), "pass started");
        let began = Instant::now();
        let report = report.filter(|report| is_finished(report, &self.crd));
        let may_lag = self.writes() && open.state.verify_at().is_some();
        let verifies = may_lag && self.is_verification_due();
        if verifies {
            info!("verifying the objects written since the schema changed");
            open.changes.servers_have_caught_up();
        }
        let times =
            Times { started: Some(self.clock.second()), finished: None, verify_at: open.state.verify_at() };
        let quiet = report.is_some();
        // What an earlier attempt has reported holds until there is something newer.
        let begins = match self.status_writer.reason() {
            None => {
                !quiet
                    || self.is_paused()
                        && !self.status_writer.is_persisted()
                        && !self.status_writer.has_reason(Reason::Paused)
            }
            Some(Reason::Settling) => !quiet,
            // A pause takes back nothing that is proved.
            Some(Reason::AllPersisted) => !quiet,
            Some(reason) => (reason == Reason::Paused) != self.is_paused(),
        };
        if begins {
            self.status_writer.set_conditions(self.in_progress(&Tally::default(), None)).await;
        }
        let covered = checkpoint.record.through;
        // A pass that goes on from a record asks about what was written since when it is time, and not twice.
        checkpoint.record.servers_lag = match self.writes() {
            true => may_lag && (verifies || covered.is_none()),
            false => checkpoint.record.servers_lag || open.state.verify_at().is_some(),
        };
        let keeps_record = may_lag && !verifies && covered.is_some() && !checkpoint.record.versions_disagree;
        let swept = self.sweep_and_verify(open, checkpoint, quiet, times, keeps_record).await?;
        let Verified { last, checkpoint: mut verified, through, requests: asked, .. } = *swept;
        let counts = last.tally.counts();
        if last.tally.overflows() && counts.unknown > 0 {
            self.status_writer.write_report(open.status(Reason::InProgress, &last.tally, None, times)).await;
            *checkpoint = verified;
            return Err(TaskError::Incomplete);
        }
        let now_known = open.state.status("", &last.tally, None, times);
        // A verification is one of all objects, so the record moves with it: what is held or rejected by now
        // may have been written since, through a server that lagged behind, and nothing but the record would
        // keep it from being taken for stored. Under another generation, other versions may be served: what
        // was written before it was judged now, and is not to be judged again.
        let is_current =
            |report: &&DefaultsReportStatus| !self.writes() || report.generation == self.crd.generation();
        let unchanged =
            report.filter(is_current).filter(|report| !verifies && asked == 0 && is_same(&now_known, report));
        let finished_through = if unchanged.is_some() { covered } else { through };
        verified.record.servers_lag &= !self.writes();
        if let Some(through) = finished_through {
            verified.record.through = verified.record.through.map(|_| through);
        }
        if verifies {
            self.verification = Verification::Done;
            open.changes.forget_suspects();
        }
        let verify_at = times.verify_at.filter(|_| !verifies);
        let pass = PassState {
            record: verified.record,
            proved: verified.proved,
            tally: last.tally,
            watch_from: last.watch_from,
            times: Times { finished: Some(self.clock.second()), verify_at, ..times },
            finished_through,
            watch_failure: self.watch_failure.borrow_and_update().clone(),
        };
        match unchanged {
            Some(report) => self.confirm(open, &pass, report).await,
            None => self.publish(open, &pass).await,
        }
        self.cluster.metrics().pass_duration.observe(began.elapsed().as_secs_f64());
        log_end(counts, asked);
        Ok(pass)
    }

    /// A sweep over all objects, and those that verify it where it may write.
    async fn sweep_and_verify(
        &mut self,
        open: &OpenReport,
        checkpoint: &mut Checkpoint,
        quiet: bool,
        times: Times,
        keeps_record: bool,
    ) -> Result<Box<Verified>, TaskError> {
        let parts = self.reconciler_parts(open);
        let limits = Limits {
            stop_after_rejected: self.settings.stop_after_rejected,
            verifies: self.writes(),
            moves_record: true,
            keeps_record,
            ..Limits::default()
        };
        let pass = Pass::begin(parts.rules.clone(), limits, std::mem::take(checkpoint));
        let log_at = Instant::now() + LOG_EVERY;
        let mut progress = PassProgress { task: self, open, quiet, times, log_at };
        match Sweeps::new(parts.reconciler(), false).run(pass, &mut progress).await {
            Ok(mut verified) => {
                *checkpoint = std::mem::take(&mut verified.before);
                if verified.postponed > 0 {
                    self.retries.postpone(at());
                }
                Ok(verified)
            }
            Err(interrupted) => {
                *checkpoint = interrupted.checkpoint;
                Err(interrupted.reason.into())
            }
        }
    }

    /// The status while a pass is under way, or has just been paused.
    fn in_progress(&self, tally: &Tally, verified: Option<u64>) -> CrdStatus {
        let pause = self.pause.borrow().clone().filter(|_| self.settings.mode == Mode::Persist);
        message::in_progress(&self.findings, pause.as_ref(), tally, verified)
    }

    /// Keeps a finished report as it is, save for the CRD and policy that it names.
    async fn confirm(&mut self, open: &OpenReport, pass: &PassState, report: &DefaultsReportStatus) {
        self.count_phantoms(pass);
        let crd_status = self.crd_status(open, pass, &self.settings);
        self.status_writer.write_report(open.confirmed(report, crd_status.reason, pass.times)).await;
        self.status_writer.set_conditions(crd_status).await;
    }

    /// Publishes what is known now.
    pub(crate) async fn publish(&mut self, open: &OpenReport, pass: &PassState) {
        self.count_phantoms(pass);
        let crd_status = self.crd_status(open, pass, &self.settings);
        // That a CRD has no defaults left is reported once this has ended.
        let nothing_left = self.has_nothing_left(&pass.tally);
        let reason = if nothing_left { Reason::NoDefaults } else { crd_status.reason };
        let status = open.status(reason, &pass.tally, pass.finished_through, pass.times);
        // The report comes first: whoever waits for the condition finds it there.
        self.status_writer.write_report(status).await;
        if !nothing_left {
            self.status_writer.set_conditions(crd_status).await;
        }
    }

    /// The status of a watched CRD when a pause begins or ends: what is proved stays so.
    pub(crate) fn pause_changed(&self, open: &OpenReport, pass: &PassState) -> CrdStatus {
        let settings = Settings { pause: self.pause.borrow().clone(), ..self.settings.clone() };
        let known = self.crd_status(open, pass, &settings);
        if known.reason == Reason::AllPersisted { known } else { self.in_progress(&pass.tally, None) }
    }

    /// The status of the CRD, with what became of the values of changed defaults.
    fn crd_status(&self, open: &OpenReport, pass: &PassState, settings: &Settings) -> CrdStatus {
        let mut crd_status = message::of(&self.findings, settings, &pass.tally);
        let changes = open.changes.summary();
        if !changes.is_empty() {
            crd_status.append(&changes);
        }
        if let Some(lost) = open.state.dropped().lost() {
            crd_status.append(&lost);
        }
        match &pass.watch_failure {
            Some(failure) => message::watch_failing(crd_status, failure),
            None => crd_status,
        }
    }

    fn count_phantoms(&self, pass: &PassState) {
        self.cluster.metrics().phantom_objects(self.crd.name(), pass.tally.phantoms());
    }
}

/// Logs the end of a pass; `asked` is the number of objects that needed a request.
fn log_end(counts: Counts, asked: u64) {
    info!(
        objects = counts.objects,
        written = counts.written,
        already_stored = counts.already_stored,
        followed = counts.followed,
        kept = counts.kept,
        due = counts.due,
        unproved = counts.unproved,
        held = counts.held,
        rejected = counts.rejected,
        unknown = counts.unknown,
        ignored = counts.ignored,
        terminating = counts.terminating,
        asked,
        "pass ended"
    );
}
