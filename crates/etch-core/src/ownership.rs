//! The owners of the values in an object: `kube_managed_fields`, over objects as they were read, and Etch's
//! part in it.

use std::collections::HashSet;

pub use kube_managed_fields::{
    ANCIENT_CHANGES, BEFORE_FIRST_APPLY, Claimants, Claims, Items, Owner, are_readable, contains, is_claimed,
    is_covered, is_named, names_known, unite,
};

use super::object::Object;
use kube_structural_schema::schema::Schema;

/// Etch's field manager.
pub const MANAGER: &str = "etch";

/// The owners of an object, in the order of its `managedFields`.
pub fn owners(object: &Object) -> impl Iterator<Item = Owner<'_>> + Clone {
    kube_managed_fields::owners(object.json())
}

/// The owners of an object but for Etch.
pub fn others(object: &Object) -> impl Iterator<Item = Owner<'_>> + Clone {
    owners(object).filter(|owner| owner.manager != MANAGER)
}

/// Whether this is the entry of what Etch has applied to an object or its status.
pub fn is_applied_by_etch(owner: &Owner<'_>) -> bool {
    owner.manager == MANAGER && owner.operation == "Apply"
}

/// The owners of `before` that `after` no longer names, by manager, operation and subresource; Etch's own
/// entries do not count.
///
/// A write of Etch must never produce any: the server forgets owners when it cannot build the typed object
/// (fact W16). It has not forgotten an owner whose fields, as far as the object's schema knows them, it
/// merges into [`ANCIENT_CHANGES`] (fact W20). An owner of nothing but fields that the schema no longer knows
/// has lost nothing by the write.
pub fn lost<'a>(
    before: &'a Object,
    after: &'a Object,
    schema: &'a Schema,
) -> impl Iterator<Item = Owner<'a>> {
    let writers: HashSet<_> = owners(after).map(|owner| owner.writer()).collect();
    others(before)
        .filter(|owner| names_known(owner.fields, schema))
        .filter(move |owner| !writers.contains(&owner.writer()) && !is_gathered(owner, after, schema))
}

/// Whether the server has gathered an entry with others.
fn is_gathered(owner: &Owner<'_>, after: &Object, schema: &Schema) -> bool {
    let has_it = |other: Owner<'_>| {
        other.writer() == (ANCIENT_CHANGES, "Update", "") && contains(other.fields, owner.fields, schema)
    };
    owner.operation == "Update" && owners(after).any(has_it)
}

#[cfg(test)]
mod tests;
