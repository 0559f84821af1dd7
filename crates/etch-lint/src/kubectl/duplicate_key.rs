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
A mapping of YAML or JSON has the same key twice. kubectl takes the last value without a word, and so does
`etch`. Other tools take the first, or refuse the file. If one of the keys is a text and the other a number or
a boolean, as '1' and 1, kubectl takes now the one, now the other value.

Remove the one that is not meant.",
    check: None,
};

/// The finding about a key that occurs again at a place of a CRD's document, perhaps as a value of another
/// type.
pub fn duplicate_key(crd: &Json, place: Vec<Part>, is_other_type: bool) -> Finding {
    let message = match is_other_type {
        false => "the key occurs twice; kubectl takes the last value",
        true => "the key occurs twice, in two types that are the same in JSON; kubectl takes either value",
    };
    at(&RULE, crd, place, message.to_owned())
}
