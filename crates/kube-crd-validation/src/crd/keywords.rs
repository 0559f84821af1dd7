//! Keywords that a CRD must not use, or not everywhere.
//!
//! Source: apiextensions-apiserver `pkg/apis/apiextensions/validation/validation.go`,
//! `specStandardValidatorV3` and `allowedAtRootSchema`.

use super::options::TYPES;
use super::props::Props;
use super::report::Report;
use super::standing::Standing;
use crate::field::Field;

/// The keywords that a root may have beside the status subresource, as the server lists them.
const AT_ROOT: &str = "Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum \
    MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties \
    ExternalDocs Example XPreserveUnknownFields XValidations";

/// Checks the root's keywords beside a status subresource; the server names the first that it finds.
pub(super) fn check_root(schema: &Props<'_>, at: &str, report: &mut Report) {
    let before_type = !schema.id.is_empty() || !schema.schema.is_empty() || schema.reference.is_some();
    let detail = || {
        format!(
            "only [{AT_ROOT}] fields are allowed at the root of the schema if the status subresource is \
             enabled"
        )
    };
    if before_type {
        return report.invalid(at, detail());
    }
    if !matches!(schema.kind, "" | "object") {
        let detail = "only \"object\" is allowed as the type at the root of the schema if the status \
            subresource is enabled";
        return report.invalid(format!("{at}.type"), detail);
    }
    let forbidden = schema.nullable
        || schema.default.is_some()
        || schema.allowed.is_given()
        || schema.max_properties.is_some()
        || schema.min_properties.is_some()
        || schema.all_of.is_given()
        || schema.one_of.is_given()
        || schema.any_of.is_given()
        || schema.not.is_some()
        || schema.additional_properties.is_some()
        || schema.pattern_properties.is_given()
        || schema.dependencies.is_given()
        || schema.additional_items.is_some()
        || schema.definitions.is_given()
        || schema.embedded_resource
        || schema.int_or_string
        || schema.list_map_keys.is_given()
        || schema.list_type.is_some()
        || schema.map_type.is_some();
    if forbidden {
        report.invalid(at, detail());
    }
}

/// Checks the keywords of any node.
pub(super) fn check(
    schema: &Props<'_>,
    standing: &Standing<'_>,
    require_valid_types: bool,
    at: &mut Field,
    report: &mut Report,
) {
    if require_valid_types && !schema.kind.is_empty() && !TYPES.contains(&schema.kind) {
        report.not_supported(at.with("type"), &TYPES);
    }
    if schema.default.is_some()
        && let Some(reason) = &standing.no_defaults
    {
        report.forbidden(at.with("default"), format!("must not be set {reason}"));
    }
    let unsupported = [
        ("id", !schema.id.is_empty()),
        ("additionalItems", schema.additional_items.is_some()),
        ("patternProperties", !schema.pattern_properties.is_empty()),
        ("definitions", !schema.definitions.is_empty()),
        ("dependencies", schema.dependencies.is_given()),
        ("$ref", schema.reference.is_some()),
    ];
    for (keyword, _) in unsupported.into_iter().filter(|(_, used)| *used) {
        report.forbidden(at.with(keyword), format!("{keyword} is not supported"));
    }
    if schema.kind == "null" {
        report.forbidden(at.with("type"), "type cannot be set to null, use nullable as an alternative");
    }
    if schema.items.as_ref().is_some_and(|items| !items.schemas.is_empty()) {
        report.forbidden(at.with("items"), "items must be a schema object and not an array");
    }
    if standing.in_metadata && schema.embedded_resource {
        report
            .forbidden(at.with("x-kubernetes-embedded-resource"), "must not be used inside of resource meta");
    }
    if schema.unique_items {
        let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        report.forbidden(at.with("uniqueItems"), detail);
    }
    if let Some(additional) = &schema.additional_properties
        && !schema.properties.is_empty()
        && (!additional.allows || additional.schema.is_some())
    {
        let detail = "additionalProperties and properties are mutual exclusive";
        report.forbidden(at.with("additionalProperties"), detail);
    }
    if schema.preserve_unknown_fields == Some(false) {
        report.invalid(at.with("x-kubernetes-preserve-unknown-fields"), "must be true or undefined");
    }
}
