//! The bodies of writes that identify the object and hold nothing else.

use serde_json::{Value, json};

use super::Body;
use crate::crd::Crd;
use crate::object::Object;
use kube_structural_schema::json::Json;

/// The object's identity, and nothing else: what the server needs to store the read view without making Etch
/// the owner of a field (W2).
pub(super) fn identity(object: &Object, crd: &Crd) -> Json {
    let mut metadata = json!({
        "name": object.name(),
        "uid": object.uid(),
        "resourceVersion": object.resource_version(),
    });
    if let (Some(namespace), Value::Object(metadata)) = (object.namespace(), &mut metadata) {
        metadata.insert("namespace".to_owned(), Value::from(namespace));
    }
    Json::from(json!({ "apiVersion": crd.api_version(), "kind": crd.kind(), "metadata": metadata }))
}

/// A merge patch that changes nothing, on this very object only.
pub(super) fn merge(object: &Object) -> Body {
    Body::Metadata(
        json!({ "metadata": { "uid": object.uid(), "resourceVersion": object.resource_version() } }).into(),
    )
}

/// The operations with which a JSON patch of this very object begins: its uid and resource version are put
/// where they are, which the server takes as conditions. What follows may name a list item by where it
/// stands, for they make sure that it stands there still.
pub(super) fn of_this(object: &Object) -> Vec<Value> {
    vec![
        replace("/metadata/uid", object.uid()),
        replace("/metadata/resourceVersion", object.resource_version()),
    ]
}

/// An operation of a JSON patch.
pub(super) fn replace(path: &str, value: impl Into<Value>) -> Value {
    json!({ "op": "replace", "path": path, "value": value.into() })
}
