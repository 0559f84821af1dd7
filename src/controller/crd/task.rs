//! The task of one CRD at one generation under one policy: from its report to its watch.
//! It must not outlive the CRD's state that it was made for: the supervisor ends it and starts another.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use tracing::{Instrument as _, debug, info, warn};

use crate::api::{DefaultsReportStatus, Mode, Pause, Settings};
use crate::cluster::{Backoff, Cluster, MissingPermissions, Pace, Permissions, Scope};
use crate::controller::crd::check::SchemaFindings;
use crate::controller::crd::pass::PassState;
use crate::controller::crd::retry::Retries;
use crate::controller::crd::sweep::SweepError;
use crate::controller::error::TaskError;
use crate::controller::object::pause::PauseWatch;
use crate::controller::object::reconcile::{ObjectReconciler, StopReason};
use crate::controller::spans;
use crate::controller::state::changed_defaults::ChangedDefaults;
use crate::controller::state::checkpoint::Checkpoint;
use crate::controller::state::dropped_fields::DroppedFields;
use crate::controller::state::report::ReportState;
use crate::controller::status::message;
use crate::controller::status::writer::{StatusWriter, now};
use crate::domain::condition::Reason;
use crate::domain::crd::Crd;
use crate::domain::plan::Since;
use crate::domain::rbac::Verb;

/// How often a missing permission is asked for again, at first and at most, while objects are not to be written yet anyhow.
const ASK_FIRST: Duration = Duration::from_secs(30);
const ASK_SELDOM: Duration = Duration::from_secs(600);
/// The same where none is missing: what is taken away later is noticed by [`Permissions`] as long as anything goes on.
const ASK_WHILE_IDLE: Duration = Duration::from_secs(6 * 3600);
/// The longest wait for a conversion webhook: it is asked through a server that is well.
const CONVERT_AGAIN: Duration = Duration::from_secs(30);
/// The least time between two updates of conditions and report while something goes on.
pub(in crate::controller) const UPDATES: Duration = Duration::from_secs(3);

/// What a task is given.
pub(in crate::controller) struct CrdTask {
    pub(in crate::controller) cluster: Cluster,
    pub(in crate::controller) pace: Arc<Pace>,
    /// This CRD's own, beside the one that all share.
    pub(in crate::controller) own_pace: Arc<Pace>,
    pub(in crate::controller) crd: Arc<Crd>,
    pub(in crate::controller) settings: Settings,
    /// The pause that is in force now; that of `settings` is the one which was when this tenure began.
    pub(in crate::controller) pause: watch::Receiver<Option<Pause>>,
    /// What is wrong with the CRD itself.
    pub(in crate::controller) findings: SchemaFindings,
    pub(in crate::controller) status_writer: StatusWriter,
    /// The resource version of the CRD as it was read.
    pub(in crate::controller) revision: String,
    /// The part of the report that does not depend on what becomes of the objects.
    pub(in crate::controller) report_state: ReportState,
    /// The defaults that have changed; none until the report was read.
    pub(in crate::controller) changes: Option<Arc<ChangedDefaults>>,
    pub(in crate::controller) retries: Retries,
    pub(in crate::controller) permissions: Permissions,
    /// What is known of the objects, from before the last pass ended.
    pub(in crate::controller) checkpoint: Option<Checkpoint>,
    pub(in crate::controller) backoff: Backoff,
    /// When the schema will have stood long enough.
    pub(in crate::controller) settled_at: Option<Instant>,
    /// What was missing when it was last asked, while the schema settles.
    pub(in crate::controller) missing: Option<MissingPermissions>,
    /// How often to ask for it.
    pub(in crate::controller) permission_backoff: Backoff,
}

/// How often to ask for a permission that is missing while the schema settles.
pub(in crate::controller) fn permission_backoff() -> Backoff {
    Backoff::new(ASK_FIRST, ASK_SELDOM)
}

/// What is to be done next about a CRD.
#[derive(Debug)]
pub(in crate::controller) enum Next {
    /// A pass over its objects, and the watch after it.
    Run,
    /// The same, when this has passed.
    Wait(Duration),
    /// The same, when this has passed or what we may do has changed.
    Settle(Duration),
    /// The same, when these verbs are permitted.
    Permission(Vec<Verb>),
    /// Nothing, until the CRD or its policy changes.
    Idle,
}

impl CrdTask {
    /// Reads the report and sets what conditions do not depend on the objects.
    ///
    /// # Errors
    /// Where the report cannot be read.
    pub(in crate::controller) async fn prepare(&mut self) -> Result<Next, TaskError> {
        self.settings.pause = self.pause.borrow_and_update().clone();
        let at_rest = message::without_objects(&self.crd, &self.settings, &self.findings);
        let state = at_rest.as_ref().map(|crd_status| crd_status.reason);
        if let Some(crd_status) = at_rest {
            self.status_writer.set_conditions(crd_status).await;
        }
        let report = self.status_writer.read_report().await?;
        // The report may not list yet what this run has dropped.
        let dropped = self.changes.is_some().then(|| self.report_state.dropped());
        self.report_state = ReportState::open(report.as_ref(), &self.crd, &self.settings, &self.revision);
        if let Some(dropped) = dropped {
            self.report_state.keep_dropped(dropped);
        }
        let has_defaults = self.crd.compiled().has_defaults();
        if (state.is_some() || !has_defaults) && self.is_idle(state, report.as_ref()) {
            self.report_idle(state, report).await;
            return Ok(Next::Idle);
        }
        self.open_changed_defaults(report.as_ref());
        let checkpoint =
            self.checkpoint.take().or_else(|| Checkpoint::from_report(report.as_ref()?, &self.crd));
        // Where no default is left and none is followed, nothing is written: what is only counted need not settle.
        let may_write = has_defaults || !self.settings.follow.is_empty();
        if checkpoint.is_none()
            && may_write
            && let Some(left) = self.settle().await?
        {
            return Ok(Next::Settle(left));
        }
        self.checkpoint = checkpoint;
        Ok(Next::Run)
    }

    /// Makes a pass over the objects and then watches them, until something ends it; returns what to do next.
    pub(in crate::controller) async fn run(&mut self) -> Next {
        let Err(error) = self.pass_and_watch().await;
        self.handle_error(&error).await
    }

    /// Reports why it cannot go on; returns what to do next.
    pub(in crate::controller) async fn handle_error(&mut self, error: &TaskError) -> Next {
        let next = match error {
            TaskError::Forbidden(missing)
            | TaskError::Interrupted(SweepError::Stop(StopReason::Forbidden(missing))) => {
                info!(reason = %error, "waiting for the permission");
                Next::Permission(missing.verbs.clone())
            }
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
                Next::Wait(if error.is_failed_conversion() { wait.min(CONVERT_AGAIN) } else { wait })
            }
            // Nobody cancels a sweep of the operator's: its task is dropped.
            TaskError::Incomplete | TaskError::Interrupted(SweepError::Stop(StopReason::Ended)) => {
                Next::Wait(self.backoff.failed(None))
            }
            TaskError::Interrupted(SweepError::Stop(StopReason::Pause)) => {
                // What follows a changed default is counted anew from the report.
                self.changes = None;
                info!(reason = %error, "beginning again");
                return Next::Wait(Duration::ZERO);
            }
            // The wait is over already.
            TaskError::Overflow | TaskError::NothingLeft => Next::Wait(Duration::ZERO),
        };
        if let Next::Wait(wait) = &next {
            info!(reason = %error, retry_in_seconds = spans::seconds(*wait), "beginning again");
        }
        self.report_error(error).await;
        next
    }

    async fn pass_and_watch(&mut self) -> Result<Infallible, TaskError> {
        let report = self.status_writer.report().cloned();
        let mut checkpoint = self.checkpoint.take().unwrap_or_else(|| Checkpoint::empty(&self.crd));
        checkpoint.record.cleared = self.report_state.dropped().cleared();
        let passed = self.traced_pass(&mut checkpoint, report.as_ref()).await;
        let mut pass = match passed {
            Ok(pass) => pass,
            Err(error) => {
                self.checkpoint = Some(checkpoint);
                return Err(error);
            }
        };
        if let Some(changes) = &self.changes {
            changes.set_processed();
        }
        self.backoff.works();
        if self.has_nothing_left(&pass) {
            return Err(TaskError::NothingLeft);
        }
        let Err(error) = self.watch_objects(&mut pass).await;
        // Who does not write learns nothing about what is stored, and keeps what was known before.
        self.checkpoint = if self.writes() { Checkpoint::from_pass(pass) } else { Some(checkpoint) };
        Err(error)
    }

    /// Checks permissions and makes a pass, within one span.
    async fn traced_pass(
        &mut self,
        checkpoint: &mut Checkpoint,
        report: Option<&DefaultsReportStatus>,
    ) -> Result<PassState, TaskError> {
        let span = spans::pass(&self.crd, &self.settings.policy);
        let pass = async {
            self.check_permissions().await?;
            self.pass(checkpoint, report).await
        };
        let ended = pass.instrument(span.clone()).await;
        match &ended {
            Ok(pass) => spans::finish(&span, pass.tally.counts(), self.status_writer.reason()),
            Err(error) => spans::fail_pass(&span, error),
        }
        ended
    }

    /// Whether nothing is to be done for a CRD without defaults: no object waits for what its last ones left behind.
    pub(in crate::controller) fn has_nothing_left(&self, pass: &PassState) -> bool {
        let counts = pass.tally.counts();
        !self.crd.compiled().has_defaults()
            && counts.held + counts.rejected + counts.unknown + counts.due == 0
    }

    /// The defaults that have changed, by the report that was read first.
    fn open_changed_defaults(&mut self, report: Option<&DefaultsReportStatus>) -> Arc<ChangedDefaults> {
        let about_this = report.filter(|report| self.report_state.is_about(report));
        let open = || {
            Arc::new(ChangedDefaults::open(
                about_this,
                self.report_state.previous(),
                &self.crd,
                &self.settings,
            ))
        };
        self.changes.get_or_insert_with(open).clone()
    }

    /// Whether nothing is to be done, though objects may be there. Where the last defaults were taken back, one more pass has
    /// to count what becomes of their values.
    fn is_idle(&mut self, state: Option<Reason>, report: Option<&DefaultsReportStatus>) -> bool {
        let may_look = self.settings.mode != Mode::Ignore && self.crd.storage().served;
        state.is_some() || !may_look || !self.open_changed_defaults(report).are_pending()
    }

    /// Reports that there is nothing to do.
    async fn report_idle(&mut self, state: Option<Reason>, report: Option<DefaultsReportStatus>) {
        if state.is_none() {
            self.status_writer.remove_conditions().await;
        }
        let status = match (state, report) {
            // A CRD without defaults has no report, unless it had defaults once.
            (None, None) => None,
            // What became of the values when the last defaults were taken back.
            (None, Some(report)) if self.report_state.is_about(&report) => {
                Some(self.report_state.with_state(&report, Reason::NoDefaults.as_str()))
            }
            (None, Some(_)) => Some(self.report_state.idle(Reason::NoDefaults.as_str())),
            // These defaults are in force still, and what is known of the objects stays true.
            (Some(Reason::Ignored), Some(report)) if self.report_state.is_about(&report) => {
                Some(self.report_state.with_state(&report, Reason::Ignored.as_str()))
            }
            (Some(state), _) => Some(self.report_state.idle(state.as_str())),
        };
        if let Some(status) = status {
            self.status_writer.write_report(status).await;
        }
    }

    /// How long the schema must stay unchanged before objects are written, which it reports; none where it has been long enough.
    /// What is missing until then is found out now, and not when it is too late to be granted in time.
    async fn settle(&mut self) -> Result<Option<Duration>, TaskError> {
        let stood =
            Duration::try_from(now().duration_since(self.report_state.first_seen())).unwrap_or_default();
        let left = self.settings.settle.saturating_sub(stood);
        // The wall clock is asked once: it may be set, and other machines' clocks differ.
        let end = *self.settled_at.get_or_insert_with(|| Instant::now() + left);
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(None);
        }
        let until = self.report_state.first_seen().saturating_add(self.settings.settle);
        let until = until.unwrap_or(jiff::Timestamp::MAX);
        match self.check_permissions().await {
            Ok(()) => self.missing = None,
            Err(TaskError::Forbidden(found)) => self.missing = Some(found),
            Err(error) => debug!(%error, "the permissions are not known"),
        }
        let pause = self.settings.pause.as_ref().filter(|_| self.settings.mode == Mode::Persist);
        self.status_writer
            .set_conditions(message::settling(&self.findings, pause, self.missing.as_ref(), until))
            .await;
        self.status_writer.write_report(self.report_state.settling(until)).await;
        let ask_again =
            if self.missing.is_some() { self.permission_backoff.failed(None) } else { ASK_WHILE_IDLE };
        Ok(Some(left.min(ask_again)))
    }

    /// The pause under which this runs, and whether it changes.
    pub(in crate::controller) fn pause_watch(&self) -> PauseWatch {
        PauseWatch::new(self.pause.clone(), self.settings.pause.clone())
    }

    /// Asks whether Etch may do what it is about to do.
    pub(in crate::controller) async fn check_permissions(&self) -> Result<(), TaskError> {
        let verbs: &[Verb] = match self.settings.mode {
            Mode::Persist if self.settings.pause.is_none() => {
                &[Verb::Get, Verb::List, Verb::Watch, Verb::Patch]
            }
            // An object is read by itself only to be written again.
            _ => &[Verb::List, Verb::Watch],
        };
        match self.cluster.missing(&self.crd.resource(), verbs).await? {
            Some(missing) => Err(TaskError::Forbidden(missing)),
            None => Ok(()),
        }
    }

    /// Reports why it does not go on.
    async fn report_error(&mut self, error: &TaskError) {
        if let Some(crd_status) = error.crd_status(&self.findings) {
            let state = crd_status.reason.as_str();
            self.status_writer.set_conditions(crd_status).await;
            let about_this = self.status_writer.report().filter(|report| self.report_state.is_about(report));
            let status = match about_this {
                Some(report) => self.report_state.with_state(report, state),
                None => self.report_state.idle(state),
            };
            self.status_writer.write_report(status).await;
        }
    }
}

#[expect(clippy::too_many_arguments, reason = "they are what a tender is made of, each of its own lifetime")]
pub(in crate::controller) fn reconciler<'a>(
    cluster: &'a Cluster,
    pace: &'a Pace,
    own_pace: &'a Pace,
    crd: &'a Crd,
    settings: &Settings,
    since: &'a Since,
    changes: &'a ChangedDefaults,
    dropped: &'a DroppedFields,
) -> ObjectReconciler<'a> {
    let mode = if settings.pause.is_some() { Mode::Audit } else { settings.mode };
    ObjectReconciler {
        cluster,
        pace,
        own_pace: Some(own_pace),
        pause_watch: None,
        cancelled: None,
        crd,
        scope: &Scope::All,
        terms: settings.terms,
        mode,
        since,
        changes,
        dropped,
    }
}
