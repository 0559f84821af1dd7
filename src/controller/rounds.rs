//! A CRD's passes: sweeps over all its objects, verified by further sweeps, and what is told about them.
//! It must not say that a pass has ended before every object was seen to.

use tokio::time::Instant;
use tracing::info;

use super::charge::{Charge, UPDATES, tender};
use super::halt::Halt;
use super::ledger::Times;
use super::memory::{Memory, record_of};
use super::pass::{Orders, Proved, Sweep};
use super::record::now;
use super::tally::Tally;
use super::verdict;
use crate::api::{DefaultsReportStatus, Mode};
use crate::cluster::Pace;
use crate::domain::condition::Reason;
use crate::domain::plan::Record;

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
    /// The first sweep for these defaults, and the sweeps that verify it.
    pub(super) async fn pass(&mut self, times: Times) -> Result<Standing, Halt> {
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
        let unknown = first.tally.counts().unknown;
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
    pub(super) async fn resume(
        &mut self,
        memory: Memory,
        noted: Option<DefaultsReportStatus>,
        times: Times,
    ) -> Result<Standing, Halt> {
        let Memory { record, proved } = memory;
        let sweep = self.sweep(&record, &proved, None, times).await?;
        let unknown = sweep.tally.counts().unknown;
        if unknown > 0 {
            return Err(Halt::Incomplete(unknown));
        }
        let Sweep { tally, watch_from, asked, through, proved: newly, .. } = sweep;
        let mut proved = proved;
        proved.extend(newly);
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
                self.recorder
                    .note(self.ledger.status(Reason::InProgress.as_str(), &sweep.tally, None, times))
                    .await;
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
        let (through, times) = (standing.finished_through, standing.times);
        self.recorder.note(self.ledger.status(reason.as_str(), &standing.tally, through, times)).await;
    }
}
