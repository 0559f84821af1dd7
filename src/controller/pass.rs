//! One sweep over all objects of a CRD.
//! It must not remember more than the tally does, nor say that anything is proved that was not.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use futures::StreamExt;
use futures::stream::FuturesUnordered;

use super::tally::{Fate, Tally};
use super::tend::{Stop, Tender};
use crate::cluster::{CallError, Page};
use crate::domain::object::Object;
use crate::domain::plan::Record;

/// Objects seen to at once in one pass; how many of them write at once is for the shared pace to say.
const AT_ONCE: usize = 64;

/// A list of all objects, page by page, and what became of them.
#[derive(Debug, Default)]
pub(super) struct Sweep {
    /// What became of the objects.
    pub(super) tally: Tally,
    /// The resource version at which the sweep began: all that is older was seen to.
    pub(super) through: Option<u64>,
    /// The resource version from which a watch misses nothing: that of the first page.
    pub(super) watch_from: String,
    /// Objects that this sweep wrote and proved, as they were left; hashes, since there may be many.
    pub(super) proved: Proved,
    /// How many objects needed a request.
    pub(super) asked: u64,
    /// Where the next page begins.
    after: Option<String>,
}

/// Why a sweep was not completed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Interruption {
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
pub(super) struct Proved(HashSet<u64>);

/// What a sweep goes by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Orders<'a> {
    /// What is on record.
    pub(super) record: &'a Record,
    /// States that were proved since.
    pub(super) proved: &'a Proved,
    /// What an earlier sweep found: objects in trouble then are not tried again.
    pub(super) known: Option<&'a Tally>,
    /// Rejections after which the sweep stops.
    pub(super) stop_after_rejected: Option<u32>,
}

impl Proved {
    /// Remembers an object's state.
    pub(super) fn insert(&mut self, uid: &str, resource_version: &str) {
        self.0.insert(Self::hash(uid, resource_version));
    }

    /// Whether an object's state is known.
    pub(super) fn contains(&self, object: &Object) -> bool {
        self.0.contains(&Self::hash(object.uid(), object.resource_version()))
    }

    /// Takes an object's state out; whether it was known.
    pub(super) fn take(&mut self, object: &Object) -> bool {
        self.0.remove(&Self::hash(object.uid(), object.resource_version()))
    }

    /// Adds what another sweep proved.
    pub(super) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    fn hash(uid: &str, resource_version: &str) -> u64 {
        let mut hasher = DefaultHasher::new();
        (uid, resource_version).hash(&mut hasher);
        hasher.finish()
    }
}

impl Sweep {
    /// Reads one more page and sees to each of its objects; whether there are more.
    ///
    /// # Errors
    /// See [`Interruption`]; what was done until then is done, and counted.
    pub(super) async fn page(
        &mut self,
        tender: Tender<'_>,
        orders: Orders<'_>,
    ) -> Result<bool, Interruption> {
        let resource = tender.crd.resource();
        let Page { objects, resource_version, next } =
            tender.cluster.page(&resource, self.after.as_deref()).await?;
        if self.after.is_none() {
            self.through = resource_version.parse().ok();
            self.watch_from = resource_version;
        }
        see_to_page(tender, orders, objects, self).await?;
        self.after = next;
        Ok(self.after.is_some())
    }
}

async fn see_to_page(
    tender: Tender<'_>,
    orders: Orders<'_>,
    objects: Vec<Object>,
    sweep: &mut Sweep,
) -> Result<(), Interruption> {
    let mut queue = objects.into_iter();
    let mut under_way = FuturesUnordered::new();
    loop {
        while under_way.len() < AT_ONCE
            && let Some(object) = queue.next()
        {
            let troubled = orders.known.is_some_and(|known| known.is_troubled(&object.identity()));
            if troubled || orders.proved.contains(&object) {
                sweep.tally.add(object.identity(), Fate::Stored, &[]);
                continue;
            }
            under_way.push(async move {
                let identity = object.identity();
                (identity, tender.tend(object, orders.record).await)
            });
        }
        let Some((identity, tended)) = under_way.next().await else { return Ok(()) };
        let tended = tended?;
        tender.cluster.metrics().object(tended.fate.outcome());
        if !matches!(tended.fate, Fate::Stored | Fate::Skipped | Fate::Held(..)) {
            sweep.asked += 1;
        }
        if let Fate::Written(resource_version) = &tended.fate
            && orders.record.versions_disagree
        {
            sweep.proved.insert(&identity.uid, resource_version);
        }
        sweep.tally.add(identity, tended.fate, &tended.missing);
        let rejected = sweep.tally.counts().rejected;
        if orders.stop_after_rejected.is_some_and(|limit| rejected >= u64::from(limit)) {
            return Err(Interruption::TooManyRejected(rejected));
        }
    }
}
