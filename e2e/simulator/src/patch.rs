//! What a patch that is no apply makes of a document.

use serde_json::{Value, json};

use super::server::{Refused, refused};

/// RFC 7386.
pub fn merge(mut value: Value, patch: &Value) -> Value {
    let Value::Object(patch) = patch else { return patch.clone() };
    if !value.is_object() {
        value = json!({});
    }
    let Value::Object(fields) = &mut value else { return value };
    for (name, theirs) in patch {
        let ours = fields.remove(name);
        if !theirs.is_null() {
            fields.insert(name.clone(), merge(ours.unwrap_or_default(), theirs));
        }
    }
    value
}

/// RFC 6902, as far as Etch and the users here use it.
///
/// # Errors
/// An operation cannot be carried out.
pub fn operate(mut document: Value, operations: &Value) -> Result<Value, Refused> {
    for operation in operations.as_array().into_iter().flatten() {
        let path = operation["path"].as_str().unwrap_or_default();
        let (parent, name) = path.rsplit_once('/').unwrap_or_default();
        let failed = || refused(422, "the server rejected our request due to an error in our request");
        let Some(parent) = document.pointer_mut(parent) else { return failed() };
        let value = &operation["value"];
        match (operation["op"].as_str(), parent) {
            (Some("test"), parent) => {
                let pointer = format!("/{name}");
                if parent.pointer(&pointer) != Some(value) {
                    return failed();
                }
            }
            // Onto itself, which no schema without the field allows (fact W30).
            (Some("move"), Value::Object(fields)) => {
                if operation["from"] != operation["path"] || !fields.contains_key(name) {
                    return failed();
                }
            }
            (Some("remove"), Value::Object(fields)) => {
                if fields.remove(name).is_none() {
                    return failed();
                }
            }
            (Some("remove"), Value::Array(items)) => match name.parse() {
                Ok(index) if index < items.len() => drop(items.remove(index)),
                _ => return failed(),
            },
            (Some(op), Value::Object(fields)) => {
                if fields.insert(name.to_owned(), value.clone()).is_none() && op == "replace" {
                    return failed();
                }
            }
            _ => return failed(),
        }
    }
    Ok(document)
}
