//! The objects that a record does not cover, however many they are. None may be forgotten: an object that is
//! not excepted counts as stored.

use std::collections::HashSet;
use std::sync::Arc;

use crate::bloom_filter::{BloomFilter, hash};

/// Objects that were not processed, by the hashes of their uids; cheap to clone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Exceptions {
    hashes: Arc<HashSet<u64>>,
    /// More of them, as a report keeps them.
    filter: Option<Arc<BloomFilter>>,
}

impl Exceptions {
    /// Those with these hashes of uids.
    pub fn of_hashes(hashes: HashSet<u64>) -> Self {
        Self { hashes: Arc::new(hashes), filter: None }
    }

    /// Those in this set.
    pub fn of_filter(filter: BloomFilter) -> Self {
        Self { hashes: Arc::default(), filter: Some(Arc::new(filter)) }
    }

    /// Whether no object is excepted.
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty() && self.filter.as_ref().is_none_or(|filter| filter.is_empty())
    }

    /// Whether the object of this uid is excepted.
    pub fn contains(&self, uid: &str) -> bool {
        if self.is_empty() {
            return false;
        }
        let hash = hash(uid);
        self.hashes.contains(&hash) || self.filter.as_ref().is_some_and(|filter| filter.contains(hash))
    }
}

impl FromIterator<String> for Exceptions {
    fn from_iter<I: IntoIterator<Item = String>>(uids: I) -> Self {
        Self::of_hashes(uids.into_iter().map(|uid| hash(&uid)).collect())
    }
}
