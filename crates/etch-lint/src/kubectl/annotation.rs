//! ETCH403: CRDs that are too long for the annotation of client-side apply.

use serde_json::{Map, Value, json};

use super::super::refusal::Part;
use super::super::rule::{Finding, Rule, Severity};
use super::site::at;
use kube_structural_schema::json::Json;

pub(super) const RULE: Rule = Rule {
    code: "ETCH403",
    name: "long-for-apply",
    severity: Severity::Warning,
    summary: "kubectl apply refuses the CRD, because its last-applied annotation is too long",
    help: "\
kubectl apply stores the whole document in the annotation kubectl.kubernetes.io/last-applied-configuration,
and the API server refuses annotations of more than 262144 bytes together: `metadata.annotations: Too long`.
create, replace and apply --server-side store no such annotation.

Shorten the descriptions (controller-gen crd:maxDescLen=0), or tell users to apply with --server-side.",
    check: None,
};

/// What the keys and values of an object's annotations may be together, in bytes.
///
/// Source: apimachinery `pkg/api/validation/objectmeta.go`, `TotalAnnotationSizeLimitB`.
const LIMIT: usize = 256 << 10;
const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

pub(super) fn check(crd: &Json, found: &mut Vec<Finding>) {
    let size = annotations(crd);
    if size > LIMIT {
        let place = vec![Part::Field("metadata".to_owned()), Part::Field("annotations".to_owned())];
        let message = format!(
            "kubectl apply would store {size} bytes of annotations, and the API server refuses more than \
             {LIMIT}; use kubectl apply --server-side"
        );
        found.push(at(&RULE, crd, place, message));
    }
}

/// How long the annotations are together after a client-side apply, which stores all of the document but an
/// earlier copy of it.
fn annotations(crd: &Json) -> usize {
    let mut applied = crd.clone();
    if let Some(document) = applied.as_object_mut() {
        let metadata = document.entry("metadata").or_insert_with(|| json!({}));
        if let Some(metadata) = metadata.as_object_mut() {
            // kubectl writes `"annotations":{}` where there are none.
            let annotations = metadata.entry("annotations").or_insert_with(|| Value::Object(Map::new()));
            if let Some(annotations) = annotations.as_object_mut() {
                annotations.remove(ANNOTATION);
            }
        }
    }
    let others = applied["metadata"]["annotations"].as_object().into_iter().flatten();
    let others: usize = others.map(|(name, value)| name.len() + value.as_str().map_or(0, str::len)).sum();
    // Go's encoder ends with a line feed.
    ANNOTATION.len() + encoded(&applied) + 1 + others
}

/// How long a value is as Go's encoder writes it, which escapes what HTML could take for markup.
fn encoded(value: &Json) -> usize {
    let bytes = value.to_vec();
    let text = String::from_utf8_lossy(&bytes);
    let longer = text.chars().map(|character| match character {
        '<' | '>' | '&' => 5,
        '\u{2028}' | '\u{2029}' => 3,
        _ => 0,
    });
    text.len() + longer.sum::<usize>()
}

/// How long the annotations of a document become.
#[cfg(test)]
pub(super) fn tests_size(crd: &Value) -> usize {
    annotations(&Json::from(crd.clone()))
}
