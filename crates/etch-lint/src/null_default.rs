//! ETCH016: `default: null`, which the server reads as no default.

use serde_json::Value;

use super::rule::{Report, Rule, Severity};
use super::subject::Subject;
use kube_structural_schema::path::{Path, Step};

pub(super) const RULE: Rule = Rule {
    code: "ETCH016",
    name: "null-default",
    severity: Severity::Warning,
    summary: "a default is null, which does not count as a default",
    help: "\
The server drops `default: null` when it reads a CRD: the field has no default, and the stored CRD does not
even show it. Null means the absence of a value (KEP-1929, Changes to CRD Normalization): the server removes
it from a field that is not nullable, and a nullable field is better absent.

Remove the default. If a program must see a null, have users write it, and make the field nullable.",
    check: Some(check),
};

fn check(subject: &Subject<'_>, report: &mut Report<'_>) {
    for version in subject.in_use() {
        let document = subject.version_index(&version.name).map(|index| &subject.spec["versions"][index]);
        if let Some(schema) = document.and_then(|document| document["schema"].get("openAPIV3Schema")) {
            each_null(schema, &mut Path::root(), &mut |path| {
                report.add(&version.name, path.clone(), "the default is null; the server ignores it");
            });
        }
    }
}

/// Visits the places of `default: null`, in the document: a schema that was read has lost it.
fn each_null(schema: &Value, at: &mut Path, visit: &mut dyn FnMut(&Path)) {
    if schema.get("default") == Some(&Value::Null) {
        visit(at);
    }
    let mut below = |schema: &Value, step: Step| {
        at.push(step);
        each_null(schema, at, visit);
        at.pop();
    };
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        below(property, Step::Field(name.clone()));
    }
    if let Some(items) = schema.get("items") {
        below(items, Step::Items);
    }
    if let Some(values) = schema.get("additionalProperties") {
        below(values, Step::Values);
    }
}
