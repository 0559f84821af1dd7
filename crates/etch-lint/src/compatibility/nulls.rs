//! ETCH313 and ETCH321: nulls.

use super::defaults;
use super::pair::{Changes, Pair, is_set, present};
use crate::rule::{Rule, Severity};

pub(super) const REMOVED: Rule = Rule {
    code: "ETCH313",
    name: "nullable-removed",
    severity: Severity::Error,
    summary: "an upgrade no longer allows nulls",
    help: "\
An object with a null in the field is invalid under the new schema. The API server refuses to create it again, and every update that
changes the field. If the field has a default, the API server replaces the null by it instead (ETCH323).",
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
        (true, false) => changes.add(&REMOVED, pair.path.clone(), "the field must not be null any more"),
        (false, true) => changes.add(&ADDED, pair.path.clone(), "the field may be null now"),
        _ => {}
    }
}
