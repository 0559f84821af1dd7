//! ETCH207, and the rules about CRDs, for the schema of an extension.

use std::collections::BTreeSet;

use serde_json::json;

use super::super::kubectl::{UNKNOWN_KEYWORD, ignored_keywords};
use super::super::refusal::{Part, spelled};
use super::super::rule::{Finding, Rule, Severity};
use super::at::{OfCrd, at};
use etch_admission::Declaration;
use kube_structural_schema::json::Json;
use kube_structural_schema::path::Step;

pub(super) const COST: Rule = Rule {
    code: "ETCH207",
    name: "embedded-cost",
    severity: Severity::Warning,
    summary: "a validation rule of the schema may exceed the cost limit of a CRD",
    help: "\
The estimate is the API server's own, for a CRD with this schema: the highest cost of a rule of
`x-kubernetes-validations` within the limits on lengths and numbers of items. An API server refuses a CRD with
such a rule. Etch serves it, and stops it at run time, as it stops the expressions of a request together: then
it refuses the request with the reason.

Set maxItems, maxLength and maxProperties on the values that the rule reads.",
    check: None,
};

/// Where the schema is in the CRD that is made of it: a name that no schema or message has by chance.
const HERE: &str = "etchExtensionSchema";

pub(super) fn check(declared: &Declaration, of_crd: OfCrd<'_>, found: &mut Vec<Finding>) {
    let Some(schema) = declared.schema.as_ref().map(|schema| &schema.open_api_v3_schema) else { return };
    let crd = Json::from(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "extensions.example.com" },
        "spec": {
            "group": "example.com", "scope": "Cluster",
            "names": {
                "kind": "Extension", "listKind": "ExtensionList", "plural": "extensions",
                "singular": "extension",
            },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": {
                    "type": "object", "required": [HERE], "properties": { HERE: schema },
                } },
            }],
        },
    }));
    for (below, message) in ignored_keywords(schema) {
        let place: Vec<Part> =
            ["spec", "schema", "openAPIV3Schema"].map(field).into_iter().chain(below).collect();
        let mut finding = at(&UNKNOWN_KEYWORD, spelled(&place), message);
        if let Some(refusal) = &mut finding.refusal {
            refusal.place = place;
        }
        found.push(finding);
    }
    let (by_rules, by_server) = of_crd(&crd);
    // Errors are what keeps it from being served: those have been found.
    let of_style = by_rules.into_iter().filter(|finding| finding.rule.severity != Severity::Error);
    for finding in of_style {
        let Some((first, below)) = finding.path.steps().split_first() else { continue };
        // The extension as a whole is not a field of the schema.
        if *first != Step::Field(HERE.to_owned()) || below.is_empty() {
            continue;
        }
        let mut place: Vec<Part> = ["spec", "schema", "openAPIV3Schema"].map(field).into();
        for step in below {
            match step {
                Step::Field(name) | Step::Key(name) => place.extend([field("properties"), field(name)]),
                Step::Items | Step::Index(_) => place.push(field("items")),
                Step::Values => place.push(field("additionalProperties")),
            }
        }
        place.push(field("default"));
        let path = kube_structural_schema::path::Path::from(below.to_vec());
        // Messages name places in the CRD.
        let message = finding.message.replace(&format!(".{HERE}"), "spec.schema");
        let mut finding = at(finding.rule, format!("spec.schema{path}"), message);
        if let Some(refusal) = &mut finding.refusal {
            refusal.place = place;
        }
        found.push(finding);
    }
    let mut known = BTreeSet::new();
    // What a rule costs by itself comes before its part of the whole.
    for finding in by_server.into_iter().filter(|finding| finding.message.contains("cost")) {
        let Some(refusal) = finding.refusal else { continue };
        let Some((_, below)) = refusal.field.split_once(&format!("properties[{HERE}]")) else { continue };
        let is_cost = ["estimated rule cost", "estimated messageExpression cost"];
        if !is_cost.iter().any(|text| refusal.detail.contains(text)) || !known.insert(below.to_owned()) {
            continue;
        }
        let mut finding = at(&COST, format!("spec.schema.openAPIV3Schema{below}"), refusal.detail.clone());
        if let Some(own) = &mut finding.refusal {
            own.place = ["spec", "schema", "openAPIV3Schema"].map(field).into();
            let inner = refusal.place.iter().skip_while(|part| **part != field(HERE)).skip(1);
            own.place.extend(inner.cloned());
        }
        found.push(finding);
    }
}

fn field(name: &str) -> Part {
    Part::Field(name.to_owned())
}
