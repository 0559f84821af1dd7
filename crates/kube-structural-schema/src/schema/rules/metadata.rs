//! The rules for `apiVersion`, `kind` and `metadata` of whole objects, at the root and embedded.
//! Coercion of metadata is elsewhere.

use super::level::Level;
use super::violation::Report;
use crate::schema::{Place, Schema, SchemaType};
use go_text::strconv::quote;

pub(super) fn check(schema: &Schema, depth: Level, at: &Place<'_>, report: &mut Report) {
    if !(depth == Level::Root || schema.embedded_resource) {
        return;
    }
    let properties = at.child("properties");
    for name in ["kind", "apiVersion"] {
        if let Some(property) = schema.properties.get(name)
            && property.kind != SchemaType::String
        {
            let here = properties.key(name);
            report.invalid(&here.child("type"), &quote(property.kind.as_str()), "must be string");
        }
    }
    let Some(metadata) = schema.properties.get("metadata") else { return };
    let here = properties.key("metadata");
    if metadata.kind != SchemaType::Object {
        report.invalid(&here.child("type"), &quote(metadata.kind.as_str()), "must be object");
    }
    if depth == Level::Root && !restricts_names_only(metadata) {
        report.forbidden(
            &here,
            "must not specify anything other than name and generateName, but metadata is implicitly \
             specified",
        );
    }
}

/// `type` and `default` may be set as well: other rules judge them.
fn restricts_names_only(metadata: &Schema) -> bool {
    !metadata.adorned && metadata.properties.iter().all(|(name, _)| matches!(name, "name" | "generateName"))
}
