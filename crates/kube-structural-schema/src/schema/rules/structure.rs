//! The rules for what is reached through `properties`, `items` and `additionalProperties`.
//! [`super::nested`] has those below `allOf`, `anyOf`, `oneOf` and `not`.

use super::level::Level;
use super::violation::Report;
use super::{metadata, nested};
use crate::schema::{Additional, Place, Schema, SchemaType};
use go_text::strconv::quote;

/// `validateStructuralInvariants`
pub(super) fn check(schema: &Schema, depth: Level, at: &Place<'_>, report: &mut Report) {
    below(schema, depth, at, report);
    extensions(schema, at, report);
    nested::check_own(schema, at, report);
    types(schema, depth, at, report);
    metadata::check(schema, depth, at, report);
    if schema.embedded_resource && !schema.preserve_unknown_fields && schema.properties.is_empty() {
        report.required(
            &at.child("properties"),
            "must not be empty if x-kubernetes-embedded-resource is true without \
                 x-kubernetes-preserve-unknown-fields",
        );
    }
}

fn below(schema: &Schema, depth: Level, at: &Place<'_>, report: &mut Report) {
    let items = at.child("items");
    match &schema.items {
        Some(item) => check(item, Level::Item, &items, report),
        None if schema.kind == SchemaType::Array => report.required(&items, "must be specified"),
        None => {}
    }
    let properties = at.child("properties");
    for (name, property) in schema.properties.iter() {
        check(property, Level::Field, &properties.key(name), report);
    }
    let additional = at.child("additionalProperties");
    if schema.additional.is_some() && depth == Level::Root {
        report.forbidden(&additional, "must not be used at the root");
    }
    if let Some(Additional::Schema(value)) = &schema.additional {
        check(value, Level::Field, &additional, report);
    }
}

fn extensions(schema: &Schema, at: &Place<'_>, report: &mut Report) {
    if !schema.int_or_string {
        return;
    }
    for (set, name) in [
        (schema.preserve_unknown_fields, "x-kubernetes-preserve-unknown-fields"),
        (schema.embedded_resource, "x-kubernetes-embedded-resource"),
    ] {
        if set {
            report.invalid(&at.child(name), "true", "must be false if x-kubernetes-int-or-string is true");
        }
    }
}

fn types(schema: &Schema, depth: Level, at: &Place<'_>, report: &mut Report) {
    let here = at.child("type");
    let unset = schema.kind == SchemaType::Unset;
    if schema.embedded_resource && schema.kind != SchemaType::Object {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        if unset {
            report.required(&here, detail);
        } else {
            report.invalid(&here, &quote(schema.kind.as_str()), detail);
        }
    } else if unset && !schema.int_or_string && !schema.preserve_unknown_fields {
        report.required(
            &here,
            match depth {
                Level::Root => "must not be empty at the root",
                Level::Item => "must not be empty for specified array items",
                Level::Field => "must not be empty for specified object fields",
            },
        );
    }
    if schema.embedded_resource && schema.additional.is_some() {
        report.forbidden(
            &at.child("additionalProperties"),
            "must not be used if x-kubernetes-embedded-resource is set",
        );
    }
    if depth == Level::Root && !unset && schema.kind != SchemaType::Object {
        report.invalid(&here, &quote(schema.kind.as_str()), "must be object at the root");
    }
}
