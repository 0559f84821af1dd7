//! What the language of embedded schemas means, one law or clause at a time.

mod declarations;
mod defaults;
mod rules;

use serde_json::{Value, json};

use super::*;

/// A schema for the extension of Holders at `.spec.ext`, with more of the declaration.
fn compile(more: Value) -> Compiled {
    Compiled::new(&declaration(more)).unwrap_or_else(|problems| panic!("{problems:?}"))
}

fn declaration(more: Value) -> Declaration {
    let mut declared = json!({
        "targets": [
            { "group": "example.com", "version": "v1", "resource": "holders", "path": ".spec.ext" },
            { "group": "example.com", "version": "v1", "resource": "boxes", "path": ".spec.parts[*].ext" },
        ],
        "enforcement": "Deny",
        "schema": { "openAPIV3Schema": { "type": "object", "properties": {
            "size": { "type": "integer" },
            "name": { "type": "string" },
            "mode": { "type": "string", "default": "fast" },
            "disks": { "type": "array", "items": { "type": "object", "properties": {
                "name": { "type": "string" }, "gb": { "type": "integer" } } } },
            "secret": { "type": "object", "properties": { "name": { "type": "string" } } },
        } } },
    });
    for (name, value) in more.as_object().expect("an object") {
        declared[name] = value.clone();
    }
    serde_json::from_value(declared).expect("a declaration")
}

pub(super) fn holder(extension: Value) -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Holder", "metadata": { "name": "h", "namespace": "ns" },
        "spec": { "ext": extension },
    })
}

pub(super) fn asked(schema: &Compiled, object: &Value, old: Option<&Value>, facts: &Value) -> Review {
    let exists = |lookup: &Lookup<'_>| Some(lookup.name == "there" && lookup.namespace == "ns");
    let operation = if old.is_some() { Operation::Update } else { Operation::Create };
    let request = Request {
        named: Named::Kind,
        operation,
        object,
        old_object: old,
        facts: &Value::Null,
        exists: &exists,
    };
    review(&[(schema, facts)], &request)
}

fn created(schema: &Compiled, extension: Value) -> Review {
    asked(schema, &holder(extension), None, &json!({ "id": "demo" }))
}

fn updated(schema: &Compiled, old: Value, new: Value) -> Review {
    asked(schema, &holder(new), Some(&holder(old)), &json!({ "id": "demo" }))
}

/// The errors as `field Type`.
fn errors(review: &Review) -> Vec<String> {
    let kinds = review.answer.errors.iter();
    kinds
        .map(|error| format!("{} {}", error.field, error.kind.as_str().trim_start_matches("FieldValue")))
        .collect()
}

fn extension(review: &Review) -> Value {
    review.object.as_ref().and_then(|object| object.pointer("/spec/ext")).cloned().unwrap_or_default()
}

fn with_rules(declared: &Value, rules: Value) -> Compiled {
    let mut declared = declared.clone();
    declared["rules"] = rules;
    compile(declared)
}
