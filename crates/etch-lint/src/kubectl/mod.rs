//! What kubectl and the API server answer to the document of a CRD, beside what the server validates.

mod annotation;
mod duplicate_key;
mod duplicate_rule;
mod nodes;
mod site;
mod strict;
mod types;
mod warnings;

use super::rule::{Finding, Rule};
use kube_crd_validation::crd::Release;
use kube_structural_schema::json::Json;

pub use duplicate_key::duplicate_key;
pub(crate) use strict::{RULE as UNKNOWN_KEYWORD, ignored_keywords};

/// The rules about the way in which kubectl applies a CRD, in the order of their codes.
pub const KUBECTL_RULES: [&Rule; 6] = [
    &strict::RULE,
    &duplicate_rule::RULE,
    &annotation::RULE,
    &warnings::FORMAT,
    &warnings::SET,
    &duplicate_key::RULE,
];

/// What kubectl and the server answer to a CRD, or to one that replaces another; what the server warned of
/// before, it does not repeat.
pub fn as_applied(crd: &Json, old: Option<&Json>, releases: &[Release]) -> Vec<Finding> {
    let mut found = Vec::new();
    strict::check(crd, &mut found);
    duplicate_rule::check(crd, &mut found);
    annotation::check(crd, &mut found);
    warnings::check(crd, old, releases, &mut found);
    found
}

#[cfg(test)]
mod tests;
