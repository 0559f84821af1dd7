//! The objects of a CRD that are being reconciled while it is watched, and those that wait for it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::time::{Duration, Instant};

use super::Received;
use crate::object::{Identity, Object};
use crate::plan::skip;

/// Objects reconciled at once.
const AT_ONCE: usize = 16;
/// Of these, objects that are read again: there may be many, and what changes now comes first.
const READ_AGAIN: usize = 8;

/// Whether the tally counts an object already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InTally {
    /// It is one of those that are counted.
    Counted,
    /// It was created since they were.
    Created,
    /// It was deleted while it was reconciled.
    Deleted,
}

/// The result for an object that has changed.
#[derive(Clone, Debug)]
pub(super) enum Queued<H> {
    /// It is reconciled now; whether it was created since the others were counted.
    Begins(Received<H>, bool),
    /// It waits: another client removes again and again what is stored in it.
    Waits,
    /// It is reconciled when its reconciliation under way has ended.
    Follows,
}

/// The last event about an object since its reconciliation began.
#[derive(Clone, Debug)]
enum LatestEvent<H> {
    Nothing,
    /// It changed: this is its newest state.
    Changed(Received<H>),
    /// It changed while it was read. A state that waits for the end of a read would hold room that the read
    /// waits for.
    Outdated(Identity),
    Deleted,
}

/// The objects of one CRD that are being reconciled, or wait for it. Each is reconciled once at a time, so
/// that its last state is the one that counts.
#[derive(Clone, Debug)]
pub(super) struct Queue<H> {
    /// Those that are under way, by uid.
    active: BTreeMap<String, LatestEvent<H>>,
    /// Of these, the uids of those that are being read.
    reading: BTreeSet<String>,
    /// The uids of objects that were created and are not counted yet.
    new: BTreeSet<String>,
    /// Objects to be read again as soon as there is room, each once.
    again: VecDeque<Identity>,
    in_again: BTreeSet<Identity>,
    /// Objects to be read again at a time, each once.
    later: BinaryHeap<Reverse<(Instant, Identity)>>,
    waiting: BTreeSet<Identity>,
    rewrites: RewriteBackoff,
    mutations: MutationBackoff,
}

impl<H> Default for Queue<H> {
    fn default() -> Self {
        Self {
            active: BTreeMap::new(),
            reading: BTreeSet::new(),
            new: BTreeSet::new(),
            again: VecDeque::new(),
            in_again: BTreeSet::new(),
            later: BinaryHeap::new(),
            waiting: BTreeSet::new(),
            rewrites: RewriteBackoff::default(),
            mutations: MutationBackoff::default(),
        }
    }
}

impl<H> Queue<H> {
    /// Whether one more object can be reconciled, while `slow` writes under way no longer make others wait.
    pub(super) fn has_capacity(&self, slow: usize) -> bool {
        self.active.len() < AT_ONCE + slow
    }

    /// Whether nothing is under way.
    pub(super) fn is_drained(&self) -> bool {
        self.active.is_empty()
    }

    /// Whether every object that changed was reconciled, apart from those that wait for a time of their own.
    pub(super) fn is_idle(&self) -> bool {
        self.active.is_empty() && self.new.is_empty() && self.again.is_empty()
    }

    /// Reconciles an object that was created: nothing can have been removed from it.
    pub(super) fn created(&mut self, now: Instant, object: Received<H>) -> Queued<H> {
        self.new.insert(object.object.uid().to_owned());
        self.changed(now, object)
    }

    /// Records that an object was deleted; returns whether it is one of those that are counted.
    pub(super) fn deleted(&mut self, object: &Object) -> bool {
        if let Some(meanwhile) = self.active.get_mut(object.uid()) {
            *meanwhile = LatestEvent::Deleted;
        }
        !self.new.remove(object.uid())
    }

    /// Reconciles an object as it was read; later, where another client has removed again and again what was
    /// stored there.
    pub(super) fn changed(&mut self, now: Instant, received: Received<H>) -> Queued<H> {
        let uid = received.object.uid();
        if let Some(meanwhile) = self.active.get_mut(uid) {
            *meanwhile = match self.reading.contains(uid) {
                true => LatestEvent::Outdated(received.object.identity()),
                false => LatestEvent::Changed(received),
            };
            return Queued::Follows;
        }
        let delay = match skip(&received.object) {
            None => self.rewrites.delay(now, uid).max(self.mutations.delay(now, uid)),
            // An object that Etch does not write cannot compete with another client.
            Some(_) => Duration::ZERO,
        };
        if delay.is_zero() {
            self.active.insert(uid.to_owned(), LatestEvent::Nothing);
            let is_new = self.new.contains(uid);
            return Queued::Begins(received, is_new);
        }
        self.read_at(now + delay, received.object.identity());
        Queued::Waits
    }

    /// Whether another client has removed again and again what was stored in an object.
    pub(super) fn is_contended(&self, now: Instant, uid: &str) -> bool {
        self.rewrites.is_contended(now, uid)
    }

    /// Reads an object that admission changes on each write again, after a wait that grows each time.
    pub(super) fn back_off(&mut self, now: Instant, identity: Identity) {
        self.mutations.count(now, &identity.uid);
        let delay = self.mutations.delay(now, &identity.uid);
        self.read_at(now + delay, identity);
    }

    fn read_at(&mut self, at: Instant, identity: Identity) {
        if self.waiting.insert(identity.clone()) {
            self.later.push(Reverse((at, identity)));
        }
    }

    /// Reads objects again and reconciles them, as soon as there is capacity.
    ///
    /// Those that wait for a time of their own keep waiting.
    pub(super) fn read_again(&mut self, objects: impl IntoIterator<Item = Identity>) {
        for identity in objects {
            if !self.waiting.contains(&identity) {
                self.add_again(identity);
            }
        }
    }

    fn add_again(&mut self, identity: Identity) {
        if self.in_again.insert(identity.clone()) {
            self.again.push_back(identity);
        }
    }

    /// Whether objects are still to be read again.
    pub(super) fn reads_again(&self) -> bool {
        !self.again.is_empty()
    }

    /// Records that a default was stored in an object while watching.
    pub(super) fn count_write(&mut self, now: Instant, uid: &str) {
        self.rewrites.count_write(now, uid);
    }

    /// When the next object is to be read again that waits for its time.
    pub(super) fn due(&self) -> Option<Instant> {
        self.later.peek().map(|Reverse((at, _))| *at)
    }

    /// The next object that is to be read again; it counts as under way from now on.
    pub(super) fn next_read(&mut self, now: Instant, slow: usize) -> Option<Identity> {
        while let Some(Reverse((at, _))) = self.later.peek()
            && *at <= now
            && let Some(Reverse((_, identity))) = self.later.pop()
        {
            self.waiting.remove(&identity);
            self.add_again(identity);
        }
        while self.active.len() < READ_AGAIN + slow
            && let Some(identity) = self.again.pop_front()
        {
            self.in_again.remove(&identity);
            if !self.active.contains_key(&identity.uid) {
                self.active.insert(identity.uid.clone(), LatestEvent::Nothing);
                self.reading.insert(identity.uid.clone());
                return Some(identity);
            }
        }
        None
    }

    /// Records that an object was read: it is reconciled now.
    pub(super) fn was_read(&mut self, uid: &str) {
        self.reading.remove(uid);
    }

    /// Records that an object is done, which may be gone; returns how it is counted, and its newest state if
    /// it has changed meanwhile: that is to be reconciled again.
    pub(super) fn done(&mut self, uid: &str, is_gone: bool) -> (InTally, Option<Received<H>>) {
        // One that went away stays new: the watch has yet to report its deletion.
        let in_tally = match !is_gone && self.new.remove(uid) {
            true => InTally::Created,
            false => InTally::Counted,
        };
        self.reading.remove(uid);
        match self.active.remove(uid) {
            Some(LatestEvent::Changed(object)) => (in_tally, Some(object)),
            Some(LatestEvent::Outdated(identity)) => {
                self.add_again(identity);
                (in_tally, None)
            }
            Some(LatestEvent::Deleted) => (InTally::Deleted, None),
            Some(LatestEvent::Nothing) | None => (in_tally, None),
        }
    }
}

/// Objects that admission changes on each write: every try costs writes that achieve nothing.
#[derive(Clone, Debug, Default)]
struct MutationBackoff(BTreeMap<String, (u32, Instant)>);

impl MutationBackoff {
    const FIRST: Duration = Duration::from_secs(600);
    const LAST: Duration = Duration::from_secs(3600);

    /// How long to wait before this object is reconciled again.
    fn delay(&self, now: Instant, uid: &str) -> Duration {
        self.0.get(uid).map(|(_, until)| until.saturating_duration_since(now)).unwrap_or_default()
    }

    /// Records that the object was changed again.
    fn count(&mut self, now: Instant, uid: &str) {
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

/// Objects that were written repeatedly while watching: another client removes what Etch stores, so Etch
/// waits longer each time.
#[derive(Clone, Debug, Default)]
struct RewriteBackoff(BTreeMap<String, (u32, Instant)>);

impl RewriteBackoff {
    const LAST: Duration = Duration::from_secs(300);
    /// This many writes show that another client removes what they store.
    const CONTENDED: u32 = 3;

    /// How long to wait before this object is reconciled again.
    fn delay(&self, now: Instant, uid: &str) -> Duration {
        let times = self.times(now, uid);
        let wait = Duration::from_millis(100) * 2_u32.saturating_pow(times.min(12));
        if times < Self::CONTENDED { Duration::ZERO } else { wait.min(Self::LAST) }
    }

    fn is_contended(&self, now: Instant, uid: &str) -> bool {
        self.times(now, uid) >= Self::CONTENDED
    }

    /// How often it was written recently.
    fn times(&self, now: Instant, uid: &str) -> u32 {
        self.0.get(uid).filter(|(_, wrote)| is_recent(now, *wrote)).map_or(0, |(times, _)| *times)
    }

    fn count_write(&mut self, now: Instant, uid: &str) {
        if self.0.len() >= 10_000 {
            self.0.retain(|_, (_, wrote)| is_recent(now, *wrote));
        }
        let times = self.times(now, uid);
        self.0.insert(uid.to_owned(), (times + 1, now));
    }
}

fn is_recent(now: Instant, wrote: Instant) -> bool {
    now.saturating_duration_since(wrote) < RewriteBackoff::LAST * 2
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::engine::tests::start;

    fn received(uid: &str, resource_version: &str) -> Received<()> {
        let metadata = json!({ "name": uid, "uid": uid, "resourceVersion": resource_version });
        Received { object: Object::from(json!({ "metadata": metadata })), hold: () }
    }

    fn begins(queued: Queued<()>) -> Option<bool> {
        match queued {
            Queued::Begins(_, is_new) => Some(is_new),
            Queued::Waits | Queued::Follows => None,
        }
    }

    #[test]
    fn an_object_is_reconciled_once_at_a_time_and_its_newest_state_follows() {
        let (mut queue, now) = (Queue::default(), start());
        assert_eq!(begins(queue.changed(now, received("a", "1"))), Some(false));
        assert!(matches!(queue.changed(now, received("a", "2")), Queued::Follows));
        assert!(matches!(queue.changed(now, received("a", "3")), Queued::Follows));
        assert!(!queue.is_idle());
        let (in_tally, newest) = queue.done("a", false);
        assert_eq!(in_tally, InTally::Counted);
        assert_eq!(newest.expect("it has changed").object.resource_version(), "3");
        assert!(queue.is_idle() && queue.is_drained());
    }

    #[test]
    fn no_state_is_kept_for_an_object_that_is_being_read_and_it_is_read_again() {
        let (mut queue, now) = (Queue::default(), start());
        queue.read_again([received("a", "1").object.identity()]);
        let read = queue.next_read(now, 0).expect("it is read");
        assert!(matches!(queue.changed(now, received("a", "2")), Queued::Follows));
        assert!(queue.done("a", false).1.is_none());
        assert_eq!(queue.next_read(now, 0), Some(read), "once more");
        queue.was_read("a");
        assert!(matches!(queue.changed(now, received("a", "3")), Queued::Follows));
        assert_eq!(queue.done("a", false).1.expect("it has changed").object.resource_version(), "3");
    }

    #[test]
    fn one_that_was_created_is_counted_when_it_is_done_and_one_that_is_deleted_is_not() {
        let (mut queue, now) = (Queue::default(), start());
        assert_eq!(begins(queue.created(now, received("a", "1"))), Some(true));
        assert_eq!(queue.done("a", false).0, InTally::Created);
        assert_eq!(begins(queue.created(now, received("b", "1"))), Some(true));
        assert!(!queue.deleted(&received("b", "2").object), "it was never counted");
        assert_eq!(queue.done("b", false).0, InTally::Deleted);
        assert!(queue.deleted(&received("c", "2").object), "it was");
    }

    #[test]
    fn a_client_that_removes_what_is_stored_again_and_again_is_not_raced() {
        let (mut queue, now) = (Queue::default(), start());
        for _ in 0..RewriteBackoff::CONTENDED {
            assert!(begins(queue.changed(now, received("a", "1"))).is_some());
            queue.done("a", false);
            queue.count_write(now, "a");
        }
        assert!(queue.is_contended(now, "a"));
        assert!(matches!(queue.changed(now, received("a", "2")), Queued::Waits));
        assert_eq!(queue.next_read(now, 0), None);
        let mut ignored = received("a", "2").object.json().clone();
        ignored["metadata"]["annotations"] = json!({ "etch-operator.io/ignore": "true" });
        let ignored = Received { object: Object::from(ignored), hold: () };
        assert!(
            begins(queue.changed(now, ignored)).is_some(),
            "one that is left alone now is not waited for"
        );
        queue.done("a", false);
        let due = queue.due().expect("it waits");
        assert_eq!(queue.next_read(due, 0).expect("its time has come").uid, "a");
        queue.done("a", false);
        assert!(begins(queue.changed(due + RewriteBackoff::LAST * 2, received("a", "3"))).is_some());
    }

    #[test]
    fn reads_leave_room_for_what_changes_now() {
        let (mut queue, now) = (Queue::<()>::default(), start());
        let identity = |index: usize| Identity { uid: index.to_string(), ..Identity::default() };
        queue.read_again((0..40).map(identity));
        queue.read_again((0..40).map(identity));
        let begun = std::iter::from_fn(|| queue.next_read(now, 2)).count();
        assert_eq!(begun, READ_AGAIN + 2);
        assert!(queue.has_capacity(0) && queue.reads_again());
        assert_eq!(queue.again.len(), 40 - begun, "each once");
    }
}
