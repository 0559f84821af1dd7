//! ETCH003: defaults with fields that their schema does not know.

use super::rule::{Report, Rule, Severity};
use super::subject::Subject;
use kube_structural_schema::finding::Finding;

pub(super) const RULE: Rule = Rule {
    code: "ETCH003",
    name: "unpruned-default",
    severity: Severity::Error,
    summary: "a default has fields that the schema does not have",
    help: "\
The server drops fields that a schema does not have from objects, and would drop them from the default. So it
refuses the CRD.

Declare the fields, remove them from the default, or allow them with x-kubernetes-preserve-unknown-fields.",
    check: Some(check),
};

fn check(subject: &Subject<'_>, report: &mut Report<'_>) {
    for version in &subject.versions {
        for finding in version.default_findings().by_server.iter().filter(|finding| is_about(finding)) {
            report.add(
                &version.name,
                finding.default_site(),
                "the default has fields that the schema does not have",
            );
        }
    }
}

/// Whether a finding about a default is this one. Upstream gives it no kind of its own.
pub(super) fn is_about(finding: &Finding) -> bool {
    finding.detail == "must not have unknown fields"
}
