//! ETCH309 and ETCH322: types of lists and maps, and the keys of lists.

use serde_json::Value;

use super::keywords::{list, present, text};
use super::pair::{Changes, Pair};
use super::reads::Reads;
use super::required::default;
use crate::rule::{Rule, Severity};
use crate::site::shown;
use kube_structural_schema::json::same;
use kube_structural_schema::path::Path;

pub(super) const NARROWED: Rule = Rule {
    code: "ETCH309",
    name: "list-type-narrowed",
    severity: Severity::Error,
    summary: "an upgrade makes a list a set or a map, replaces or removes one of its keys, or changes a \
        default that tells items apart",
    help: "\
Items of a set, and keys of a list of type map, must be unique, and each item must have its keys. With another
default of a key, or in the items of a set, an item becomes another one, which may be there already. An object
whose list was valid before may be invalid: the API server refuses to create it again, though it accepts
updates of it, even of the list. Server-side apply cannot read such a list, and forgets who owns the fields of
the object.",
    check: None,
};

pub(super) const MERGE: Rule = Rule {
    code: "ETCH322",
    name: "merge-changed",
    severity: Severity::Warning,
    summary: "an upgrade changes how server-side apply merges a list or an object",
    help: "\
Objects that were valid stay valid. A list of type atomic, and an object of type atomic, belong to one manager
as a whole: appliers who used to share them now replace each other's items or get conflicts. In the other
direction, an applier who removes an item does not remove it from the object until it owns the item. The same
holds for a list with a further key: an owner by the old keys owns the item again with its next apply.",
    check: None,
};

pub(super) fn check(pair: &Pair<'_>, changes: &mut Changes) {
    let (old, new) = (list_type(pair.old), list_type(pair.new));
    let keys = |schema| list(schema, "x-kubernetes-list-map-keys");
    match (old, new) {
        _ if text(pair.old, "type") != text(pair.new, "type") => {}
        ("map", "map") if !same_keys(keys(pair.old), keys(pair.new)) => {
            let names = |keys: &[Value]| keys.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ");
            let (old, new) = (names(keys(pair.old)), names(keys(pair.new)));
            let message = format!("the keys of the list were {old} and are {new}");
            // Items that differ in fewer keys differ in more; a key that an item lacks is a required field.
            let has_more = keys(pair.old).iter().all(|key| keys(pair.new).contains(key));
            changes.add(if has_more { &MERGE } else { &NARROWED }, pair.path.clone(), message);
        }
        (old, new) if old == new => {}
        (old, new @ ("set" | "map")) => {
            changes.add(
                &NARROWED,
                pair.path.clone(),
                format!("the list was of type {old} and is of type {new}"),
            );
        }
        (old, new) => {
            changes.add(
                &MERGE,
                pair.path.clone(),
                format!("the list was of type {old} and is of type {new}"),
            );
        }
    }
    let (old, new) = (map_type(pair.old), map_type(pair.new));
    if old != new {
        changes.add(&MERGE, pair.path.clone(), format!("the object was {old} and is {new}"));
    }
}

/// Sets whose items a read makes the same, though they were not.
pub(super) fn items_read_otherwise(pair: &Pair<'_>, changes: &mut Changes) {
    let are_sets = [pair.old, pair.new].map(|schema| list_type(schema) == "set") == [true; 2];
    if are_sets && Reads::of(pair).differ_in(&Path::root()) {
        let message = "defaults or nulls in the items have changed, so two of them may be the same now";
        changes.add(&NARROWED, pair.path.clone(), message);
    }
}

/// Keys whose default is another. An object that was written at another version holds the one of that
/// version.
pub(super) fn key_default_changed(pair: &Pair<'_>, changes: &mut Changes) {
    let (Some(old), Some(new)) = (present(pair.old, "items"), present(pair.new, "items")) else { return };
    if list_type(pair.old) != "map" || list_type(pair.new) != "map" {
        return;
    }
    for key in list(pair.new, "x-kubernetes-list-map-keys").iter().filter_map(Value::as_str) {
        if let (Some(old), Some(new)) = (default(old, key), default(new, key))
            && !same(old, new)
        {
            let message = format!("the default of the key {key} was {} and is {}", shown(old), shown(new));
            changes.add(&NARROWED, pair.path.clone(), message);
        }
    }
}

fn list_type(schema: &Value) -> &str {
    match text(schema, "x-kubernetes-list-type") {
        "" => "atomic",
        kind => kind,
    }
}

fn map_type(schema: &Value) -> &str {
    match text(schema, "x-kubernetes-map-type") {
        "" => "granular",
        kind => kind,
    }
}

/// The order of keys does not count.
fn same_keys(old: &[Value], new: &[Value]) -> bool {
    old.iter().all(|key| new.contains(key)) && new.iter().all(|key| old.contains(key))
}
