//! ETCH401: fields that a CRD does not have.

use super::super::refusal::Part;
use super::super::rule::{Finding, Rule, Severity};
use super::super::spelling::distance;
use super::nodes::{self, Node};
use super::site::at;
use super::types::fields;
use kube_structural_schema::json::Json;
use serde_json::Value;

pub(crate) const RULE: Rule = Rule {
    code: "ETCH401",
    name: "unknown-keyword",
    severity: Severity::Error,
    summary: "kubectl refuses the CRD for a field or keyword that does not exist, or the server drops it",
    help: "\
kubectl asks the API server to decode strictly: create, apply and replace fail with
`strict decoding error: unknown field`, and apply --server-side with `field not declared in schema`. Case
counts: `Default` is no `default`. With --validate=ignore or warn the field is dropped, and so is what it was
meant to say; the same happens to clients that do not ask for strict decoding.

Below `items` and `additionalProperties` the API server drops the field and reports nothing, whatever the
client asks for.

The schema of an EmbeddedSchema may have any field, so no API server refuses it there, and it has no effect.
Fields that begin with `x-` are not reported there, unless they begin with `x-kubernetes-`.",
    check: None,
};

/// How far a typed name may be from one that exists, to be taken for it.
const FAR: usize = 2;

pub(super) fn check(crd: &Json, found: &mut Vec<Finding>) {
    nodes::each(crd, &mut |node| {
        let consequence = match node.is_strict {
            true => "kubectl refuses the CRD, other clients drop the field",
            false => "the API server drops it here and reports nothing",
        };
        unknown(node, &mut |place, name, hint| {
            let message = format!("unknown field {name:?}: {consequence}{hint}");
            found.push(at(&RULE, crd, place, message));
        });
    });
}

/// The unknown fields of a schema that no API server decodes strictly: their places in it, and what is wrong.
pub(crate) fn ignored_keywords(schema: &Value) -> Vec<(Vec<Part>, String)> {
    let mut found = Vec::new();
    nodes::of_schema(schema, &mut |node| {
        unknown(node, &mut |place, name, hint| {
            let is_own = name.starts_with("x-") && !name.starts_with("x-kubernetes-");
            if !is_own {
                found.push((
                    place,
                    format!("unknown field {name:?}: it is accepted here, and has no effect{hint}"),
                ));
            }
        });
    });
    found
}

/// The fields of an object that its type does not have: place, name, and a hint at what was meant.
fn unknown(node: &Node<'_>, report: &mut dyn FnMut(Vec<Part>, &str, String)) {
    let Some(known) = fields(node.of) else { return };
    for name in node.value.as_object().into_iter().flatten().map(|(name, _)| name) {
        if known.iter().any(|(known, _)| known == name) {
            continue;
        }
        let meant = known.iter().map(|(known, _)| *known).filter(|known| distance(name, known, FAR) <= FAR);
        let hint = match meant.min_by_key(|known| distance(name, known, FAR)) {
            Some(meant) => format!("; did you mean {meant}?"),
            None => String::new(),
        };
        report([node.place, &[Part::Field(name.to_owned())]].concat(), name, hint);
    }
}
