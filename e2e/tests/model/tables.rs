//! Values by small numbers, and answers of pure functions by what they were asked: states stay small, and
//! nothing is worked out twice. It must not be given a function that looks at anything but its key.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, PoisonError, RwLock};

/// The number of a value.
pub(crate) type Id = u32;

/// Values, each with a number of its own.
pub(crate) struct Table<T>(RwLock<Known<T>>);

/// The numbers by their values, and the values by their numbers.
struct Known<T> {
    ids: HashMap<Arc<T>, Id>,
    values: Vec<Arc<T>>,
}

/// What a function came to.
pub(crate) struct Memo<K, V>(RwLock<HashMap<K, V>>);

impl<T: Eq + Hash> Table<T> {
    pub(crate) fn id(&self, value: T) -> Id {
        if let Some(id) = self.0.read().unwrap_or_else(PoisonError::into_inner).ids.get(&value) {
            return *id;
        }
        let mut inner = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(id) = inner.ids.get(&value) {
            return *id;
        }
        let (value, id) =
            (Arc::new(value), Id::try_from(inner.values.len()).expect("so many do not fit into memory"));
        inner.ids.insert(value.clone(), id);
        inner.values.push(value);
        id
    }

    pub(crate) fn get(&self, id: Id) -> Arc<T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).values[id as usize].clone()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.read().unwrap_or_else(PoisonError::into_inner).values.len()
    }
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self(RwLock::new(Known { ids: HashMap::new(), values: Vec::new() }))
    }
}

impl<K: Eq + Hash, V: Clone> Memo<K, V> {
    pub(crate) fn of(&self, key: K, work: impl FnOnce(&K) -> V) -> V {
        if let Some(known) = self.0.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return known.clone();
        }
        let value = work(&key);
        self.0.write().unwrap_or_else(PoisonError::into_inner).entry(key).or_insert(value).clone()
    }
}

impl<K, V> Default for Memo<K, V> {
    fn default() -> Self {
        Self(RwLock::default())
    }
}
