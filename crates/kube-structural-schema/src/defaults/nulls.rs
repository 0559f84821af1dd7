//! Dropping nulls that are not values: those of properties that are neither nullable nor defaulted.
//! Items of arrays stay, and so do nulls that a default will replace.
//!
//! Source: apiextensions-apiserver `pkg/apiserver/schema/defaulting/prunenulls.go`.

use serde_json::Value;

use super::Node;
use crate::schema::Schema;

/// Drops the unwanted nulls. `defaults` are those of the same schema, `None` if it has none.
pub(super) fn drop_nulls(value: &mut Value, schema: &Schema, defaults: Option<&Node>) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, value| {
                let Some(schema) = schema.child(name) else { return true };
                let defaults = defaults.and_then(|node| node.child(name));
                if value.is_null() {
                    return schema.nullable || defaults.is_some_and(|node| node.default.is_some());
                }
                drop_nulls(value, schema, defaults);
                true
            });
        }
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                let defaults = defaults.and_then(|node| node.items.as_deref());
                items.iter_mut().for_each(|item| drop_nulls(item, schema, defaults));
            }
        }
        _ => {}
    }
}
