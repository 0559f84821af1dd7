//! The part of a schema that filling can touch: defaults, and the way to them.
//! It leaves out types and restrictions: filling depends on the shape of the value alone.

use crate::json::Json;
use crate::path::{Trail, TrailStep};

/// A place at which a default stands, or that leads to one.
#[derive(Debug, Default)]
pub(crate) struct Node {
    /// The default, pruned; never `null`. Of an item or a map's value it replaces nulls only, elsewhere
    /// absence as well.
    pub(crate) default: Option<Json>,
    /// Whether a `null` counts as a value.
    pub(crate) nullable: bool,
    /// Below an object, sorted by name. Beside [`Self::values`] this holds every declared property, for these
    /// are not among the others.
    pub(crate) properties: Box<[(Box<str>, Node)]>,
    /// Below an array.
    pub(crate) items: Option<Box<Node>>,
    /// Below an object, for every property that is not in [`Self::properties`].
    pub(crate) values: Option<Box<Node>>,
}

impl Node {
    /// Whether there is nothing to do here and below.
    pub(crate) fn is_idle(&self) -> bool {
        self.default.is_none() && self.is_leaf()
    }

    /// Whether there is nothing to do below.
    pub(crate) fn is_leaf(&self) -> bool {
        self.properties.is_empty() && self.items.is_none() && self.values.is_none()
    }

    /// The default that stands in for a null.
    pub(crate) fn instead_of_null(&self) -> Option<&Json> {
        self.default.as_ref().filter(|_| !self.nullable)
    }

    /// The node of an object's property.
    pub(crate) fn child(&self, key: &str) -> Option<&Self> {
        self.property(key).or(self.values.as_deref())
    }

    /// The node of a property that is in [`Self::properties`].
    pub(crate) fn property(&self, key: &str) -> Option<&Self> {
        let index = self.properties.binary_search_by(|(name, _)| name.as_ref().cmp(key)).ok()?;
        Some(&self.properties[index].1)
    }

    /// Visits all nodes with a default here and below, in the order of their schema paths.
    pub(crate) fn each_default<'a>(&'a self, at: &Trail<'_>, visit: &mut impl FnMut(&Trail<'_>, &'a Self)) {
        if self.default.is_some() {
            visit(at, self);
        }
        for (name, property) in &self.properties {
            property.each_default(&at.join(TrailStep::Field(name)), visit);
        }
        if let Some(items) = &self.items {
            items.each_default(&at.join(TrailStep::Items), visit);
        }
        if let Some(values) = &self.values {
            values.each_default(&at.join(TrailStep::Values), visit);
        }
    }
}
