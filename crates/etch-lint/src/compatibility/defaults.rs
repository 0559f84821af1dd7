//! ETCH315, ETCH323 and ETCH324: defaults.

use serde_json::{Value, json};

use super::pair::{Changes, Pair, present};
use crate::rule::{Rule, Severity};
use crate::site::shown;
use kube_crd_validation::Validator;
use kube_structural_schema::json::{Json, same};
use kube_structural_schema::schema::Schema;

pub(super) const INVALID: Rule = Rule {
    code: "ETCH315",
    name: "old-default-invalid",
    severity: Severity::Error,
    summary: "a value that the old default stored is invalid after an upgrade",
    help: "\
Objects hold the old default: those that were written while the schema had it, and those in which `etch persist` or the operator
stored it. The new schema refuses that value: such an object cannot be created again, and no update may change the field unless
it replaces the value.

Allow the old value as well, or change the objects before the upgrade (`onChange: Follow`).",
    check: None,
};

pub(super) const CHANGED: Rule = Rule {
    code: "ETCH323",
    name: "default-changed",
    severity: Severity::Warning,
    summary: "an upgrade changes or removes a default",
    help: "\
An object that never stored the old default reads another value after the upgrade, or none. `etch impact --live` shows which, and
`etch persist` before the upgrade keeps their values.",
    check: None,
};

pub(super) const ADDED: Rule = Rule {
    code: "ETCH324",
    name: "default-added",
    severity: Severity::Info,
    summary: "an upgrade adds a default to a field that was there",
    help: "\
Objects without the field read the default after the upgrade. A controller that treats an absent field in its own way no longer
meets one. `etch impact --live` shows which objects gain a value.",
    check: None,
};

pub(super) fn check(pair: &Pair<'_>, changes: &mut Changes) {
    if pair.is_in_clause() {
        return;
    }
    let (old, new) = (present(pair.old, "default"), present(pair.new, "default"));
    match (old, new) {
        (None, Some(new)) => {
            changes.add(&ADDED, pair.path.clone(), format!("the default {} is new", shown(new)));
        }
        (Some(old), None) => {
            changes.add(&CHANGED, pair.path.clone(), format!("the default {} is gone", shown(old)));
        }
        (Some(old), Some(new)) if !same(old, new) => {
            let message = format!("the default was {} and is {}", shown(old), shown(new));
            changes.add(&CHANGED, pair.path.clone(), message);
        }
        _ => {}
    }
    if let Some(problem) = old.and_then(|old| problem(old, pair.new)) {
        let message =
            format!("the old default {} is invalid now: {problem}", old.map(shown).unwrap_or_default());
        changes.add(&INVALID, pair.path.clone(), message);
    }
}

/// What is wrong with a value at its place, by the schema.
fn problem(value: &Value, schema: &Value) -> Option<String> {
    const FIELD: &str = "value";
    let document = Json::from(json!({ "type": "object", "properties": { FIELD: schema } }));
    let schema = Schema::parse(&document).ok()?;
    let object = Json::from(json!({ FIELD: value }));
    let found = Validator::new(&schema).object(&object);
    let first = found.values.into_iter().chain(found.rules).next()?;
    Some(first.detail.trim_start().trim_start_matches("in body ").to_owned())
}
