//! What all reconciliations share.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use parking_lot::{Mutex, MutexGuard, RwLock};
use tokio::sync::{Mutex as AsyncMutex, Notify, OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use tracing::{info_span, warn};

use super::crd::READ_PATIENCE;
use super::crd::slot::{Error, Phase, RunningTask, Slot};
use super::crd::task::{CrdTask, Signals};
use super::options::{Options, now};
use super::status::writer::StatusWriter;
use crate::cluster::{Cluster, Events, GenerationCheck, Pace, Permissions, random};
use etch_core::api::Settings;
use etch_core::crd::Crd;
use etch_core::engine::canary::CanaryRun;
use etch_core::engine::crd::checked::{Checked, check};
use etch_core::engine::crd::machine::CrdMachine;
use etch_core::engine::crd::target::Target;
use etch_core::engine::crd::task::Task;
use etch_core::engine::restore_check::RestoreCheck;
use etch_core::engine::status::{Status, Subject};
use etch_core::event::ObjectKind;
use etch_core::policy_index::Index;
use kube_structural_schema::schema::Pool;

/// The shared index.
pub(super) type SharedIndex = Arc<RwLock<Index>>;

/// What all reconciliations share.
pub(super) struct Context {
    pub(super) cluster: Cluster,
    pub(super) events: Events,
    pub(super) writer: StatusWriter,
    pace: Arc<Pace>,
    options: Options,
    pub(super) index: SharedIndex,
    /// Since when, and why, changes of CRDs or policies are not noticed.
    watch_failure: watch::Receiver<Option<String>>,
    /// Notifies the tasks that permissions have changed.
    pub(super) permissions: watch::Sender<()>,
    slots: Mutex<HashMap<String, Arc<AsyncMutex<Slot>>>>,
    /// The names of CRDs whose task has ended.
    ended: mpsc::UnboundedSender<String>,
    /// CRDs are large, and there may be thousands: they are read one at a time.
    reading: Arc<Semaphore>,
    /// What the schemas of all CRDs have in common.
    pool: Arc<Pool>,
    /// The CRDs, by name, whose policy names paths, which are compared with their schemas. Schemas are large:
    /// no other is kept.
    checked: Mutex<HashMap<String, Arc<Crd>>>,
    /// Notified when one of them changes.
    pub(super) schemas_changed: Notify,
}

impl Context {
    pub(super) fn new(
        cluster: Cluster,
        events: Events,
        options: Options,
        index: SharedIndex,
        watch_failure: watch::Receiver<Option<String>>,
        ended: mpsc::UnboundedSender<String>,
    ) -> Self {
        let cluster = cluster.paced(options.pace);
        let writer =
            StatusWriter { cluster: cluster.clone(), events: events.clone(), clock: options.clock.clone() };
        Self {
            cluster,
            events,
            writer,
            pace: Arc::new(Pace::new(options.max_in_flight, options.max_writes_per_second, options.pace)),
            options,
            index,
            watch_failure,
            permissions: watch::Sender::new(()),
            slots: Mutex::default(),
            ended,
            reading: Arc::new(Semaphore::new(1)),
            pool: Arc::default(),
            checked: Mutex::default(),
            schemas_changed: Notify::new(),
        }
    }

    /// What is kept of a CRD.
    pub(super) fn slot(&self, name: &str) -> Arc<AsyncMutex<Slot>> {
        let mut slots = self.slots.lock();
        slots.entry(name.to_owned()).or_insert_with(|| Arc::new(AsyncMutex::new(Slot::new()))).clone()
    }

    /// What a CRD is to be reconciled to; `None` if it is gone.
    pub(super) fn target(&self, name: &str) -> Option<Target> {
        let index = self.index.read();
        let known = index.crd(name)?;
        let assignment = index.assignment(name, self.options.settle);
        if let Some(assignment) = assignment.as_ref().filter(|assignment| !assignment.ties.is_empty()) {
            let (policy, ties) = (&assignment.settings.policy, assignment.ties.join(", "));
            warn!(
                crd = name,
                policy,
                ties,
                "several equally specific policies select this CRD; the first by name governs it"
            );
        }
        Some(Target {
            uid: known.uid.clone(),
            generation: known.generation,
            generation_falls: known.generation_falls,
            settings: assignment.map(|assignment| assignment.settings),
            resumed: known.resumed,
            revision: known.revision.clone(),
            version_edits: known.version_edits,
        })
    }

    /// Reads a CRD and checks it; `None` if it is gone, or another one has its name. Where its first
    /// conditions are due, and it has no defaults, its turn lasts until they are written.
    pub(super) async fn check(
        &self,
        name: &str,
        target: &Target,
    ) -> Result<Option<(Checked, Status, Option<OwnedSemaphorePermit>)>, Error> {
        // The semaphore is never closed.
        let mut permit = self.reading.clone().acquire_owned().await.ok();
        let asked = Instant::now();
        let document = {
            let mut reading = pin!(self.cluster.crd(name));
            tokio::select! {
                document = &mut reading => document?,
                // A read without an answer does not hold up the others.
                () = tokio::time::sleep(READ_PATIENCE) => {
                    permit = None;
                    reading.await?
                }
            }
        };
        let Some(document) = document else { return Ok(None) };
        if document["metadata"]["uid"] != target.uid.as_str() {
            return Ok(None);
        }
        // Schemas may be large, and their rules are compiled: nothing else waits for that.
        let pool = self.pool.clone();
        let work = move || {
            std::panic::catch_unwind(AssertUnwindSafe(|| check(&document, asked.into_std(), &pool, now())))
        };
        let checked = tokio::task::spawn_blocking(work).await;
        let mut checked = checked.ok().and_then(Result::ok).ok_or(Error::Panicked)?;
        let lacks_conditions = |crd: &Arc<Crd>| !crd.gives_defaults() && checked.conditions.is_empty();
        let turn = permit.filter(|_| checked.crd.as_ref().is_some_and(lacks_conditions));
        let subject = Subject {
            name: name.to_owned(),
            uid: target.uid.clone(),
            generation: checked.generation,
            objects: checked.crd.as_deref().map(ObjectKind::from),
        };
        let is_compared = target.settings.as_ref().is_some_and(|settings| settings.names_paths);
        match checked.crd.clone().filter(|_| is_compared) {
            Some(crd) => {
                self.schemas().insert(name.to_owned(), crd);
                self.schemas_changed.notify_one();
            }
            None => drop(self.schemas().remove(name)),
        }
        let present = std::mem::take(&mut checked.conditions);
        let revision = std::mem::take(&mut checked.conditions_at);
        Ok(Some((checked, Status::new(subject, present, revision, random()), turn)))
    }

    /// The CRDs that were read, by name.
    pub(super) fn schemas(&self) -> MutexGuard<'_, HashMap<String, Arc<Crd>>> {
        self.checked.lock()
    }

    /// A task for a CRD under a policy.
    pub(super) fn task(
        &self,
        crd: Arc<Crd>,
        checked: Checked,
        settings: Settings,
        status: Status,
        turn: Option<OwnedSemaphorePermit>,
        slot: &mut Slot,
    ) -> CrdTask {
        let Checked { findings, revision, shown, asked, .. } = checked;
        if slot.counts_by(crd.digest()) {
            self.cluster.metrics().forget_phantom_objects(crd.name());
        }
        let generation_check = Arc::new(GenerationCheck::new(&crd, Some(Instant::from_std(asked))));
        let dropped = slot.renew_generation_check(&crd, generation_check.clone());
        let Options { max_in_flight, pace, set_back, .. } = &self.options;
        let own_pace = Arc::new(Pace::of_one_crd(*max_in_flight, settings.max_writes_per_second, *pace));
        let mut restore_sign = set_back.clone();
        restore_sign.iter_mut().for_each(watch::Receiver::mark_unchanged);
        let restore_check = RestoreCheck::new(crd.name(), restore_sign.is_some(), self.writer.now().at);
        let superseded = watch::Sender::new(false);
        let signals = Signals {
            pause: slot.pause(),
            is_superseded: superseded.subscribe(),
            resumed: slot.resumed(),
            watch_failure: self.watch_failure.clone(),
            shown: slot.shown(),
            restore_sign,
            permissions: Permissions::of(&self.permissions),
        };
        let pause = signals.pause.borrow().clone();
        let canary = CanaryRun::new(&crd, settings.canary, *signals.resumed.borrow());
        let task =
            Task { crd, settings, pause, findings, revision, shown_by_crd: shown, canary, within: None };
        let mut machine = Box::new(CrdMachine::new(task, status, restore_check, random()));
        machine.add_dropped(dropped);
        CrdTask {
            machine,
            writer: self.writer.clone(),
            signals,
            pace: self.pace.clone(),
            own_pace,
            generation_check,
            refusal_log: Arc::default(),
            writes: TaskTracker::new(),
            superseded,
            turn,
        }
    }

    /// Starts a task; when it ends, its CRD is reconciled again.
    pub(super) fn start_task(&self, name: &str, task: Box<CrdTask>) -> Phase {
        let (ended, name) = (self.ended.clone(), name.to_owned());
        // Not `name`: that is what a span is called in JSON.
        let span = info_span!("reconcile", crd = name);
        // This fails only while the operator shuts down.
        Phase::Running(RunningTask::start(task, span, move || drop(ended.send(name))))
    }

    /// How long to wait after an error.
    pub(super) fn back_off(&self, name: &str, failed: &Error) -> Duration {
        let slot = self.slot(name);
        // The reconciliation of this CRD has just ended, and no other begins before this returns.
        let wait = slot.try_lock().map(|mut slot| slot.backoff.failed(failed.retry_after()));
        wait.unwrap_or(Duration::from_secs(1))
    }

    /// Ends what is under way for a CRD that is gone, and forgets it; waits for its reconciliation, which may
    /// take minutes. Where it was created again by then, that reconciliation ends what concerned the earlier
    /// one.
    pub(super) async fn forget(&self, name: &str) {
        let is_gone = || self.index.read().crd(name).is_none();
        let slot = self.slots.lock().get(name).cloned();
        if let Some(slot) = slot {
            let mut locked = slot.lock().await;
            if is_gone() {
                locked.stop().await;
            }
            drop(locked);
            let mut slots = self.slots.lock();
            // The other holder of the slot continues with it.
            if is_gone() && Arc::strong_count(&slot) == 2 {
                slots.remove(name);
            }
        }
        if is_gone() {
            self.schemas().remove(name);
            self.cluster.forget(name);
        }
    }

    /// The CRDs that are gone and not forgotten.
    pub(super) fn absent(&self) -> Vec<String> {
        let slots = self.slots.lock();
        let known: Vec<String> = slots.keys().cloned().collect();
        drop(slots);
        known.into_iter().filter(|name| self.index.read().crd(name).is_none()).collect()
    }

    /// Ends everything that is under way.
    pub(super) async fn stop(&self) {
        let slots = std::mem::take(&mut *self.slots.lock());
        // Stop all at the same time, so that none writes while another one stops.
        join_all(slots.into_values().map(async |slot| slot.lock().await.stop().await)).await;
    }
}
