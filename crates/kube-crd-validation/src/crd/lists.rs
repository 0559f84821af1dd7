//! List types, map types and the keys of lists.
//!
//! Source: apiextensions-apiserver `pkg/apis/apiextensions/validation/validation.go`,
//! `ValidateCustomResourceDefinitionOpenAPISchema` and `validateMapListKeysMapSet`.

use super::options::Options;
use super::props::Props;
use super::report::Report;
use crate::field::Field;

/// Checks the list type, map type and keys of a node.
pub(super) fn check(schema: &Props<'_>, options: &Options<'_>, at: &mut Field, report: &mut Report) {
    if let Some(kind) = schema.map_type {
        needs_type(schema, "object", "x-kubernetes-map-type", at, report);
        if !matches!(kind, "atomic" | "granular") {
            report.not_supported(at.with("x-kubernetes-map-type"), &["atomic", "granular"]);
        }
    }
    if let Some(kind) = schema.list_type {
        if schema.kind != "array" {
            needs_type(schema, "array", "x-kubernetes-list-type", at, report);
        } else if options.require_atomic_sets && is_set_of_composites(schema) {
            let keyword = match item(schema).map(|item| item.kind) {
                Some("array") => "items.x-kubernetes-list-type",
                _ => "items.x-kubernetes-map-type",
            };
            report.invalid(
                at.with(keyword),
                "must be atomic as item of a list with x-kubernetes-list-type=set",
            );
        }
        if !matches!(kind, "atomic" | "set" | "map") {
            report.not_supported(at.with("x-kubernetes-list-type"), &["atomic", "set", "map"]);
        }
    }
    if !schema.list_map_keys.is_empty() {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        match schema.list_type {
            None => report.required(at.with("x-kubernetes-list-type"), detail),
            Some("map") => {}
            Some(_) => report.invalid(at.with("x-kubernetes-list-type"), detail),
        }
    }
    if schema.list_type == Some("map") {
        map_items(schema, at, report);
    }
    if options.require_sound_list_keys {
        sound_keys(schema, at, report);
    }
}

fn item<'s, 'd>(schema: &'s Props<'d>) -> Option<&'s Props<'d>> {
    schema.items.as_ref()?.schema.as_deref()
}

fn needs_type(schema: &Props<'_>, wanted: &str, keyword: &str, at: &Field, report: &mut Report) {
    let detail = format!("must be {wanted} if {keyword} is specified");
    match schema.kind {
        kind if kind == wanted => {}
        "" => report.required(at.with("type"), detail),
        _ => report.invalid(at.with("type"), detail),
    }
}

/// A list of type map has objects for items, and their keys are scalar properties.
fn map_items(schema: &Props<'_>, at: &Field, report: &mut Report) {
    if schema.list_map_keys.is_empty() {
        let detail = "must not be empty if x-kubernetes-list-type is map";
        report.required(at.with("x-kubernetes-list-map-keys"), detail);
    }
    if schema.items.is_none() {
        report.required(at.with("items"), "must have a schema if x-kubernetes-list-type is map");
        return;
    }
    let Some(item) = item(schema) else {
        return report
            .invalid(at.with("items"), "must only have a single schema if x-kubernetes-list-type is map");
    };
    if item.kind != "object" {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        return report.invalid(at.with("items.type"), detail);
    }
    for (index, key) in schema.list_map_keys.iter().enumerate() {
        match property(item, key) {
            Some(property) if matches!(property.kind, "array" | "object") => report.invalid(
                at.with(&format!("items.properties[{key}].type")),
                "must be a scalar type if parent array's x-kubernetes-list-type is map",
            ),
            Some(_) => {}
            None => report.invalid(
                at.with("x-kubernetes-list-map-keys"),
                "entries must all be names of item properties",
            ),
        }
        if schema.list_map_keys[..index].contains(key) {
            report.invalid(at.with("x-kubernetes-list-map-keys"), "must not contain duplicate entries");
        }
    }
}

fn property<'s, 'd>(item: &'s Props<'d>, name: &str) -> Option<&'s Props<'d>> {
    item.properties.iter().find(|(known, _)| *known == name).map(|(_, property)| property)
}

/// Items and keys of sets and maps are never null, and keys are always there.
fn sound_keys(schema: &Props<'_>, at: &Field, report: &mut Report) {
    let (Some(item), Some(kind @ ("set" | "map"))) = (item(schema), schema.list_type) else { return };
    if item.nullable {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {kind}");
        report.forbidden(at.with("items.nullable"), detail);
    }
    if kind == "set" {
        return;
    }
    for key in &*schema.list_map_keys {
        let Some(property) = property(item, key) else { continue };
        if !item.required.contains(key) && property.default.is_none() {
            let detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a \
                required property";
            report.required(at.with(&format!("items.properties[{key}].default")), detail);
        }
        if property.nullable {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            report.forbidden(at.with(&format!("items.properties[{key}].nullable")), detail);
        }
    }
}

/// Whether a list of type set has items whose parts have owners of their own.
pub(super) fn is_set_of_composites(schema: &Props<'_>) -> bool {
    let (Some("set"), Some(item)) = (schema.list_type, item(schema)) else { return false };
    match item.kind {
        "array" => item.list_type.is_some_and(|kind| kind != "atomic"),
        "object" => item.map_type != Some("atomic"),
        _ => false,
    }
}

/// Whether items or keys of a set or map can be null or absent.
pub(super) fn has_unsound_keys(schema: &Props<'_>) -> bool {
    let mut report = Report::default();
    sound_keys(schema, &Field::default(), &mut report);
    !report.0.is_empty()
}
