//! ETCH310: fields, and values of maps, that the schema no longer has.

use super::pair::{Changes, LOOSENED, META, Pair, fields, keeps_unknown, present, property, text, values};
use crate::rule::{Rule, Severity};
use kube_structural_schema::path::Step;

pub(super) const REMOVED: Rule = Rule {
    code: "ETCH310",
    name: "field-removed",
    severity: Severity::Error,
    summary: "an upgrade removes a field, or no longer keeps unknown fields",
    help: "\
`kubectl apply` and `kubectl create` refuse a manifest with a field that the schema does not have. Other clients lose the value:
no reader sees it, and the next write of the object removes it from etcd. With --live, `etch impact` shows the objects.

Keep the field in the schema and mark it as deprecated in its description.",
    check: None,
};

pub(super) fn check(pair: &Pair<'_>, changes: &mut Changes) {
    if pair.is_in_clause() {
        return clause(pair, changes);
    }
    let keeps = keeps_unknown(pair.new) || values(pair.new).is_some();
    for (name, _) in fields(pair.old).filter(|(name, _)| property(pair.new, name).is_none()) {
        let is_there = pair.is_resource() && META.contains(&name.as_str());
        if !keeps && !is_there {
            changes.add(&REMOVED, pair.path.join(Step::Field(name.clone())), "the field is gone");
        }
    }
    // A finding about a changed type covers that what was below is gone.
    let is_same_type = present(pair.old, "type") == present(pair.new, "type");
    if present(pair.old, "items").is_some()
        && present(pair.new, "items").is_none()
        && is_same_type
        && !keeps_unknown(pair.new)
    {
        changes.add(&REMOVED, pair.path.join(Step::Items), "the schema of the items is gone");
    }
    match (values(pair.old).is_some(), values(pair.new).is_some()) {
        (true, false) if !keeps && is_same_type => {
            changes.add(&REMOVED, pair.path.join(Step::Values), "values of the map are no longer kept");
        }
        (false, true) if !keeps_unknown(pair.old) => {
            changes.add(&LOOSENED, pair.path.join(Step::Values), "values that are not declared are kept now");
        }
        _ => {}
    }
    match (keeps_unknown(pair.old), keeps_unknown(pair.new)) {
        // A scalar has no fields; that it has become one is a change of the type.
        (true, false) if values(pair.new).is_none() && matches!(text(pair.new, "type"), "" | "object") => {
            let message = "fields that the schema does not declare are no longer kept";
            changes.add(&REMOVED, pair.path.clone(), message);
        }
        (false, true) => {
            changes.add(&LOOSENED, pair.path.clone(), "fields that the schema does not declare are kept now");
        }
        _ => {}
    }
}

/// A clause declares no fields: without its schema of a field, more is allowed.
fn clause(pair: &Pair<'_>, changes: &mut Changes) {
    for (name, _) in fields(pair.old).filter(|(name, _)| property(pair.new, name).is_none()) {
        changes.add(
            &LOOSENED,
            pair.path.join(Step::Field(name.clone())),
            "the clause says nothing of the field any more",
        );
    }
}
