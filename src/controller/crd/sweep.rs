//! One sweep over all objects of a CRD.
//! It must not remember more of an object than a hash, unless the tally does, nor say that anything is proved that was not.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tracing::{Instrument as _, Span};

use crate::cluster::{CallError, Page};
use crate::controller::object::brake::Brake;
use crate::controller::object::reconcile::{Stop, Tender};
use crate::controller::persist::is_left_out;
use crate::controller::spans;
use crate::controller::state::tally::{Fate, Tally};
use crate::domain::object::Object;
use crate::domain::plan::Record;

/// Objects seen to at once in one pass; how many of them write at once is for the shared pace to say.
const AT_ONCE: usize = 64;

/// A list of all objects, page by page, and what became of them.
#[derive(Debug, Default)]
pub(in crate::controller) struct Sweep {
    /// What became of the objects, once the sweep has ended; until then see [`Orders::tally`].
    pub(in crate::controller) tally: Tally,
    /// The resource version at which the sweep began: all that is older was seen to.
    pub(in crate::controller) through: Option<u64>,
    /// The resource version from which a watch misses nothing: that of the first page.
    pub(in crate::controller) watch_from: String,
    /// Objects that this sweep wrote and proved, as they were left; hashes, since there may be many.
    pub(in crate::controller) proved: Proved,
    /// Objects in trouble, in the state in which they were found to be.
    pub(in crate::controller) left: Left,
    /// How many objects needed a request.
    pub(in crate::controller) asked: u64,
    /// The last object of the last page of which every object was seen to; none if the list is in no order.
    pub(in crate::controller) upto: Option<Place>,
    /// The same within the last page: the object up to which every one was processed.
    pub(in crate::controller) reached: Option<Place>,
    /// Pages that were asked for.
    pages: u64,
    /// Where the next page begins.
    after: Option<String>,
}

/// Where an object stands in a list: namespace, a slash, and name, as etcd orders them.
pub(in crate::controller) type Place = String;

/// Which states of which objects were found to be in trouble.
#[derive(Debug, Default)]
pub(in crate::controller) struct Left {
    held: Proved,
    rejected: Proved,
}

/// Why a sweep was not completed.
#[derive(Debug, thiserror::Error)]
pub enum Interruption {
    /// The list could not be read.
    #[error("the objects cannot be listed: {0}")]
    List(#[from] CallError),
    /// See [`Stop`].
    #[error(transparent)]
    Stop(#[from] Stop),
    /// The policy's limit of rejected objects is reached.
    #[error("stopped after {0} rejected objects, as the policy says")]
    TooManyRejected(u64),
}

/// Which states of which objects are known to be stored, apart from any record.
#[derive(Debug, Default)]
pub(in crate::controller) struct Proved(HashSet<u64>);

/// What a sweep goes by.
#[derive(Clone, Copy, Debug)]
pub(in crate::controller) struct Orders<'a> {
    /// What is on record.
    pub(in crate::controller) record: &'a Record,
    /// Up to which object the record goes; none if it is about all of them.
    pub(in crate::controller) upto: Option<&'a Place>,
    /// What is on record of the others: nothing.
    pub(in crate::controller) beyond: &'a Record,
    /// States that were proved since.
    pub(in crate::controller) proved: &'a Proved,
    /// The sweep that this one verifies: what was in trouble then, and has not changed, is not tried again.
    pub(in crate::controller) earlier: Option<&'a Sweep>,
    /// The object up to which all are left out; none if all are processed.
    pub(in crate::controller) after: Option<&'a Place>,
    /// What became of the objects so far, for whoever tells of it meanwhile.
    pub(in crate::controller) tally: &'a Mutex<Tally>,
    /// Rejections after which the sweep stops.
    pub(in crate::controller) stop_after_rejected: Option<u32>,
}

impl Proved {
    /// Remembers an object's state.
    pub(in crate::controller) fn insert(&mut self, uid: &str, resource_version: &str) {
        self.0.insert(Self::hash(uid, resource_version));
    }

    /// Whether an object's state is known.
    pub(in crate::controller) fn contains(&self, object: &Object) -> bool {
        self.0.contains(&Self::hash(object.uid(), object.resource_version()))
    }

    /// Takes an object's state out; whether it was known.
    pub(in crate::controller) fn take(&mut self, object: &Object) -> bool {
        self.0.remove(&Self::hash(object.uid(), object.resource_version()))
    }

    /// Adds what another sweep proved.
    pub(in crate::controller) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    fn hash(uid: &str, resource_version: &str) -> u64 {
        let mut hasher = DefaultHasher::new();
        (uid, resource_version).hash(&mut hasher);
        hasher.finish()
    }
}

impl Left {
    fn insert(&mut self, is_held: bool, uid: &str, resource_version: &str) {
        let states = if is_held { &mut self.held } else { &mut self.rejected };
        states.insert(uid, resource_version);
    }
}

impl Orders<'_> {
    /// What is on record of an object.
    fn record_of(&self, object: &Object) -> &Record {
        match self.upto {
            Some(upto) if place(object) > *upto => self.beyond,
            _ => self.record,
        }
    }

    /// Whether an object is in the same trouble as an earlier sweep has found, and whether it is held.
    fn is_left(&self, object: &Object) -> Option<(bool, &Tally)> {
        let Sweep { left, tally, .. } = self.earlier?;
        let (held, rejected) = (left.held.contains(object), left.rejected.contains(object));
        (held || rejected).then_some((held, tally))
    }
}

impl Sweep {
    /// Reads all pages and sees to each object.
    ///
    /// # Errors
    /// See [`Self::page`].
    pub(in crate::controller) async fn all(
        &mut self,
        tender: Tender<'_>,
        orders: Orders<'_>,
    ) -> Result<(), Interruption> {
        while self.page(tender, orders).await? {}
        Ok(())
    }

    /// Reads one more page and sees to each of its objects; whether there are more.
    ///
    /// # Errors
    /// See [`Interruption`]; what was done until then is done, and counted.
    pub(in crate::controller) async fn page(
        &mut self,
        tender: Tender<'_>,
        orders: Orders<'_>,
    ) -> Result<bool, Interruption> {
        // A pause that has begun or ended stops a sweep that need not write anything as well.
        if tender.brake.is_some_and(Brake::has_changed) {
            return Err(Stop::Pause.into());
        }
        self.pages += 1;
        let span = spans::page(tender.crd, self.pages);
        self.read_and_see_to(tender, orders, &span).instrument(span.clone()).await
    }

    async fn read_and_see_to(
        &mut self,
        tender: Tender<'_>,
        orders: Orders<'_>,
        span: &Span,
    ) -> Result<bool, Interruption> {
        let resource = tender.crd.resource();
        let Page { objects, resource_version, next, total } = tokio::select! {
            biased;
            stop = tender.stopped() => return Err(stop.into()),
            page = tender.cluster.page_of(&resource, tender.scope, self.after.as_deref()) => page?,
        };
        span.record("objects", objects.len());
        if self.after.is_none() {
            self.through = resource_version.parse().ok();
            self.watch_from = resource_version;
            look_at(orders.tally).expect(total);
        }
        let mut places: Vec<Place> = objects.iter().map(place).collect();
        let in_order = places.is_sorted() && (self.after.is_none() || self.upto <= places.first().cloned());
        let mut proved = Proved::default();
        let mut finished = vec![false; objects.len()];
        let ended = see_to_page(tender, orders, objects, self, &mut proved, &mut finished).await;
        if let Err(interruption) = ended {
            // The page is not done, so no record covers what was written of it.
            self.proved.extend(proved);
            places.truncate(finished.iter().take_while(|finished| **finished).count());
            self.reached = places.pop().or(self.upto.take()).filter(|_| in_order);
            return Err(interruption);
        }
        self.upto = places.into_iter().next_back().filter(|_| in_order);
        self.reached.clone_from(&self.upto);
        self.after = next;
        Ok(self.after.is_some())
    }
}

/// The numbers of a sweep that is under way.
pub(in crate::controller) fn look_at(tally: &Mutex<Tally>) -> MutexGuard<'_, Tally> {
    // Counting does not panic half way; and numbers that may be off by one are better than none.
    tally.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where an object stands.
pub(in crate::controller) fn place(object: &Object) -> Place {
    format!("{}/{}", object.namespace().unwrap_or_default(), object.name())
}

/// Sees to the objects of a page; `finished` tells to which of them, whatever comes of it.
///
/// When it is stopped, what is under way is finished, and nothing else is begun.
async fn see_to_page(
    tender: Tender<'_>,
    orders: Orders<'_>,
    objects: Vec<Object>,
    sweep: &mut Sweep,
    proved: &mut Proved,
    finished: &mut [bool],
) -> Result<(), Interruption> {
    let mut queue = objects.into_iter().enumerate();
    let mut under_way = FuturesUnordered::new();
    let mut stopped = None;
    loop {
        while stopped.is_none()
            && under_way.len() < AT_ONCE
            && let Some((index, object)) = queue.next()
        {
            finished[index] = true;
            if is_left_out(&object, orders.after) {
                look_at(orders.tally).leave_out();
                continue;
            }
            if let Some((is_held, earlier)) = orders.is_left(&object) {
                sweep.left.insert(is_held, object.uid(), object.resource_version());
                look_at(orders.tally).carry(object.identity(), earlier, is_held);
                continue;
            }
            if orders.proved.contains(&object) {
                look_at(orders.tally).add(object.identity(), Fate::Stored, &[]);
                continue;
            }
            finished[index] = false;
            under_way.push(async move {
                let identity = object.identity();
                let resource_version = object.resource_version().to_owned();
                let record = orders.record_of(&object);
                (index, identity, resource_version, tender.tend(object, record).await)
            });
        }
        let Some((index, identity, seen, tended)) = under_way.next().await else {
            return stopped.map_or(Ok(()), |stop: Stop| Err(stop.into()));
        };
        let tended = match tended {
            // Nothing more begins, and what has begun comes to its end.
            Err(stop @ (Stop::Pause | Stop::Ended)) => {
                stopped = Some(stop);
                continue;
            }
            tended => tended?,
        };
        finished[index] = true;
        tender.cluster.metrics().object(tended.fate.outcome());
        let needed_none =
            matches!(tended.fate, Fate::Stored | Fate::Skipped(_) | Fate::Gone | Fate::Held(..) | Fate::Due);
        if !needed_none {
            sweep.asked += 1;
        }
        match &tended.fate {
            Fate::Written(resource_version) if orders.record.versions_disagree => {
                sweep.proved.insert(&identity.uid, resource_version);
            }
            Fate::Written(resource_version) => proved.insert(&identity.uid, resource_version),
            Fate::AlreadyStored => proved.insert(&identity.uid, &seen),
            Fate::Held(..) => sweep.left.insert(true, &identity.uid, &seen),
            Fate::Rejected(_) => sweep.left.insert(false, &identity.uid, &seen),
            _ => {}
        }
        let rejected = {
            let mut tally = look_at(orders.tally);
            tally.add(identity, tended.fate, &tended.missing);
            tally.counts().rejected
        };
        if orders.stop_after_rejected.is_some_and(|limit| rejected >= u64::from(limit)) {
            return Err(Interruption::TooManyRejected(rejected));
        }
    }
}
