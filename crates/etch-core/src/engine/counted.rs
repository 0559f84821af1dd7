//! Which objects a list showed whose pages have different resource versions: after an expired token a list
//! continues at a later one, and each namespace has its own.
//!
//! A watch from the first page brings once more what the later pages showed, and what they did not show any
//! more.

use std::collections::BTreeSet;

use crate::bloom_filter::hash;
use crate::object::Object;

/// The objects of a list that was read from its first page to its last.
#[derive(Clone, Debug, Default)]
pub struct CountedObjects {
    /// Hashes of their uids.
    uids: BTreeSet<u64>,
    first: Option<u64>,
    last: Option<u64>,
}

impl CountedObjects {
    /// Records the resource version of the next page, or of one of the lists that it took.
    pub(super) fn page(&mut self, resource_version: Option<u64>) {
        self.first = self.first.or(resource_version);
        self.last = self.last.max(resource_version);
    }

    /// Handles an object that is counted.
    pub(super) fn add(&mut self, uid: &str) {
        self.uids.insert(hash(uid));
    }

    /// What a watch needs of it: nothing, where all pages were of one moment.
    pub(super) fn for_watch(self) -> Self {
        if self.first == self.last { Self::default() } else { self }
    }

    /// Whether an object that the watch brings as created was counted before; it is from now on.
    pub(super) fn has_created(&mut self, object: &Object) -> bool {
        self.is_within(object) && !self.uids.insert(hash(object.uid()))
    }

    /// Whether an object that was deleted had gone before the list came to it.
    pub(super) fn never_had(&self, object: &Object) -> bool {
        self.is_within(object) && !self.uids.contains(&hash(object.uid()))
    }

    /// Forgets the objects once the watch has brought everything that the last page could show.
    pub(super) fn delivered(&mut self, through: Option<u64>) {
        if through >= self.last && self.last.is_some() {
            *self = Self::default();
        }
    }

    fn is_within(&self, object: &Object) -> bool {
        self.last.is_some() && object.revision() <= self.last
    }
}
