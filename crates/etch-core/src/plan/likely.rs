//! What a write would probably store, from the evidence that an object and its history give. It is not proof:
//! only a write shows what etcd holds.

use std::collections::{BTreeMap, HashSet};

use super::owned_apply::Ownable;
use super::places::gaps;
use super::{Body, Ownership, Strategy, Terms, Write, last_write_stores};
use crate::crd::Crd;
use crate::object::Object;
use crate::ownership::{is_applied_by_etch, is_covered, owners};
use kube_structural_schema::path::Path;

/// The resource version from which on a default has been in the schema, by its place there: an object that
/// was written later holds it.
pub type Since = BTreeMap<String, u64>;

/// What a write would probably do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Likely {
    /// Whether it would change what etcd holds.
    pub changes: bool,
    /// The places whose default etcd probably lacks, in the object's own terms.
    pub missing: Vec<Path>,
}

/// What this write would probably do: for an audit, which does not write to find out, and to count what was
/// missing.
///
/// A default counts as stored if an owner names it, or if the object was last written after the schema had
/// it, by a write that stores it: see [`last_write_stores`]. Where versions disagree, a write through another
/// one may have dropped it again (fact W10), so this requires an object without an owner at another version.
pub fn likely(object: &Object, crd: &Crd, terms: &Terms, write: &Write, since: &Since) -> Likely {
    let gaps: HashSet<Path> = gaps(object, crd).into_iter().collect();
    let claimed = claimed(object, crd, terms, write);
    let is_missing = |path: &&Path| {
        claimed.contains(*path) || gaps.contains(*path) || !is_stored(object, crd, path, since)
    };
    let missing: Vec<Path> = write.missing.iter().filter(is_missing).cloned().collect();
    let storage = &crd.storage().name;
    let elsewhere = crd.stored_elsewhere() && !owners(object).any(|owner| owner.version() == storage);
    let changes = !missing.is_empty() || elsewhere || write.strategy == Strategy::Rewrite;
    Likely { changes, missing }
}

/// Whether this write changes what etcd holds for certain, as far as the owners show it: it rewrites them, or
/// makes `etch` own a default that it does not own yet.
pub fn changes_owners(object: &Object, crd: &Crd, terms: &Terms, write: &Write) -> bool {
    let claims = || matches!(write.body, Body::Values(_)) && !claimed(object, crd, terms, write).is_empty();
    write.strategy == Strategy::Rewrite || claims()
}

/// The places that Etch does not own yet and will: with `ownership: Own` a write claims the defaults that
/// has no owner, whatever etcd holds.
fn claimed(object: &Object, crd: &Crd, terms: &Terms, write: &Write) -> HashSet<Path> {
    if terms.ownership != Ownership::Own {
        return HashSet::new();
    }
    let mut filled = object.json().clone();
    crd.compiled().fill(&mut filled);
    let mut ownable = Ownable::of(object, crd, &filled);
    let is_new = |path: &&Path| !is_ours(object, crd, path) && ownable.has(path);
    write.missing.iter().filter(is_new).cloned().collect()
}

/// Whether a place that shows its default probably does so from etcd.
fn is_stored(object: &Object, crd: &Crd, path: &Path, since: &Since) -> bool {
    let alike = owners(object).filter(|owner| crd.names_fields_alike(owner.version()));
    if is_covered(alike, object.json(), &crd.storage().schema, path.steps()) {
        return true;
    }
    let is_later = |since: &u64| object.revision().is_some_and(|revision| revision > *since);
    let storage = &crd.storage().name;
    since.get(&path.to_schema().to_string()).is_some_and(is_later)
        && (!crd.versions_disagree() || owners(object).all(|owner| owner.version() == storage))
        && last_write_stores(object, crd, crd.creates_drop_status()).of_place(path).is_some()
}

fn is_ours(object: &Object, crd: &Crd, path: &Path) -> bool {
    let ours = owners(object).filter(is_applied_by_etch);
    is_covered(ours, object.json(), &crd.storage().schema, path.steps())
}
