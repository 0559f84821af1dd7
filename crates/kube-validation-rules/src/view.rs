//! Objects and lists of the object that is validated, each beside the node that describes it.
//! `data` reads their values.

use serde_json::{Map, Value as Json};

use super::model::{Node, Shape};

/// An object or map with the node that describes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Object<'v> {
    pub(super) fields: &'v Map<String, Json>,
    pub(super) node: &'v Node,
}

/// A list with the nodes that describe it and its items.
#[derive(Clone, Copy, Debug)]
pub(super) struct Array<'v> {
    pub(super) items: &'v [Json],
    pub(super) kind: ListKind<'v>,
    pub(super) node: &'v Node,
}

/// Whether the order of a list's items counts: `x-kubernetes-list-type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ListKind<'v> {
    /// The order counts.
    #[default]
    Atomic,
    /// It does not.
    Set,
    /// It does not; items are known by these properties, spelled as identifiers.
    Map(&'v [Box<str>]),
}

impl<'v> Object<'v> {
    pub(super) fn len(&self) -> usize {
        self.fields.len()
    }

    /// Whether keys are the names of fields, spelled as identifiers.
    pub(super) fn is_structured(&self) -> bool {
        matches!(&self.node.shape, Shape::Object(fields) if fields.structured)
    }

    /// The node of the value under a key.
    pub(super) fn node_of(&self, key: &str) -> Option<&'v Node> {
        match &self.node.shape {
            Shape::Object(fields) => fields.named.get(key),
            Shape::Map(values) => Some(values),
            Shape::Dynamic => Some(self.node),
            _ => None,
        }
    }
}

impl Array<'_> {
    pub(super) fn len(&self) -> usize {
        self.items.len()
    }
}
