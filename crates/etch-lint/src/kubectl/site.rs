//! A finding at a place of a CRD's document.

use super::super::refusal::{Part, Refusal, spelled, version_at};
use super::super::rule::{Finding, Rule};
use kube_structural_schema::finding;
use kube_structural_schema::json::Json;
use kube_structural_schema::path::Path;

/// A finding at a place of the document.
pub(super) fn at(rule: &'static Rule, crd: &Json, place: Vec<Part>, message: String) -> Finding {
    let (version_index, version) = version_at(crd, &place);
    let (field, path) = (spelled(&place), schema_path(&place));
    let refusal = Refusal { field, kind: None, detail: message.clone(), releases: Vec::new(), place };
    Finding { version_index, refusal: Some(refusal), ..Finding::new(rule, version, path, message) }
}

/// The place of values that a place in a schema is about.
fn schema_path(place: &[Part]) -> Path {
    let below = place
        .iter()
        .position(|part| matches!(part, Part::Field(name) if name == "openAPIV3Schema"))
        .map_or(&[][..], |index| &place[index..]);
    let mut text = String::new();
    let mut rest = below.iter();
    while let Some(part) = rest.next() {
        match part {
            Part::Field(name) if name == "properties" => match rest.next() {
                Some(Part::Field(name)) => text.push_str(&format!(".properties[{name}]")),
                _ => break,
            },
            Part::Field(name) if text.is_empty() => text.push_str(name),
            Part::Field(name) => text.push_str(&format!(".{name}")),
            Part::Item(index) => text.push_str(&format!("[{index}]")),
        }
    }
    finding::Finding::new(finding::Kind::Invalid, text, "").default_site()
}
