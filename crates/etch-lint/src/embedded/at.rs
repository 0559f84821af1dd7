//! A finding at a field of a document.

use super::super::refusal::{Part, Refusal};
use super::super::rule::{Finding, Rule};
use kube_structural_schema::json::Json;
use kube_structural_schema::path::Path;

/// What is found in a CRD: by the rules about CRDs, and by the API server.
pub(super) type OfCrd<'f> = &'f dyn Fn(&Json) -> (Vec<Finding>, Vec<Finding>);

/// A finding at a field of the document, such as `spec.rules[3].rule`.
pub(super) fn at(rule: &'static Rule, field: impl Into<String>, message: impl Into<String>) -> Finding {
    let (field, message) = (field.into(), message.into());
    let place = parts(&field);
    let detail = message.clone();
    let refusal = Refusal { field, kind: None, detail, releases: Vec::new(), place };
    Finding { refusal: Some(refusal), ..Finding::new(rule, "", Path::root(), message) }
}

/// The steps of a field: names with dots do not occur above the schema, and below it the line of the deepest
/// step counts.
pub(super) fn parts(field: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    for segment in field.split('.').filter(|segment| !segment.is_empty()) {
        let (name, rest) = segment.split_once('[').map_or((segment, ""), |(name, rest)| (name, rest));
        if !name.is_empty() {
            parts.push(Part::Field(name.to_owned()));
        }
        for index in rest.split('[') {
            match index.trim_end_matches(']').parse() {
                Ok(index) => parts.push(Part::Item(index)),
                Err(_) if index.is_empty() => {}
                Err(_) => parts.push(Part::Field(index.trim_end_matches(']').to_owned())),
            }
        }
    }
    parts
}
