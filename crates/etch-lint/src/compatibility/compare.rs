//! What two schemas are compared for.

use serde_json::Value;

use super::pair::{Change, Changes, Check, Pair};
use super::{
    clauses, defaults, enumeration, fields, formats, judged_defaults, limits, lists, nulls, patterns,
    required, types, validations,
};

/// What any two schemas of the same place are compared for.
const CHECKS: [Check; 12] = [
    types::check,
    required::check,
    enumeration::check,
    limits::check,
    patterns::check,
    formats::check,
    validations::check,
    lists::check,
    fields::check,
    nulls::check,
    clauses::check,
    defaults::check,
];

/// What the schemas of one version before and after are compared for as well. An object that was written at
/// another version holds what the defaults there filled in.
const OF_UPGRADES: [Check; 6] = [
    required::default_gone,
    limits::default_gone,
    nulls::refused,
    lists::key_default_changed,
    lists::items_read_otherwise,
    judged_defaults::check,
];

/// Compares the schemas of one version before and after an upgrade.
pub(super) fn upgrade(old: &Value, new: &Value) -> Vec<Change> {
    let mut changes = Changes::checked_by(&OF_UPGRADES);
    Pair::root(old, new).walk(&mut changes);
    let mut found = schemas(old, new);
    let is_known = |change: &Change| {
        found.iter().any(|known| known.rule.code == change.rule.code && known.path == change.path)
    };
    changes.found.retain(|change| !is_known(change));
    found.extend(changes.found);
    found
}

/// Compares any two schemas.
pub(super) fn schemas(old: &Value, new: &Value) -> Vec<Change> {
    let mut changes = Changes::checked_by(&CHECKS);
    Pair::root(old, new).walk(&mut changes);
    fields::removed(old, new, &mut changes);
    changes.found
}
