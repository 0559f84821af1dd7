//! Whether the API server can read the owners of an object.
//!
//! Source: apimachinery `pkg/util/managedfields/internal/managedfields.go`, and structured-merge-diff v6
//! `fieldpath/serialize.go` and `serialize-pe.go`.

use serde_json::Value;

use kube_structural_schema::json::Json;

/// Whether the API server can read every entry of `managedFields`, and knows every element in it. It refuses
/// an apply where it cannot; any other write makes it forget all owners.
pub fn are_readable(object: &Value) -> bool {
    match object.get("metadata").and_then(|metadata| metadata.get("managedFields")) {
        None | Some(Value::Null) => true,
        Some(Value::Array(entries)) => entries.iter().all(is_readable),
        Some(_) => false,
    }
}

fn is_readable(entry: &Value) -> bool {
    let has = |field: &str, texts: &[&str]| {
        entry.get(field).and_then(Value::as_str).is_some_and(|text| texts.contains(&text))
    };
    let fields = entry.get("fieldsV1").unwrap_or(&Value::Null);
    has("operation", &["Apply", "Update"])
        && has("fieldsType", &["FieldsV1"])
        && (fields.is_null() || is_set(fields))
}

fn is_set(value: &Value) -> bool {
    let Value::Object(elements) = value else { return false };
    elements.iter().all(|(element, below)| element == "." || is_element(element) && is_set(below))
}

fn is_element(element: &str) -> bool {
    let json = |text: &str| Json::parse(text.as_bytes()).ok();
    match element.split_once(':') {
        Some(("f", _)) => true,
        Some(("k", keys)) => json(keys).is_some_and(|keys| keys.is_object()),
        Some(("v", value)) => json(value).is_some(),
        Some(("i", index)) => index.parse::<i64>().is_ok(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_entry_is_read_in_full_or_not_at_all() {
        let entry = |field: &str, value: Value| {
            let mut entry = json!({
                "manager": "m", "operation": "Update", "apiVersion": "example.com/v1",
                "fieldsType": "FieldsV1",
                "fieldsV1": { "f:spec": {
                    ".": {}, "f:a": {}, "f:list": {
                        "k:{\"name\":\"x\"}": { "f:name": {} }, "v:\"x\"": {}, "i:0": {},
                    },
                }},
            });
            entry[field] = value;
            json!({ "metadata": { "managedFields": [entry] } })
        };
        for readable in [
            json!({}),
            json!({ "metadata": { "managedFields": null } }),
            entry("manager", json!("")),
            entry("apiVersion", json!("")),
            entry("fieldsV1", json!(null)),
        ] {
            assert!(are_readable(&readable), "{readable}");
        }
        for odd in [
            json!({ "metadata": { "managedFields": {} } }),
            entry("operation", json!("Perhaps")),
            entry("operation", json!(null)),
            entry("fieldsType", json!("FieldsV9")),
            entry("fieldsType", json!("")),
            entry("fieldsV1", json!("f:spec")),
            entry("fieldsV1", json!({ "spec": {} })),
            entry("fieldsV1", json!({ "f:spec": { "x:7": {} } })),
            entry("fieldsV1", json!({ "f:spec": { "k:7": {} } })),
            entry("fieldsV1", json!({ "f:spec": { "v:{": {} } })),
            entry("fieldsV1", json!({ "f:spec": { "i:one": {} } })),
            entry("fieldsV1", json!({ "f:spec": 7 })),
        ] {
            assert!(!are_readable(&odd), "{odd}");
        }
    }
}
