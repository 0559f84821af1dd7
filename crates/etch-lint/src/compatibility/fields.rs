//! ETCH310: fields, and values of maps, that the schema no longer has.

use super::defaults::CHANGED;
use super::keywords::{fields, keeps_unknown, property, values};
use super::pair::{Changes, LOOSENED, Pair};
use crate::rule::{Rule, Severity};
use crate::site::shown;
use etch_core::impact::{SchemaChanges, compare};
use kube_structural_schema::path::Step;
use kube_structural_schema::schema::Schema;
use serde_json::Value;

pub(super) const REMOVED: Rule = Rule {
    code: "ETCH310",
    name: "field-removed",
    severity: Severity::Error,
    summary: "an upgrade removes a field, or no longer keeps unknown fields",
    help: "\
`kubectl apply` and `kubectl create` refuse a manifest with a field that the schema does not have. Other
clients lose the value: no reader sees it, and the next write of the object removes it from etcd. With --live,
`etch impact` shows the objects.

So goes a field that a new storage version lacks, unless a webhook converts: objects are stored without it.

Keep the field in the schema and mark it as deprecated in its description.",
    check: None,
};

pub(super) fn check(pair: &Pair<'_>, changes: &mut Changes) {
    if pair.is_in_clause() {
        return clause(pair, changes);
    }
    if values(pair.old).is_none() && values(pair.new).is_some() && !keeps_unknown(pair.old) {
        changes.add(&LOOSENED, pair.path.join(Step::Values), "values that are not declared are kept now");
    }
    if !keeps_unknown(pair.old) && keeps_unknown(pair.new) {
        changes.add(&LOOSENED, pair.path.clone(), "fields that the schema does not declare are kept now");
    }
}

/// What objects lose between two whole schemas, as `etch impact` shows it.
pub(super) fn removed(old: &Value, new: &Value, changes: &mut Changes) {
    // A schema that cannot be parsed is refused.
    let (Ok(old), Ok(new)) = (Schema::parse(old), Schema::parse(new)) else { return };
    let SchemaChanges { fields_removed, unknown_removed, defaults_removed, .. } = compare(&old, &new);
    // A field that the new schema keeps without declaring it loses its default, and so does what is in it.
    for (path, default) in defaults_removed {
        let is_found =
            changes.found.iter().any(|known| known.rule.code == CHANGED.code && known.path == path);
        if !is_found && !fields_removed.iter().any(|gone| gone.contains(&path)) {
            changes.add(&CHANGED, path, format!("the default {} is gone", shown(&default)));
        }
    }
    for path in fields_removed {
        let message = match path.steps().last() {
            Some(Step::Values) => "values of the map are no longer kept",
            _ => "the field is gone",
        };
        changes.add(&REMOVED, path, message);
    }
    for path in unknown_removed {
        changes.add(&REMOVED, path, "fields that the schema does not declare are no longer kept");
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
