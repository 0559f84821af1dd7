//! The steady state of a CRD: its watch, and whatever changes.
//! It must not list: a watch that cannot go on ends it.

use std::convert::Infallible;
use std::time::Duration;

use tokio::time::Instant;
use tracing::debug;

use crate::cluster::{CallError, Follow, News};
use crate::controller::crd::pass::Standing;
use crate::controller::crd::queue::{Attendance, Done, Known};
use crate::controller::crd::sweep::Interruption;
use crate::controller::crd::task::{CrdTask, UPDATES, tender};
use crate::controller::error::Halt;
use crate::controller::object::reconcile::{Stop, Tender};
use crate::controller::spans::seconds;
use crate::controller::state::checkpoint::record_of;
use crate::controller::state::tally::Fate;
use crate::controller::status::writer::now;

/// Changes of what is to be said are gathered for this long.
const GATHER: Duration = Duration::from_millis(500);

impl CrdTask {
    /// Watches, and sees to whatever changes.
    pub(in crate::controller) async fn keep(&mut self, standing: &mut Standing) -> Result<Infallible, Halt> {
        let (cluster, pace, crd) = (self.cluster.clone(), self.pace.clone(), self.crd.clone());
        let own_pace = self.own_pace.clone();
        let since = self.ledger.since();
        let changes = self.changes.clone().unwrap_or_default();
        let (brake, drops) = (self.brake(), self.ledger.drops());
        let tender = Tender {
            brake: Some(&brake),
            ..tender(&cluster, &pace, &own_pace, &crd, &self.settings, &since, &changes, &drops)
        };
        let mut attendance = Attendance::new(tender, standing.record.clone());
        let mut follow = Follow::new(cluster.clone(), crd.resource(), standing.watch_from.clone());
        self.retries.arm(&standing.tally);
        let mut updates = Updates::default();
        loop {
            tokio::select! {
                () = brake.changed() => {
                    let verdict = self.in_progress(&standing.tally, None);
                    attendance.meanwhile(self.recorder.say(verdict)).await;
                    attendance.drain().await;
                    return Err(Interruption::from(Stop::Pause).into());
                }
                news = follow.next(), if attendance.has_room() => match news.map_err(Halt::Watch)? {
                    News::Created(object) => attendance.created(object),
                    News::Applied(object) if standing.proved.take(&object) => {}
                    News::Applied(object) => attendance.attend(object),
                    News::Deleted(object) => {
                        if attendance.deleted(&object) && standing.tally.deleted(&object.identity()) {
                            updates.want();
                        }
                    }
                    News::Failed(error, _) if is_blinding(&error) => return Err(Halt::Watch(error)),
                    News::Failed(error, again_in) => {
                        debug!(%error, retry_in_seconds = seconds(again_in), "the watch broke");
                    },
                },
                done = attendance.next() => {
                    if let Err(Stop::Pause) = done.tended {
                        continue;
                    }
                    let unjudged =
                        Some(done.identity.clone()).filter(|identity| standing.tally.is_unjudged(identity));
                    if self.account(done, standing, &mut attendance)? {
                        self.retries.arm(&standing.tally);
                        if unjudged.is_some_and(|identity| !standing.tally.is_unjudged(&identity)) {
                            self.retries.judged();
                        }
                        updates.want();
                    }
                    if self.ledger.drops().is_news() {
                        updates.want();
                    }
                    if let Some(object) = attendance.newest().filter(|object| !standing.proved.take(object)) {
                        attendance.attend(object);
                    }
                },
                () = self.retries.due() => {
                    attendance.read_again(self.retries.take(&standing.tally).ok_or(Halt::Overflow)?);
                }
                () = self.permissions.changed() => attendance.meanwhile(self.ask()).await?,
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
        Done { identity, tended, is }: Done,
        standing: &mut Standing,
        attendance: &mut Attendance<'_>,
    ) -> Result<bool, Halt> {
        let tended = tended.map_err(Interruption::from)?;
        self.cluster.metrics().object(tended.fate.outcome());
        if let Fate::Written(resource_version) = &tended.fate {
            standing.proved.insert(&identity.uid, resource_version);
            attendance.wrote(&identity.uid);
        }
        let is_news = match is {
            Known::Counted => standing.tally.settle(&identity, tended.fate, &tended.missing),
            Known::New => standing.tally.created(&identity, tended.fate, &tended.missing),
            Known::Deleted => false,
        };
        if !is_news {
            return Ok(false);
        }
        if self.writes() {
            standing.record =
                record_of(&standing.tally, standing.finished_through, &self.crd, &standing.record.cleared);
        }
        attendance.go_by(standing.record.clone());
        Ok(true)
    }
}

/// Whether a watch that failed so cannot be expected to open again soon, nor is it known meanwhile what it would tell.
fn is_blinding(error: &CallError) -> bool {
    match error {
        CallError::Refused(refusal) => {
            matches!(refusal.code, 403 | 404)
                || refusal.is_failed_conversion()
                || refusal.is_of_lost_version()
        }
        _ => false,
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
