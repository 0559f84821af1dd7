//! How many bytes of objects are held at once, from their arrival until they are processed.
//! Small objects do not wait, and one resource does not wait for another.
//!
//! Room for an object is taken once, before it is parsed, and covers everything that is done with it: so a
//! task that has room never waits for more.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Cluster;
use etch_core::crd::Resource;
use etch_core::object::Object;

/// For all objects together, in KiB. With the pages of lists that is 44 MiB.
const ROOM: usize = 28 << 10;
/// For those of one resource: a resource that hangs does not delay the others.
const OWN: usize = ROOM / 2;
/// How many times its JSON an object takes: parsed, as what is decided about it, and with the answer to its
/// write.
const FACTOR: usize = 12;
/// An object of so many bytes takes no room that others wait for: how many there are is bounded elsewhere.
const SMALL: usize = 16 << 10;
/// The assumed size of an object while it arrives, in bytes: etcd takes requests of 1.5 MiB.
pub(super) const LARGEST: usize = 2 << 20;

/// What the objects of all resources share.
#[derive(Debug)]
pub(super) struct ObjectBudget {
    all: Arc<Semaphore>,
    own: Mutex<HashMap<Resource, Weak<Semaphore>>>,
}

/// The part of the budget that one resource may use.
#[derive(Clone, Debug)]
pub struct ObjectRoom {
    all: Arc<Semaphore>,
    own: Arc<Semaphore>,
}

/// The room that one object takes until this is dropped; no room if the object is small.
#[derive(Debug, Default)]
pub struct Held {
    all: Option<OwnedSemaphorePermit>,
    own: Option<OwnedSemaphorePermit>,
}

/// An object, and the room that it takes.
#[derive(Debug)]
pub struct Received {
    object: Object,
    held: Held,
}

impl Default for ObjectBudget {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(ROOM)), own: Mutex::default() }
    }
}

impl ObjectBudget {
    fn room(&self, resource: &Resource) -> ObjectRoom {
        let mut known = self.own.lock();
        let own = match known.get(resource).and_then(Weak::upgrade) {
            Some(own) => own,
            None => {
                known.retain(|_, own| own.strong_count() > 0);
                let own = Arc::new(Semaphore::new(OWN));
                known.insert(resource.clone(), Arc::downgrade(&own));
                own
            }
        };
        ObjectRoom { all: self.all.clone(), own }
    }
}

impl Cluster {
    /// The room for the objects of a resource.
    pub fn object_room(&self, resource: &Resource) -> ObjectRoom {
        self.object_budget.room(resource)
    }
}

impl ObjectRoom {
    /// Takes room for an object of so many bytes of JSON. One that is larger than all room takes all of it,
    /// and is processed alone.
    ///
    /// This future may be dropped at any time.
    pub async fn hold(&self, bytes: usize) -> Held {
        if bytes <= SMALL {
            return Held::default();
        }
        // These semaphores are never closed. The resource's own comes first: a task that waits for it does
        // not delay other resources.
        let own = self.own.clone().acquire_many_owned(cost(bytes, OWN)).await.ok();
        let all = self.all.clone().acquire_many_owned(cost(bytes, ROOM)).await.ok();
        Held { all, own }
    }
}

impl Held {
    /// Gives back what an object does not need that has turned out to have so many bytes.
    pub fn shrink(&mut self, bytes: usize) {
        if bytes <= SMALL {
            *self = Self::default();
        }
        give_back(self.own.as_mut(), cost(bytes, OWN));
        give_back(self.all.as_mut(), cost(bytes, ROOM));
    }
}

impl Received {
    pub(super) fn new(object: Object, held: Held) -> Self {
        Self { object, held }
    }

    /// The object, and the room that it takes.
    pub fn into_parts(self) -> (Object, Held) {
        (self.object, self.held)
    }
}

impl Deref for Received {
    type Target = Object;

    fn deref(&self) -> &Object {
        &self.object
    }
}

/// The room that an object of so many bytes takes, in KiB, at most `most`.
fn cost(bytes: usize, most: usize) -> u32 {
    u32::try_from(bytes.saturating_mul(FACTOR).div_ceil(1 << 10).min(most)).unwrap_or(u32::MAX)
}

fn give_back(permit: Option<&mut OwnedSemaphorePermit>, needed: u32) {
    if let Some(permit) = permit {
        let more = permit.num_permits().saturating_sub(needed as usize);
        drop(permit.split(more));
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    const MIB: usize = 1 << 20;

    fn resource(name: impl ToString) -> Resource {
        Resource { group: "example.com".to_owned(), version: "v1".to_owned(), plural: name.to_string() }
    }

    /// What is held when nothing more has room, of objects of so many bytes of so many resources.
    fn fill(budget: &ObjectBudget, resources: usize, bytes: usize) -> Vec<(ObjectRoom, Held)> {
        let rooms: Vec<_> = (0..resources).map(|name| budget.room(&resource(name))).collect();
        let mut all = Vec::new();
        for room in &rooms {
            while let Some(held) = room.hold(bytes).now_or_never() {
                all.push((room.clone(), held));
            }
        }
        all
    }

    #[test]
    fn objects_of_any_number_of_resources_share_the_room() {
        let budget = ObjectBudget::default();
        let held = fill(&budget, 10, MIB);
        assert_eq!(held.len(), 2, "one of each: it takes 12 MiB of 14, and 28 MiB are there");
    }

    #[test]
    fn a_resource_that_hangs_leaves_room_for_others() {
        let budget = ObjectBudget::default();
        let hanging = fill(&budget, 1, 100 << 10);
        assert_eq!(hanging.len(), 11);
        assert!(budget.room(&resource("other")).hold(MIB).now_or_never().is_some());
    }

    #[test]
    fn small_objects_wait_for_nobody() {
        let budget = ObjectBudget::default();
        let _held = fill(&budget, 10, MIB);
        assert!(budget.room(&resource(0)).hold(SMALL).now_or_never().is_some());
    }

    #[tokio::test]
    async fn an_object_larger_than_all_room_is_processed_alone() {
        let budget = ObjectBudget::default();
        let (one, other) = (budget.room(&resource(1)), budget.room(&resource(2)));
        let held = one.hold(100 * MIB).await;
        let mut waiting = Box::pin(other.hold(MIB));
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(held);
        assert!(waiting.now_or_never().is_some());
    }

    #[tokio::test]
    async fn what_turns_out_to_be_small_gives_its_room_back() {
        let budget = ObjectBudget::default();
        let room = budget.room(&resource(1));
        let mut held = room.hold(LARGEST).await;
        held.shrink(MIB);
        assert_eq!(budget.all.available_permits(), ROOM - 12 * (1 << 10));
        held.shrink(100);
        assert_eq!((budget.all.available_permits(), room.own.available_permits()), (ROOM, OWN));
    }
}
