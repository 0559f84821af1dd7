//! Who owns what in an object: `kube_managed_fields`, over objects as they were read, and Etch's part in it.
//! It must not decide what to do about it.

use serde_json::Value;

pub use kube_managed_fields::*;

use super::object::Object;

/// Etch's field manager.
pub const MANAGER: &str = "etch";

/// The owners of an object, in the order of its `managedFields`.
pub fn owners(object: &Object) -> impl Iterator<Item = Owner<'_>> + Clone {
    let entries = object.json().get("metadata").and_then(|metadata| metadata.get("managedFields"));
    entries.and_then(Value::as_array).into_iter().flatten().map(Owner::from_entry)
}

/// The owners of `before` that `after` no longer names, by manager, operation and subresource; ours do not count.
///
/// A write of Etch must never produce any: the server forgets owners when it cannot build the typed object (fact W16).
pub fn lost<'a>(before: &'a Object, after: &'a Object) -> impl Iterator<Item = Owner<'a>> {
    owners(before)
        .filter(|owner| owner.manager != MANAGER && !owner.names_nothing())
        .filter(|owner| !owners(after).any(|other| owner.is_same_writer(&other)))
}

#[cfg(test)]
mod tests;
