//! The CRD of unit tests that are about something else.

use serde_json::{Value, json};

use super::Crd;

/// The CRD `things.example.com` with this schema at its only version, `v1`.
pub fn things(schema: Value) -> Crd {
    Crd::read(&things_document(schema).into()).expect("a CRD")
}

/// [`things`] as a document.
pub fn things_document(schema: Value) -> Value {
    json!({
        "metadata": { "name": "things.example.com", "uid": "crd", "generation": 1 },
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": { "kind": "Thing", "plural": "things" },
            "versions": [
                { "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } },
            ],
        },
    })
}

/// The schema of an object whose `spec` has these properties.
pub fn with_spec(properties: Value) -> Value {
    let spec = json!({ "type": "object", "properties": properties });
    json!({ "type": "object", "properties": { "spec": spec } })
}
