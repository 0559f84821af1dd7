//! Who owns what in an object: `kube_managed_fields`, over objects as they were read, and Etch's part in it.
//! It must not decide what to do about it.

pub use kube_managed_fields::{BEFORE_FIRST_APPLY, Claims, Owner, is_claimed, is_covered, is_named, unite};

use super::object::Object;

/// Etch's field manager.
pub const MANAGER: &str = "etch";

/// The owners of an object, in the order of its `managedFields`.
pub fn owners(object: &Object) -> impl Iterator<Item = Owner<'_>> + Clone {
    kube_managed_fields::owners(object.json())
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
