//! Which owners a write lost: tables over `lost`.

use serde_json::{Value, json};

use super::lost;
use crate::domain::object::Object;

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
        lost(&before, &after)
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

fn object(managed_fields: Vec<Value>) -> Object {
    Object::from(json!({ "metadata": { "managedFields": managed_fields } }))
}
