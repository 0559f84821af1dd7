//! An extension as typed clients read it, which is what rules and types are about: without nulls that are no
//! values.

use std::borrow::Cow;

use serde_json::{Map, Value};

use kube_structural_schema::schema::{Schema, SchemaType};

/// The extension without unwanted nulls. A field that is null is absent; an item of a list that is null is
/// the empty value of its type, since its place counts.
pub(super) fn view<'v>(extension: &'v Value, schema: &Schema) -> Cow<'v, Value> {
    if has_null(extension) { Cow::Owned(cleaned(extension, Some(schema))) } else { Cow::Borrowed(extension) }
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(fields) => fields.values().any(has_null),
        _ => false,
    }
}

fn cleaned(value: &Value, schema: Option<&Schema>) -> Value {
    match value {
        Value::Object(fields) => {
            let mut kept = Map::new();
            for (name, value) in fields {
                let schema = schema.and_then(|schema| schema.child(name));
                if !value.is_null() || schema.is_none_or(|schema| schema.nullable) {
                    kept.insert(name.clone(), cleaned(value, schema));
                }
            }
            Value::Object(kept)
        }
        Value::Array(items) => {
            let schema = schema.and_then(|schema| schema.items.as_deref());
            let item = |item: &Value| match schema {
                Some(schema) if item.is_null() && !schema.nullable => empty(schema),
                schema => cleaned(item, schema),
            };
            Value::Array(items.iter().map(item).collect())
        }
        value => value.clone(),
    }
}

fn empty(schema: &Schema) -> Value {
    match &schema.kind {
        SchemaType::Object => Value::Object(Map::new()),
        SchemaType::Array => Value::Array(Vec::new()),
        SchemaType::String => Value::from(""),
        SchemaType::Integer | SchemaType::Number => Value::from(0),
        SchemaType::Boolean => Value::from(false),
        SchemaType::Unset | SchemaType::Other(_) => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nulls_are_absent_and_items_keep_their_places() {
        let schema = json!({ "type": "object", "properties": {
            "a": { "type": "string" }, "n": { "type": "string", "nullable": true },
            "l": { "type": "array", "items": { "type": "string" } },
            "o": {
                "type": "array", "items": { "type": "object", "properties": { "x": { "type": "integer" } } },
            },
        }});
        let schema = Schema::parse(&schema).expect("a schema");
        let value =
            json!({ "a": null, "n": null, "l": ["x", null], "o": [null, { "x": null }], "unknown": null });
        let expected = json!({ "n": null, "l": ["x", ""], "o": [{}, {}], "unknown": null });
        assert_eq!(*view(&value, &schema), expected);
        assert!(matches!(view(&json!({ "a": "b" }), &schema), Cow::Borrowed(_)));
    }
}
