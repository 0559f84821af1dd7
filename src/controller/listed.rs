//! Objects by name, from a feed that lists and then watches.
//! It must not know what they are.

use std::collections::BTreeMap;

/// Objects by name, complete or about to be.
pub(super) struct Listed<T> {
    pub(super) items: BTreeMap<String, T>,
    /// The names seen by a list that is under way.
    relisted: Option<Vec<String>>,
    complete: bool,
}

impl<T> Default for Listed<T> {
    fn default() -> Self {
        Self { items: BTreeMap::new(), relisted: None, complete: false }
    }
}

impl<T> Listed<T> {
    /// Says that a list begins.
    pub(super) fn listing(&mut self) {
        self.relisted = Some(Vec::new());
    }

    /// Whether a list is under way.
    pub(super) fn is_listing(&self) -> bool {
        self.relisted.is_some()
    }

    /// Whether a list has ever been complete.
    pub(super) fn is_complete(&self) -> bool {
        self.complete
    }

    /// Takes an object in.
    pub(super) fn insert(&mut self, name: &str, item: T) {
        self.seen(name);
        self.items.insert(name.to_owned(), item);
    }

    /// Says that an object is there still, as it was.
    pub(super) fn seen(&mut self, name: &str) {
        if let Some(relisted) = &mut self.relisted {
            relisted.push(name.to_owned());
        }
    }

    /// Says that the list is complete: what it did not name is gone.
    pub(super) fn listed(&mut self) {
        if let Some(mut names) = self.relisted.take() {
            names.sort();
            self.items.retain(|name, _| names.binary_search(name).is_ok());
        }
        self.complete = true;
    }
}
