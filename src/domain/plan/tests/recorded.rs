//! What is on record of an object that was written after the record began.
//! It must not try what a record says of older ones: that is in the cases.

use serde_json::json;

use crate::domain::crd::Crd;
use crate::domain::json::Json;
use crate::domain::object::Object;
use crate::domain::plan::{Exceptions, Plan, Record, Terms, decide};

/// A CRD whose default is in `v1` alone; `v1beta1` is served no more.
fn crd(stored_versions: &[&str]) -> Crd {
    let version = |name: &str, is_new: bool, size| {
        let spec = json!({ "type": "object", "properties": { "size": size } });
        json!({ "name": name, "served": is_new, "storage": is_new,
            "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": spec } } } })
    };
    Crd::read(&Json::from(json!({
        "metadata": { "name": "things.example.com", "uid": "crd" },
        "spec": { "group": "example.com", "names": { "kind": "Thing", "plural": "things" }, "versions": [
            version("v1beta1", false, json!({ "type": "integer" })),
            version("v1", true, json!({ "type": "integer", "default": 1 })),
        ] },
        "status": { "storedVersions": stored_versions },
    })))
    .expect("a CRD")
}

fn written_since(stored_versions: &[&str], excepted: &[&str]) -> bool {
    let object = Object::from(json!({
        "metadata": { "name": "a", "namespace": "ns", "uid": "u", "resourceVersion": "11", "managedFields": [
            { "manager": "user", "operation": "Apply", "apiVersion": "example.com/v1", "fieldsV1": { "f:spec": { "f:name": {} } } },
        ] },
        "spec": { "name": "n", "size": 1 },
    }));
    let exceptions: Exceptions = excepted.iter().map(ToString::to_string).collect();
    let record = Record { through: Some(10), exceptions, ..Record::default() };
    decide(&object, &crd(stored_versions), &Terms::default(), &record) == Plan::Stored
}

#[test]
fn an_object_that_was_processed_is_covered_by_any_later_write() {
    assert!(written_since(&["v1beta1", "v1"], &[]));
}

#[test]
fn one_that_was_not_may_have_come_to_the_storage_version_without_its_default() {
    // An apply that changes nothing stores it there as it was stored before (fact W25).
    assert!(!written_since(&["v1beta1", "v1"], &["u"]));
}

#[test]
fn where_nothing_is_stored_at_an_old_version_every_write_stores_what_it_shows() {
    assert!(written_since(&["v1"], &["u"]));
}
