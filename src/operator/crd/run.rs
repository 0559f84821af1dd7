//! How the task of a CRD runs: from its report to a pass and to its watch, and what follows an error.
//! It must not list, watch or reconcile objects itself.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use tracing::{Instrument as _, debug, info, warn};

use crate::operator::crd::check::READ_PATIENCE;
use crate::operator::crd::task::{CrdTask, Verification};
use crate::operator::error::{Sign, TaskError};
use crate::operator::spans;
use etch_core::api::{DefaultsReportStatus, Mode};
use etch_core::condition::{CrdStatus, Reason};
use etch_core::crd::Unserved;
use etch_core::engine::pass_state::PassState;
use etch_core::engine::stop_reason::StopReason;
use etch_core::engine::sweep::SweepError;
use etch_core::message;
use etch_core::plan::record_on;
use etch_core::rbac::Verb;
use etch_core::report::checkpoint::Checkpoint;
use etch_core::report::open_report::OpenReport;
use etch_core::report::rejected::Rejected;

/// The same where none is missing: what is taken away later is noticed by `Permissions` as long as anything
/// goes on.
const ASK_WHILE_IDLE: Duration = Duration::from_secs(6 * 3600);
/// The longest wait for a conversion webhook: it is asked through a server that is well.
const CONVERT_AGAIN: Duration = Duration::from_secs(30);
/// The longest wait for a resource that is not served, as while a CRD is established, or again after a
/// restore: the API server says so without a look at etcd, and nothing else shows when it is over.
const SERVED_AGAIN: Duration = Duration::from_secs(10);
/// The wait where another server answers for the CRD: nothing shows when that is over.
const SERVED_BY_CRD_AGAIN: Duration = Duration::from_secs(600);

/// What is to be done next about a CRD.
#[derive(Debug)]
pub(crate) enum Next {
    /// A pass over its objects, and the watch after it, from the report as it was read.
    Run(Arc<OpenReport>),
    /// The same, when this has passed.
    Wait(Duration),
    /// The same, when this has passed or permissions have changed.
    Settle(Duration),
    /// The same, when these verbs are permitted.
    Permission(Vec<Verb>),
    /// Nothing, until the CRD or its policy changes.
    Idle,
    /// The CRD is another one than the one that was read: it is read again.
    Changed,
}

impl CrdTask {
    /// Reads the report and sets what conditions do not depend on the objects.
    ///
    /// # Errors
    /// Where the report cannot be read.
    pub(crate) async fn prepare(&mut self) -> Result<Next, TaskError> {
        // Whatever comes of this, the next CRD is read.
        let turn = self.turn.take();
        self.settings.pause = self.pause.borrow_and_update().clone();
        let at_rest = message::without_objects(&self.crd, &self.settings, &self.findings);
        // What became of the last defaults may have to be counted before this is reported.
        let (no_defaults, at_rest) = match at_rest {
            Some(crd_status) if crd_status.reason == Reason::NoDefaults => (Some(crd_status), None),
            at_rest => (None, at_rest),
        };
        let state = at_rest.as_ref().map(|crd_status| crd_status.reason);
        if let Some(crd_status) = at_rest {
            self.status_writer.set_conditions(crd_status).await;
        }
        let known = self.status_writer.report().cloned();
        let report = self.status_writer.read_report().await?;
        if known.is_some() && !self.status_writer.is_ours(known.as_ref(), report.as_ref()) {
            info!(reason = %TaskError::Restored(Sign::Report), "ignoring the recorded pass");
            (self.checkpoint, self.is_restored) = (None, true);
            self.verification = Verification::Unknown;
        }
        let before = self.open.as_deref();
        let now = self.clock.second();
        let mut open =
            OpenReport::new(report.as_ref(), &self.crd, &self.settings, &self.revision, now, before);
        let verify_at = self.schedule_verification(open.state.verify_at());
        open.state.set_verify_at(verify_at);
        if verify_at.is_some() {
            open.changes.watch_suspects();
        }
        self.record_dropped(&open);
        let open = self.open.insert(Arc::new(open)).clone();
        let has_defaults = no_defaults.is_none();
        if (state.is_some() || !has_defaults) && self.is_idle(state, &open) {
            self.report_idle(&open, state, report).await;
            if let Some(crd_status) = no_defaults {
                self.set_conditions_in_turn(crd_status, turn).await;
            }
            return Ok(Next::Idle);
        }
        drop(turn);
        // A restart must not cost the owners of one more object.
        let about_this = report.as_ref().filter(|report| open.state.is_about(report));
        if let Some(lost) = about_this.and_then(|report| report.owners_lost.clone()) {
            return Ok(self.handle_error(&lost.into()).await);
        }
        let recorded = report.as_ref().filter(|_| !self.is_restored);
        let mut checkpoint = self.checkpoint.take().or_else(|| Checkpoint::from_report(recorded?, &self.crd));
        if checkpoint.is_none() && !self.writes() && !self.is_restored && has_defaults {
            checkpoint = self.recorded_on_crd().await;
        }
        // Where no default is left and none is followed, nothing is written: what is only counted need not
        // settle.
        let may_write = has_defaults || !self.settings.follow.is_empty();
        if checkpoint.is_none()
            && may_write
            && let Some(left) = self.settle(&open).await?
        {
            return Ok(Next::Settle(left));
        }
        self.checkpoint = checkpoint;
        // A wait would be no use: another writer of reports may come again before each attempt.
        if std::mem::take(&mut self.is_restored)
            && let Some(crd_status) = TaskError::Restored(Sign::Report).crd_status(&self.findings)
        {
            self.status_writer.set_conditions(crd_status).await;
        }
        Ok(Next::Run(open))
    }

    /// What the CRD itself carries of an earlier pass, for whoever only counts: what writes proves everything
    /// again.
    async fn recorded_on_crd(&self) -> Option<Checkpoint> {
        let document = self.cluster.crd(self.crd.name()).await.ok().flatten()?;
        let is_this = document["metadata"]["uid"] == self.crd.uid();
        let record = record_on(&document, &self.crd).filter(|_| is_this)?;
        Some(Checkpoint { record, ..Checkpoint::default() })
    }

    /// Makes a pass over the objects and then watches them, until something ends it; returns what to do next.
    pub(crate) async fn run(&mut self, open: &OpenReport) -> Next {
        let Err(error) = self.pass_and_watch(open).await;
        Box::pin(async {
            let error = if error.is_not_served() { self.why_not_served(error).await } else { error };
            self.handle_error(&error).await
        })
        .await
    }

    /// The same error, or what the CRD's conditions say of why its objects are not served.
    async fn why_not_served(&self, error: TaskError) -> TaskError {
        let document = self.cluster.crd(self.crd.name()).await.ok().flatten();
        let unserved = document.as_ref().and_then(Unserved::of);
        unserved.map_or(error, TaskError::NotServed)
    }

    /// Puts on record what writes have dropped that the policy does not allow to drop.
    fn record_dropped(&mut self, open: &OpenReport) {
        let dropped = std::mem::take(&mut self.dropped);
        for (identity, paths) in dropped.into_iter().chain(self.generation_check.take_dropped(&self.crd)) {
            warn!(object = %identity, paths = spans::in_words(&paths), "a write dropped fields while the CRD changed");
            open.state.dropped().lose(&identity, &paths);
        }
    }

    /// Finds out whether the CRD has changed, after a write dropped fields.
    async fn read_generation(&mut self) -> Next {
        match self.cluster.confirm_again(&self.generation_check).await {
            Ok(false) => Next::Changed,
            // The server that answered lags behind, or admission removes fields.
            Ok(true) => Next::Wait(self.backoff.failed(None)),
            Err(error) => Next::Wait(self.backoff.failed(error.retry_after())),
        }
    }

    /// Reports why it cannot go on; returns what to do next.
    pub(crate) async fn handle_error(&mut self, error: &TaskError) -> Next {
        let next = match error {
            TaskError::Interrupted(SweepError::Stop(StopReason::CrdChanged)) => {
                info!(reason = %error, "reading the CRD again");
                Next::Changed
            }
            TaskError::Interrupted(SweepError::Stop(StopReason::FieldsDropped { .. })) => {
                self.read_generation().await
            }
            TaskError::Forbidden(missing)
            | TaskError::Interrupted(SweepError::Stop(StopReason::Forbidden(missing))) => {
                info!(reason = %error, "waiting for the permission");
                Next::Permission(missing.verbs.clone())
            }
            TaskError::ServedElsewhere(_) => Next::Wait(SERVED_BY_CRD_AGAIN),
            TaskError::NotServed(_) => Next::Wait(self.backoff.failed(None)),
            TaskError::Interrupted(
                SweepError::TooManyRejected(_) | SweepError::Stop(StopReason::OwnersLost { .. }),
            ) => {
                warn!(reason = %error, "stopped");
                Next::Idle
            }
            TaskError::Call(failed)
            | TaskError::Watch(failed)
            | TaskError::Interrupted(SweepError::List(failed)) => {
                let wait = self.backoff.failed(failed.retry_after());
                let longest = if error.is_failed_conversion() {
                    CONVERT_AGAIN
                } else if error.is_not_served() {
                    SERVED_AGAIN
                } else {
                    wait
                };
                Next::Wait(wait.min(longest))
            }
            // Nobody cancels a sweep of the operator's: its task is dropped.
            TaskError::Incomplete | TaskError::Interrupted(SweepError::Stop(StopReason::Ended)) => {
                Next::Wait(self.backoff.failed(None))
            }
            TaskError::Interrupted(SweepError::Stop(StopReason::Pause)) => {
                // What follows a changed default is counted anew from the report.
                self.open = None;
                info!(reason = %error, "restarting the CRD task");
                return Next::Wait(Duration::ZERO);
            }
            TaskError::Restored(_) => {
                // What is on record is about another past.
                self.checkpoint = Some(Checkpoint::empty(&self.crd));
                self.status_writer.forget_report();
                Next::Wait(self.backoff.failed(None))
            }
            // The wait is over already.
            TaskError::Overflow | TaskError::NothingLeft | TaskError::Verify => Next::Wait(Duration::ZERO),
        };
        if let Next::Wait(wait) = &next {
            info!(reason = %error, retry_in_seconds = spans::seconds(*wait), "restarting the CRD task");
        }
        self.report_error(error).await;
        next
    }

    async fn pass_and_watch(&mut self, open: &OpenReport) -> Result<Infallible, TaskError> {
        let mut checkpoint = self.checkpoint.take().unwrap_or_else(|| Checkpoint::empty(&self.crd));
        checkpoint.record.cleared = open.state.dropped().cleared();
        // Boxed, and given what it alone needs: the watch that follows lasts, and there is one for each CRD.
        let passed = Box::pin(self.traced_pass(open, &mut checkpoint)).await;
        let pass = match passed {
            Ok(pass) => Box::new(pass),
            Err(error) => {
                self.checkpoint = Some(checkpoint);
                return Err(error);
            }
        };
        open.changes.set_processed();
        self.backoff.works();
        if self.has_nothing_left(&pass.tally) {
            return Err(TaskError::NothingLeft);
        }
        let (pass, error) = self.watch_objects(open, pass).await;
        let rejected = match error {
            // What was rejected and has not changed would be again.
            TaskError::Verify => {
                let known = open.status(Reason::InProgress, &pass.tally, pass.finished_through, pass.times);
                Rejected::from_report(&known)
            }
            _ => Rejected::default(),
        };
        // Who does not write learns nothing about what is stored, and keeps what was known before.
        self.checkpoint = match self.writes() {
            true => pass.into_checkpoint().map(|checkpoint| Checkpoint { rejected, ..checkpoint }),
            false => Some(checkpoint),
        };
        Err(error)
    }

    /// Checks permissions and whose objects are served, and makes a pass, within one span.
    async fn traced_pass(
        &mut self,
        open: &OpenReport,
        checkpoint: &mut Checkpoint,
    ) -> Result<PassState, TaskError> {
        let span = spans::pass(&self.crd, &self.settings.policy);
        let report = self.status_writer.report().cloned();
        let pass = async {
            self.check_permissions().await?;
            self.check_server().await?;
            self.pass(open, checkpoint, report.as_ref()).await
        };
        let ended = pass.instrument(span.clone()).await;
        match &ended {
            Ok(pass) => spans::finish(&span, pass.tally.counts(), self.status_writer.reason()),
            Err(error) => spans::fail_pass(&span, error),
        }
        ended
    }

    /// Whether nothing is to be done, though objects may be there. Where the last defaults were taken back,
    /// one more pass has to count what becomes of their values.
    fn is_idle(&self, state: Option<Reason>, open: &OpenReport) -> bool {
        let may_look = self.settings.mode != Mode::Ignore && self.crd.storage().served;
        state.is_some() || !may_look || !open.changes.are_pending()
    }

    /// Reports that there is nothing to do.
    async fn report_idle(
        &mut self,
        open: &OpenReport,
        state: Option<Reason>,
        report: Option<DefaultsReportStatus>,
    ) {
        let status = match (state, report) {
            // A CRD without defaults has no report, unless it had defaults once.
            (None, None) => None,
            // What became of the values when the last defaults were taken back.
            (None, Some(report)) if open.state.is_about(&report) => {
                Some(open.state.with_state(&report, Reason::NoDefaults.as_str()))
            }
            (None, Some(_)) => Some(open.state.idle(Reason::NoDefaults.as_str())),
            // These defaults are in force still, and what is known of the objects stays true.
            (Some(Reason::Ignored), Some(report)) if open.state.is_about(&report) => {
                Some(open.state.with_state(&report, Reason::Ignored.as_str()))
            }
            (Some(state), _) => Some(open.state.idle(state.as_str())),
        };
        if let Some(status) = status {
            self.status_writer.write_report(status).await;
        }
    }

    /// Sets the conditions of a CRD without defaults. The first start in a cluster may find thousands of
    /// those: each is read when the one before it is written.
    async fn set_conditions_in_turn(&mut self, crd_status: CrdStatus, turn: Option<OwnedSemaphorePermit>) {
        let Some(turn) = turn else { return self.status_writer.set_conditions(crd_status).await };
        let mut writing = pin!(self.status_writer.set_conditions(crd_status));
        tokio::select! {
            () = &mut writing => {}
            // One that takes long must not hold up the others.
            () = tokio::time::sleep(READ_PATIENCE) => {
                drop(turn);
                writing.await;
            }
        }
    }

    /// How long the schema must stay unchanged before objects are written, which it reports; none where it
    /// has been long enough. What is missing until then is found out now, and not when it is too late to be
    /// granted in time.
    async fn settle(&mut self, open: &OpenReport) -> Result<Option<Duration>, TaskError> {
        let stood = Duration::try_from(self.clock.second().duration_since(open.state.first_seen()))
            .unwrap_or_default();
        let left = self.settings.settle.saturating_sub(stood);
        // The wall clock is asked once: it may be set, and other machines' clocks differ.
        let end = *self.settled_at.get_or_insert_with(|| Instant::now() + left);
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(None);
        }
        let until = open.state.first_seen().saturating_add(self.settings.settle);
        let until = whole_second(until.unwrap_or(Timestamp::MAX));
        match self.check_permissions().await {
            Ok(()) => self.missing = None,
            Err(TaskError::Forbidden(found)) => self.missing = Some(found),
            Err(error) => debug!(%error, "cannot read the permissions"),
        }
        let pause = self.settings.pause.as_ref().filter(|_| self.settings.mode == Mode::Persist);
        self.status_writer
            .set_conditions(message::settling(&self.findings, pause, self.missing.as_ref(), until))
            .await;
        self.status_writer.write_report(open.state.settling(until)).await;
        let ask_again =
            if self.missing.is_some() { self.permission_backoff.failed(None) } else { ASK_WHILE_IDLE };
        Ok(Some(left.min(ask_again)))
    }

    /// Reports why it does not go on.
    async fn report_error(&mut self, error: &TaskError) {
        let Some(crd_status) = error.crd_status(&self.findings) else { return };
        let state = crd_status.reason.as_str();
        self.status_writer.set_conditions(crd_status).await;
        // A report that could not be read is not replaced.
        let Some(open) = self.open.clone() else { return };
        let about_this = self.status_writer.report().filter(|report| open.state.is_about(report));
        let status = match about_this {
            Some(report) => open.state.with_state(report, state),
            None => open.state.idle(state),
        };
        let status = DefaultsReportStatus { owners_lost: error.owners_lost(), ..status };
        self.status_writer.write_report(status).await;
    }
}

/// The first second that is not before a time: Kubernetes stores no part of one, and a report that is read
/// otherwise than it was written is taken for another writer's.
fn whole_second(time: Timestamp) -> Timestamp {
    let second = time.as_second() + i64::from(time.subsec_nanosecond() > 0);
    Timestamp::from_second(second).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size<A, B, F: Future>(_: impl Fn(A, B) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn a_crd_that_is_watched_holds_no_room_for_what_lasts_a_moment() {
        // A pass alone takes more than twice as much.
        assert!(size(CrdTask::run) <= 8 << 10, "{} bytes", size(CrdTask::run));
    }
}
