//! ETCH302 and ETCH320: fields that objects must have.

use std::collections::BTreeSet;

use serde_json::Value;

use super::pair::{Changes, META, Pair, fields, list, present, property};
use crate::rule::{Rule, Severity};
use kube_structural_schema::path::Step;

pub(super) const ADDED: Rule = Rule {
    code: "ETCH302",
    name: "required-added",
    severity: Severity::Error,
    summary: "an upgrade requires a field that was optional",
    help: "\
An object without the field is invalid under the new schema, and so is one for which a default gave the field until now. The API server refuses to create it again, and every update that
changes the object around the field.

Give the field a default, which the API server fills in before it validates, or leave it optional. A required field with a
default is not reported.",
    check: None,
};

pub(super) const REMOVED: Rule = Rule {
    code: "ETCH320",
    name: "required-removed",
    severity: Severity::Warning,
    summary: "an upgrade makes a required field optional",
    help: "\
Objects that were valid stay valid, but a client of the old release may take the field for granted: a validation rule that uses it
without has() fails, and a Go client reads the zero value.",
    check: None,
};

/// The names that a schema and its clauses of allOf require.
fn required(schema: &Value) -> BTreeSet<&str> {
    let own = list(schema, "required").iter().filter_map(Value::as_str);
    own.chain(list(schema, "allOf").iter().flat_map(required)).collect()
}

/// Fields that are required as before, and that no default gives any more.
fn no_longer_given(pair: &Pair<'_>, changes: &mut Changes) {
    let has_default =
        |schema, name: &str| property(schema, name).is_some_and(|field| present(field, "default").is_some());
    let (old, new) = (required(pair.old), required(pair.new));
    for name in new.intersection(&old).filter(|name| has_default(pair.old, name)) {
        if property(pair.new, name).is_some() && !has_default(pair.new, name) {
            let path = pair.path.join(Step::Field((*name).to_owned()));
            changes.add(&ADDED, path, "the field is required, and its default is gone");
        }
    }
    let least = |schema| present(schema, "minProperties").and_then(Value::as_u64).unwrap_or_default();
    let given = |schema| fields(schema).filter(|(name, _)| has_default(schema, name)).count() as u64;
    if given(pair.old) >= least(pair.old) && given(pair.new) < least(pair.new).min(least(pair.old)) {
        changes.add(
            &ADDED,
            pair.path.clone(),
            "defaults no longer give as many fields as minProperties asks for",
        );
    }
}

pub(super) fn check(pair: &Pair<'_>, changes: &mut Changes) {
    if !pair.is_in_clause() {
        no_longer_given(pair, changes);
    }
    let names = |schema| list(schema, "required").iter().filter_map(Value::as_str);
    let lacks = |schema, name: &str| !names(schema).any(|other| other == name);
    // A clause has no defaults of its own.
    let declaring = if pair.is_in_clause() { pair.around } else { Some(pair.new) };
    let default = |name: &str| present(property(declaring?, name)?, "default");
    for name in names(pair.new).filter(|name| lacks(pair.old, name)) {
        // Every object has these; a resource inside of one need not have metadata.
        let is_there = META.contains(&name) && (pair.path.is_root() || name != "metadata");
        if pair.is_resource() && is_there {
            continue;
        }
        if default(name).is_none() {
            let path = pair.path.join(Step::Field(name.to_owned()));
            changes.add(&ADDED, path, "the field is required now, and has no default");
        }
    }
    for name in names(pair.old).filter(|name| lacks(pair.new, name)) {
        // Where the field itself goes, that is the finding.
        if property(pair.new, name).is_some() && default(name).is_none() {
            let path = pair.path.join(Step::Field(name.to_owned()));
            changes.add(&REMOVED, path, "the field was required and is optional now");
        }
    }
}
