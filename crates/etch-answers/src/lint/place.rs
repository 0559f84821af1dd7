//! From the place in a schema to the place in a document.

use etch_lint::{Finding, Part};
use kube_manifests::At;
use kube_structural_schema::path::Step;

/// The way to the default, or to the schema where it has none.
pub(super) fn place(finding: &Finding) -> Vec<At> {
    if let Some(refusal) = &finding.refusal {
        let at = |part: &Part| match part {
            Part::Field(name) => At::Field(name.clone()),
            Part::Item(index) => At::Item(*index),
        };
        return refusal.place.iter().map(at).collect();
    }
    let field = |name: &str| At::Field(name.to_owned());
    let mut place = vec![field("spec"), field("versions")];
    if let Some(index) = finding.version_index {
        place.extend([At::Item(index), field("schema"), field("openAPIV3Schema")]);
        for step in finding.path.steps() {
            match step {
                Step::Field(name) | Step::Key(name) => place.extend([field("properties"), field(name)]),
                Step::Items | Step::Index(_) => place.push(field("items")),
                Step::Values => place.push(field("additionalProperties")),
            }
        }
        if !finding.rule.is_about_upgrades() {
            place.push(field("default"));
        }
    }
    place
}
