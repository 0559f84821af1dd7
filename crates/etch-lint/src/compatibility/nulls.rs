//! ETCH313 and ETCH321: nulls.

use serde_json::Value;

use super::defaults;
use super::keywords::{is_set, list, present};
use super::pair::{Changes, LOOSENED, Pair};
use crate::rule::{Rule, Severity};
use kube_structural_schema::path::Step;

pub(super) const REMOVED: Rule = Rule {
    code: "ETCH313",
    name: "nullable-removed",
    severity: Severity::Error,
    summary: "an upgrade no longer allows nulls where a value must be",
    help: "\
An object with a null there is invalid under the new schema: an item of a list must not be null, and of a
field or a value of a map the API server drops the null, though the object must have the field, or a number of
fields, or a clause or a rule may need it. The API server refuses to create it again, and every update that
changes the place. A field with a default gets that instead (ETCH323). Where the object need not have the
field, this is ETCH327. No enum allows a null, not even one that has it: a nullable field with an enum refuses
what another field drops. So may clauses and maxProperties of an object around a field that keeps nulls now.",
    check: None,
};

pub(super) const DROPPED: Rule = Rule {
    code: "ETCH327",
    name: "null-dropped",
    severity: Severity::Warning,
    summary: "an upgrade drops nulls that were values",
    help: "\
The API server drops a null in the field, or in the value of the map, whenever it reads or writes an object.
Objects stay valid, but a client that tells a null from an absent field no longer meets one.
`etch impact --live` shows which objects have one.",
    check: None,
};

pub(super) const ADDED: Rule = Rule {
    code: "ETCH321",
    name: "nullable-added",
    severity: Severity::Warning,
    summary: "an upgrade allows nulls",
    help: "\
Objects that were valid stay valid, but a client of the old release may not expect a null, and a default does
not replace it.",
    check: None,
};

pub(super) fn check(pair: &Pair<'_>, changes: &mut Changes) {
    if pair.is_in_clause() {
        return;
    }
    let (refused, refuses) = (refuses_nulls(pair.old), refuses_nulls(pair.new));
    match (is_set(pair.old, "nullable"), is_set(pair.new, "nullable")) {
        // Still refused, or by an enum, which is a finding of its own where it is new.
        (_, is_nullable) if refuses || refused && !is_nullable && is_kept_out(pair) => {}
        (true, true) if refused => changes.add(&ADDED, pair.path.clone(), "the field may be null now"),
        (true, false) if refused => {
            changes.add(&LOOSENED, pair.path.clone(), "a null is dropped now, and was refused");
        }
        (true, false) if present(pair.new, "default").is_some() => {
            changes.add(&defaults::CHANGED, pair.path.clone(), "the default replaces nulls now");
        }
        (true, false) if is_kept_out(pair) => {
            changes.add(&REMOVED, pair.path.clone(), "it must not be null any more");
        }
        (true, false) => changes.add(&DROPPED, pair.path.clone(), "a null is dropped now"),
        (false, true) => changes.add(&ADDED, pair.path.clone(), "the field may be null now"),
        _ => {}
    }
}

/// Nulls that the API server used to drop, or to replace by a default, before it validated. An object that
/// was written at another version holds none of them.
pub(super) fn refused(pair: &Pair<'_>, changes: &mut Changes) {
    let is_nullable = [pair.old, pair.new].map(|schema| is_set(schema, "nullable"));
    let has_default = [pair.old, pair.new].map(|schema| present(schema, "default").is_some());
    let message = match (is_nullable, has_default) {
        _ if pair.is_in_clause() => return,
        ([false, true], _)
            if refuses_nulls(pair.new) && (has_default[0] || !pair.was_required && !is_item(pair)) =>
        {
            "a null is refused now, because no enum allows one"
        }
        ([false, false], [true, false]) if is_item(pair) || pair.is_needed && is_value(pair) => {
            "a null is refused now: there is no default any more that replaces it"
        }
        _ => return,
    };
    changes.add(&REMOVED, pair.path.clone(), message);
}

/// Whether a null is neither a value nor absent. The values of an enum are compared with everything but a
/// null.
///
/// Source: kube-openapi `pkg/validation/validate/values.go`, `Enum`; clauses do not see a null
/// (`schema.go`, `Validate`).
fn refuses_nulls(schema: &Value) -> bool {
    is_set(schema, "nullable") && !list(schema, "enum").is_empty()
}

/// Whether an object is invalid with a null there that is no value.
fn is_kept_out(pair: &Pair<'_>) -> bool {
    pair.is_needed || is_item(pair)
}

/// Whether it is a value of a map.
fn is_value(pair: &Pair<'_>) -> bool {
    pair.path.steps().last() == Some(&Step::Values)
}

/// Whether it is an item, and no field that the server could drop (fact R1).
fn is_item(pair: &Pair<'_>) -> bool {
    pair.path.steps().last() == Some(&Step::Items)
}
