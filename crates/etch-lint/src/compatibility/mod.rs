//! What an upgrade of a CRD does to objects that were valid, and to clients, as far as the two CRDs alone
//! show it.

mod allowed;
mod clauses;
mod compare;
mod defaults;
mod enumeration;
mod fields;
mod formats;
mod judged_by_clause;
mod judged_by_enum;
mod judged_defaults;
mod keywords;
mod limits;
mod lists;
mod needed;
mod nulls;
mod pair;
mod patterns;
mod ranges;
mod read_by_rule;
mod reads;
mod required;
mod served;
mod types;
mod validations;
mod versions;

use super::rule::{Finding, Rule, Severity, in_order};
use compare::upgrade;
pub(crate) use defaults::INVALID as OLD_DEFAULT_INVALID;
use kube_structural_schema::json::Json;
use pair::finding;
pub(crate) use read_by_rule::READ as DEFAULT_READ_BY_RULE;

/// The rules about upgrades, in the order of their codes.
pub const COMPATIBILITY_RULES: [&Rule; 29] = [
    &types::CHANGED,
    &required::ADDED,
    &enumeration::NARROWED,
    &limits::RANGE_NARROWED,
    &limits::LENGTH_NARROWED,
    &patterns::CHANGED,
    &formats::CHANGED,
    &validations::ADDED,
    &lists::NARROWED,
    &fields::REMOVED,
    &versions::REMOVED,
    &versions::RENAMED,
    &nulls::REMOVED,
    &clauses::NARROWED,
    &defaults::INVALID,
    &versions::STORAGE,
    &served::DIVERGE,
    &types::WIDENED,
    &enumeration::WIDENED,
    &required::REMOVED,
    &nulls::ADDED,
    &lists::MERGE,
    &defaults::CHANGED,
    &defaults::ADDED,
    &pair::LOOSENED,
    &versions::ENDPOINT,
    &nulls::DROPPED,
    &read_by_rule::READ,
    &versions::CRD_REMOVED,
];

/// Compares a CRD with the one that it replaces. Findings are in the order of the new CRD's versions, then of
/// places, then of codes.
pub fn compatibility(old: &Json, new: &Json) -> Vec<Finding> {
    let mut findings = Vec::new();
    versions::check(&old["spec"], &new["spec"], &mut findings);
    for (index, after) in versions::list(&new["spec"]).enumerate() {
        let name = versions::name(after);
        // No client writes a version that is neither served nor stored; that it has become so is a finding of
        // its own.
        let Some(before) = versions::get(&old["spec"], name).filter(|_| versions::is_in_use(after)) else {
            continue;
        };
        let found = upgrade(versions::schema(before), versions::schema(after));
        findings.extend(found.into_iter().map(|change| finding(change, name, Some(index))));
    }
    let is_known = |found: &Finding| {
        let mut of_version = findings.iter().filter(|finding| finding.version == found.version);
        of_version.any(|finding| finding.rule.code == found.rule.code && finding.path == found.path)
    };
    let mut of_storage = versions::of_storage(&old["spec"], &new["spec"]);
    of_storage.retain(|found| !is_known(found));
    findings.extend(of_storage);
    findings.extend(served::check(&old["spec"], &new["spec"]));
    in_order(findings)
}

/// The finding about a CRD that only the files before the upgrade have.
pub fn crd_removed() -> Finding {
    versions::of_crd(&versions::CRD_REMOVED, "only --old contains the CRD".to_owned())
}

impl Rule {
    /// Whether the rule is about an upgrade, and not about one CRD.
    pub fn is_about_upgrades(&self) -> bool {
        COMPATIBILITY_RULES.iter().any(|rule| rule.code == self.code)
    }

    /// Whether the rule finds what can refuse objects that were valid, or takes something away from them.
    pub fn can_refuse_objects(&self) -> bool {
        self.is_about_upgrades() && self.severity == Severity::Error
    }
}

#[cfg(test)]
mod tests;
