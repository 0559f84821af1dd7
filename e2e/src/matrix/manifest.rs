//! The CRDs of the matrix, their objects, and the places that have a default.

use serde_json::{Value, json};

use super::axes::{Conversion, World, axis};

/// The group in what is kept: each world has one of its own.
pub const GROUP: &str = "matrix.example.com";

/// The kind of all objects.
pub const KIND: &str = "Thing";

/// The storage version.
pub const S: &str = "v1";

axis! {
    /// A place that has a default.
    Place {
        /// A field of `spec`.
        Spec = "spec",
        /// A field of `status`, whose absence has a default too.
        Status = "status",
        /// In the metadata of an embedded object.
        Metadata = "metadata",
        /// In the item of a list.
        Item = "item",
        /// In the value of a map.
        Map = "map",
        /// Below defaults of what is above it.
        Nested = "nested",
    }
}

impl Place {
    pub(super) fn of(word: &str) -> Option<Self> {
        Self::of_word(word)
    }

    /// Where it is, as a JSON pointer.
    pub fn pointer(self) -> &'static str {
        match self {
            Self::Spec => "/spec/color",
            Self::Status => "/status/state",
            Self::Metadata => "/spec/template/metadata/name",
            Self::Item => "/spec/items/0/kind",
            Self::Map => "/spec/map/one/mode",
            Self::Nested => "/spec/nested/deep/leaf",
        }
    }

    /// Where it is in a set of fields.
    pub(super) fn owned(self) -> &'static [&'static str] {
        match self {
            Self::Spec => &["f:spec", "f:color"],
            Self::Status => &["f:status", "f:state"],
            Self::Metadata => &["f:spec", "f:template", "f:metadata", "f:name"],
            Self::Item => &["f:spec", "f:items", r#"k:{"name":"one"}"#, "f:kind"],
            Self::Map => &["f:spec", "f:map", "f:one", "f:mode"],
            Self::Nested => &["f:spec", "f:nested", "f:deep", "f:leaf"],
        }
    }
}

/// The versions that are served while requests at this one are sent.
pub fn served(version: &str) -> &'static [&'static str] {
    match version {
        "v1" => &["v1"],
        "v1beta1" => &["v1beta1", "v1"],
        _ => &["v1alpha1", "v1beta1", "v1"],
    }
}

/// The CRD with the defaults. `conversion` is where its webhook is, and has no effect in a world that needs
/// none.
pub fn crd(world: World, group: &str, served: &[&str], conversion: &Value) -> Value {
    let versions = [("v1alpha1", old()), ("v1beta1", new()), (S, new())];
    document(world, group, &versions, S, served, conversion)
}

/// The CRD before it had defaults, and while it had v0, with this storage version.
pub(super) fn crd_before(world: World, group: &str, storage: &str, conversion: &Value) -> Value {
    let versions = ["v0", "v1alpha1", "v1beta1", S].map(|name| (name, old()));
    document(world, group, &versions, storage, &["v0", "v1alpha1", "v1beta1", S], conversion)
}

fn document(
    world: World,
    group: &str,
    versions: &[(&str, Value)],
    storage: &str,
    served: &[&str],
    conversion: &Value,
) -> Value {
    let mut subresources = json!({
        "scale": { "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas" },
    });
    if world.has_status {
        subresources["status"] = json!({});
    }
    let versions: Vec<Value> = versions
        .iter()
        .map(|(name, schema)| {
            json!({
                "name": name, "served": served.contains(name), "storage": *name == storage,
                "subresources": subresources, "schema": { "openAPIV3Schema": schema },
            })
        })
        .collect();
    let conversion = match world.conversion {
        Conversion::None => json!({ "strategy": "None" }),
        Conversion::New | Conversion::Old => json!({
            "strategy": "Webhook",
            "webhook": { "clientConfig": conversion, "conversionReviewVersions": ["v1"] },
        }),
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("things.{group}") },
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": { "kind": KIND, "plural": "things", "singular": "thing", "listKind": "ThingList" },
            "conversion": conversion,
            "versions": versions,
        },
    })
}

fn map(properties: Value) -> Value {
    json!({ "type": "object", "properties": properties })
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn number() -> Value {
    json!({ "type": "integer" })
}

/// The schema without the defaulted fields.
fn old() -> Value {
    let mut items = json!({ "type": "array", "items": map(json!({ "name": text() })) });
    items["items"]["required"] = json!(["name"]);
    items["x-kubernetes-list-type"] = json!("map");
    items["x-kubernetes-list-map-keys"] = json!(["name"]);
    let mut template = map(json!({ "apiVersion": text(), "kind": text(), "metadata": { "type": "object" } }));
    template["x-kubernetes-embedded-resource"] = json!(true);
    let spec = map(json!({
        "size": number(), "replicas": number(), "note": text(),
        "items": items,
        "map": { "type": "object", "additionalProperties": map(json!({ "at": number() })) },
        "template": template,
    }));
    map(json!({ "spec": spec, "status": map(json!({ "message": text(), "replicas": number() })) }))
}

/// The same with them.
fn new() -> Value {
    let mut schema = old();
    let default = |value: &str| json!({ "type": "string", "default": value });
    let properties = &mut schema["properties"];
    properties["status"]["default"] = json!({});
    properties["status"]["properties"]["state"] = default("unknown");
    let spec = &mut properties["spec"]["properties"];
    spec["color"] = default("red");
    spec["template"]["properties"]["metadata"]["properties"] = json!({ "name": default("inner") });
    spec["items"]["items"]["properties"]["kind"] = default("plain");
    spec["map"]["additionalProperties"]["properties"]["mode"] = default("soft");
    spec["nested"] = map(json!({ "deep": map(json!({ "leaf": default("green") })) }));
    spec["nested"]["default"] = json!({});
    spec["nested"]["properties"]["deep"]["default"] = json!({});
    schema
}

/// An object without any value that has a default.
pub(super) fn object(group: &str, version: &str, name: &str) -> Value {
    json!({
        "apiVersion": format!("{group}/{version}"),
        "kind": KIND,
        "metadata": { "name": name, "namespace": "default", "finalizers": ["matrix.example.com/hold"] },
        "spec": {
            "size": 1, "replicas": 1,
            "items": [{ "name": "one" }],
            "map": { "one": { "at": 1 } },
            "template": { "apiVersion": "v1", "kind": "Pod", "metadata": { "labels": { "a": "b" } } },
        },
    })
}

/// An object without the values at the places.
pub(super) fn without_places(mut object: Value) -> Value {
    for (parent, field) in [
        ("/spec", "color"),
        ("/status", "state"),
        ("/spec/template/metadata", "name"),
        ("/spec/items/0", "kind"),
        ("/spec/map/one", "mode"),
        ("/spec", "nested"),
    ] {
        if let Some(parent) = object.pointer_mut(parent).and_then(Value::as_object_mut) {
            parent.remove(field);
        }
    }
    object
}
