//! The decision and strategy table.
//! It does not guess: what the read view cannot show becomes a write that is harmless if nothing was missing.

use super::places::{filled, gaps, has_gap};
use super::{
    Body, Held, HiddenFields, Hold, Ownership, Plan, Proof, Record, Strategy, Terms, Write, body, breach,
    misfit, owned_apply, rewrite, still_hidden,
};
use crate::crd::Crd;
use crate::object::Object;
use crate::ownership::{MANAGER, Owner, are_readable, is_applied_by_etch, owners};
use kube_structural_schema::json::Json;
use kube_structural_schema::path::Path;

/// Decides about one object of a CRD that gives defaults, or whose objects are moved to its storage version.
///
/// Rows of the table, in order; the first that holds decides:
/// 1. not selected, terminating, ignored or nested too deeply: skip;
/// 2. the record covers it, it shows every default, and its owners may stay as they are: stored;
/// 3. no place of it takes a default, its owners may stay as they are, and it is not stored at an old
///    version: stored;
/// 4. it may have fields that only etcd still holds, and they are not known to be gone: hold, unless the
///    policy drops them;
/// 5. a default that it would get is itself invalid: hold, for that may be why it does not fit;
/// 6. it does not fit the storage version by type: hold;
/// 7. the defaults that it would get make it invalid, and it is valid without them: hold;
/// 8. it has no owners at all: merge patch;
/// 9. an owner speaks in the terms of a version that lacks the default or is gone, or its owners may not stay
///    as they are: rewrite the owners;
/// 10. otherwise: apply.
///
/// Owners may not stay as they are where we own what we should not, and where one's version is served no more
/// and the policy has that repaired.
///
/// An owner of the value does not prove that etcd has it: a claim outlives its field, and covers a default
/// that a later schema gives in its place.
pub fn decide(object: &Object, crd: &Crd, terms: &Terms, record: &Record) -> Plan {
    if let Some(why) = terms.skip(object) {
        return Plan::Skip(why);
    }
    let owners_change = must_owners_change(object, crd, terms);
    let mut missing = gaps(object, crd);
    let covered = record.covers(object, crd);
    if missing.is_empty()
        && !owners_change
        && let Some(proof) = covered
    {
        return Plan::Stored(proof);
    }
    let gaps = missing.len();
    missing.extend(filled(object, crd));
    if missing.is_empty() && !owners_change && !may_be_stored_elsewhere(object, crd, terms, record) {
        return Plan::Stored(Proof::NothingToFill);
    }
    if terms.hidden_fields == HiddenFields::Hold {
        let paths = still_hidden(object, crd, record);
        if !paths.is_empty() {
            return Plan::Hold(Held::new(Hold::HiddenFields, paths));
        }
    }
    let paths = invalid(&missing, crd);
    if !paths.is_empty() {
        return Plan::Hold(held_for_invalid(paths, object, crd, &missing));
    }
    let paths = misfit::misfits(object.json(), &crd.storage().schema);
    if !paths.is_empty() {
        return Plan::Hold(Held::new(Hold::Misfit, paths));
    }
    // What the record covers is stored, and leaving the object alone would not repair it.
    let unproved = if covered.is_some() { &missing[..gaps] } else { &missing[..] };
    if let Some(breach::Breach { paths, broken }) = breach::breach(object.json(), crd, unproved) {
        return Plan::Hold(Held { reason: Hold::InvalidDefaults, paths, broken });
    }
    // Where the server cannot read the owners, it refuses an apply, and forgets all of them with a patch
    // (fact W31).
    let must_rewrite =
        are_readable(object.json()) && (owners_change || rewrite::is_needed(object, crd, missing.iter()));
    Plan::Write(match (owners(object).next(), must_rewrite) {
        (None, _) => merge(object, record, missing),
        (_, true) => rewrite(object, crd, terms, missing),
        (_, false) => apply(object, crd, terms, record, missing),
    })
}

/// Whether the owners of an object may not stay as they are.
fn must_owners_change(object: &Object, crd: &Crd, terms: &Terms) -> bool {
    let are_ours = |owner: Owner<'_>| terms.ownership == Ownership::None && owner.manager == MANAGER;
    let repairs = terms.repairs && are_readable(object.json());
    owners(object).any(are_ours) || repairs && rewrite::is_outdated(object, crd)
}

/// Whether an apply could take away what others have set, so that it is tried in a dry run first: where Etch
/// owns fields already, the server looks for what it gives up, and converts the object to the versions of all
/// owners and back. A webhook may drop fields on the way.
///
/// Source: structured-merge-diff v6 `merge/update.go`, `prune`.
pub(super) fn apply_may_lose_fields(object: &Object, crd: &Crd, terms: &Terms) -> bool {
    terms.ownership == Ownership::Own
        && owners(object).any(|owner| is_applied_by_etch(&owner))
        && owners(object).any(|owner| !crd.names_fields_alike(owner.version()))
}

/// Whether an object that the record does not cover, and that no default is missing in, is to be written all
/// the same: stored at an old version, it is read with that version's defaults (fact R2), and nothing is
/// proved until it is stored at the storage version. A storage version without defaults has nothing to prove,
/// unless its objects are moved there.
///
/// A pass has moved every object that it selected, but its exceptions, to the storage version, and so does
/// each write after it, unless a server that lags behind still stores at another one.
fn may_be_stored_elsewhere(object: &Object, crd: &Crd, terms: &Terms, record: &Record) -> bool {
    let was_moved = record.through.is_some()
        && !record.storage_changed
        && !record.servers_lag
        && !record.exceptions.contains(object.uid())
        && record.selection.selects(object);
    let matters = crd.gives_defaults() || terms.moves;
    let may_be = crd.stored_elsewhere() || terms.doubts_stored_versions;
    matters && may_be && !was_moved
}

/// A write of the owners, where an apply of `refused` could not be carried out in their terms, or after one
/// that was.
pub fn rewritten(object: &Object, crd: &Crd, terms: &Terms, refused: &Write) -> Write {
    rewrite(object, crd, terms, refused.missing.clone())
}

/// The identity alone, to be applied before a rewrite: stored at S first, the object keeps its generation,
/// and no default becomes ours. `None` if it is stored at S already, as far as the read view shows; and if we
/// own fields by an apply, for one that leaves them out gives them up, and the server removes what no manager
/// owns.
pub fn ahead_of_rewrite(object: &Object, crd: &Crd) -> Option<Json> {
    let owns = owners(object).any(|owner| is_applied_by_etch(&owner));
    (!owns && has_gap(object, crd)).then(|| body::identity(object, crd))
}

/// The missing places whose default is invalid, with those below it.
fn invalid(missing: &[Path], crd: &Crd) -> Vec<Path> {
    if crd.invalid_defaults().is_empty() {
        return Vec::new();
    }
    missing.iter().filter(|path| crd.gives_invalid_default(&path.to_schema())).cloned().collect()
}

/// The hold for invalid defaults, with what the object would break if its schema has rules for objects.
fn held_for_invalid(mut paths: Vec<Path>, object: &Object, crd: &Crd, missing: &[Path]) -> Held {
    let breach::Breach { paths: breaking, broken } =
        breach::breach(object.json(), crd, missing).unwrap_or_default();
    paths.extend(breaking);
    paths.sort();
    paths.dedup();
    Held { reason: Hold::InvalidDefaults, paths, broken }
}

fn merge(object: &Object, record: &Record, missing: Vec<Path>) -> Write {
    let body = body::merge(object);
    Write { prove: record.versions_disagree, ..Write::new(Strategy::Merge, body, missing) }
}

fn rewrite(object: &Object, crd: &Crd, terms: &Terms, missing: Vec<Path>) -> Write {
    let body = Body::Metadata(rewrite::body(object, crd, terms));
    Write { prove: true, ..Write::new(Strategy::Rewrite, body, missing) }
}

fn apply(object: &Object, crd: &Crd, terms: &Terms, record: &Record, missing: Vec<Path>) -> Write {
    let prove = record.versions_disagree || has_gap(object, crd);
    let body = match terms.ownership {
        Ownership::None => Body::Identity(body::identity(object, crd)),
        Ownership::Own => owned_apply::body(object, crd, missing.iter()),
    };
    Write { prove, ..Write::new(Strategy::Apply, body, missing) }
}
