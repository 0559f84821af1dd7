//! Rules about defaults in Go types, as KEP-1929 has them, and about the same defaults in generated CRDs.

mod crd;
mod map_key;
mod markers;
mod misspelt;
mod omitempty;
mod scalar;
mod scalar_without_default;
mod site;
mod struct_default;
mod struct_without_default;

use super::rule::{Finding, Rule};
use crate::go_types::Packages;
use kube_structural_schema::json::Json;
use site::Report;

/// All rules about Go types, in the order of their codes.
pub const GO_RULES: [&Rule; 13] = [
    &scalar::RULE,
    &omitempty::RULE,
    &struct_without_default::RULE,
    &struct_default::RULE,
    &map_key::RULE,
    &markers::UNREADABLE,
    &markers::MISFIT,
    &markers::DISAGREE,
    &crd::LACKS,
    &crd::UNMARKED,
    &crd::DIFFERS,
    &misspelt::RULE,
    &scalar_without_default::RULE,
];

/// Applies the rules about Go types to the requested packages, and compares them with generated CRDs.
/// Findings are in the order of files, lines and codes.
pub fn lint_go(packages: &Packages, crds: &[Json]) -> Vec<Finding> {
    let mut report = Report::default();
    site::each(packages, &mut |site| {
        scalar::check(site, &mut report);
        scalar_without_default::check(site, &mut report);
        omitempty::check(site, &mut report);
        struct_without_default::check(site, &mut report);
        struct_default::check(site, &mut report);
        map_key::check(site, &mut report);
    });
    markers::check(packages, &mut report);
    misspelt::check(packages, &mut report);
    for crd in crds {
        crd::check(packages, crd, &mut report);
    }
    report.findings()
}

#[cfg(test)]
mod tests;
