//! Selectable fields: which there may be, and how many.
//!
//! Source: apiextensions-apiserver `pkg/apis/apiextensions/validation/validation.go`,
//! `ValidateCustomResourceSelectableFields`.

use std::collections::{HashMap, HashSet};

use super::document::{Spec, Validation};
use super::json_path::{Found, resolve};
use super::options::Options;
use super::report::Report;
use kube_structural_schema::finding::Kind;
use kube_structural_schema::schema::{ParseError, Schema, SchemaType};

const MAX: usize = 8;

/// The release since which too many may stay.
const MAY_STAY: u32 = 35;

/// Checks the selectable fields of a place, which is a version's or, with an empty name, that of all.
pub(super) fn check(
    paths: &[&str],
    validation: Option<&Validation<'_>>,
    at: &str,
    version: &str,
    options: &Options<'_>,
    report: &mut Report,
) {
    if paths.is_empty() {
        return;
    }
    let fields = format!("{at}.selectableFields");
    let schema = match validation {
        None if version.is_empty() => {
            return report.invalid(fields, "may only be set when validations.schema is included");
        }
        None => None,
        Some(validation) => validation.schema.as_deref(),
    };
    if schema.is_none() && !version.is_empty() {
        return report
            .invalid(fields, "may only be set when `version.schema.openAPIV3Schema` is not included");
    }
    let structure = match schema.map(|schema| Schema::parse(schema.document.0)).transpose() {
        Ok(structure) => structure,
        Err(ParseError::Unsupported { detail, .. }) => {
            report.invalid(format!("{at}.schema.openAPIV3Schema"), detail);
            None
        }
        Err(error) => return report.invalid(format!("{at}.schema.openAPIV3Schema"), error.to_string()),
    };
    check_each(paths, structure.as_ref(), &fields, version, options, report);
}

/// Without a schema the server still looks at the paths, and breaks down at the first name.
fn check_each(
    paths: &[&str],
    schema: Option<&Schema>,
    at: &str,
    version: &str,
    options: &Options<'_>,
    report: &mut Report,
) {
    let mut seen = HashSet::new();
    for (index, path) in paths.iter().enumerate() {
        let at = format!("{at}[{index}].jsonPath");
        if path.is_empty() {
            report.required(at, "");
            continue;
        }
        let Found { path, root, schema } = match resolve(path, schema, false) {
            Ok(found) => found,
            Err(error) => {
                report.invalid(at, format!("is an invalid path: {error}"));
                continue;
            }
        };
        if root == "metadata" {
            report.invalid(&at, "must not point to fields in metadata");
        }
        let kind = schema.map(|schema| &schema.kind);
        if !matches!(kind, Some(SchemaType::String | SchemaType::Boolean | SchemaType::Integer)) {
            let detail = "must point to a field of type string, boolean or integer. Enum string fields and \
                strings with formats are allowed.";
            report.invalid(&at, detail);
        }
        if !seen.insert(path) {
            report.add(Kind::Duplicate, at, "");
        }
    }
    if seen.len() > MAX && !options.many_selectable.contains(version) {
        report.add(Kind::TooMany, at, format!("must have at most {MAX} items"));
    }
}

/// Where there were too many before, and still are the same.
pub(super) fn too_many_before<'d>(spec: &Spec<'d>, old: &Spec<'d>, server_minor: u32) -> HashSet<&'d str> {
    let mut places = HashSet::new();
    if server_minor < MAY_STAY {
        return places;
    }
    if old.selectable.len() > MAX && old.selectable == spec.selectable {
        places.insert("");
    }
    let before: HashMap<&str, &[&str]> =
        old.versions.iter().map(|version| (version.name, &version.selectable[..])).collect();
    for version in &spec.versions {
        let same =
            before.get(version.name).is_some_and(|old| old.len() > MAX && **old == version.selectable[..]);
        places.extend(same.then_some(version.name));
    }
    places
}
