//! Which owners a write lost: tables over `lost`.

use serde_json::{Value, json};

use super::lost;
use crate::object::Object;
use kube_structural_schema::schema::Schema;

#[test]
fn an_owner_is_lost_when_no_entry_of_its_writer_is_left() {
    let entry = |manager: &str, operation: &str, version: &str, subresource: &str, fields: Value| {
        json!({
            "manager": manager, "operation": operation, "apiVersion": format!("example.com/{version}"),
            "subresource": subresource, "fieldsV1": fields,
        })
    };
    let spec = || json!({ "f:spec": {} });
    let before = vec![
        entry("user", "Apply", "v1", "", spec()),
        entry("user", "Update", "v1beta1", "", spec()),
        entry("user", "Update", "v1", "status", spec()),
        entry("etch", "Update", "v1", "", spec()),
        entry("empty", "Update", "v1", "", json!({})),
        json!({ "manager": "bare", "operation": "Update" }),
    ];
    let managers = |after: Vec<Value>| -> Vec<String> {
        let (before, after) = (object(before.clone()), object(after));
        lost(&before, &after, &schema(json!({})))
            .map(|owner| format!("{}/{}/{}", owner.manager, owner.operation, owner.subresource))
            .collect()
    };
    let all = ["user/Apply/", "user/Update/", "user/Update/status"];
    assert_eq!(managers(vec![]), all);
    assert_eq!(managers(before.clone()), [""; 0]);
    // At another version, with fewer fields, in another order: the writer is the same.
    let rewritten = vec![
        entry("user", "Update", "v1", "status", spec()),
        entry("user", "Update", "v1", "", json!({})),
        entry("user", "Apply", "v1", "", spec()),
    ];
    assert_eq!(managers(rewritten), [""; 0]);
    let other_writers = vec![
        entry("user", "Apply", "v1", "status", spec()),
        entry("User", "Update", "v1", "", spec()),
        entry("before-first-apply", "Update", "v1", "", spec()),
    ];
    assert_eq!(managers(other_writers), all);
}

#[test]
fn an_owner_that_the_server_gathered_with_others_is_not_lost() {
    let schema = schema(json!({ "a": { "type": "string" }, "b": { "type": "string" } }));
    let entry = |manager: &str, operation: &str, subresource: &str, fields: Value| {
        json!({ "manager": manager, "operation": operation, "apiVersion": "example.com/v1",
            "subresource": subresource,
            "fieldsV1": { "f:spec": fields } })
    };
    let before = object(vec![
        entry("one", "Update", "", json!({ "f:a": {} })),
        entry("two", "Update", "status", json!({ "f:b": {}, "f:gone": {} })),
        entry("three", "Apply", "", json!({ "f:a": {} })),
    ]);
    let managers = |after: Vec<Value>| -> Vec<String> {
        let after = object(after);
        lost(&before, &after, &schema).map(|owner| owner.manager.to_owned()).collect()
    };
    let applied = || entry("three", "Apply", "", json!({ "f:a": {} }));
    let gathered = |fields| entry("ancient-changes", "Update", "", fields);
    assert_eq!(managers(vec![applied(), gathered(json!({ "f:a": {}, "f:b": {} }))]), [""; 0]);
    assert_eq!(managers(vec![applied(), gathered(json!({ "f:a": {} }))]), ["two"]);
    // Only updates are gathered, and only under that name.
    assert_eq!(managers(vec![gathered(json!({ "f:a": {}, "f:b": {} }))]), ["three"]);
    let other = entry("other", "Update", "", json!({ "f:a": {}, "f:b": {} }));
    assert_eq!(managers(vec![applied(), other]), ["one", "two"]);
}

#[test]
fn an_owner_of_nothing_but_fields_that_the_schema_no_longer_knows_is_not_lost() {
    let owner = |fields: Value| {
        json!({
            "manager": "user", "operation": "Update", "apiVersion": "example.com/v1", "fieldsV1": fields,
        })
    };
    let is_lost = |fields: Value| {
        let (before, after) = (object(vec![owner(fields)]), object(vec![]));
        lost(&before, &after, &schema(json!({ "a": { "type": "string" } }))).next().is_some()
    };
    assert!(!is_lost(json!({ "f:spec": { "f:gone": {}, "f:old": { ".": {}, "f:deep": {} } } })));
    assert!(is_lost(json!({ "f:spec": { "f:gone": {}, "f:a": {} } })));
    assert!(is_lost(json!({ "f:spec": { ".": {}, "f:gone": {} } })));
    assert!(is_lost(json!({ "f:metadata": { "f:labels": { "f:team": {} } } })));
}

fn schema(spec: Value) -> Schema {
    let spec = json!({ "type": "object", "properties": spec });
    Schema::parse(&json!({ "type": "object", "properties": { "spec": spec } })).expect("a schema")
}

fn object(managed_fields: Vec<Value>) -> Object {
    Object::from(json!({ "metadata": { "managedFields": managed_fields } }))
}
