//! What a server makes of a patch of an object: its conditions, its operations, and the owners that it writes
//! down. It has no more operations than Etch sends.

use serde_json::{Value, json};

use super::server::{Answer, Request};

/// The object as a JSON patch leaves it, or the refusal.
pub(crate) fn json_patched(before: &Value, request: &Request) -> Result<Value, Box<Answer>> {
    let mut after = before.clone();
    for operation in request.body.as_array().expect("operations") {
        let path = operation["path"].as_str().expect("a path");
        match operation["op"].as_str().expect("an operation") {
            "test" if after.pointer(path) != Some(&operation["value"]) => return refuse(422, "Invalid"),
            "test" => {}
            "move" if operation["from"] != path => panic!("a field is moved onto itself alone"),
            "move" if after.pointer(path).is_none() => return refuse(422, "Invalid"),
            "move" => {}
            "replace" => match after.pointer_mut(path) {
                Some(place) => *place = operation["value"].clone(),
                None => return refuse(422, "Invalid"),
            },
            "add" => add(&mut after, path, operation["value"].clone()),
            "remove" => remove(&mut after, path),
            other => panic!("{other} is not sent"),
        }
    }
    // A precondition, not a change: the server answers 409 if these differ.
    if ["uid", "resourceVersion"].iter().any(|field| after["metadata"][field] != before["metadata"][field]) {
        return refuse(409, "Conflict");
    }
    if after["spec"] != before["spec"] {
        let entry = json!({
            "manager": request.asked("fieldManager"), "operation": "Update", "apiVersion": "example.com/v1",
            "fieldsType": "FieldsV1", "fieldsV1": { "f:spec": { "f:size": {} } },
        });
        after["metadata"]["managedFields"].as_array_mut().expect("owners").push(entry);
    }
    Ok(after)
}

fn refuse(code: u16, reason: &str) -> Result<Value, Box<Answer>> {
    Err(Box::new(Answer::status(code, reason, "the server rejected our request")))
}

fn add(object: &mut Value, path: &str, value: Value) {
    let (parent, last) = path.rsplit_once('/').expect("a path below the root");
    object.pointer_mut(parent).expect("a parent")[last] = value;
}

fn remove(object: &mut Value, path: &str) {
    let (parent, last) = path.rsplit_once('/').expect("a path below the root");
    match object.pointer_mut(parent) {
        Some(Value::Array(items)) => drop(items.remove(last.parse().expect("an index"))),
        Some(Value::Object(fields)) => drop(fields.remove(last)),
        _ => panic!("{path} is not there"),
    }
}
