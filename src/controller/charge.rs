//! The task of one CRD at one generation under one policy: from its report to its watch.
//! It must not outlive the CRD's state that it was made for: the supervisor ends it and starts another.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;
use tracing::{info, warn};

use super::judge::Judged;
use super::pass::{Interruption, Orders, Proved, Sweep};
use super::record::{Recorder, Times, now, record, record_of, report};
use super::tally::Tally;
use super::tend::{Stop, Tender};
use super::verdict;
use crate::api::{DefaultsReportStatus, Mode, Settings};
use crate::cluster::{Backoff, CallError, Cluster, Missing, Pace, Verb};
use crate::domain::condition::{Reason, Verdict};
use crate::domain::crd::Crd;
use crate::domain::plan::Record;

/// How often a missing permission is asked for again. Where Etch has few permissions, every CRD asks.
const ASK_AGAIN: Duration = Duration::from_secs(30);
/// The least time between two updates of conditions and report while something goes on.
pub(super) const UPDATES: Duration = Duration::from_secs(3);

/// What a task is given.
pub(super) struct Charge {
    pub(super) cluster: Cluster,
    pub(super) pace: Arc<Pace>,
    pub(super) crd: Arc<Crd>,
    pub(super) settings: Settings,
    /// What is wrong with the CRD itself, before any object is looked at.
    pub(super) judged: Judged,
    pub(super) recorder: Recorder,
}

/// Why a task has to begin again.
#[derive(Debug, thiserror::Error)]
pub(super) enum Halt {
    #[error("{0}")]
    Forbidden(Missing),
    #[error(transparent)]
    Interrupted(#[from] Interruption),
    #[error("{0} objects could not be written yet")]
    Incomplete(u64),
    #[error("the watch ended: {0}")]
    Watch(CallError),
    #[error(transparent)]
    Call(#[from] CallError),
}

/// What is known after a pass.
pub(super) struct Standing {
    pub(super) tally: Tally,
    pub(super) record: Record,
    pub(super) proved: Proved,
    pub(super) watch_from: String,
    pub(super) times: Times,
    pub(super) finished_through: Option<u64>,
}

impl Charge {
    /// Sees to the CRD until the task is ended.
    pub(super) async fn run(mut self) {
        if let Some(verdict) = verdict::without_objects(&self.crd, &self.settings, &self.judged) {
            self.recorder.say(verdict).await;
            return self.recorder.insist().await;
        }
        if !self.crd.compiled().has_defaults() {
            self.recorder.unsay().await;
            return self.recorder.insist().await;
        }
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(120));
        let mut known: Option<Record> = None;
        loop {
            let Err(halt) = self.tenure(&mut known, &mut backoff).await;
            let wait = match &halt {
                Halt::Forbidden(missing) => {
                    info!(reason = %halt, "waiting for the permission");
                    self.halted(&halt).await;
                    self.permission(&missing.verbs).await;
                    continue;
                }
                Halt::Interrupted(Interruption::Stop(Stop::Forbidden { .. })) => ASK_AGAIN,
                Halt::Interrupted(
                    Interruption::TooManyRejected(_) | Interruption::Stop(Stop::OwnersLost { .. }),
                ) => {
                    warn!(reason = %halt, "stopped");
                    self.halted(&halt).await;
                    return self.recorder.insist().await;
                }
                Halt::Call(error) | Halt::Watch(error) | Halt::Interrupted(Interruption::List(error)) => {
                    backoff.failed(error.retry_after())
                }
                Halt::Incomplete(_) => backoff.failed(None),
            };
            info!(reason = %halt, again_in = ?wait, "beginning again");
            self.halted(&halt).await;
            tokio::time::sleep(wait).await;
        }
    }

    /// One way through: recall, settle, ask, sweep, watch. It ends only by a halt.
    async fn tenure(
        &mut self,
        known: &mut Option<Record>,
        backoff: &mut Backoff,
    ) -> Result<Infallible, Halt> {
        let noted = self.recorder.recall().await?;
        let on_record = known.clone().or_else(|| record(noted.as_ref()?, &self.crd));
        let same_digest = |digest: &str| digest == self.crd.compiled().digest().to_string();
        let first_seen = noted
            .as_ref()
            .filter(|noted| same_digest(&noted.digest))
            .and_then(|noted| noted.first_seen.as_ref().map(|time| time.0))
            .unwrap_or_else(now);
        if on_record.is_none() {
            self.settle(first_seen).await;
        }
        self.ask().await?;
        let times = Times { first_seen: Some(first_seen), started: Some(now()), finished: None };
        let standing = match on_record {
            Some(record) => self.resume(record, noted, times).await?,
            None => self.pass(times).await?,
        };
        *known = Some(standing.record.clone()).filter(|record| record.through.is_some());
        backoff.works();
        self.keep(standing, known).await
    }

    /// Waits until the schema has stood long enough.
    async fn settle(&mut self, first_seen: Timestamp) {
        let stood = Duration::try_from(now().duration_since(first_seen)).unwrap_or_default();
        let left = self.settings.settle.saturating_sub(stood);
        if left.is_zero() {
            return;
        }
        let until = now() + left;
        self.recorder.say(verdict::settling(&self.judged, until)).await;
        let times = Times { first_seen: Some(first_seen), ..Times::default() };
        self.recorder.note(report(&self.crd, &Tally::default(), Reason::Settling, None, times)).await;
        tokio::time::sleep(left).await;
    }

    /// Asks whether we may do what we are about to do.
    async fn ask(&self) -> Result<(), Halt> {
        let verbs: &[Verb] = match self.settings.mode {
            Mode::Persist if !self.settings.paused => &[Verb::Get, Verb::List, Verb::Watch, Verb::Patch],
            _ => &[Verb::Get, Verb::List, Verb::Watch],
        };
        match self.cluster.missing(&self.crd.resource(), verbs).await? {
            Some(missing) => Err(Halt::Forbidden(missing)),
            None => Ok(()),
        }
    }

    /// Waits until we may use the first of these verbs; the others are asked about by whoever goes on.
    async fn permission(&self, verbs: &[Verb]) {
        let resource = self.crd.resource();
        let first = &verbs[..verbs.len().min(1)];
        loop {
            tokio::time::sleep(ASK_AGAIN).await;
            if let Ok(None) = self.cluster.missing(&resource, first).await {
                return;
            }
        }
    }

    /// The first sweep for these defaults, and the sweeps that verify it.
    async fn pass(&mut self, times: Times) -> Result<Standing, Halt> {
        info!(digest = %self.crd.compiled().digest(), "pass begins");
        if !self.recorder.says(Reason::InProgress) {
            // Otherwise it says already what an earlier attempt has met, and that holds until there is something better.
            self.recorder.say(verdict::in_progress(&self.judged, &Tally::default())).await;
        }
        let began = Instant::now();
        let fresh = Record {
            versions_disagree: self.crd.versions_disagree(),
            trust_claims: self.settings.mode == Mode::Audit,
            ..Record::default()
        };
        let mut first = self.sweep(&fresh, &Proved::default(), None, times).await?;
        let through = first.through;
        let mut left = 3;
        while first.tally.counts().written > 0 && left > 0 {
            left -= 1;
            let seen = record_of(&Tally::default(), through, &self.crd);
            let again = self.sweep(&seen, &first.proved, Some(&first.tally), times).await?;
            let verified = again.asked == 0;
            first.watch_from = again.watch_from;
            first.proved.extend(again.proved);
            first.tally.amend(again.tally);
            if verified {
                break;
            }
        }
        let unknown = first.tally.counts().unknown - first.tally.due();
        if unknown > 0 {
            return Err(Halt::Incomplete(unknown));
        }
        let Sweep { tally, watch_from, proved, .. } = first;
        let times = Times { finished: Some(now()), ..times };
        let standing = Standing {
            record: record_of(&tally, through, &self.crd),
            tally,
            proved,
            watch_from,
            times,
            finished_through: through,
        };
        self.publish(&standing).await;
        self.cluster.metrics().pass_duration.observe(began.elapsed().as_secs_f64());
        info!(counts = ?standing.tally.counts(), "pass ends");
        Ok(standing)
    }

    /// The list of a run that finds its work done: whatever the record covers needs no request.
    async fn resume(
        &mut self,
        record: Record,
        noted: Option<DefaultsReportStatus>,
        times: Times,
    ) -> Result<Standing, Halt> {
        let sweep = self.sweep(&record, &Proved::default(), None, times).await?;
        let unknown = sweep.tally.counts().unknown - sweep.tally.due();
        if unknown > 0 {
            return Err(Halt::Incomplete(unknown));
        }
        let Sweep { tally, watch_from, proved, asked, through, .. } = sweep;
        let troubled = tally.counts().held + tally.counts().rejected;
        let was_troubled = noted.as_ref().map_or(0, |noted| noted.counts.held + noted.counts.rejected);
        let unchanged = asked == 0 && troubled == was_troubled;
        let finished_through = if unchanged { record.through } else { through };
        let times = Times { finished: Some(now()), ..times };
        let standing = Standing {
            record: record_of(&tally, finished_through, &self.crd),
            tally,
            proved,
            watch_from,
            times,
            finished_through,
        };
        if let Some(noted) = noted.filter(|_| unchanged) {
            self.recorder.say(verdict::of(&self.judged, &self.settings, &standing.tally)).await;
            // The report of the pass stays, for it tells more than this list could; only what it is about may be newer.
            self.recorder.note(DefaultsReportStatus { generation: self.crd.generation(), ..noted }).await;
        } else {
            self.publish(&standing).await;
        }
        info!(counts = ?standing.tally.counts(), asked, "resumed");
        Ok(standing)
    }

    /// One sweep; conditions and report follow it at a bounded rate.
    async fn sweep(
        &mut self,
        record: &Record,
        proved: &Proved,
        known: Option<&Tally>,
        times: Times,
    ) -> Result<Sweep, Halt> {
        let (cluster, pace, crd) = (self.cluster.clone(), self.pace.clone(), self.crd.clone());
        let own_pace = self.settings.max_writes_per_second.map(|rate| Pace::new(usize::MAX, Some(rate)));
        let tender = tender(&cluster, &pace, own_pace.as_ref(), &crd, &self.settings);
        let orders = Orders { record, proved, known, stop_after_rejected: self.settings.stop_after_rejected };
        let quiet = record.through.is_some();
        let mut sweep = Sweep::default();
        let mut updated = Instant::now();
        loop {
            let more = sweep.page(tender, orders).await;
            let is_due = !quiet && updated.elapsed() >= UPDATES;
            if is_due && more.is_ok() {
                self.recorder.say(verdict::in_progress(&self.judged, &sweep.tally)).await;
            }
            if is_due || more.is_err() {
                self.recorder.note(report(&crd, &sweep.tally, Reason::InProgress, None, times)).await;
                updated = Instant::now();
            }
            if !more? {
                return Ok(sweep);
            }
        }
    }

    pub(super) async fn publish(&mut self, standing: &Standing) {
        let counts = standing.tally.counts();
        self.cluster
            .metrics()
            .phantom_objects(self.crd.name(), counts.held + counts.rejected + counts.unknown);
        let verdict = verdict::of(&self.judged, &self.settings, &standing.tally);
        let reason = verdict.reason;
        self.recorder.say(verdict).await;
        let status = report(&self.crd, &standing.tally, reason, standing.finished_through, standing.times);
        self.recorder.note(status).await;
    }

    async fn halted(&mut self, halt: &Halt) {
        let say = |reason, message: String| Verdict {
            non_structural: self.judged.non_structural.clone(),
            invalid_defaults: self.judged.invalid_defaults.clone(),
            persisted: Some(false),
            reason,
            message,
        };
        let verdict = match halt {
            Halt::Forbidden(missing) => say(
                Reason::Forbidden,
                format!("a permission is missing; add this rule to a role of Etch's: {missing}"),
            ),
            Halt::Interrupted(Interruption::Stop(Stop::Forbidden { verb })) => {
                say(Reason::Forbidden, format!("the permission to {verb} the objects is missing"))
            }
            Halt::Interrupted(Interruption::Stop(lost @ Stop::OwnersLost { .. })) => {
                say(Reason::ObjectsRejected, lost.to_string())
            }
            Halt::Interrupted(Interruption::TooManyRejected(_)) => {
                say(Reason::ObjectsRejected, halt.to_string())
            }
            Halt::Watch(error) if error.is_expired() => return,
            Halt::Interrupted(Interruption::List(CallError::Refused(refusal)))
            | Halt::Watch(CallError::Refused(refusal))
                if refusal.is_failed_conversion() =>
            {
                say(
                    Reason::ConversionFailed,
                    "objects cannot be read at the storage version: the conversion webhook fails".to_owned(),
                )
            }
            other => say(Reason::InProgress, format!("{other}; tried again by itself")),
        };
        self.recorder.say(verdict).await;
    }
}

pub(super) fn tender<'a>(
    cluster: &'a Cluster,
    pace: &'a Pace,
    own_pace: Option<&'a Pace>,
    crd: &'a Crd,
    settings: &Settings,
) -> Tender<'a> {
    let mode = if settings.paused { Mode::Audit } else { settings.mode };
    Tender { cluster, pace, own_pace, crd, terms: settings.terms, mode }
}
