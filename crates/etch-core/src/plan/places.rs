//! The places of an object whose default etcd lacks or may lack, by its read view.

use std::collections::HashSet;

use serde_json::Value;

use super::room::{ROOM, Room, size};
use super::{Skip, Terms};
use crate::crd::Crd;
use crate::object::{IgnoreRequest, Object};
use crate::ownership::{Claims, owners};
use kube_structural_schema::path::{Path, Trail};

/// Places of one object. Once there is no room for more, only the first one of each place in the schema is
/// added: what decides by them decides by where they are in the schema.
#[derive(Debug)]
pub(super) struct Places {
    pub(super) paths: Vec<Path>,
    room: Room,
    /// The places in the schema of all so far; empty while there is room.
    known: HashSet<Path>,
}

impl Default for Places {
    fn default() -> Self {
        Self { paths: Vec::new(), room: Room::of(ROOM), known: HashSet::new() }
    }
}

impl Places {
    pub(super) fn add(&mut self, trail: &Trail<'_>) {
        let path = trail.to_path();
        if self.room.take(size(&path)) {
            self.paths.push(path);
            return;
        }
        if self.known.is_empty() {
            self.known = self.paths.iter().map(Path::to_schema).collect();
        }
        if self.known.insert(path.to_schema()) {
            self.paths.push(path);
        }
    }
}

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
    let mut places = Places::default();
    for (_, compiled) in crd.defaults_elsewhere() {
        compiled.filled(object.json(), &mut |trail: &Trail<'_>, _: &Value| places.add(trail));
    }
    places.paths
}

/// Whether the read view lacks a default: the object is stored at a version without it (fact R2), or the
/// answering server does not serve the schema yet (fact R6).
pub fn has_gap(object: &Object, crd: &Crd) -> bool {
    !gaps(object, crd).is_empty()
}

/// The defaults that even the read view lacks: the object is stored at a version without them (fact R2).
pub(super) fn gaps(object: &Object, crd: &Crd) -> Vec<Path> {
    let mut places = Places::default();
    crd.compiled().gaps(object.json(), &mut |trail: &Trail<'_>, _: &Value| places.add(trail));
    places.paths
}

/// The places that show what their default would give: only a write shows whether etcd has them.
pub(super) fn filled(object: &Object, crd: &Crd) -> Vec<Path> {
    let mut places = Places::default();
    crd.compiled().filled(object.json(), &mut |trail: &Trail<'_>, _: &Value| places.add(trail));
    places.paths
}

/// Calls `found` with each of these places that no owner names as a whole, in order.
pub(super) fn each_unclaimed(object: &Object, crd: &Crd, mut found: impl FnMut(&Trail<'_>)) {
    let schema = &crd.storage().schema;
    let speaking = owners(object).filter(|owner| crd.names_fields_alike(owner.version()));
    let mut claims = Claims::default();
    crd.compiled().filled(object.json(), &mut |trail: &Trail<'_>, _: &Value| {
        if !claims.cover(speaking.clone(), object.json(), schema, trail) {
            found(trail);
        }
    });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::crd::sample::{things, with_spec};

    #[test]
    fn of_more_places_than_there_is_room_for_each_place_of_the_schema_is_known() {
        let size = json!({ "type": "integer", "default": 5 });
        let items = json!({ "type": "array", "items": { "type": "object", "properties": { "size": size } } });
        let crd = things(with_spec(json!({ "items": items, "last": { "type": "string", "default": "z" } })));
        for (count, is_whole) in [(100, true), (100_000, false)] {
            let items: Vec<_> = (0..count).map(|_| json!({})).collect();
            let object = Object::from(json!({ "metadata": { "name": "a" }, "spec": { "items": items } }));
            let found = gaps(&object, &crd);
            assert_eq!(found.len() == count + 1, is_whole, "{}", found.len());
            assert_eq!(found.last().map(ToString::to_string).as_deref(), Some(".spec.last"));
            let taken: usize = found.iter().map(super::size).sum();
            assert!(taken < ROOM + 1000, "{taken}");
        }
    }
}
