//! ETCH001: schemas that are not structural.

use super::clause_default;
use super::rule::{Report, Rule, Severity};
use super::subject::Subject;
use kube_structural_schema::finding::{Finding, Kind};
use kube_structural_schema::schema::ParseError;
use kube_structural_schema::schema::rules::crd::Verdict;

pub(super) const RULE: Rule = Rule {
    code: "ETCH001",
    name: "non-structural",
    severity: Severity::Error,
    summary: "the schema is not structural",
    help: "\
A structural schema defines the type of every field, outside allOf, anyOf, oneOf and not. The server refuses a
CRD of apiextensions.k8s.io/v1 without one. It still serves CRDs that were stored before, with the condition
NonStructuralSchema, and fills in their defaults; it prunes their objects unless preserveUnknownFields is
true. Etch counts objects that lack a default and writes none.

Give every field a type, and move types, properties and defaults out of the clauses.",
    check: Some(check),
};

fn check(subject: &Subject<'_>, report: &mut Report<'_>) {
    match subject.verdict() {
        Verdict::Structural => {}
        Verdict::Violations(violations) => {
            for Finding { field, detail, .. } in violations.into_iter().map(|violation| violation.finding) {
                if clause_default::is_about(&field) {
                    continue;
                }
                let (version, path) = subject.place(&field);
                report.add(version, path, format!("{}{detail}", keyword(&field)));
            }
        }
        Verdict::Unreadable { version, error } => {
            let (ParseError::Malformed { place, .. } | ParseError::Unsupported { place, .. }) = &error;
            let at = Finding::new(Kind::Invalid, place.clone(), "").default_site();
            report.add(&version, at, format!("the schema cannot be read: {error}"));
        }
    }
}

/// The keyword in which a field of the server's ends, as the begin of a message.
fn keyword(field: &str) -> String {
    let last = field.rsplit(['.', ']']).next().unwrap_or_default();
    match last {
        "" | "openAPIV3Schema" | "items" | "additionalProperties" => String::new(),
        keyword => format!("{keyword}: "),
    }
}
