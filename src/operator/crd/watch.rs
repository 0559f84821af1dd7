//! Drives the steady state of a CRD ([`Watching`]): its watch, its objects, and what is written about them.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::pin;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use tokio::time::Instant;
use tracing::{debug, info};

use crate::cluster::{Held, Received, ResumingWatch, WatchUpdate};
use crate::operator::crd::task::{CrdTask, ReconcilerParts};
use crate::operator::error::{Sign, TaskError};
use crate::operator::object::reconcile::ObjectReconciler;
use crate::operator::spans::seconds;
use crate::operator::status::writer::now;
use etch_core::api::Counts;
use etch_core::call_error::CallError;
use etch_core::engine::pass_state::PassState;
use etch_core::engine::stop_reason::StopReason;
use etch_core::engine::sweep::SweepError;
use etch_core::engine::watching::{Change, Command, End, Watching};
use etch_core::engine::{self, Work};
use etch_core::object::Identity;
use etch_core::object_machine::Reconciled;
use etch_core::object_state::ObjectState;
use etch_core::report::open_report::OpenReport;

impl CrdTask {
    /// Watches, and reconciles what changes, until something ends it; what is known then.
    pub(crate) async fn watch_objects(
        &mut self,
        open: &OpenReport,
        pass: Box<PassState>,
    ) -> (Box<PassState>, TaskError) {
        let parts = self.reconciler_parts(open);
        let follow = ResumingWatch::new(self.cluster.clone(), self.crd.resource(), pass.watch_from.clone())
            .served_by(&self.crd);
        let (retries, verify_at) = (self.retries.clone(), self.verification_due());
        let watching = Watching::begin(parts.rules.clone(), *pass, retries, verify_at, self.writes(), at());
        let watching = Box::new(watching);
        self.restore_check.checked(at());
        let mut steady = Steady { watching, follow, objects: Objects::new(parts.reconciler()) };
        let Err(error) = self.follow_objects(open, &parts, &mut steady).await;
        let (pass, retries) = steady.watching.into_parts();
        self.retries = retries;
        (Box::new(pass), error)
    }

    async fn follow_objects(
        &mut self,
        open: &OpenReport,
        parts: &ReconcilerParts,
        steady: &mut Steady<'_>,
    ) -> Result<Infallible, TaskError> {
        let reconciler = parts.reconciler();
        loop {
            steady.watching.set_slow_writes(reconciler.writes_without_slot());
            steady.watching.set_delivered(steady.follow.delivered());
            while let Some(command) = steady.watching.poll(at()) {
                match command {
                    Command::Reconcile(work) => steady.objects.reconcile(*work),
                    Command::Read(identity) => steady.objects.read(identity),
                    // Boxed: there is a watch for each CRD, and hardly any of them has news at a time.
                    Command::Publish => Box::pin(self.publish_news(open, steady)).await?,
                    Command::End(End::Verify) => return Err(TaskError::Verify),
                    Command::End(End::Overflow) => return Err(TaskError::Overflow),
                    Command::End(End::Stop(stop)) => return Err(SweepError::from(stop).into()),
                }
            }
            let Steady { watching, follow, objects } = &mut *steady;
            tokio::select! {
                () = parts.pause_watch.changed(), if !watching.is_ending() => {
                    let crd_status = self.pause_changed(open, watching.pass());
                    objects.drive_while(self.status_writer.set_conditions(crd_status)).await;
                    watching.end(End::Stop(StopReason::Pause));
                }
                news = follow.next(), if watching.wants_changes() => match news {
                    Ok(WatchUpdate::Failed(error, _)) if is_lasting(&error) => {
                        return Err(TaskError::watch(error));
                    }
                    Ok(news) => watching.changed(at(), change(news)),
                    Err(expired) => {
                        // Boxed: it hardly ever happens, and there is a watch for each CRD.
                        let known = watching.objects_at_rest();
                        Box::pin(self.resume(expired, follow, known)).await?;
                        watching.watch_resumed();
                    }
                },
                () = reconciler.slot_released() => {}
                ended = objects.next() => {
                    ended.count(&self.cluster);
                    match ended {
                        Ended::Read(received) => watching.read(at(), received),
                        Ended::Reconciled(identity, reconciled) => {
                            watching.reconciled(at(), &identity, reconciled);
                        }
                    }
                }
                () = sleep_until(watching.timeout()) => {}
                Ok(()) = self.watch_failure.changed() => {
                    let failure = self.watch_failure.borrow_and_update().clone();
                    watching.set_watch_failure(at(), failure);
                }
                () = self.permissions.changed() => objects.drive_while(self.check_permissions()).await?,
                () = self.status_writer.recheck_due() => {
                    if objects.drive_while(self.status_writer.recheck()).await {
                        self.restore_check.check_now(at());
                    }
                }
                () = signs(self.restore_sign.as_mut()) => self.restore_check.sign(at()),
                () = sleep_until(Some(self.restore_check.due())) => {
                    self.restore_check.checked(at());
                    match objects.drive_while(self.status_writer.is_report_ours()).await {
                        Ok(true) => {}
                        Ok(false) => return Err(TaskError::Restored(Sign::Report)),
                        Err(error) => debug!(%error, "cannot read the report"),
                    }
                }
            }
        }
    }

    /// Brings conditions and report up to date.
    async fn publish_news(
        &mut self,
        open: &OpenReport,
        Steady { watching, objects, .. }: &mut Steady<'_>,
    ) -> Result<(), TaskError> {
        watching.set_finished(self.clock.second());
        let pass = watching.pass();
        let Counts { objects: all, written, held, rejected, unknown, .. } = pass.tally.counts();
        info!(objects = all, written, held, rejected, unknown, "objects changed");
        objects.drive_while(self.publish(open, pass)).await;
        if self.has_nothing_left(&pass.tally) {
            return Err(TaskError::NothingLeft);
        }
        watching.published(at());
        Ok(())
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
}

/// What the steady state is made of.
struct Steady<'a> {
    // Boxed: it lasts, and moves once.
    watching: Box<Watching<Held>>,
    follow: ResumingWatch,
    objects: Objects<'a>,
}

/// The objects that are under way.
struct Objects<'a> {
    reconciler: ObjectReconciler<'a>,
    under_way: FuturesUnordered<BoxFuture<'a, Ended>>,
    /// What has ended while something else was waited for.
    ended: VecDeque<Ended>,
}

/// What came of a request of the machine's.
enum Ended {
    /// An object was read again.
    Read(engine::Received<Held>),
    /// An object is done.
    Reconciled(Identity, Result<Reconciled, StopReason>),
}

impl Ended {
    fn count(&self, cluster: &crate::cluster::Cluster) {
        if let Self::Reconciled(_, Ok(reconciled)) = self {
            cluster.metrics().object(reconciled.state.kind());
        }
    }
}

impl<'a> Objects<'a> {
    fn new(reconciler: ObjectReconciler<'a>) -> Self {
        Self { reconciler, under_way: FuturesUnordered::new(), ended: VecDeque::new() }
    }

    fn reconcile(&mut self, work: Work<Held>) {
        let reconciler = self.reconciler;
        let Work { identity, machine, step, read, hold, .. } = work;
        self.under_way.push(Box::pin(async move {
            let _hold = hold;
            let read = Instant::from_std(read);
            Ended::Reconciled(identity, reconciler.reconcile(machine, step, read, None).await)
        }));
    }

    fn read(&mut self, identity: Identity) {
        let reconciler = self.reconciler;
        self.under_way.push(Box::pin(async move {
            let resource = reconciler.rules.crd.resource();
            let state = match reconciler.cluster.object_with_room(&resource, &identity).await {
                Ok(Some(object)) => return Ended::Read(received(object)),
                Ok(None) => ObjectState::Gone,
                Err(_) => ObjectState::Unknown,
            };
            Ended::Reconciled(identity, Ok(Reconciled::of(state, Vec::new())))
        }));
    }

    /// What ends next. This future may be dropped at any time, and never ends while nothing is under way.
    async fn next(&mut self) -> Ended {
        if let Some(ended) = self.ended.pop_front() {
            return ended;
        }
        match self.under_way.next().await {
            Some(ended) => ended,
            None => std::future::pending().await,
        }
    }

    /// Awaits other work while what is under way goes on: it holds permits that other CRDs wait for.
    ///
    /// Boxed: every CRD is watched, and hardly any of them has such work at a time.
    fn drive_while<'w, T: 'w>(&'w mut self, work: impl Future<Output = T> + Send + 'w) -> BoxFuture<'w, T> {
        Box::pin(async move {
            let mut work = pin!(work);
            loop {
                tokio::select! {
                    result = &mut work => return result,
                    Some(ended) = self.under_way.next() => self.ended.push_back(ended),
                }
            }
        })
    }
}

/// The time, as machines take it.
pub(crate) fn at() -> std::time::Instant {
    Instant::now().into_std()
}

/// Waits until a moment, and for ever where there is none; may be dropped at any time.
async fn sleep_until(moment: Option<std::time::Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(Instant::from_std(moment)).await,
        None => std::future::pending().await,
    }
}

/// Waits for a sign of a restore; for ever where there is none, or none is given any more.
async fn signs(sign: Option<&mut tokio::sync::watch::Receiver<()>>) {
    if let Some(sign) = sign
        && sign.changed().await.is_ok()
    {
        return;
    }
    std::future::pending().await
}

fn received(object: Received) -> engine::Received<Held> {
    let (object, hold) = object.into_parts();
    engine::Received { object, hold }
}

fn change(update: WatchUpdate) -> Change<Held> {
    match update {
        WatchUpdate::Created(object) => Change::Created(received(object)),
        WatchUpdate::Applied(object) => Change::Applied(received(object)),
        WatchUpdate::Deleted(object) => Change::Deleted(object.into_parts().0),
        WatchUpdate::Failed(error, again_in) => {
            debug!(%error, retry_in_seconds = seconds(again_in), "the watch failed");
            Change::Failed(now(), error.to_string())
        }
        WatchUpdate::Resumed => {
            debug!("the watch works again");
            Change::Resumed
        }
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
