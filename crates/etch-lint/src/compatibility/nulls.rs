//! ETCH313 and ETCH321: nulls.

use super::defaults;
use super::pair::{Changes, Pair, is_set, present};
use crate::rule::{Rule, Severity};
use kube_structural_schema::path::Step;

pub(super) const REMOVED: Rule = Rule {
    code: "ETCH313",
    name: "nullable-removed",
    severity: Severity::Error,
    summary: "an upgrade no longer allows nulls where a value must be",
    help: "\
An object with a null there is invalid under the new schema: an item of a list must not be null, and of a field or a value of a map the
API server drops the null, though the object must have the field, or a number of fields. The API server refuses to create it again,
and every update that changes the place. A field with a default gets that instead (ETCH323). Where the object need not have the field,
this is ETCH327.",
    check: None,
};

pub(super) const DROPPED: Rule = Rule {
    code: "ETCH327",
    name: "null-dropped",
    severity: Severity::Warning,
    summary: "an upgrade drops nulls that were values",
    help: "\
The API server drops a null in the field, or in the value of the map, whenever it reads or writes an object. Objects stay valid, but a
client that tells a null from an absent field no longer meets one. `etch impact --live` shows which objects have one.",
    check: None,
};

pub(super) const ADDED: Rule = Rule {
    code: "ETCH321",
    name: "nullable-added",
    severity: Severity::Warning,
    summary: "an upgrade allows nulls",
    help: "\
Objects that were valid stay valid, but a client of the old release may not expect a null, and a default does not replace it.",
    check: None,
};

pub(super) fn check(pair: &Pair<'_>, changes: &mut Changes) {
    if pair.is_in_clause() {
        return;
    }
    match (is_set(pair.old, "nullable"), is_set(pair.new, "nullable")) {
        (true, false) if present(pair.new, "default").is_some() => {
            changes.add(&defaults::CHANGED, pair.path.clone(), "the default replaces nulls now");
        }
        // An item is no field that the server could drop (fact R1).
        (true, false) if pair.is_needed || pair.path.steps().last() == Some(&Step::Items) => {
            changes.add(&REMOVED, pair.path.clone(), "it must not be null any more");
        }
        (true, false) => changes.add(&DROPPED, pair.path.clone(), "a null is dropped now"),
        (false, true) => changes.add(&ADDED, pair.path.clone(), "the field may be null now"),
        _ => {}
    }
}
