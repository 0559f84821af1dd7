//! The task of one CRD at one generation under one policy: from its report to its watch.
//! It must not outlive the CRD's state that it was made for: the supervisor ends it and starts another.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use tracing::{Instrument as _, debug, info, warn};

use crate::api::{DefaultsReportStatus, Mode, Pause, Settings};
use crate::cluster::{Backoff, Cluster, Missing, Pace, Permissions, Scope};
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
    /// What is known of the objects, from before the last pass ended.
    pub(in crate::controller) known: Option<Memory>,
    pub(in crate::controller) backoff: Backoff,
    /// When the schema will have stood long enough.
    pub(in crate::controller) settled_at: Option<Instant>,
    /// What was missing when it was last asked, while the schema settles.
    pub(in crate::controller) missing: Option<Missing>,
    /// How often to ask for it.
    pub(in crate::controller) patience: Backoff,
}

/// How often to ask for a permission that is missing while the schema settles.
pub(in crate::controller) fn patience() -> Backoff {
    Backoff::new(ASK_FIRST, ASK_SELDOM)
}

/// What is to be done next about a CRD.
#[derive(Debug)]
pub(in crate::controller) enum Next {
    /// A pass over its objects, and the watch after it.
    Work,
    /// The same, when this has passed.
    Wait(Duration),
    /// The same, when this has passed or what we may do has changed.
    Settle(Duration),
    /// The same, when these verbs are permitted.
    Permission(Vec<Verb>),
    /// Nothing, until the CRD or its policy changes.
    Rest,
}

impl CrdTask {
    /// Reads the report and says what can be said before any object is read.
    ///
    /// # Errors
    /// Where the report cannot be read.
    pub(in crate::controller) async fn prepare(&mut self) -> Result<Next, Halt> {
        self.settings.pause = self.pause.borrow_and_update().clone();
        let at_rest = message::without_objects(&self.crd, &self.settings, &self.judged);
        let state = at_rest.as_ref().map(|verdict| verdict.reason);
        if let Some(verdict) = at_rest {
            self.recorder.say(verdict).await;
        }
        let noted = self.recorder.recall().await?;
        // What this run has dropped its report may not say yet.
        let drops = self.changes.is_some().then(|| self.ledger.drops());
        self.ledger = Ledger::open(noted.as_ref(), &self.crd, &self.settings, &self.revision);
        if let Some(drops) = drops {
            self.ledger.go_on_with(drops);
        }
        let has_defaults = self.crd.compiled().has_defaults();
        if (state.is_some() || !has_defaults) && self.rests(state, noted.as_ref()) {
            self.rest(state, noted).await;
            return Ok(Next::Rest);
        }
        self.changed(noted.as_ref());
        let memory = self.known.take().or_else(|| Memory::recall(noted.as_ref()?, &self.crd));
        // Where no default is left and none is followed, nothing is written: what is only counted need not settle.
        let may_write = has_defaults || !self.settings.follow.is_empty();
        if memory.is_none()
            && may_write
            && let Some(left) = self.settle().await?
        {
            return Ok(Next::Settle(left));
        }
        self.known = memory;
        Ok(Next::Work)
    }

    /// Makes a pass over the objects and then watches them, until something ends it; says what, and what is to be done next.
    pub(in crate::controller) async fn work(&mut self) -> Next {
        let Err(halt) = self.pass_and_watch().await;
        self.ended(&halt).await
    }

    /// Says why it cannot go on; what is to be done next.
    pub(in crate::controller) async fn ended(&mut self, halt: &Halt) -> Next {
        let next = match halt {
            Halt::Forbidden(missing) | Halt::Interrupted(Interruption::Stop(Stop::Forbidden(missing))) => {
                info!(reason = %halt, "waiting for the permission");
                Next::Permission(missing.verbs.clone())
            }
            Halt::Interrupted(
                Interruption::TooManyRejected(_) | Interruption::Stop(Stop::OwnersLost { .. }),
            ) => {
                warn!(reason = %halt, "stopped");
                Next::Rest
            }
            Halt::Call(error) | Halt::Watch(error) | Halt::Interrupted(Interruption::List(error)) => {
                let wait = self.backoff.failed(error.retry_after());
                Next::Wait(if halt.is_failed_conversion() { wait.min(CONVERT_AGAIN) } else { wait })
            }
            // Nobody tells a sweep of the operator's to end: its task is dropped.
            Halt::Incomplete | Halt::Interrupted(Interruption::Stop(Stop::Ended)) => {
                Next::Wait(self.backoff.failed(None))
            }
            Halt::Interrupted(Interruption::Stop(Stop::Pause)) => {
                // What follows a changed default is counted anew from the report.
                self.changes = None;
                info!(reason = %halt, "beginning again");
                return Next::Wait(Duration::ZERO);
            }
            // The wait is over already.
            Halt::Overflow | Halt::NothingLeft => Next::Wait(Duration::ZERO),
        };
        if let Next::Wait(wait) = &next {
            info!(reason = %halt, retry_in_seconds = spans::seconds(*wait), "beginning again");
        }
        self.halted(halt).await;
        next
    }

    async fn pass_and_watch(&mut self) -> Result<Infallible, Halt> {
        let noted = self.recorder.noted().cloned();
        let mut memory = self.known.take().unwrap_or_else(|| Memory::none(&self.crd));
        memory.record.cleared = self.ledger.drops().cleared();
        let passed = self.traced_pass(&mut memory, noted.as_ref()).await;
        let mut standing = match passed {
            Ok(standing) => standing,
            Err(halt) => {
                self.known = Some(memory);
                return Err(halt);
            }
        };
        if let Some(changes) = &self.changes {
            changes.seen_to();
        }
        self.backoff.works();
        if self.is_left(&standing) {
            return Err(Halt::NothingLeft);
        }
        let Err(halt) = self.keep(&mut standing).await;
        // Who does not write learns nothing about what is stored, and keeps what was known before.
        self.known = if self.writes() { Memory::of(standing) } else { Some(memory) };
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

    /// Whether nothing is to be done, though objects may be there. Where the last defaults were taken back, one more pass has
    /// to count what becomes of their values.
    fn rests(&mut self, state: Option<Reason>, noted: Option<&DefaultsReportStatus>) -> bool {
        let may_look = self.settings.mode != Mode::Ignore && self.crd.storage().served;
        state.is_some() || !may_look || !self.changed(noted).are_due()
    }

    /// Says in conditions and report that nothing is to be done.
    async fn rest(&mut self, state: Option<Reason>, noted: Option<DefaultsReportStatus>) {
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
    }

    /// How long the schema must stand still before objects are written, and says so; none where it has stood long enough.
    /// What is missing until then is found out now, and not when it is too late to be granted in time.
    async fn settle(&mut self) -> Result<Option<Duration>, Halt> {
        let stood = Duration::try_from(now().duration_since(self.ledger.first_seen())).unwrap_or_default();
        let left = self.settings.settle.saturating_sub(stood);
        // The wall clock is asked once: it may be set, and other machines' clocks differ.
        let end = *self.settled_at.get_or_insert_with(|| Instant::now() + left);
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(None);
        }
        let until = self.ledger.first_seen().saturating_add(self.settings.settle);
        let until = until.unwrap_or(jiff::Timestamp::MAX);
        match self.ask().await {
            Ok(()) => self.missing = None,
            Err(Halt::Forbidden(found)) => self.missing = Some(found),
            Err(error) => debug!(%error, "the permissions are not known"),
        }
        let pause = self.settings.pause.as_ref().filter(|_| self.settings.mode == Mode::Persist);
        self.recorder.say(message::settling(&self.judged, pause, self.missing.as_ref(), until)).await;
        self.recorder.note(self.ledger.settling(until)).await;
        let ask_again = if self.missing.is_some() { self.patience.failed(None) } else { ASK_WHILE_IDLE };
        Ok(Some(left.min(ask_again)))
    }

    /// The pause under which this works, and what becomes of it.
    pub(in crate::controller) fn brake(&self) -> Brake {
        Brake::new(self.pause.clone(), self.settings.pause.clone())
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
