//! ETCH002: defaults that the server refuses as invalid.

use super::rule::{Report, Rule, Severity};
use super::subject::Subject;
use super::unpruned;
use kube_structural_schema::finding::{Finding, Kind};

pub(super) const RULE: Rule = Rule {
    code: "ETCH002",
    name: "invalid-default",
    severity: Severity::Error,
    summary: "a default breaks its own schema",
    help: "\
When the CRD is written, the server validates every default against the schema of its field, and refuses the
CRD if one does not match: wrong type, outside an enum or a range, without a required field, against a
validation rule.

A default for an object must contain its required fields itself: the server does not fill in their own
defaults before it validates it.",
    check: Some(check),
};

fn check(subject: &Subject<'_>, report: &mut Report<'_>) {
    for version in &subject.versions {
        for finding in &version.default_findings().by_server {
            if !unpruned::is_about(finding) {
                report.add(&version.name, finding.default_site(), message(finding, ""));
            }
        }
    }
}

/// What is wrong, and where inside of the default; `with` is what belongs to it.
pub(super) fn message(finding: &Finding, with: &str) -> String {
    let inside = finding.field.rsplit_once(".default").map_or("", |(_, inside)| inside);
    let inside = inside.trim_start_matches('.');
    let detail = requirement(finding);
    if inside.is_empty() {
        format!("the default{with} is invalid: {detail}")
    } else {
        format!("the default{with} is invalid at {inside}: {detail}")
    }
}

/// What a value breaks.
pub(super) fn requirement(finding: &Finding) -> &str {
    match finding.kind {
        Kind::Duplicate => "the item is in the list twice",
        Kind::Required if finding.detail.is_empty() => "it is required",
        // Upstream's words begin with the name of the value, and a default has none.
        _ => finding.detail.strip_prefix(" in body ").unwrap_or(&finding.detail),
    }
}
