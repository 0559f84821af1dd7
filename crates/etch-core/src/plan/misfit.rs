//! Whether an object fits a schema by type, as structured-merge-diff needs it to keep `managedFields` (fact
//! W16). Ranges, formats and rules do not count: no server forgets an owner because of them.

use serde_json::Value;

use kube_structural_schema::path::{Path, Trail, TrailStep};
use kube_structural_schema::schema::{Schema, SchemaType};

/// The topmost places whose value has another type than the schema gives, and the items of list maps and sets
/// that cannot be distinguished from others. `null` fits everywhere but there.
///
/// Duplicates fit: the server tolerates them in an existing object. So does an item that lacks some of its
/// keys and not all.
///
/// Source: structured-merge-diff v6 `typed/validate.go` and `typed/helpers.go`.
pub(super) fn misfits(object: &Value, schema: &Schema) -> Vec<Path> {
    let mut found = Vec::new();
    for name in ["spec", "status"] {
        if let (Some(value), Some(schema)) = (object.get(name), schema.child(name)) {
            walk(value, schema, &Trail::ROOT.join(TrailStep::Field(name)), &mut found);
        }
    }
    let rest = object.as_object().into_iter().flatten();
    for (name, value) in rest.filter(|(name, _)| !matches!(name.as_str(), "spec" | "status" | "metadata")) {
        if let Some(schema) = schema.child(name) {
            walk(value, schema, &Trail::ROOT.join(TrailStep::Field(name)), &mut found);
        }
    }
    found
}

fn walk(value: &Value, schema: &Schema, at: &Trail<'_>, found: &mut Vec<Path>) {
    if !fits(value, schema) {
        found.push(at.to_path());
        return;
    }
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if let Some(property) = schema.properties.get(name) {
                    walk(value, property, &at.join(TrailStep::Field(name)), found);
                } else if let Some(values) = schema.additional_schema() {
                    walk(value, values, &at.join(TrailStep::Key(name)), found);
                }
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                let here = at.join(TrailStep::Index(index));
                match schema.items.as_deref() {
                    _ if !has_name(value, schema) => found.push(here.to_path()),
                    Some(item) => walk(value, item, &here, found),
                    None => {}
                }
            }
        }
        _ => {}
    }
}

/// Whether owners can name an item of a list: by any of its keys, even if only by their defaults, or by
/// itself.
fn has_name(item: &Value, list: &Schema) -> bool {
    let has_default = |key: &String| {
        list.items
            .as_deref()
            .and_then(|items| items.properties.get(key))
            .is_some_and(|key| key.default.is_some())
    };
    match list.list_type.as_deref() {
        Some("map" | "set") if list.list_map_keys.is_empty() => {
            matches!(item, Value::Bool(_) | Value::Number(_) | Value::String(_))
        }
        Some("map" | "set") => item.as_object().is_some_and(|item| {
            list.list_map_keys.iter().any(|key| item.contains_key(key) || has_default(key))
        }),
        _ => true,
    }
}

fn fits(value: &Value, schema: &Schema) -> bool {
    if value.is_null() {
        return true;
    }
    if schema.int_or_string {
        return value.is_string() || value.is_number();
    }
    match schema.kind {
        SchemaType::Object => value.is_object(),
        SchemaType::Array => value.is_array(),
        SchemaType::String => value.is_string(),
        SchemaType::Integer | SchemaType::Number => value.is_number(),
        SchemaType::Boolean => value.is_boolean(),
        SchemaType::Unset | SchemaType::Other(_) => true,
    }
}
