//! The steady state of a CRD: its watch, and whatever changes.
//! It must not list: a watch that cannot go on ends it.

use std::convert::Infallible;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;
use tracing::{debug, info};

use crate::cluster::{CallError, Received, ResumingWatch, WatchUpdate};
use crate::operator::crd::pass::PassState;
use crate::operator::crd::queue::{Completed, InTally, ObjectQueue};
use crate::operator::crd::sweep::SweepError;
use crate::operator::crd::task::{CrdTask, UPDATES};
use crate::operator::error::{Sign, TaskError};
use crate::operator::object::reconcile::StopReason;
use crate::operator::spans::seconds;
use crate::operator::status::writer::now;
use etch_core::api::Counts;
use etch_core::object_state::ObjectState;
use etch_core::report::checkpoint::record_of;
use etch_core::report::open_report::OpenReport;

/// Changes of the totals alone, by objects that are created or deleted with their defaults stored, are
/// gathered for this long.
const TOTALS: Duration = Duration::from_secs(240);
/// How long the watch may fail before nothing counts as known.
const WATCH_FAILING_AFTER: Duration = Duration::from_secs(60);
/// Changes of the status are gathered for this long.
const GATHER: Duration = Duration::from_millis(500);

impl CrdTask {
    /// Watches, and reconciles what changes.
    pub(crate) async fn watch_objects(
        &mut self,
        open: &OpenReport,
        pass: &mut PassState,
    ) -> Result<Infallible, TaskError> {
        let parts = self.reconciler_parts(open);
        let reconciler = parts.reconciler();
        let mut queue = ObjectQueue::new(reconciler, pass.record.clone());
        let mut follow =
            ResumingWatch::new(self.cluster.clone(), self.crd.resource(), pass.watch_from.clone())
                .served_by(&self.crd);
        self.retries.arm(&pass.tally);
        pass.tally.mutated().into_iter().for_each(|identity| queue.back_off(identity));
        let mut updates = Updates::after(pass.tally.counts());
        let mut blind = WatchOutage::default();
        self.restore_check.checked();
        loop {
            if blind.is_over() {
                // Which events are still to come is not known, but a list shows where they end.
                queue.drain().await;
                return Err(TaskError::Verify);
            }
            tokio::select! {
                () = parts.pause_watch.changed() => {
                    let crd_status = self.pause_changed(open, pass);
                    queue.drive_while(self.status_writer.set_conditions(crd_status)).await;
                    queue.drain().await;
                    return Err(SweepError::from(StopReason::Pause).into());
                }
                news = follow.next(), if queue.has_capacity() => match blind.note(match news {
                    Ok(news) => news,
                    Err(expired) => {
                        // Boxed: it hardly ever happens, and there is a watch for each CRD.
                        let known = queue.is_idle().then_some(pass.tally.counts().objects);
                        Box::pin(self.resume(expired, &mut follow, known)).await?;
                        blind.since = None;
                        continue;
                    }
                }) {
                    WatchUpdate::Created(object) => queue.created(object),
                    // As our own write left it (Proof::UnchangedSincePass).
                    WatchUpdate::Applied(object) if pass.proved.take(&object) => {}
                    WatchUpdate::Applied(object) => {
                        if self.enqueue(object, pass, &mut queue) {
                            updates.want();
                        }
                    }
                    WatchUpdate::Deleted(object) => {
                        if queue.deleted(&object) && pass.tally.deleted(&object.identity()) {
                            updates.want();
                        }
                        updates.want_totals(pass.tally.counts());
                    }
                    WatchUpdate::Failed(error, _) if is_lasting(&error) => return Err(TaskError::watch(error)),
                    WatchUpdate::Failed(error, again_in) => {
                        debug!(%error, retry_in_seconds = seconds(again_in), "the watch failed");
                    },
                    WatchUpdate::Resumed => debug!("the watch works again"),
                },
                () = blind.report_due() => {
                    pass.watch_failure = blind.report();
                    updates.want();
                }
                () = reconciler.slot_released() => {}
                done = queue.next_completed() => {
                    if let Err(StopReason::Pause) = done.reconciled {
                        continue;
                    }
                    if let Err(StopReason::CrdChanged | StopReason::FieldsDropped { .. }) = done.reconciled {
                        queue.drain().await;
                    }
                    let unanswered =
                        Some(done.identity.clone()).filter(|identity| pass.tally.is_unanswered(identity));
                    if self.account(done, pass, &mut queue)? {
                        self.retries.arm(&pass.tally);
                        let is_answered = |identity| !pass.tally.is_unanswered(&identity);
                        // While the others are read again, one answer more says nothing new.
                        if unanswered.is_some_and(is_answered) && !queue.reads_again() {
                            self.retries.answered();
                        }
                        updates.want();
                    }
                    updates.want_totals(pass.tally.counts());
                    if open.state.dropped().has_unreported() {
                        updates.want();
                    }
                    if let Some(object) = queue.take_changed().filter(|object| !pass.proved.take(object))
                        && self.enqueue(object, pass, &mut queue)
                    {
                        updates.want();
                    }
                },
                () = self.retries.due() => {
                    queue.requeue(self.retries.take(&pass.tally).ok_or(TaskError::Overflow)?);
                }
                // While nothing is heard of the objects, a list now would be out of date at once.
                () = self.verification_due(), if blind.since.is_none() => {
                    queue.drain().await;
                    return Err(TaskError::Verify);
                }
                Ok(()) = self.watch_failure.changed() => {
                    let of_others = self.watch_failure.borrow_and_update().clone();
                    pass.watch_failure = blind.reported().or(of_others);
                    updates.want();
                }
                () = self.permissions.changed() => queue.drive_while(self.check_permissions()).await?,
                () = updates.due() => {
                    if updates.take(pass.tally.counts()) {
                        if queue.is_idle() {
                            self.advance_record(follow.delivered(), pass, &mut queue);
                        }
                        pass.times.finished = Some(self.clock.second());
                        let Counts { objects, written, held, rejected, unknown, .. } = pass.tally.counts();
                        info!(objects, written, held, rejected, unknown, "objects changed");
                        queue.drive_while(self.publish(open, pass)).await;
                        if self.has_nothing_left(&pass.tally) {
                            return Err(TaskError::NothingLeft);
                        }
                        updates.made();
                    }
                },
                () = self.status_writer.recheck_due() => {
                    if queue.drive_while(self.status_writer.recheck()).await {
                        self.restore_check.check_now();
                    }
                }
                () = self.restore_check.due() => {
                    self.restore_check.checked();
                    match queue.drive_while(self.status_writer.is_report_ours()).await {
                        Ok(true) => {}
                        Ok(false) => return Err(TaskError::Restored(Sign::Report)),
                        Err(error) => debug!(%error, "cannot read the report"),
                    }
                }
            }
        }
    }

    /// Goes on after the watch has expired, where nothing has happened to any object since it was last heard
    /// of; `objects` is how many there are, none while some are being reconciled.
    async fn resume(
        &self,
        expired: CallError,
        follow: &mut ResumingWatch,
        objects: Option<u64>,
    ) -> Result<(), TaskError> {
        let (Some(through), Some(objects)) = (follow.delivered(), objects) else {
            return Err(TaskError::watch(expired));
        };
        self.check_server().await?;
        // A restore of etcd compacts as well, and may have set objects back.
        match self.status_writer.is_report_ours().await {
            Ok(true) => {}
            Ok(false) => return Err(TaskError::Restored(Sign::Report)),
            Err(_) => return Err(TaskError::watch(expired)),
        }
        match self.cluster.resume_point(&self.crd.resource(), through, objects).await {
            Ok(Some(resource_version)) => {
                debug!("the watch expired, and no object has changed");
                follow.resume_from(resource_version);
                Ok(())
            }
            Ok(None) => Err(TaskError::watch(expired)),
            Err(error) => {
                debug!(%error, "cannot find out whether objects have changed");
                Err(TaskError::watch(expired))
            }
        }
    }

    /// Has an object reconciled that somebody has changed. While it has to wait, nothing is known of it;
    /// whether the status changes by that.
    fn enqueue(&self, object: Received, pass: &mut PassState, queue: &mut ObjectQueue<'_>) -> bool {
        let identity = object.identity();
        let is_news = queue.enqueue(object) && pass.tally.update(&identity, ObjectState::Unknown, &[]);
        if is_news {
            self.renew_record(pass, queue);
        }
        is_news
    }

    /// Moves the record to the resource version up to which every object was reconciled while watching, or
    /// excepted. Before what was written under a changed schema is verified, it stays where the pass has put
    /// it.
    fn advance_record(&self, delivered: Option<u64>, pass: &mut PassState, queue: &mut ObjectQueue<'_>) {
        let is_later = delivered > pass.finished_through && pass.finished_through.is_some();
        if is_later && self.writes() && pass.times.verify_at.is_none() {
            pass.finished_through = delivered;
            self.renew_record(pass, queue);
        }
    }

    /// Puts the record where the numbers are.
    fn renew_record(&self, pass: &mut PassState, queue: &mut ObjectQueue<'_>) {
        if self.writes() {
            pass.record = record_of(&pass.tally, pass.finished_through, &self.crd, &pass.record.cleared);
        }
        queue.set_record(pass.record.clone());
    }

    /// Counts what became of an object; whether the status changes.
    fn account(
        &self,
        Completed { identity, reconciled, in_tally }: Completed,
        pass: &mut PassState,
        queue: &mut ObjectQueue<'_>,
    ) -> Result<bool, TaskError> {
        let reconciled = reconciled.map_err(SweepError::from)?;
        self.cluster.metrics().object(reconciled.state.kind());
        if let ObjectState::Written { resource_version } = &reconciled.state {
            pass.proved.insert(&identity.uid, resource_version);
            queue.count_write(&identity.uid);
        }
        if reconciled.state.is_mutated() {
            queue.back_off(identity.clone());
        }
        let left_at = reconciled.left_at;
        // What is missing again and again counts once.
        let missing = if queue.is_contended(&identity.uid) { &[][..] } else { &reconciled.missing };
        let is_news = match in_tally {
            InTally::Counted => pass.tally.update(&identity, reconciled.state, missing),
            InTally::Created => pass.tally.created(&identity, reconciled.state, &reconciled.missing),
            InTally::Deleted => false,
        };
        if let Some(left_at) = left_at {
            pass.tally.set_rejected_at(&identity, &left_at);
        }
        if is_news {
            self.renew_record(pass, queue);
        }
        Ok(is_news)
    }
}

/// Whether changes are noticed, and since when they are not.
#[derive(Default)]
struct WatchOutage {
    /// When the watch began to fail, by both clocks, and why.
    since: Option<(Instant, Timestamp, String)>,
    is_reported: bool,
}

impl WatchOutage {
    /// Takes in what the watch brings.
    fn note(&mut self, news: WatchUpdate) -> WatchUpdate {
        match &news {
            WatchUpdate::Failed(error, _) => {
                self.since.get_or_insert_with(|| (Instant::now(), now(), error.to_string()));
            }
            WatchUpdate::Created(_)
            | WatchUpdate::Applied(_)
            | WatchUpdate::Deleted(_)
            | WatchUpdate::Resumed => self.since = None,
        }
        news
    }

    /// Whether changes are noticed again, after it was reported that they are not.
    fn is_over(&self) -> bool {
        self.is_reported && self.since.is_none()
    }

    /// Waits until the failure is to be reported; may be dropped at any time.
    async fn report_due(&self) {
        match &self.since {
            Some((since, ..)) if !self.is_reported => {
                tokio::time::sleep_until(*since + WATCH_FAILING_AFTER).await
            }
            Some(_) | None => std::future::pending().await,
        }
    }

    /// The failure, which counts as reported from now on.
    fn report(&mut self) -> Option<String> {
        self.is_reported = true;
        self.reported()
    }

    /// What has been reported and holds.
    fn reported(&self) -> Option<String> {
        self.since.as_ref().filter(|_| self.is_reported).map(|(_, since, why)| {
            format!("the watch of the objects has failed since {since:.0}, so Etch misses changes: {why}")
        })
    }
}

/// Whether a watch that failed so cannot be expected to open again soon.
fn is_lasting(error: &CallError) -> bool {
    match error {
        CallError::Refused(refusal) => {
            matches!(refusal.code, 403 | 404)
                || refusal.is_failed_conversion()
                || refusal.is_of_lost_version()
        }
        CallError::ServedElsewhere(_) | CallError::MissingPermission(_) => true,
        _ => false,
    }
}

/// When to update the status: soon after a change of what it says, some minutes after a change of its totals
/// alone, and both at a bounded rate.
struct Updates {
    at: Option<Instant>,
    last: Option<Instant>,
    /// Whether more than the totals has changed.
    is_news: bool,
    /// The totals as they were last published.
    published: Counts,
}

impl Updates {
    fn after(published: Counts) -> Self {
        Self { at: None, last: None, is_news: false, published }
    }

    fn want(&mut self) {
        let soon = Instant::now() + GATHER;
        let soon = self.last.map_or(soon, |last| soon.max(last + UPDATES));
        self.is_news = true;
        self.at = Some(self.at.map_or(soon, |at| at.min(soon)));
    }

    fn want_totals(&mut self, counts: Counts) {
        if counts != self.published {
            self.at.get_or_insert_with(|| Instant::now() + TOTALS);
        }
    }

    /// Waits until it is time; may be dropped at any time.
    async fn due(&mut self) {
        match self.at {
            Some(at) => tokio::time::sleep_until(at).await,
            None => std::future::pending().await,
        }
    }

    /// Whether there is something to publish: objects may have come and gone, and the totals be what they
    /// were.
    fn take(&mut self, counts: Counts) -> bool {
        let is_needed = self.is_news || counts != self.published;
        (self.at, self.is_news, self.published) = (None, false, counts);
        is_needed
    }

    fn made(&mut self) {
        self.last = Some(Instant::now());
    }
}
