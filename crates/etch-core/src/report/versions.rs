//! Where objects stand in a list, and which versions of them a sweep has dealt with.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::object::Object;

/// Where an object stands in a list: namespace, a slash, and name, as etcd orders them.
pub type ListKey = String;

/// Which states of which objects are known to be stored, apart from any record.
#[derive(Clone, Debug, Default)]
pub struct ObjectVersions(BTreeSet<u64>);

impl ObjectVersions {
    /// Remembers an object's state.
    pub fn insert(&mut self, uid: &str, resource_version: &str) {
        self.0.insert(Self::hash(uid, resource_version));
    }

    /// Whether an object's state is known.
    pub fn contains(&self, object: &Object) -> bool {
        self.0.contains(&Self::hash(object.uid(), object.resource_version()))
    }

    /// Takes an object's state out; whether it was known.
    pub fn take(&mut self, object: &Object) -> bool {
        self.0.remove(&Self::hash(object.uid(), object.resource_version()))
    }

    /// Adds what another sweep proved.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    fn hash(uid: &str, resource_version: &str) -> u64 {
        let mut hasher = DefaultHasher::new();
        (uid, resource_version).hash(&mut hasher);
        hasher.finish()
    }
}

/// Where an object stands.
pub fn list_key(object: &Object) -> ListKey {
    key(object.namespace().unwrap_or_default(), object.name())
}

/// Where the object of this name stands.
pub fn key(namespace: &str, name: &str) -> ListKey {
    format!("{namespace}/{name}")
}
