//! What kubectl and the API server answer to the document of a CRD, beside what the server validates.
//! It must not judge the defaults, nor the schema as a schema.

mod annotation;
mod duplicate_key;
mod duplicate_rule;
mod nodes;
mod strict;
mod types;
mod warnings;

use super::refusal::{Part, Refusal};
use super::rule::{Finding, Rule};
use crate::domain::finding;
use crate::domain::json::Json;
use crate::domain::path::Path;
use crate::domain::validate::crd::Release;

pub use duplicate_key::duplicate_key;

/// The rules about the way in which kubectl applies a CRD, in the order of their codes.
pub const KUBECTL_RULES: [&Rule; 6] = [
    &strict::RULE,
    &duplicate_rule::RULE,
    &annotation::RULE,
    &warnings::FORMAT,
    &warnings::SET,
    &duplicate_key::RULE,
];

/// What kubectl and the server answer to a CRD, or to one that replaces another; what the server warned of before, it does not
/// repeat.
pub fn as_applied(crd: &Json, old: Option<&Json>, releases: &[Release]) -> Vec<Finding> {
    let mut found = Vec::new();
    strict::check(crd, &mut found);
    duplicate_rule::check(crd, &mut found);
    annotation::check(crd, &mut found);
    warnings::check(crd, old, releases, &mut found);
    found
}

/// A finding at a place of the document.
fn at(rule: &'static Rule, crd: &Json, place: Vec<Part>, message: String) -> Finding {
    let version_index = match place.get(..3) {
        Some([Part::Field(spec), Part::Field(versions), Part::Item(index)])
            if spec == "spec" && versions == "versions" =>
        {
            Some(*index)
        }
        _ => None,
    };
    let version = version_index.and_then(|index| crd["spec"]["versions"][index]["name"].as_str());
    let field = field(&place);
    let refusal =
        Refusal { field, kind: None, detail: message.clone(), releases: Vec::new(), place: place.clone() };
    Finding {
        rule,
        version: version.unwrap_or_default().to_owned(),
        version_index,
        path: schema_path(&place),
        message,
        refusal: Some(refusal),
        go: None,
    }
}

/// The place in the document, as strict decoding spells it.
fn field(place: &[Part]) -> String {
    let mut text = String::new();
    for part in place {
        match part {
            Part::Field(name) if text.is_empty() => text.push_str(name),
            Part::Field(name) => text.push_str(&format!(".{name}")),
            Part::Item(index) => text.push_str(&format!("[{index}]")),
        }
    }
    text
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

#[cfg(test)]
mod tests;
