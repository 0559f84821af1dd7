//! Values that are present and empty.
//! It must not know defaults.

use serde_json::Value;

use crate::domain::json::level;

/// Whether a value is null, `""`, `0`, `false`, `[]`, or an object that holds nothing else.
pub(super) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => level(|| fields.values().all(is_empty)),
    }
}
