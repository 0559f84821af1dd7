//! ETCH406: keys that occur twice in one mapping of the file.

use super::super::refusal::Part;
use super::super::rule::{Finding, Rule, Severity};
use super::site::at;
use kube_structural_schema::json::Json;

pub(super) const RULE: Rule = Rule {
    code: "ETCH406",
    name: "duplicate-key",
    severity: Severity::Warning,
    summary: "a key occurs twice, and kubectl takes the last one",
    help: "\
A mapping of YAML or JSON has the same key twice. kubectl takes the last value without a word, and so does `etch`. Other tools take
the first, or refuse the file.

Remove the one that is not meant.",
    check: None,
};

/// The finding about a key that occurs again at a place of a CRD's document.
pub fn duplicate_key(crd: &Json, place: Vec<Part>) -> Finding {
    at(&RULE, crd, place, "the key occurs twice; kubectl takes the last value".to_owned())
}
