//! ETCH303 and ETCH319: values that are allowed by name.

use serde_json::Value;

use super::keywords::{is_set, list};
use super::pair::{Changes, LOOSENED, Pair};
use crate::rule::{Rule, Severity};
use crate::site::shown;
use etch_core::words::first;
use kube_structural_schema::json::same;

pub(super) const NARROWED: Rule = Rule {
    code: "ETCH303",
    name: "enum-narrowed",
    severity: Severity::Error,
    summary: "an upgrade removes values from an enum, or adds an enum",
    help: "\
An object with another value is invalid under the new schema. The API server refuses to create it again, and
every update that changes the field.

Keep the old value in the enum, and have the controller treat it as the new one.",
    check: None,
};

pub(super) const WIDENED: Rule = Rule {
    code: "ETCH319",
    name: "enum-widened",
    severity: Severity::Warning,
    summary: "an upgrade adds values to an enum",
    help: "\
Objects that were valid stay valid, but a client of the old release does not know the new value: a controller
after a rollback, or one that has not been upgraded yet.",
    check: None,
};

pub(super) fn check(pair: &Pair<'_>, changes: &mut Changes) {
    let (old, new) = (allowed(pair.old), list(pair.new, "enum"));
    if new.is_empty() {
        let is_in_all_of = list(pair.new, "allOf").iter().any(|clause| !list(clause, "enum").is_empty());
        if !old.is_empty() && !is_in_all_of {
            changes.add(&LOOSENED, pair.path.clone(), "there is no enum any more");
        }
        return;
    }
    // A nullable field that gets an enum of its own refuses nulls, whatever else it allows.
    let is_nullable = is_set(pair.old, "nullable") && is_set(pair.new, "nullable") || pair.is_in_clause();
    let refuses_nulls = list(pair.old, "enum").is_empty() && is_nullable;
    let may_refuse = refuses_nulls || pair.may_refuse(&["enum"]);
    if old.is_empty() || refuses_nulls {
        if may_refuse {
            changes.add(&NARROWED, pair.path.clone(), format!("only {} are allowed now", listed(new.iter())));
        }
        return;
    }
    // A null in an enum allows nothing: see ETCH313.
    let gone = old.iter().copied().filter(|value| !new.iter().any(|other| same(value, other)));
    let gone: Vec<&Value> = gone.filter(|value| !value.is_null()).collect();
    let came = new.iter().filter(|value| !old.iter().any(|other| same(value, other)));
    let came: Vec<&Value> = came.filter(|value| !value.is_null()).collect();
    if !gone.is_empty() && may_refuse {
        changes.add(&NARROWED, pair.path.clone(), format!("the enum no longer has {}", listed(gone)));
    }
    if !came.is_empty() {
        changes.add(&WIDENED, pair.path.clone(), format!("the enum has {} too now", listed(came)));
    }
}

/// The values that an enum allows, or that all enums in allOf do, where controller-gen puts those of a type
/// and of a field.
fn allowed(schema: &Value) -> Vec<&Value> {
    let of_all = list(schema, "allOf").iter().map(|clause| list(clause, "enum"));
    let mut enums = std::iter::once(list(schema, "enum")).chain(of_all).filter(|values| !values.is_empty());
    let mut allowed: Vec<&Value> = enums.next().into_iter().flatten().collect();
    for values in enums {
        allowed.retain(|value| values.iter().any(|other| same(value, other)));
    }
    allowed
}

fn listed<'a>(values: impl IntoIterator<Item = &'a Value>) -> String {
    const SHOWN: usize = 10;
    let texts: Vec<_> = values.into_iter().map(shown).collect();
    first(&texts, texts.len() as u64, SHOWN)
}
