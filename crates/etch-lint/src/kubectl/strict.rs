//! ETCH401: fields that a CRD does not have.

use super::super::refusal::Part;
use super::super::rule::{Finding, Rule, Severity};
use super::super::spelling::distance;
use super::nodes;
use super::site::at;
use super::types::fields;
use kube_structural_schema::json::Json;

pub(super) const RULE: Rule = Rule {
    code: "ETCH401",
    name: "unknown-keyword",
    severity: Severity::Error,
    summary: "kubectl refuses the CRD for a field or keyword that does not exist",
    help: "\
kubectl asks the API server to decode strictly: create, apply and replace fail with `strict decoding error: unknown field`, and
apply --server-side with `field not declared in schema`. Case counts: `Default` is no `default`. With --validate=ignore or warn the
field is dropped, and so is what it was meant to say; the same happens to clients that do not ask for strict decoding.",
    check: None,
};

/// How far a typed name may be from one that exists, to be taken for it.
const FAR: usize = 2;

pub(super) fn check(crd: &Json, found: &mut Vec<Finding>) {
    nodes::each(crd, &mut |of, value, place| {
        let Some(known) = fields(of) else { return };
        for name in value.as_object().into_iter().flatten().map(|(name, _)| name) {
            if known.iter().any(|(known, _)| known == name) {
                continue;
            }
            let mut place = place.to_vec();
            place.push(Part::Field(name.clone()));
            let meant =
                known.iter().map(|(known, _)| *known).filter(|known| distance(name, known, FAR) <= FAR);
            let hint = match meant.min_by_key(|known| distance(name, known, FAR)) {
                Some(meant) => format!("; did you mean {meant}?"),
                None => String::new(),
            };
            let message = format!(
                "unknown field {name:?}: kubectl refuses the CRD, other clients drop the field{hint}"
            );
            found.push(at(&RULE, crd, place, message));
        }
    });
}
