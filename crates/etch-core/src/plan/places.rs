//! The places of an object whose default etcd lacks, or may lack, as far as a read shows them.

use serde_json::Value;

use super::{Skip, Terms};
use crate::crd::Crd;
use crate::object::{IgnoreRequest, Object};
use crate::ownership::{Claims, owners};
use kube_structural_schema::path::{Path, Trail};

/// Why an object is not to be written whatever a policy allows, by what the object itself shows; `None` if it
/// may be written. See [`Terms::skip`] for what policies select.
pub fn skip(object: &Object) -> Option<Skip> {
    if object.is_terminating() {
        return Some(Skip::Terminating);
    }
    match object.ignore_request() {
        Some(IgnoreRequest::Clear) => Some(Skip::Ignored),
        Some(IgnoreRequest::Unclear) => Some(Skip::IgnoredUnclear),
        None => object.is_too_deep().then_some(Skip::TooDeep),
    }
}

impl Terms {
    /// Why an object is not written under these terms, whatever it lacks; `None` if it may be written.
    pub fn skip(&self, object: &Object) -> Option<Skip> {
        match self.selection.selects(object) {
            true => skip(object),
            false => Some(Skip::NotSelected),
        }
    }
}

/// The places of a skipped object whose default etcd lacks, or may lack: what it shows of them proves
/// nothing.
pub fn unproved(object: &Object, crd: &Crd) -> Vec<Path> {
    if object.is_too_deep() {
        return vec![Path::root()];
    }
    let mut missing = gaps(object, crd);
    missing.extend(filled(object, crd));
    missing.extend(filled_elsewhere(object, crd));
    missing.sort();
    missing.dedup_by(|next, place| place.contains(next));
    if missing.is_empty() && crd.converts_defaults() {
        missing.push(Path::root());
    }
    missing
}

/// The places that show what a default of another version gives, at which the object may be stored; what a
/// webhook makes of such a default nothing shows (see [`Crd::converts_defaults`]).
pub fn filled_elsewhere(object: &Object, crd: &Crd) -> Vec<Path> {
    let mut paths = Vec::new();
    for (_, compiled) in crd.defaults_elsewhere() {
        compiled.filled(object.json(), &mut |trail: &Trail<'_>, _: &Value| paths.push(trail.to_path()));
    }
    paths
}

/// Whether the read view lacks a default: the object is stored at a version without it (fact R2), or the
/// answering server does not serve the schema yet (fact R6).
pub fn has_gap(object: &Object, crd: &Crd) -> bool {
    !gaps(object, crd).is_empty()
}

/// The defaults that even the read view lacks: the object is stored at a version without them (fact R2).
pub(super) fn gaps(object: &Object, crd: &Crd) -> Vec<Path> {
    let mut paths = Vec::new();
    crd.compiled().gaps(object.json(), &mut |trail: &Trail<'_>, _: &Value| paths.push(trail.to_path()));
    paths
}

/// The places that show what their default would give: only a write shows whether etcd has them.
pub(super) fn filled(object: &Object, crd: &Crd) -> Vec<Path> {
    let mut paths = Vec::new();
    crd.compiled().filled(object.json(), &mut |trail: &Trail<'_>, _: &Value| paths.push(trail.to_path()));
    paths
}

/// Of these places, those that no owner names as a whole.
pub(super) fn unclaimed(object: &Object, crd: &Crd) -> Vec<Path> {
    let schema = &crd.storage().schema;
    let speaking = owners(object).filter(|owner| crd.names_fields_alike(owner.version()));
    let (mut claims, mut paths) = (Claims::default(), Vec::new());
    crd.compiled().filled(object.json(), &mut |trail: &Trail<'_>, _: &Value| {
        if !claims.cover(speaking.clone(), object.json(), schema, trail) {
            paths.push(trail.to_path());
        }
    });
    paths
}
