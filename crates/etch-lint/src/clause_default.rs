//! ETCH011: defaults inside of `allOf`, `anyOf`, `oneOf` and `not`.

use super::rule::{Report, Rule, Severity};
use super::subject::Subject;
use kube_structural_schema::schema::rules::crd::Verdict;

pub(super) const RULE: Rule = Rule {
    code: "ETCH011",
    name: "clause-default",
    severity: Severity::Error,
    summary: "a default is inside allOf, anyOf, oneOf or not",
    help: "\
The clauses of a structural schema restrict values and do not describe any, so the server refuses a default in
them. In a CRD that was stored before, such a default has no effect.

Move the default to the same field outside the clause.",
    check: Some(check),
};

const CLAUSES: [&str; 4] = [".allOf[", ".anyOf[", ".oneOf[", ".not"];

fn check(subject: &Subject<'_>, report: &mut Report<'_>) {
    if let Verdict::Violations(violations) = subject.verdict() {
        for field in violations.into_iter().map(|violation| violation.finding.field) {
            if is_about(&field) {
                let (version, path) = subject.place(&field);
                let clause = field.rfind("openAPIV3Schema").map_or("", |start| &field[start..]);
                let start = CLAUSES.iter().filter_map(|clause_name| clause.find(clause_name)).min();
                let inside = start.map_or(clause, |start| &clause[start + 1..]);
                report.add(version, path, format!("{inside} has no effect, and the server refuses it"));
            }
        }
    }
}

/// Whether a field of the server's is such a default.
pub(super) fn is_about(field: &str) -> bool {
    field.ends_with(".default") && CLAUSES.iter().any(|clause| field.contains(clause))
}
