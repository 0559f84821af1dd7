//! How many objects a line is about, and the first of them by name.

use crate::object::Object;
use crate::words::first;

/// How many objects, or places in a schema, a line names.
pub(super) const NAMED: usize = 3;

/// So many objects.
#[derive(Debug, Default)]
pub(super) struct NamedObjects {
    pub(super) objects: u64,
    first: Vec<String>,
}

impl NamedObjects {
    pub(super) fn add(&mut self, object: &Object) {
        self.objects += 1;
        if self.first.len() < NAMED {
            self.first.push(object.identity().to_string());
        }
    }

    /// The first of them, and how many more there are.
    pub(super) fn listed(&self) -> String {
        listed(&self.first, self.objects)
    }
}

/// The first names of so many.
pub(super) fn listed(names: &[String], all: u64) -> String {
    first(names, all, NAMED)
}
