//! ETCH302 and ETCH320: fields that objects must have.

use std::collections::BTreeSet;

use serde_json::Value;

use super::keywords::{META, fields, list, present, property};
use super::pair::{Changes, Pair};
use crate::rule::{Rule, Severity};
use kube_structural_schema::path::Step;

pub(super) const ADDED: Rule = Rule {
    code: "ETCH302",
    name: "required-added",
    severity: Severity::Error,
    summary: "an upgrade requires a field that was optional or had a default",
    help: "\
An object without the field is invalid under the new schema. The API server refuses to create it again, and
every update that changes the object around the field. If the upgrade takes the default from a required field,
this holds for every manifest that relies on the default.

Give the field a default, which the API server fills in before it validates, or leave it optional. A required
field with a default is not reported.",
    check: None,
};

pub(super) const REMOVED: Rule = Rule {
    code: "ETCH320",
    name: "required-removed",
    severity: Severity::Warning,
    summary: "an upgrade makes a required field optional",
    help: "\
Objects that were valid stay valid, but a client of the old release may take the field for granted: a
validation rule that uses it without has() fails, and a Go client reads the zero value.",
    check: None,
};

pub(super) fn check(pair: &Pair<'_>, changes: &mut Changes) {
    let default = |name: &str| default(pair.declared, name);
    for name in names(pair.new).filter(|name| !names(pair.old).any(|other| other == *name)) {
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
    for name in names(pair.old).filter(|name| !names(pair.new).any(|other| other == *name)) {
        // Where the field itself goes, that is the finding.
        if property(pair.new, name).is_some() && default(name).is_none() {
            let path = pair.path.join(Step::Field(name.to_owned()));
            changes.add(&REMOVED, path, "the field was required and is optional now");
        }
    }
}

/// Required fields that lose their default: manifests without them were valid, since the server fills in
/// defaults before it validates.
pub(super) fn default_gone(pair: &Pair<'_>, changes: &mut Changes) {
    let (before, after) = (in_all_of(pair.old), in_all_of(pair.new));
    let is_new = |name: &str| {
        names(pair.new).any(|other| other == name) && !names(pair.old).any(|other| other == name)
    };
    for (name, _) in fields(pair.old) {
        let is_gone = default(pair.old, name).is_some() && default(pair.new, name).is_none();
        let is_required = before.contains(name.as_str()) && after.contains(name.as_str());
        let path = || pair.path.join(Step::Field(name.clone()));
        // A field that is new among the required ones is reported as such.
        if is_gone && is_required && !is_new(name) {
            changes.add(&ADDED, path(), "the field is required and has no default any more");
        } else if is_gone
            && !after.contains(name.as_str())
            && let Some(keyword) =
                ["anyOf", "oneOf"].into_iter().find(|keyword| holds_by(pair, keyword, name))
        {
            let message = format!("a clause of {keyword} requires the field, which has no default any more");
            changes.add(&ADDED, path(), message);
        }
    }
}

/// Whether a field could make a clause hold by its default, and no clause holds any more without a field of
/// the manifest.
fn holds_by(pair: &Pair<'_>, keyword: &str, name: &str) -> bool {
    let requires = |schema| list(schema, keyword).iter().any(|clause| in_all_of(clause).contains(name));
    let needs_a_field =
        |clause: &Value| in_all_of(clause).into_iter().any(|name| default(pair.new, name).is_none());
    requires(pair.old) && requires(pair.new) && list(pair.new, keyword).iter().all(needs_a_field)
}

/// The names that a schema itself requires.
pub(super) fn names(schema: &Value) -> impl Iterator<Item = &str> {
    list(schema, "required").iter().filter_map(Value::as_str)
}

/// The names that a schema requires, also in the clauses of allOf.
fn in_all_of(schema: &Value) -> BTreeSet<&str> {
    let inside = list(schema, "allOf").iter().flat_map(in_all_of);
    names(schema).chain(inside).collect()
}

/// The default of a declared property.
pub(super) fn default<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    property(schema, name).and_then(|field| present(field, "default"))
}
