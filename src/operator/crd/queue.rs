//! The objects of a CRD that are being reconciled while it is watched, and those that wait for it.
//! It must not judge what became of them.

use std::collections::{HashMap, HashSet, VecDeque};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use tokio::time::Instant;

use crate::cluster::Received;
use crate::operator::object::reconcile::{ObjectReconciler, StopReason};
use etch_core::object::{Identity, Object};
use etch_core::object_machine::Reconciled;
use etch_core::object_state::ObjectState;
use etch_core::plan::Record;

/// Objects reconciled at once.
const AT_ONCE: usize = 16;
/// Of these, objects that are read again: there may be many, and what changes now comes first.
const READ_AGAIN: usize = 8;

/// What became of an object.
pub(crate) struct Completed {
    pub(crate) identity: Identity,
    pub(crate) reconciled: Result<Reconciled, StopReason>,
    pub(crate) in_tally: InTally,
}

/// Whether the tally counts an object already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InTally {
    /// It is one of those that are counted.
    Counted,
    /// It was created since they were.
    Created,
    /// It was deleted while it was reconciled.
    Deleted,
}

/// What became of an object that was reconciled.
type Ended = (Identity, Result<Reconciled, StopReason>);

/// The last event about an object since its reconciliation began.
enum LatestEvent {
    Nothing,
    /// It changed: this is its newest state.
    Changed(Received),
    Deleted,
}

/// The objects of one CRD that are being reconciled.
pub(crate) struct ObjectQueue<'a> {
    reconciler: ObjectReconciler<'a>,
    record: Arc<Record>,
    /// The same for an object that was processed before it changed.
    of_known: Arc<Record>,
    under_way: FuturesUnordered<BoxFuture<'a, Ended>>,
    ended: VecDeque<Ended>,
    /// The objects that are under way, by uid. Each is reconciled once at a time, so that its last state is
    /// the one that counts.
    active: HashMap<String, LatestEvent>,
    /// The newest state of the object that was done last.
    newest: Option<Received>,
    /// The uids of objects that were created and are not counted yet.
    new: HashSet<String>,
    /// Objects to be read again as soon as there is room, each once.
    again: VecDeque<Identity>,
    in_again: HashSet<Identity>,
    /// Objects to be read again after a while, each once.
    later: FuturesUnordered<BoxFuture<'static, Identity>>,
    waiting: HashSet<Identity>,
    rewrites: RewriteBackoff,
    mutations: MutationBackoff,
}

impl<'a> ObjectQueue<'a> {
    pub(crate) fn new(reconciler: ObjectReconciler<'a>, record: Record) -> Self {
        Self {
            reconciler,
            of_known: Arc::new(record.of_known_object()),
            record: Arc::new(record),
            under_way: FuturesUnordered::new(),
            ended: VecDeque::new(),
            active: HashMap::new(),
            newest: None,
            new: HashSet::new(),
            again: VecDeque::new(),
            in_again: HashSet::new(),
            later: FuturesUnordered::new(),
            waiting: HashSet::new(),
            rewrites: RewriteBackoff::default(),
            mutations: MutationBackoff::default(),
        }
    }

    /// What is on record from now on.
    pub(crate) fn set_record(&mut self, record: Record) {
        self.of_known = Arc::new(record.of_known_object());
        self.record = Arc::new(record);
    }

    /// Whether one more object can be reconciled; [`ObjectReconciler::slot_released`] shows when there is
    /// more room.
    pub(crate) fn has_capacity(&self) -> bool {
        self.under_way.len() < AT_ONCE + self.reconciler.writes_without_slot()
    }

    /// Whether every object that changed was reconciled, apart from those that wait for a time of their own.
    pub(crate) fn is_idle(&self) -> bool {
        let Self { under_way, ended, newest, new, again, .. } = self;
        under_way.is_empty() && ended.is_empty() && newest.is_none() && new.is_empty() && again.is_empty()
    }

    /// Reconciles an object that was created.
    pub(crate) fn created(&mut self, object: Received) {
        self.new.insert(object.uid().to_owned());
        // Nobody can have removed anything from it.
        self.enqueue(object);
    }

    /// Notes that an object was deleted; whether it is one of those that are counted.
    pub(crate) fn deleted(&mut self, object: &Object) -> bool {
        if let Some(meanwhile) = self.active.get_mut(object.uid()) {
            *meanwhile = LatestEvent::Deleted;
        }
        !self.new.remove(object.uid())
    }

    /// Reconciles an object as it was read; later, where somebody has removed again and again what was stored
    /// there. Returns whether it has to wait for that.
    pub(crate) fn enqueue(&mut self, object: Received) -> bool {
        if let Some(meanwhile) = self.active.get_mut(object.uid()) {
            *meanwhile = LatestEvent::Changed(object);
            return false;
        }
        let delay = self.rewrites.delay(object.uid()).max(self.mutations.delay(object.uid()));
        if delay.is_zero() {
            let is_new = self.new.contains(object.uid());
            let record = if is_new { &self.record } else { &self.of_known };
            let (reconciler, record) = (self.reconciler, record.clone());
            let (identity, read) = (object.identity(), Instant::now());
            self.active.insert(identity.uid.clone(), LatestEvent::Nothing);
            self.under_way.push(Box::pin(async move {
                let (object, _held) = object.into_parts();
                (identity, reconciler.reconcile(object, read, &record, false, None).await)
            }));
        } else {
            self.requeue_after(object.identity(), delay);
        }
        !delay.is_zero()
    }

    /// Whether somebody has removed again and again what was stored in an object.
    pub(crate) fn is_contended(&self, uid: &str) -> bool {
        self.rewrites.is_contended(uid)
    }

    /// Reads an object that admission changes on each write again, after a wait that grows each time.
    pub(crate) fn back_off(&mut self, identity: Identity) {
        self.mutations.count(&identity.uid);
        let delay = self.mutations.delay(&identity.uid);
        self.requeue_after(identity, delay);
    }

    fn requeue_after(&mut self, identity: Identity, delay: Duration) {
        if self.waiting.insert(identity.clone()) {
            self.later.push(Box::pin(async move {
                tokio::time::sleep(delay).await;
                identity
            }));
        }
    }

    /// Reads objects again and reconciles them, as soon as there is capacity.
    ///
    /// Those that wait for a time of their own go on waiting.
    pub(crate) fn requeue(&mut self, objects: impl IntoIterator<Item = Identity>) {
        for identity in objects {
            if !self.waiting.contains(&identity) {
                self.read_again(identity);
            }
        }
    }

    fn read_again(&mut self, identity: Identity) {
        if self.in_again.insert(identity.clone()) {
            self.again.push_back(identity);
        }
    }

    /// Whether objects are still to be read again.
    pub(crate) fn reads_again(&self) -> bool {
        !self.again.is_empty()
    }

    /// Notes that a default was stored in an object while watching.
    pub(crate) fn count_write(&mut self, uid: &str) {
        self.rewrites.count_write(uid);
    }

    /// What became of an object. This future may be dropped at any time, and never ends while nothing is
    /// under way.
    pub(crate) async fn next_completed(&mut self) -> Completed {
        loop {
            if let Some(ended) = self.ended.pop_front() {
                return self.done(ended);
            }
            while self.under_way.len() < READ_AGAIN + self.reconciler.writes_without_slot()
                && let Some(identity) = self.again.pop_front()
            {
                self.in_again.remove(&identity);
                if self.active.contains_key(&identity.uid) {
                    continue;
                }
                self.active.insert(identity.uid.clone(), LatestEvent::Nothing);
                self.under_way.push(Box::pin(read_and_reconcile(
                    self.reconciler,
                    identity,
                    self.record.clone(),
                )));
            }
            tokio::select! {
                Some(ended) = self.under_way.next() => return self.done(ended),
                Some(identity) = self.later.next() => {
                    self.waiting.remove(&identity);
                    self.read_again(identity);
                }
                else => std::future::pending().await,
            }
        }
    }

    /// Waits until nothing is under way any more. What has begun goes on; its result is not counted.
    pub(crate) async fn drain(&mut self) {
        while self.under_way.next().await.is_some() {}
    }

    /// Awaits other work while what is under way goes on: it holds permits that other CRDs wait for.
    ///
    /// Boxed: there is a queue for every CRD, and hardly any of them has such work at a time.
    pub(crate) fn drive_while<'w, T: 'w>(
        &'w mut self,
        work: impl Future<Output = T> + Send + 'w,
    ) -> BoxFuture<'w, T> {
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

    /// The object that was completed last, if it changed meanwhile: it is to be reconciled again.
    pub(crate) fn take_changed(&mut self) -> Option<Received> {
        self.newest.take()
    }

    fn done(&mut self, (identity, reconciled): Ended) -> Completed {
        // One that went away stays new: the watch has yet to report its deletion.
        let is_gone = matches!(&reconciled, Ok(Reconciled { state: ObjectState::Gone, .. }));
        let mut in_tally = match !is_gone && self.new.remove(&identity.uid) {
            true => InTally::Created,
            false => InTally::Counted,
        };
        match self.active.remove(&identity.uid) {
            Some(LatestEvent::Changed(object)) => self.newest = Some(object),
            Some(LatestEvent::Deleted) => in_tally = InTally::Deleted,
            Some(LatestEvent::Nothing) | None => {}
        }
        Completed { identity, reconciled, in_tally }
    }
}

async fn read_and_reconcile(
    reconciler: ObjectReconciler<'_>,
    identity: Identity,
    record: Arc<Record>,
) -> Ended {
    let without_need = |state| Ok(Reconciled::of(state, Vec::new()));
    let reconciled = match reconciler.cluster.object_with_room(&reconciler.crd.resource(), &identity).await {
        Ok(Some(object)) => {
            let read = Instant::now();
            let (object, _held) = object.into_parts();
            reconciler.reconcile(object, read, &record, false, None).await
        }
        Ok(None) => without_need(ObjectState::Gone),
        Err(_) => without_need(ObjectState::Unknown),
    };
    (identity, reconciled)
}

/// Objects that admission changes on each write: every try costs writes that achieve nothing.
#[derive(Default)]
struct MutationBackoff(HashMap<String, (u32, Instant)>);

impl MutationBackoff {
    const FIRST: Duration = Duration::from_secs(600);
    const LAST: Duration = Duration::from_secs(3600);

    /// How long to wait before this object is reconciled again.
    fn delay(&self, uid: &str) -> Duration {
        let until = self.0.get(uid).map(|(_, until)| until.saturating_duration_since(Instant::now()));
        until.unwrap_or_default()
    }

    /// Notes that the object was changed again.
    fn count(&mut self, uid: &str) {
        let now = Instant::now();
        if self.0.len() >= 10_000 {
            self.0.retain(|_, (_, until)| *until + Self::LAST > now);
        }
        let (times, until) = self.0.entry(uid.to_owned()).or_insert((0, now));
        if now.saturating_duration_since(*until) > Self::LAST {
            *times = 0;
        }
        *until = now + (Self::FIRST * 2_u32.saturating_pow(*times)).min(Self::LAST);
        *times = (*times + 1).min(8);
    }
}

/// Objects that were written again and again while watching: somebody removes what Etch stores, and is not
/// raced.
#[derive(Default)]
struct RewriteBackoff(HashMap<String, (u32, Instant)>);

impl RewriteBackoff {
    const LAST: Duration = Duration::from_secs(300);
    /// So many writes show that somebody removes what they store.
    const CONTENDED: u32 = 3;

    /// How long to wait before this object is reconciled again.
    fn delay(&self, uid: &str) -> Duration {
        let times = self.times(uid);
        let wait = Duration::from_millis(100) * 2_u32.saturating_pow(times.min(12));
        if times < Self::CONTENDED { Duration::ZERO } else { wait.min(Self::LAST) }
    }

    fn is_contended(&self, uid: &str) -> bool {
        self.times(uid) >= Self::CONTENDED
    }

    /// How often it was written of late.
    fn times(&self, uid: &str) -> u32 {
        self.0.get(uid).filter(|(_, wrote)| wrote.elapsed() < Self::LAST * 2).map_or(0, |(times, _)| *times)
    }

    fn count_write(&mut self, uid: &str) {
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
