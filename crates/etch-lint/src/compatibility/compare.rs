//! What two schemas are compared for.

use serde_json::Value;

use super::pair::{Change, Changes, Pair};
use super::{
    clauses, defaults, enumeration, fields, formats, limits, lists, nulls, patterns, required, types,
    validations,
};

/// What two schemas of the same place are compared for.
const CHECKS: [fn(&Pair<'_>, &mut Changes); 12] = [
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

/// Compares two schemas.
pub(super) fn schemas(old: &Value, new: &Value) -> Vec<Change> {
    let mut changes = Changes::checked_by(&CHECKS);
    Pair::root(old, new).walk(&mut changes);
    fields::removed(old, new, &mut changes);
    changes.found
}
