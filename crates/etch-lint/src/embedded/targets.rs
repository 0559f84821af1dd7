//! ETCH203 and ETCH204: targets that lead nowhere, or are there twice.

use super::super::rule::{Finding, Rule, Severity};
use super::at::at;
use super::paths::{RULE as PATH_UNKNOWN, Reached, reach, steps};
use etch_admission::{Declaration, is_asked_about};
use etch_core::crd::Crd;
use etch_core::impact::compare;
use kube_structural_schema::json::Json;
use kube_structural_schema::path::Step;
use kube_structural_schema::schema::Schema;

pub(super) const UNKNOWN: Rule = Rule {
    code: "ETCH203",
    name: "embedded-target-unknown",
    severity: Severity::Error,
    summary: "a target does not exist in its CRD",
    help: "\
The CRD of the target, which is among the files, does not have the version or the path. The API server removes
fields that a schema does not have, so there is never an extension at such a path, and Etch never judges
anything. If the CRD has a value of another type there than the schema, each extension is refused.

Targets whose CRD is not among the files are not checked. API servers never send requests about objects of
Etch's own group and of admissionregistration.k8s.io. If status is a subresource, they remove it from what is
created and updated before they ask, and Etch does not judge what is written to the subresource.",
    check: None,
};

pub(super) const TWICE: Rule = Rule {
    code: "ETCH204",
    name: "embedded-target-twice",
    severity: Severity::Error,
    summary: "two targets are the same version of the same resource",
    help: "\
Etch judges the objects of a resource by one path of each EmbeddedSchema, and does not serve an EmbeddedSchema
with two targets of the same group, version and resource.

Write a path with [*] if the objects hold several extensions, or a second EmbeddedSchema.",
    check: None,
};

pub(super) fn check(declared: &Declaration, crds: &[Json], found: &mut Vec<Finding>) {
    let schema = declared.schema.as_ref().map(|schema| &schema.open_api_v3_schema);
    let extension = schema.and_then(|schema| Schema::parse(schema).ok());
    for (index, target) in declared.targets.iter().enumerate() {
        let here = format!("spec.targets[{index}]");
        if !is_asked_about(&target.group) {
            let message = format!("API servers never ask about objects of the group {}", target.group);
            found.push(at(&UNKNOWN, format!("{here}.group"), message));
        }
        let is_it = |crd: &&Json| {
            crd["spec"]["group"] == *target.group && crd["spec"]["names"]["plural"] == *target.resource
        };
        let Some(Ok(crd)) = crds.iter().find(is_it).map(Crd::read) else { continue };
        let Some(version) = crd.version(&target.version) else {
            let message = format!("{} has no version {}", crd.name(), target.version);
            found.push(at(&UNKNOWN, format!("{here}.version"), message));
            continue;
        };
        let Some(steps) = steps(&target.path) else { continue };
        let is_metadata = target.path.starts_with(".metadata");
        let in_crd = format!("{} {}", crd.name(), target.version);
        let is_status = matches!(steps.first(), Some(Step::Field(name)) if name == "status");
        match reach(&version.schema, &steps) {
            _ if is_metadata => {}
            _ if is_status && version.status_subresource => {
                let message = format!("API servers never ask about .status of {in_crd}: it is a subresource");
                found.push(at(&UNKNOWN, format!("{here}.path"), message));
            }
            Reached::Nothing(known) => {
                let message = format!("{in_crd} knows nothing below {known}");
                found.push(at(&UNKNOWN, format!("{here}.path"), message));
            }
            Reached::Schema(there) => {
                if let Some(extension) = &extension {
                    let mut add = |rule, message: String| {
                        found.push(at(rule, format!("{here}.path"), in_crd.clone() + &message))
                    };
                    fits(there, extension, &mut add);
                }
            }
            Reached::Anything => {}
        }
    }
}

/// Whether the place that a path leads to can hold the extension, and what of it the API server drops there.
fn fits(there: &Schema, extension: &Schema, add: &mut dyn FnMut(&'static Rule, String)) {
    let (there_kind, kind) = (there.kind.as_str(), extension.kind.as_str());
    if ![there_kind, kind].contains(&"") && there_kind != kind {
        let each = if there_kind == "array" { "; to name its items, write [*] behind it" } else { "" };
        return add(&UNKNOWN, format!(" has type {there_kind} there, and the schema type {kind}{each}"));
    }
    for lost in compare(extension, there).fields_removed {
        add(&PATH_UNKNOWN, format!(" does not keep {lost} there, which the schema declares"));
    }
}
