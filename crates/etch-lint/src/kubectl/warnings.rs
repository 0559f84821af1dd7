//! ETCH404 and ETCH405: what the API server accepts with a warning.
//!
//! Source: apiextensions-apiserver `pkg/registry/customresourcedefinition/strategy.go`, `WarningsOnCreate`
//! and `WarningsOnUpdate`.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::refusal::Part;
use super::super::rule::{Finding, Rule, Severity};
use super::super::site::is_known_format;
use super::nodes::{self, Node};
use super::site::at;
use kube_crd_validation::crd::Release;
use kube_structural_schema::json::Json;

pub(super) const FORMAT: Rule = Rule {
    code: "ETCH404",
    name: "unrecognized-format",
    severity: Severity::Warning,
    summary: "the API server warns of a format that it does not know",
    help: "\
The API server accepts the CRD with the warning `unrecognized format`, and does not check values against the
format. Formats that it knows belong to a type: int32 and int64 to integer, float and double to number, all
others to string. When an update brings no format that the existing CRD does not have, the server does not
warn.

Remove the format, or write what it means as minimum, maximum, a pattern or a validation rule.",
    check: None,
};

pub(super) const SET: Rule = Rule {
    code: "ETCH405",
    name: "set-of-objects",
    severity: Severity::Warning,
    summary: "the API server warns of a set whose items are objects or lists",
    help: "\
The API server refuses objects with equal items in such a set, after it has filled in the defaults of the
items, but server-side apply and validation rules do not support it: they treat the list in other ways. Since
Kubernetes 1.37 the API server warns of it.

Use a list of type map with a key, or of type atomic.",
    check: None,
};

/// The first release that warns of sets of objects.
const SETS_SINCE: u32 = 37;

pub(super) fn check(crd: &Json, old: Option<&Json>, releases: &[Release], found: &mut Vec<Finding>) {
    let known: BTreeSet<(&str, String)> = old.map(wording).unwrap_or_default();
    let warns_of_sets = releases.iter().any(|release| release.minor() >= SETS_SINCE);
    nodes::schemas(crd, &mut |Node { value: schema, place, .. }| {
        let mut warn = |rule: &'static Rule, keyword: &str, text: String| {
            if !known.contains(&(rule.code, text.clone())) {
                let mut place = place.to_vec();
                place.push(Part::Field(keyword.to_owned()));
                found.push(at(rule, crd, place, format!("the API server warns: {text}")));
            }
        };
        if let Some(text) = format(schema) {
            warn(&FORMAT, "format", text);
        }
        if let Some(text) = set(schema).filter(|_| warns_of_sets) {
            warn(&SET, "x-kubernetes-list-type", text);
        }
    });
}

/// The warnings that a CRD has got already.
fn wording(crd: &Json) -> BTreeSet<(&'static str, String)> {
    let mut wording = BTreeSet::new();
    nodes::schemas(crd, &mut |Node { value: schema, .. }| {
        wording.extend(format(schema).map(|text| (FORMAT.code, text)));
        wording.extend(set(schema).map(|text| (SET.code, text)));
    });
    wording
}

fn format(schema: &Value) -> Option<String> {
    let (kind, format) = (schema["type"].as_str().unwrap_or_default(), schema["format"].as_str()?);
    let is_unknown = !format.is_empty() && !is_known_format(kind, format);
    is_unknown.then(|| format!("unrecognized format {format:?}"))
}

fn set(schema: &Value) -> Option<String> {
    let kind = schema["items"]["type"].as_str()?;
    let is_it = schema["x-kubernetes-list-type"] == "set" && matches!(kind, "object" | "array");
    is_it.then(|| {
        format!(
            "x-kubernetes-list-type: set for items of type {kind:?} is not supported by server-side apply or \
             CEL validation rules"
        )
    })
}
