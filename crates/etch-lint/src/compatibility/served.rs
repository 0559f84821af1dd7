//! ETCH317: versions of one CRD that no longer agree on which objects are valid.

use std::collections::HashSet;

use serde_json::Value;

use super::compare::schemas;
use super::pair::{Change, finding};
use super::versions;
use crate::rule::{Finding, Rule, Severity};

pub(super) const DIVERGE: Rule = Rule {
    code: "ETCH317",
    name: "versions-diverge",
    severity: Severity::Warning,
    summary: "after an upgrade, objects that are valid at one version may be invalid at another",
    help: "\
Without a conversion webhook the API server shows an object at every version as it is. An object that is
written at one version and read at another may be invalid there: a client of the other version cannot change
what it has read, and loses fields that its version does not have. Versions that differed in the same way
before the upgrade are not reported, unless a webhook converted between them until then; nothing is with a
conversion webhook.",
    check: None,
};

/// Compares the versions in use with one another, in both directions; what the old CRD had as well does not
/// count.
pub(super) fn check(old: &Value, new: &Value) -> Vec<Finding> {
    if new["conversion"]["strategy"] == "Webhook" {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (from, to, index) in pairs(new) {
        let before = refused_before(old, from, to);
        let before: HashSet<_> = before.iter().map(identity).collect();
        let (Some(after_from), Some(after_to)) = (versions::get(new, from), versions::get(new, to)) else {
            continue;
        };
        for change in refusing(after_from, after_to) {
            if before.contains(&identity(&change)) {
                continue;
            }
            let Change { rule, path, message } = change;
            let message = format!("an object written at {from}: {message} ({})", rule.code);
            found.push(finding(Change { rule: &DIVERGE, path, message }, to, Some(index)));
        }
    }
    found
}

/// What refused an object of one version at another before the upgrade: nothing if one was not in use, or if
/// a webhook converted between them.
fn refused_before(old: &Value, from: &str, to: &str) -> Vec<Change> {
    let used = |version| versions::get(old, version).filter(|version| versions::is_in_use(version));
    match (used(from), used(to)) {
        (Some(from), Some(to)) if old["conversion"]["strategy"] != "Webhook" => refusing(from, to),
        _ => Vec::new(),
    }
}

/// All pairs of versions in use, and the place of the second.
fn pairs(spec: &Value) -> Vec<(&str, &str, usize)> {
    let used = || versions::list(spec).enumerate().filter(|(_, version)| versions::is_in_use(version));
    let mut pairs = Vec::new();
    for (_, from) in used() {
        for (index, to) in used() {
            if versions::name(from) != versions::name(to) {
                pairs.push((versions::name(from), versions::name(to), index));
            }
        }
    }
    pairs
}

/// What refuses an object of one version at another.
fn refusing(from: &Value, to: &Value) -> Vec<Change> {
    let mut changes = schemas(versions::schema(from), versions::schema(to));
    changes.retain(|change| change.rule.can_refuse_objects());
    changes
}

/// By what two changes are the same.
fn identity(change: &Change) -> (&'static str, String, &str) {
    (change.rule.code, change.path.to_string(), &change.message)
}
