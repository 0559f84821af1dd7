//! ETCH315, ETCH323 and ETCH324: defaults.

use serde_json::{Value, json};

use super::keywords::present;
use super::pair::{Changes, Pair};
use crate::invalid;
use crate::rule::{Rule, Severity};
use crate::site::shown;
use kube_crd_validation::Validator;
use kube_structural_schema::compile::Compiled;
use kube_structural_schema::defaults::read;
use kube_structural_schema::json::{Json, same};
use kube_structural_schema::schema::Schema;

pub(crate) const INVALID: Rule = Rule {
    code: "ETCH315",
    name: "old-default-invalid",
    severity: Severity::Error,
    summary: "a value that the old default stored is invalid after an upgrade",
    help: "\
Objects hold the old default: those that were written while the schema had it, and those in which
`etch persist` or the operator stored it. The new schema refuses that value: such an object cannot be created
again, and no update may change the field unless it replaces the value.

Allow the old value as well, or change the objects before the upgrade (`onChange: Follow`).",
    check: None,
};

pub(super) const CHANGED: Rule = Rule {
    code: "ETCH323",
    name: "default-changed",
    severity: Severity::Warning,
    summary: "an upgrade changes or removes a default",
    help: "\
An object that never stored the old default reads another value after the upgrade, or none.
`etch impact --live` shows which, and `etch persist` before the upgrade keeps their values.",
    check: None,
};

pub(super) const ADDED: Rule = Rule {
    code: "ETCH324",
    name: "default-added",
    severity: Severity::Info,
    summary: "an upgrade adds a default to a field that was there",
    help: "\
Objects without the field read the default after the upgrade. A controller that treats an absent field in its
own way no longer meets one. `etch impact --live` shows which objects gain a value.",
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
        (Some(old), Some(new)) if !same(old, new) && !give_the_same((old, pair.old), (new, pair.new)) => {
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

/// The field that holds a value which is judged by itself.
pub(super) const FIELD: &str = "value";

/// A value at its place as a read makes it, which drops unknown fields and nulls and fills in the defaults
/// below; with the schema of the object around it. `None` if the schema cannot be parsed.
pub(super) fn as_read(value: &Value, schema: &Value) -> Option<(Json, Schema)> {
    let document = Json::from(json!({ "type": "object", "properties": { FIELD: schema } }));
    let schema = Schema::parse(&document).ok()?;
    let mut object = Json::from(json!({ FIELD: value }));
    // What cannot be read at all, the steps before this one report.
    let _ = read(&mut object, &schema, &Compiled::new(&schema), &mut |_| {});
    Some((object, schema))
}

/// The value of [`as_read`].
pub(super) fn value_as_read(value: &Value, schema: &Value) -> Option<Value> {
    as_read(value, schema).and_then(|(object, _)| object.get(FIELD).cloned())
}

/// Whether objects get the same from two defaults, each with those below it in its schema.
fn give_the_same(old: (&Value, &Value), new: (&Value, &Value)) -> bool {
    let given = |(default, schema)| as_read(default, schema).map(|(object, _)| object);
    given(old).zip(given(new)).is_some_and(|(old, new)| same(&old, &new))
}

/// What is wrong with a value at its place, by the schema.
fn problem(value: &Value, schema: &Value) -> Option<String> {
    let (object, schema) = as_read(value, schema)?;
    let found = Validator::new(&schema).object(&object);
    let first = found.values.into_iter().chain(found.rules).next()?;
    let inside = first.field.strip_prefix(FIELD).unwrap_or(&first.field).trim_start_matches('.');
    let at = if inside.is_empty() { String::new() } else { format!("at {inside}: ") };
    // Upstream's words begin with the place.
    let words = invalid::requirement(&first);
    let bare = words.strip_prefix(first.field.as_str()).and_then(|rest| rest.strip_prefix(" in body "));
    Some(at + bare.unwrap_or(words).trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_default_is_judged_as_it_is_read() {
        let cpu = json!({ "type": "integer", "default": 1 });
        let limits =
            |cpu: &Value| json!({ "type": "object", "required": ["cpu"], "properties": { "cpu": cpu } });
        assert_eq!(problem(&json!({}), &limits(&cpu)), None);
        let reported = problem(&json!({}), &limits(&json!({ "type": "integer" })));
        assert_eq!(reported.as_deref(), Some("at cpu: it is required"));
        let few = json!({ "type": "object", "maxProperties": 1, "properties": { "cpu": cpu } });
        assert_eq!(problem(&json!({ "cpu": 1, "mem": 1 }), &few), None, "mem is gone");
        let listed = json!({ "type": "array", "items": { "type": "integer", "minimum": 2 } });
        let reported = problem(&json!([1]), &listed);
        assert_eq!(reported.as_deref(), Some("at [0]: should be greater than or equal to 2"));
    }
}
