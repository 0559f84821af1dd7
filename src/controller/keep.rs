//! The steady state of a CRD: its watch, and whatever changes.
//! It must not list: a watch that cannot go on ends it.

use std::convert::Infallible;
use std::time::Duration;

use tokio::time::Instant;
use tracing::debug;

use super::attend::{Attendance, Done};
use super::charge::{Charge, UPDATES, tender};
use super::halt::Halt;
use super::memory::record_of;
use super::pass::Interruption;
use super::record::now;
use super::rounds::Standing;
use super::tally::Fate;
use crate::cluster::{Backoff, Follow, News, Pace};

/// Waits before objects that could not be written are tried again, from the first to the last.
const RETRY_FIRST: Duration = Duration::from_secs(20);
const RETRY_LAST: Duration = Duration::from_secs(3600);
/// Changes of what is to be said are gathered for this long.
const GATHER: Duration = Duration::from_millis(500);

impl Charge {
    /// Watches, and sees to whatever changes.
    pub(super) async fn keep(&mut self, standing: &mut Standing) -> Result<Infallible, Halt> {
        let (cluster, pace, crd) = (self.cluster.clone(), self.pace.clone(), self.crd.clone());
        let own_pace = self.settings.max_writes_per_second.map(|rate| Pace::new(usize::MAX, Some(rate)));
        let since = self.ledger.since();
        let changes = self.changes.clone().unwrap_or_default();
        let tender = tender(&cluster, &pace, own_pace.as_ref(), &crd, &self.settings, &since, &changes);
        let mut attendance = Attendance::new(tender, standing.record.clone());
        let mut follow = Follow::new(cluster.clone(), crd.resource(), standing.watch_from.clone());
        self.retries.arm(standing);
        let mut updates = Updates::default();
        loop {
            tokio::select! {
                news = follow.next(), if attendance.has_room() => match news.map_err(Halt::Watch)? {
                    News::Applied(object) if standing.proved.take(&object) => {}
                    News::Applied(object) => attendance.attend(object),
                    News::Deleted(object) => {
                        if standing.tally.forget(&object.identity()) {
                            updates.want();
                        }
                    }
                    News::Failed(error, _) if matches!(error.code(), Some(403 | 404)) => {
                        return Err(Halt::Watch(error));
                    }
                    News::Failed(error, again_in) => debug!(%error, ?again_in, "the watch broke"),
                },
                done = attendance.next() => {
                    if self.account(done, standing, &mut attendance)? {
                        self.retries.arm(standing);
                        updates.want();
                    }
                },
                () = self.retries.due() => {
                    if standing.tally.overflows() {
                        return Err(Halt::Overflow);
                    }
                    attendance.read_again(standing.tally.to_retry());
                }
                () = updates.due() => {
                    standing.times.finished = Some(now());
                    attendance.meanwhile(self.publish(standing)).await;
                    if self.is_left(standing) {
                        return Err(Halt::NothingLeft);
                    }
                    updates.made();
                },
                () = self.recorder.due() => attendance.meanwhile(self.recorder.repeat()).await,
            }
        }
    }

    /// Takes down what became of an object; whether there is something new to say.
    fn account(
        &self,
        (identity, tended): Done,
        standing: &mut Standing,
        attendance: &mut Attendance<'_>,
    ) -> Result<bool, Halt> {
        let tended = tended.map_err(Interruption::from)?;
        self.cluster.metrics().object(tended.fate.outcome());
        if let Fate::Written(resource_version) = &tended.fate {
            standing.proved.insert(&identity.uid, resource_version);
            attendance.wrote(&identity.uid);
        }
        if !standing.tally.settle(&identity, tended.fate) {
            return Ok(false);
        }
        if self.writes() {
            standing.record = record_of(&standing.tally, standing.finished_through, &self.crd);
        }
        attendance.go_by(standing.record.clone());
        Ok(true)
    }
}

/// When to try again what could not be written: ever more seldom, for as long as there is such a thing.
pub(super) struct Retries {
    backoff: Backoff,
    at: Option<Instant>,
}

impl Retries {
    pub(super) fn new() -> Self {
        Self { backoff: Backoff::new(RETRY_FIRST, RETRY_LAST), at: None }
    }

    fn arm(&mut self, standing: &Standing) {
        if standing.tally.to_retry().is_empty() && !standing.tally.overflows() {
            self.at = None;
            self.backoff.succeeded();
        } else if self.at.is_none() {
            self.at = Some(Instant::now() + self.backoff.failed(None));
        }
    }

    /// Waits until it is time; may be dropped at any time.
    async fn due(&mut self) {
        match self.at {
            Some(at) => tokio::time::sleep_until(at).await,
            None => std::future::pending().await,
        }
        self.at = Some(Instant::now() + self.backoff.failed(None));
    }
}

/// When to say what has changed: soon, but not again and again.
#[derive(Default)]
struct Updates {
    at: Option<Instant>,
    last: Option<Instant>,
}

impl Updates {
    fn want(&mut self) {
        let soon = Instant::now() + GATHER;
        self.at.get_or_insert(self.last.map_or(soon, |last| soon.max(last + UPDATES)));
    }

    /// Waits until it is time; may be dropped at any time.
    async fn due(&mut self) {
        match self.at {
            Some(at) => tokio::time::sleep_until(at).await,
            None => std::future::pending().await,
        }
    }

    fn made(&mut self) {
        self.at = None;
        self.last = Some(Instant::now());
    }
}
