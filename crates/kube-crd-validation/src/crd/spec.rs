//! `spec`: group, scope, versions and all that is in them.
//!
//! Source: apiextensions-apiserver `pkg/apis/apiextensions/validation/validation.go`,
//! `validateCustomResourceDefinitionSpec`.

use super::document::{Spec, Subresources, Version};
use super::options::Options;
use super::report::Report;
use super::{columns, conversion, names, selectable, validation};
use crate::metadata::names::{dns_1035_label, dns_subdomain};
use go_text::strconv::is_print;

/// The longest deprecation warning, in bytes.
const MAX_WARNING: usize = 256;

pub(super) fn check(spec: &Spec<'_>, options: &Options<'_>, report: &mut Report) {
    group_and_scope(spec, report);
    let mut options = options.clone();
    options.require_structural |= !spec.preserve_unknown_fields;
    schemas(spec, &options, report);
    if spec.any_schema(|schema| schema.default.is_some()) {
        options.require_structural = true;
        if spec.preserve_unknown_fields {
            let detail = "must be false in order to use defaults in the schema";
            report.invalid("spec.preserveUnknownFields", detail);
        }
    }
    options.require_structural |= spec.any_schema(|schema| {
        schema.embedded_resource
            || schema.preserve_unknown_fields.is_some()
            || schema.int_or_string
            || !schema.list_map_keys.is_empty()
            || schema.list_type.is_some()
            || !schema.rules.is_empty()
    });
    versions(spec, &options, report);
    required_names(spec, report);
    names::check(&spec.names, "spec.names", report);
    let any_status = has_status(spec.subresources.as_ref())
        || spec.versions.iter().any(|version| has_status(version.subresources.as_ref()));
    let top = options.for_version(spec.version);
    validation::check(spec.validation.as_ref(), any_status, &top, "spec.validation", report);
    columns::check_scale(spec.subresources.as_ref(), "spec", report);
    columns::check(&spec.columns, "spec", report);
    selectable::check(&spec.selectable, spec.validation.as_ref(), "spec", "", &options, report);
    if spec.conversion.strategy != "None" && spec.preserve_unknown_fields {
        report.invalid("spec.conversion.strategy", "must be None if spec.preserveUnknownFields is true");
    }
    conversion::check(&spec.conversion, &options, report);
}

/// What must not change. Scope and kind may, until the CRD is established.
pub(super) fn check_update(spec: &Spec<'_>, old: &Spec<'_>, options: &Options<'_>, report: &mut Report) {
    let established = options.require_immutable_names;
    for (field, changed) in [
        ("scope", established && spec.scope != old.scope),
        ("names.kind", established && spec.names.kind != old.names.kind),
        ("group", spec.group != old.group),
        ("names.plural", spec.names.plural != old.names.plural),
    ] {
        if changed {
            report.invalid(format!("spec.{field}"), "field is immutable");
        }
    }
}

fn group_and_scope(spec: &Spec<'_>, report: &mut Report) {
    let problems = dns_subdomain(spec.group);
    if spec.group.is_empty() {
        report.required("spec.group", "");
    } else if !problems.is_empty() {
        report.malformed("spec.group", "", &problems);
    } else if !spec.group.contains('.') {
        report.invalid("spec.group", "should be a domain with at least one dot");
    }
    match spec.scope {
        "Cluster" | "Namespaced" => {}
        "" => report.required("spec.scope", ""),
        _ => report.not_supported("spec.scope", &["Cluster", "Namespaced"]),
    }
}

/// Whether all versions, or at least the served ones, have a schema.
fn schemas(spec: &Spec<'_>, options: &Options<'_>, report: &mut Report) {
    let has = |validation: &Option<super::document::Validation<'_>>| {
        validation.as_ref().is_some_and(|validation| validation.schema.is_some())
    };
    if has(&spec.validation) || (!options.require_schema && spec.preserve_unknown_fields) {
        return;
    }
    for (index, version) in spec.versions.iter().enumerate() {
        if has(&version.validation) || !(options.require_schema || version.served) {
            continue;
        }
        let detail = if options.require_schema { "" } else { "because otherwise all fields are pruned" };
        report.required(format!("spec.versions[{index}].schema.openAPIV3Schema"), detail);
    }
}

fn versions(spec: &Spec<'_>, options: &Options<'_>, report: &mut Report) {
    for (index, version) in spec.versions.iter().enumerate() {
        let at = format!("spec.versions[{index}]");
        report.malformed(format!("{at}.name"), "", &dns_1035_label(version.name));
        self::version(version, has_status(subresources_of(spec, version.name)), options, &at, report);
    }
    let names = spec.versions.iter().map(|version| version.name);
    if names.clone().enumerate().any(|(index, name)| names.clone().take(index).any(|other| other == name)) {
        report.invalid("spec.versions", "must contain unique version names");
    }
    if spec.versions.iter().filter(|version| version.storage).count() != 1 {
        report.invalid("spec.versions", "must have exactly one version marked as storage version");
    }
    if !spec.version.is_empty() {
        report.malformed("spec.version", "", &dns_1035_label(spec.version));
    }
}

fn subresources_of<'s, 'd>(spec: &'s Spec<'d>, name: &str) -> Option<&'s Subresources<'d>> {
    if spec.versions.iter().all(|version| version.subresources.is_none()) {
        return spec.subresources.as_ref();
    }
    spec.versions.iter().find(|version| version.name == name)?.subresources.as_ref()
}

fn has_status(subresources: Option<&Subresources<'_>>) -> bool {
    subresources.is_some_and(|subresources| subresources.status)
}

fn version(version: &Version<'_>, has_status: bool, options: &Options<'_>, at: &str, report: &mut Report) {
    if let Some(warning) = version.deprecation_warning {
        deprecation_warning(warning, version.deprecated, &format!("{at}.deprecationWarning"), report);
    }
    let options = options.for_version(version.name);
    validation::check(version.validation.as_ref(), has_status, &options, &format!("{at}.schema"), report);
    columns::check_scale(version.subresources.as_ref(), at, report);
    columns::check(&version.columns, at, report);
    let named = if version.name.is_empty() { "\0" } else { version.name };
    selectable::check(&version.selectable, version.validation.as_ref(), at, named, &options, report);
}

fn deprecation_warning(warning: &str, deprecated: bool, at: &str, report: &mut Report) {
    if !deprecated {
        return report.invalid(at, "can only be set for deprecated versions");
    }
    if warning.len() > MAX_WARNING {
        report.invalid(at, "must be <= 256 characters long");
    }
    if warning.is_empty() {
        report.invalid(at, "must not be an empty string");
    }
    if let Some((index, _)) = warning.char_indices().find(|(_, letter)| !is_print(*letter)) {
        let detail = format!(
            "must only contain printable UTF-8 characters; non-printable character found at index {index}"
        );
        report.invalid(at, detail);
    }
}

fn required_names(spec: &Spec<'_>, report: &mut Report) {
    let names = &spec.names;
    for (field, text) in [
        ("plural", names.plural),
        ("singular", &names.singular),
        ("kind", names.kind),
        ("listKind", &names.list_kind),
    ] {
        if text.is_empty() {
            report.required(format!("spec.names.{field}"), "");
        }
    }
}
