//! ETCH402: validation rules that occur twice at one place.

use serde_json::Value;

use super::super::refusal::Part;
use super::super::rule::{Finding, Rule, Severity};
use super::super::site::shown;
use super::nodes;
use super::site::at;
use kube_structural_schema::json::Json;

pub(super) const RULE: Rule = Rule {
    code: "ETCH402",
    name: "duplicate-rule",
    severity: Severity::Warning,
    summary: "kubectl apply --server-side refuses the CRD for a validation rule that occurs twice",
    help: "\
For server-side apply, x-kubernetes-validations is a list of type map with the key `rule`, so two rules of the
same text at one place are `duplicate entries for key`. create, replace and client-side apply accept them;
Flux and Argo CD (with ServerSideApply=true) do not. Below `items` and `additionalProperties` server-side
apply accepts them as well, and the rule reports nothing.

Remove one of them. If they differ in their messages, combine these.",
    check: None,
};

const KEYWORD: &str = "x-kubernetes-validations";

pub(super) fn check(crd: &Json, found: &mut Vec<Finding>) {
    nodes::schemas(crd, &mut |node| {
        if !node.is_strict {
            return;
        }
        let rules = node.value.get(KEYWORD).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        for (index, rule) in rules.iter().enumerate() {
            let text = &rule["rule"];
            if !text.is_null() && rules[..index].iter().any(|other| other["rule"] == *text) {
                let mut place = node.place.to_vec();
                place.extend([Part::Field(KEYWORD.to_owned()), Part::Item(index)]);
                let message = format!(
                    "kubectl apply --server-side refuses duplicate entries for key [rule={}]",
                    shown(text)
                );
                found.push(at(&RULE, crd, place, message));
            }
        }
    });
}
