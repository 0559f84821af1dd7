//! ETCH328: defaults that a rule around them reads.

use serde_json::{Value, json};

use super::pair::{Changes, Pair};
use super::validations::{Rules, key};
use crate::rule::{Rule, Severity};
use crate::site::shown;
use etch_core::impact::{Changed, SchemaChanges};
use kube_structural_schema::compile::Compiled;
use kube_structural_schema::json::Json;
use kube_structural_schema::path::{Path, Step};
use kube_structural_schema::schema::{self, Schema};
use kube_validation_rules::{OwnRule, Reading};

pub(crate) const READ: Rule = Rule {
    code: "ETCH328",
    name: "default-read-by-rule",
    severity: Severity::Error,
    summary: "an upgrade adds, changes or removes a default that a rule or a clause around the field judges",
    help: "\
The rule was there before, and judges the default together with what the object sets: an object with `min: 10`
breaks `self.min <= self.max` once `max` is 5 by default. The API server refuses to create such an object
again, and every update that changes the object around the rule. `etch impact --live` shows which objects
these are.

The same holds for clauses (allOf, anyOf, oneOf, not), maxProperties and the enum of an object around the
field: they are reported where an object that was valid may become invalid. What limits of one field imply about another
is not worked out.

Not reported is a rule that reads no other field and holds with the default, and one that only compares with
oldSelf.",
    check: None,
};

/// `before` are the rules that were there before, and `schema` is the new one.
pub(super) fn check(
    pair: &Pair<'_>,
    before: &Rules<'_>,
    schema: &Schema,
    compared: &SchemaChanges,
    changes: &mut Changes,
) {
    let SchemaChanges { defaults_added, defaults_changed, defaults_removed, .. } = compared;
    let added = defaults_added.iter().map(|(path, _)| (path, "is new"));
    let changed = defaults_changed.iter().map(|Changed { path, .. }| (path, CHANGED));
    let removed = defaults_removed.iter().map(|(path, _)| (path, "is gone"));
    let defaults: Vec<(&Path, &str)> = added.chain(changed).chain(removed).collect();
    if defaults.is_empty() {
        return;
    }
    let places: Vec<&[Step]> = defaults.iter().map(|(path, _)| path.steps()).collect();
    let was_there =
        |rule: &&schema::Rule| before.contains_key(&key(&rule.rule, rule.optional_old_self == Some(true)));
    for rule in schema.rules.iter().filter(was_there) {
        let compiled = OwnRule::with_readings(rule, schema, pair.is_whole(), &places);
        let Some((own, readings)) = compiled.filter(|(own, _)| !own.is_transition()) else { continue };
        for ((path, what), reading) in defaults.iter().zip(readings) {
            let Some(Reading { only_presence, is_alone }) = reading else { continue };
            let is_harmless = only_presence && *what == CHANGED
                || is_alone && own.holds(&with_defaults(path, schema)) == Some(true);
            if !is_harmless {
                let of = if pair.path.is_root() { "the object".to_owned() } else { pair.path.to_string() };
                let rule = shown(&json!(rule.rule));
                let message = format!("the default {what}, and a rule of {of} reads the field: {rule}");
                let place = path.steps().iter().fold(pair.path.clone(), |at, step| at.join(step.clone()));
                changes.add(&READ, place, message);
            }
        }
    }
}

const CHANGED: &str = "has changed";

/// An object that sets nothing but what is around a field.
fn with_defaults(path: &Path, schema: &Schema) -> Value {
    let around = path.steps().split_last().map_or(&[][..], |(_, around)| around);
    let nested = around.iter().rev().fold(json!({}), |below, step| match step {
        Step::Field(name) | Step::Key(name) => json!({ name: below }),
        Step::Items | Step::Index(_) | Step::Values => below,
    });
    let mut object = Json::from(nested);
    Compiled::new(schema).fill(&mut object);
    object.into_inner()
}
