//! The task of one CRD at one generation under one policy: from its report to its watch.
//! It must not outlive the CRD's state that it was made for: the supervisor ends it and starts another.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tracing::{Instrument as _, debug, info, warn};

use crate::api::{DefaultsReportStatus, Mode, Pause, Settings};
use crate::cluster::{Backoff, Cluster, Pace, Permissions, Scope, Verb};
use crate::controller::crd::check::Judged;
use crate::controller::crd::pass::Standing;
use crate::controller::crd::retry::Retries;
use crate::controller::crd::sweep::Interruption;
use crate::controller::error::Halt;
use crate::controller::object::brake::Brake;
use crate::controller::object::reconcile::{Stop, Tender};
use crate::controller::spans;
use crate::controller::state::changed_defaults::Changes;
use crate::controller::state::checkpoint::Memory;
use crate::controller::state::drops::Drops;
use crate::controller::state::report::Ledger;
use crate::controller::status::message;
use crate::controller::status::writer::{Recorder, now};
use crate::domain::condition::{Reason, Verdict};
use crate::domain::crd::Crd;
use crate::domain::plan::Since;

/// How often a missing permission is asked for again. Where Etch has few permissions, every CRD asks.
const ASK_AGAIN: Duration = Duration::from_secs(30);
/// The longest wait between two such questions while objects are not to be written yet anyhow.
const ASK_SELDOM: Duration = Duration::from_secs(600);
/// The same where none is missing: what is taken away later is noticed by [`Permissions`] as long as anything goes on.
const ASK_WHILE_IDLE: Duration = Duration::from_secs(6 * 3600);
/// The longest wait for a conversion webhook: it is asked through a server that is well.
const CONVERT_AGAIN: Duration = Duration::from_secs(30);
/// The least time between two updates of conditions and report while something goes on.
pub(in crate::controller) const UPDATES: Duration = Duration::from_secs(3);

/// What a task is given.
pub(in crate::controller) struct Charge {
    pub(in crate::controller) cluster: Cluster,
    pub(in crate::controller) pace: Arc<Pace>,
    /// This CRD's own, beside the one that all share.
    pub(in crate::controller) own_pace: Arc<Pace>,
    pub(in crate::controller) crd: Arc<Crd>,
    pub(in crate::controller) settings: Settings,
    /// The pause that is in force now; that of `settings` is the one which was when this tenure began.
    pub(in crate::controller) pause: watch::Receiver<Option<Pause>>,
    /// What is wrong with the CRD itself, before any object is looked at.
    pub(in crate::controller) judged: Judged,
    pub(in crate::controller) recorder: Recorder,
    /// The resource version of the CRD as it was read.
    pub(in crate::controller) revision: String,
    /// What the report says whatever becomes of the objects.
    pub(in crate::controller) ledger: Ledger,
    /// The defaults that have changed; none until the report was read.
    pub(in crate::controller) changes: Option<Arc<Changes>>,
    pub(in crate::controller) retries: Retries,
    pub(in crate::controller) permissions: Permissions,
}

impl Charge {
    /// Sees to the CRD until the task is ended.
    pub(in crate::controller) async fn run(mut self) {
        let at_rest = message::without_objects(&self.crd, &self.settings, &self.judged);
        if (at_rest.is_some() || !self.crd.compiled().has_defaults()) && self.may_rest(at_rest).await {
            return self.recorder.insist().await;
        }
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(120));
        let mut known: Option<Memory> = None;
        loop {
            let Err(halt) = self.tenure(&mut known, &mut backoff).await;
            let wait = match &halt {
                Halt::Forbidden(missing)
                | Halt::Interrupted(Interruption::Stop(Stop::Forbidden(missing))) => {
                    info!(reason = %halt, "waiting for the permission");
                    self.halted(&halt).await;
                    self.permission(&missing.verbs).await;
                    continue;
                }
                Halt::Interrupted(Interruption::Stop(Stop::Pause)) => {
                    info!(reason = %halt, "beginning again");
                    // What follows a changed default is counted anew from the report.
                    self.changes = None;
                    continue;
                }
                Halt::Interrupted(
                    Interruption::TooManyRejected(_) | Interruption::Stop(Stop::OwnersLost { .. }),
                ) => {
                    warn!(reason = %halt, "stopped");
                    self.halted(&halt).await;
                    return self.recorder.insist().await;
                }
                Halt::Call(error) | Halt::Watch(error) | Halt::Interrupted(Interruption::List(error)) => {
                    let wait = backoff.failed(error.retry_after());
                    if halt.is_failed_conversion() { wait.min(CONVERT_AGAIN) } else { wait }
                }
                // Nobody tells a sweep of the operator's to end: its task is dropped.
                Halt::Incomplete | Halt::Interrupted(Interruption::Stop(Stop::Ended)) => backoff.failed(None),
                Halt::NothingLeft => {
                    self.may_rest(None).await;
                    return self.recorder.insist().await;
                }
                // The wait is over already.
                Halt::Overflow => Duration::ZERO,
            };
            info!(reason = %halt, retry_in_seconds = spans::seconds(wait), "beginning again");
            self.halted(&halt).await;
            self.insist_for(wait).await;
        }
    }

    /// One way through: recall, settle, ask, sweep, watch. It ends only by a halt.
    async fn tenure(
        &mut self,
        known: &mut Option<Memory>,
        backoff: &mut Backoff,
    ) -> Result<Infallible, Halt> {
        self.settings.pause = self.pause.borrow_and_update().clone();
        let noted = self.recorder.recall().await?;
        // What this run has dropped its report may not say yet.
        let drops = self.changes.is_some().then(|| self.ledger.drops());
        self.ledger = Ledger::open(noted.as_ref(), &self.crd, &self.settings, &self.revision);
        if let Some(drops) = drops {
            self.ledger.go_on_with(drops);
        }
        let changes = self.changed(noted.as_ref());
        if !self.crd.compiled().has_defaults() && !changes.are_due() {
            return Err(Halt::NothingLeft);
        }
        let memory = known.take().or_else(|| Memory::recall(noted.as_ref()?, &self.crd));
        // Where no default is left and none is followed, nothing is written: what is only counted need not settle.
        let may_write = self.crd.compiled().has_defaults() || !self.settings.follow.is_empty();
        if memory.is_none() && may_write {
            self.settle().await?;
        }
        let memory = known.insert(memory.unwrap_or_else(|| Memory::none(&self.crd)));
        memory.record.cleared = self.ledger.drops().cleared();
        let mut standing = self.traced_pass(memory, noted.as_ref()).await?;
        changes.seen_to();
        backoff.works();
        if self.is_left(&standing) {
            return Err(Halt::NothingLeft);
        }
        let Err(halt) = self.keep(&mut standing).await;
        // Who does not write learns nothing about what is stored, and keeps what was known before.
        if self.writes() {
            *known = Memory::of(standing);
        }
        Err(halt)
    }

    /// Asks for the permissions and makes a pass, within one span.
    async fn traced_pass(
        &mut self,
        memory: &mut Memory,
        noted: Option<&DefaultsReportStatus>,
    ) -> Result<Standing, Halt> {
        let span = spans::pass(&self.crd, &self.settings.policy);
        let pass = async {
            self.ask().await?;
            self.pass(memory, noted).await
        };
        let ended = pass.instrument(span.clone()).await;
        match &ended {
            Ok(standing) => spans::finish(&span, standing.tally.counts(), self.recorder.reason()),
            Err(halt) => spans::halt(&span, halt),
        }
        ended
    }

    /// Whether nothing is to be done for a CRD without defaults: no object waits for what its last ones left behind.
    pub(in crate::controller) fn is_left(&self, standing: &Standing) -> bool {
        let counts = standing.tally.counts();
        !self.crd.compiled().has_defaults()
            && counts.held + counts.rejected + counts.unknown + counts.due == 0
    }

    /// The defaults that have changed, by the report that was read first.
    fn changed(&mut self, noted: Option<&DefaultsReportStatus>) -> Arc<Changes> {
        let about_this = noted.filter(|noted| self.ledger.is_about(noted));
        let open = || Arc::new(Changes::open(about_this, self.ledger.previous(), &self.crd, &self.settings));
        self.changes.get_or_insert_with(open).clone()
    }

    /// Says what there is to say without a look at any object; none without defaults. Where the last defaults were taken
    /// back, one more pass has to tell what becomes of their values: then it says nothing, and there is no rest.
    async fn may_rest(&mut self, verdict: Option<Verdict>) -> bool {
        let state = verdict.as_ref().map(|verdict| verdict.reason);
        if let Some(verdict) = verdict {
            self.recorder.say(verdict).await;
        }
        let noted = self.recorder.insist_on_recall().await;
        self.ledger = Ledger::open(noted.as_ref(), &self.crd, &self.settings, &self.revision);
        let is_looked_at = self.settings.mode != Mode::Ignore && self.crd.storage().served;
        if state.is_none() && is_looked_at && self.changed(noted.as_ref()).are_due() {
            return false;
        }
        if state.is_none() {
            self.recorder.unsay().await;
        }
        let status = match (state, noted) {
            // A CRD without defaults has no report, unless it had defaults once.
            (None, None) => None,
            // What became of the values when the last defaults were taken back.
            (None, Some(noted)) if self.ledger.is_about(&noted) => {
                Some(self.ledger.renewed(&noted, Reason::NoDefaults.as_str()))
            }
            (None, Some(_)) => Some(self.ledger.idle(Reason::NoDefaults.as_str())),
            // These defaults are in force still, and what is known of the objects stays true.
            (Some(Reason::Ignored), Some(noted)) if self.ledger.is_about(&noted) => {
                Some(self.ledger.renewed(&noted, Reason::Ignored.as_str()))
            }
            (Some(state), _) => Some(self.ledger.idle(state.as_str())),
        };
        if let Some(status) = status {
            self.recorder.note(status).await;
        }
        true
    }

    /// Waits until the schema has stood long enough.
    async fn settle(&mut self) -> Result<(), Halt> {
        let stood = Duration::try_from(now().duration_since(self.ledger.first_seen())).unwrap_or_default();
        let left = self.settings.settle.saturating_sub(stood);
        if left.is_zero() {
            return Ok(());
        }
        let until = self.ledger.first_seen().saturating_add(self.settings.settle);
        let until = until.unwrap_or(jiff::Timestamp::MAX);
        let end = Instant::now() + left;
        let brake = self.brake();
        let (mut missing, mut patience) = (None, Backoff::new(ASK_AGAIN, ASK_SELDOM));
        loop {
            // What is missing is found out now, and not when it is too late to be granted in time.
            match self.ask().await {
                Ok(()) => missing = None,
                Err(Halt::Forbidden(found)) => missing = Some(found),
                Err(error) => debug!(%error, "the permissions are not known"),
            }
            let pause = self.settings.pause.as_ref().filter(|_| self.settings.mode == Mode::Persist);
            self.recorder.say(message::settling(&self.judged, pause, missing.as_ref(), until)).await;
            self.recorder.note(self.ledger.settling(until)).await;
            let next = if missing.is_some() { patience.failed(None) } else { ASK_WHILE_IDLE };
            let next = end.min(Instant::now() + next);
            loop {
                tokio::select! {
                    () = brake.changed() => return Err(Interruption::from(Stop::Pause).into()),
                    () = self.permissions.changed() => break,
                    () = sleep_until(next) => break,
                    () = self.recorder.due() => self.recorder.repeat().await,
                }
            }
            if Instant::now() >= end {
                return Ok(());
            }
        }
    }

    /// The pause of this tenure, and what becomes of it.
    pub(in crate::controller) fn brake(&self) -> Brake {
        Brake::new(self.pause.clone(), self.settings.pause.clone())
    }

    /// Waits, and sees meanwhile that what was said stands there.
    async fn insist_for(&mut self, wait: Duration) {
        let until = Instant::now() + wait;
        loop {
            tokio::select! {
                () = sleep_until(until) => return,
                () = self.recorder.due() => self.recorder.repeat().await,
            }
        }
    }

    /// Asks whether we may do what we are about to do.
    pub(in crate::controller) async fn ask(&self) -> Result<(), Halt> {
        let verbs: &[Verb] = match self.settings.mode {
            Mode::Persist if self.settings.pause.is_none() => {
                &[Verb::Get, Verb::List, Verb::Watch, Verb::Patch]
            }
            // An object is read by itself only to be written again.
            _ => &[Verb::List, Verb::Watch],
        };
        match self.cluster.missing(&self.crd.resource(), verbs).await? {
            Some(missing) => Err(Halt::Forbidden(missing)),
            None => Ok(()),
        }
    }

    /// Waits until we may use the first of these verbs; the others are asked about by whoever goes on.
    async fn permission(&mut self, verbs: &[Verb]) {
        let resource = self.crd.resource();
        let first = &verbs[..verbs.len().min(1)];
        let brake = self.brake();
        loop {
            let until = Instant::now() + ASK_AGAIN;
            loop {
                tokio::select! {
                    // Another one may be needed now.
                    () = brake.changed() => return,
                    () = self.permissions.changed() => break,
                    () = sleep_until(until) => break,
                    () = self.recorder.due() => self.recorder.repeat().await,
                }
            }
            if let Ok(None) = self.cluster.missing(&resource, first).await {
                return;
            }
        }
    }

    /// Says why it does not go on.
    async fn halted(&mut self, halt: &Halt) {
        if let Some(verdict) = halt.verdict(&self.judged) {
            let state = verdict.reason.as_str();
            self.recorder.say(verdict).await;
            let about_this = self.recorder.noted().filter(|noted| self.ledger.is_about(noted));
            let status = match about_this {
                Some(noted) => self.ledger.renewed(noted, state),
                None => self.ledger.idle(state),
            };
            self.recorder.note(status).await;
        }
    }
}

#[expect(clippy::too_many_arguments, reason = "they are what a tender is made of, each of its own lifetime")]
pub(in crate::controller) fn tender<'a>(
    cluster: &'a Cluster,
    pace: &'a Pace,
    own_pace: &'a Pace,
    crd: &'a Crd,
    settings: &Settings,
    since: &'a Since,
    changes: &'a Changes,
    drops: &'a Drops,
) -> Tender<'a> {
    let mode = if settings.pause.is_some() { Mode::Audit } else { settings.mode };
    Tender {
        cluster,
        pace,
        own_pace: Some(own_pace),
        brake: None,
        ended: None,
        crd,
        scope: &Scope::All,
        terms: settings.terms,
        mode,
        since,
        changes,
        drops,
    }
}
