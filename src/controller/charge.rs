//! The task of one CRD at one generation under one policy: from its report to its watch.
//! It must not outlive the CRD's state that it was made for: the supervisor ends it and starts another.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use jiff::Timestamp;
use tokio::time::Instant;
use tracing::{debug, info, warn};

use super::judge::Judged;
use super::pass::{Interruption, Orders, Proved, Sweep};
use super::record::{Recorder, Times, now, record, record_of, report};
use super::tally::{Fate, Tally, Trouble};
use super::tend::{Stop, Tended, Tender};
use super::verdict;
use crate::api::{DefaultsReportStatus, Mode, Settings};
use crate::cluster::{Backoff, CallError, Change, Cluster, Missing, Pace, Verb};
use crate::domain::condition::{Reason, Verdict};
use crate::domain::crd::Crd;
use crate::domain::object::{Identity, Object};
use crate::domain::plan::Record;

/// How often a missing permission is asked for again.
const ASK_AGAIN: Duration = Duration::from_secs(15);
/// The least time between two updates of conditions and report while something goes on.
const UPDATES: Duration = Duration::from_secs(3);
/// Waits before refused writes are tried again, from the first to the last.
const RETRY_FIRST: Duration = Duration::from_secs(20);
const RETRY_LAST: Duration = Duration::from_secs(3600);
/// Objects seen to at once while watching.
const AT_ONCE: usize = 16;

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
enum Halt {
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
struct Standing {
    tally: Tally,
    record: Record,
    proved: Proved,
    watch_from: String,
    times: Times,
    finished_through: Option<u64>,
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
            return std::future::pending().await;
        }
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(120));
        let mut known: Option<Record> = None;
        loop {
            backoff.begin();
            let Err(halt) = self.tenure(&mut known).await;
            let wait = match &halt {
                Halt::Forbidden(_) | Halt::Interrupted(Interruption::Stop(Stop::Forbidden { .. })) => {
                    ASK_AGAIN
                }
                // A list will do: what is on record stays.
                Halt::Watch(error) if error.is_expired() => Duration::ZERO,
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
    async fn tenure(&mut self, known: &mut Option<Record>) -> Result<Infallible, Halt> {
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

    /// The first sweep for these defaults, and the sweeps that verify it.
    async fn pass(&mut self, times: Times) -> Result<Standing, Halt> {
        info!(digest = %self.crd.compiled().digest(), "pass begins");
        self.recorder.say(verdict::in_progress(&self.judged, &Tally::default())).await;
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
        let own_pace = self.settings.max_writes_per_second.map(|rate| Pace::new(usize::MAX >> 1, Some(rate)));
        let tender = tender(&cluster, &pace, own_pace.as_ref(), &crd, &self.settings);
        let orders = Orders { record, proved, known, stop_after_rejected: self.settings.stop_after_rejected };
        let quiet = record.through.is_some();
        let mut sweep = Sweep::default();
        let mut updated = Instant::now();
        loop {
            let more = sweep.page(tender, orders).await;
            if more.is_err() || !quiet && updated.elapsed() >= UPDATES {
                self.recorder.say(verdict::in_progress(&self.judged, &sweep.tally)).await;
                self.recorder.note(report(&crd, &sweep.tally, Reason::InProgress, None, times)).await;
                updated = Instant::now();
            }
            if !more? {
                return Ok(sweep);
            }
        }
    }

    /// Watches, and sees to whatever changes.
    async fn keep(&mut self, mut standing: Standing, known: &mut Option<Record>) -> Result<Infallible, Halt> {
        let (cluster, pace, crd) = (self.cluster.clone(), self.pace.clone(), self.crd.clone());
        let own_pace = self.settings.max_writes_per_second.map(|rate| Pace::new(usize::MAX >> 1, Some(rate)));
        let tender = tender(&cluster, &pace, own_pace.as_ref(), &crd, &self.settings);
        let mut record = Arc::new(standing.record.clone());
        let mut under_way: FuturesUnordered<BoxFuture<'_, (Identity, Result<Tended, Stop>)>> =
            FuturesUnordered::new();
        let mut insisted = Insistence::default();
        let mut retries = Backoff::new(RETRY_FIRST, RETRY_LAST);
        let mut retry_at = Instant::now() + retries.failed(None);
        let mut dirty: Option<Instant> = None;
        let mut opening = Backoff::new(Duration::from_millis(500), Duration::from_secs(30));
        let mut from = standing.watch_from.clone();
        let mut watch = None;
        loop {
            if watch.is_none() {
                opening.begin();
                match cluster.watch(&crd.resource(), &from).await {
                    Ok(open) => watch = Some((open, Instant::now())),
                    Err(error) if error.is_expired() || matches!(error.code(), Some(403 | 404)) => {
                        return Err(Halt::Watch(error));
                    }
                    Err(error) => {
                        debug!(%error, "the watch cannot be opened");
                        tokio::time::sleep(opening.failed(error.retry_after())).await;
                        continue;
                    }
                }
            }
            let Some((stream, opened)) = watch.as_mut() else { continue };
            let next_update = dirty.unwrap_or_else(|| Instant::now() + RETRY_LAST);
            tokio::select! {
                change = stream.next(), if under_way.len() < AT_ONCE => match change {
                    Ok(Some(Change::Bookmark(resource_version))) => from = resource_version,
                    Ok(Some(Change::Deleted(object))) => {
                        object.resource_version().clone_into(&mut from);
                        if standing.tally.is_troubled(&object.identity()) {
                            standing.tally.forget(&object.identity());
                            dirty.get_or_insert(Instant::now() + UPDATES);
                        }
                    }
                    Ok(Some(Change::Applied(object))) => {
                        object.resource_version().clone_into(&mut from);
                        if standing.proved.take(&object) {
                            continue;
                        }
                        let delay = insisted.delay(object.uid());
                        under_way.push(Box::pin(attend(tender, object, record.clone(), delay)));
                    }
                    Ok(None) if opened.elapsed() >= Duration::from_secs(1) => watch = None,
                    ended => {
                        let error = ended.err().unwrap_or(CallError::ClosedAtOnce);
                        if error.is_expired() {
                            return Err(Halt::Watch(error));
                        }
                        debug!(%error, "the watch broke");
                        watch = None;
                        tokio::time::sleep(opening.failed(error.retry_after())).await;
                    }
                },
                Some((identity, tended)) = under_way.next() => {
                    let tended = tended.map_err(Interruption::from)?;
                    cluster.metrics().object(tended.fate.outcome());
                    if let Fate::Written(resource_version) = &tended.fate {
                        standing.proved.insert(&identity.uid, resource_version);
                        insisted.wrote(&identity.uid);
                    }
                    let troubled = matches!(tended.fate, Fate::Held(..) | Fate::Rejected(_));
                    if troubled || standing.tally.is_troubled(&identity) {
                        standing.tally.settle(&identity, tended.fate);
                        standing.record = record_of(&standing.tally, standing.finished_through, &crd);
                        record = Arc::new(standing.record.clone());
                        *known = Some(standing.record.clone());
                        dirty.get_or_insert(Instant::now() + Duration::from_millis(500));
                    }
                },
                () = tokio::time::sleep_until(retry_at) => {
                    for identity in rejected(&standing.tally) {
                        under_way.push(Box::pin(retry(tender, identity, record.clone())));
                    }
                    retry_at = Instant::now() + retries.failed(None);
                },
                () = tokio::time::sleep_until(next_update), if dirty.is_some() => {
                    dirty = None;
                    standing.times.finished = Some(now());
                    self.publish(&standing).await;
                    if rejected(&standing.tally).is_empty() {
                        retries.succeeded();
                    }
                },
                () = self.recorder.insist() => {},
            }
        }
    }

    async fn publish(&mut self, standing: &Standing) {
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

/// Objects that were written again and again while watching: somebody undoes what we do, and is not raced.
#[derive(Default)]
struct Insistence(HashMap<String, (u32, Instant)>);

impl Insistence {
    const LAST: Duration = Duration::from_secs(300);

    /// How long to wait before this object is looked at again.
    fn delay(&mut self, uid: &str) -> Duration {
        match self.0.get(uid) {
            Some((times, wrote)) if wrote.elapsed() < Self::LAST * 2 => {
                let wait = Duration::from_millis(100) * 2_u32.saturating_pow((*times).min(12));
                if *times < 3 { Duration::ZERO } else { wait.min(Self::LAST) }
            }
            _ => Duration::ZERO,
        }
    }

    fn wrote(&mut self, uid: &str) {
        if self.0.len() >= 10_000 {
            self.0.retain(|_, (_, wrote)| wrote.elapsed() < Self::LAST * 2);
        }
        let entry = self.0.entry(uid.to_owned()).or_insert((0, Instant::now()));
        if entry.1.elapsed() >= Self::LAST * 2 {
            entry.0 = 0;
        }
        *entry = (entry.0 + 1, Instant::now());
    }
}

fn tender<'a>(
    cluster: &'a Cluster,
    pace: &'a Pace,
    own_pace: Option<&'a Pace>,
    crd: &'a Crd,
    settings: &Settings,
) -> Tender<'a> {
    let mode = if settings.paused { Mode::Audit } else { settings.mode };
    Tender { cluster, pace, own_pace, crd, terms: settings.terms, mode }
}

/// Sees to an object that changed; after a delay it is read again first.
async fn attend(
    tender: Tender<'_>,
    object: Object,
    record: Arc<Record>,
    delay: Duration,
) -> (Identity, Result<Tended, Stop>) {
    let identity = object.identity();
    if delay.is_zero() {
        return (identity, tender.tend(object, &record).await);
    }
    tokio::time::sleep(delay).await;
    retry(tender, identity, record).await
}

/// Reads an object again and sees to it.
async fn retry(
    tender: Tender<'_>,
    identity: Identity,
    record: Arc<Record>,
) -> (Identity, Result<Tended, Stop>) {
    let skipped = |fate| Ok(Tended { fate, missing: Vec::new() });
    let tended = match tender.cluster.object(&tender.crd.resource(), &identity).await {
        Ok(Some(object)) => tender.tend(object, &record).await,
        Ok(None) => skipped(Fate::Skipped),
        Err(_) => skipped(Fate::Unknown),
    };
    (identity, tended)
}

fn rejected(tally: &Tally) -> Vec<Identity> {
    let rejected = tally.troubles().filter(|(_, trouble)| matches!(trouble, Trouble::Rejected(_)));
    rejected.map(|(identity, _)| identity.clone()).collect()
}
