//! Values that are present and empty.

use serde_json::Value;

use kube_structural_schema::json::is_zero;

/// Whether a value is null, `""`, `0`, `false`, `[]`, or an object that holds nothing else.
pub(super) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.values().all(is_empty),
        other => is_zero(other),
    }
}
