//! What the keywords of a schema say.

use std::sync::LazyLock;

use serde_json::{Value, json};

/// Values that are not declared and are kept unchanged, nulls among them.
pub(super) static ANYTHING: LazyLock<Value> =
    LazyLock::new(|| json!({ "x-kubernetes-preserve-unknown-fields": true, "nullable": true }));
/// The fields of a resource that need not be declared.
pub(super) const META: [&str; 3] = ["apiVersion", "kind", "metadata"];
/// A clause without restrictions.
pub(super) static NOTHING: LazyLock<Value> = LazyLock::new(|| json!({}));
/// Up to this number a double holds each whole number.
pub(super) const LARGEST_EXACT: f64 = 9_007_199_254_740_992.0;

/// A keyword that is there and not null; Go decodes a null as absent.
pub(super) fn present<'a>(schema: &'a Value, keyword: &str) -> Option<&'a Value> {
    schema.get(keyword).filter(|value| !value.is_null())
}

/// A keyword that is a text; empty where it is unset.
pub(super) fn text<'a>(schema: &'a Value, keyword: &str) -> &'a str {
    schema.get(keyword).and_then(Value::as_str).unwrap_or_default()
}

/// Whether a keyword is `true`.
pub(super) fn is_set(schema: &Value, keyword: &str) -> bool {
    schema.get(keyword) == Some(&Value::Bool(true))
}

/// The items of a keyword that is a list.
pub(super) fn list<'a>(schema: &'a Value, keyword: &str) -> &'a [Value] {
    schema.get(keyword).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The declared properties.
pub(super) fn fields(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}

/// A declared property.
pub(super) fn property<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    schema.get("properties").and_then(|properties| properties.get(name))
}

/// The schema of values that are not declared by name; `None` if there is none, or no such value is allowed.
pub(super) fn values(schema: &Value) -> Option<&Value> {
    match present(schema, "additionalProperties")? {
        Value::Bool(true) => Some(&*ANYTHING),
        Value::Bool(false) => None,
        values => Some(values),
    }
}

/// Whether the API server refuses fields that are not declared, which it drops or keeps otherwise.
pub(super) fn refuses_undeclared(schema: &Value) -> bool {
    schema.get("additionalProperties") == Some(&Value::Bool(false))
}

/// Whether fields that are not declared are kept.
pub(super) fn keeps_unknown(schema: &Value) -> bool {
    is_set(schema, "x-kubernetes-preserve-unknown-fields")
}

/// A keyword that is a number.
pub(super) fn number(schema: &Value, keyword: &str) -> Option<f64> {
    present(schema, keyword).and_then(Value::as_f64).map(without_sign)
}

/// -0.0 and 0.0 are the same limit.
pub(super) fn without_sign(number: f64) -> f64 {
    number + 0.0
}
