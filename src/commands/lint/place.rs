//! From the place in a schema to the line in the file, for reports that are shown beside the file.

use std::fs;

use etch::source::{self, At};
use etch_lint::{Finding, Part};
use kube_structural_schema::path::Step;

use super::check::Located;

/// Looks up the lines of all findings in files.
pub(super) fn find_lines(findings: &mut [Located]) {
    let mut last: Option<(String, String)> = None;
    for Located { origin, finding, line, .. } in findings {
        let is_open = finding.go.is_none() && line.is_none();
        let Some(origin) = origin.as_ref().filter(|_| is_open) else { continue };
        if last.as_ref().is_none_or(|(file, _)| **file != *origin.file) {
            // Standard input cannot be read again, and a file may be gone: then there is no line.
            last = fs::read_to_string(&*origin.file).ok().map(|text| (origin.file.to_string(), text));
        }
        if let Some((_, text)) = &last {
            *line = source::line(text, origin, &place(finding));
        }
    }
}

/// The way to the default, or to the schema where it has none.
fn place(finding: &Finding) -> Vec<At> {
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
