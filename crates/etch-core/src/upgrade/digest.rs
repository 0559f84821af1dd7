//! One number for an upgrade: for everything in both specs of a CRD by which objects are read, filled,
//! validated and stored. It does not depend on what only people or clients read, nor on what injectors write:
//! descriptions, columns, names, `caBundle`.

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use kube_structural_schema::json::Json;

/// Keywords that describe a schema and do not affect objects.
const WORDS: [&str; 4] = ["description", "title", "example", "externalDocs"];
/// Keywords that hold schemas by name.
const NAMED: [&str; 4] = ["properties", "patternProperties", "definitions", "dependencies"];
/// Keywords that hold a schema, or a list of them.
const NESTED: [&str; 7] =
    ["items", "additionalItems", "additionalProperties", "allOf", "anyOf", "oneOf", "not"];

/// SHA-256 over the meaning of a CRD's spec before and after an upgrade, in hexadecimal: two upgrades with
/// the same digest do the same to every object.
pub fn digest(old: &Value, new: &Value) -> String {
    let both = Json::from(Value::from_iter([old, new].map(|crd| meaning(crd).into_inner())));
    let hash = Sha256::digest(both.to_vec());
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The part of a CRD that can touch objects, in one form.
pub(super) fn meaning(crd: &Value) -> Json {
    let spec = &crd["spec"];
    let versions = spec["versions"].as_array().into_iter().flatten().map(|version| {
        let mut meant =
            json!({ "name": version["name"], "served": version["served"], "storage": version["storage"] });
        meant["schema"] = schema(&version["schema"]["openAPIV3Schema"]);
        meant
    });
    let versions: Vec<Value> = versions.collect();
    let conversion = spec["conversion"]["strategy"].as_str().unwrap_or("None");
    let mut meant =
        json!({ "conversion": conversion, "preserveUnknownFields": spec["preserveUnknownFields"] == true });
    meant["versions"] = versions.into();
    meant.into()
}

/// A schema without descriptions.
fn schema(node: &Value) -> Value {
    match node {
        Value::Object(fields) => {
            let mut kept: Vec<_> =
                fields.iter().filter(|(name, _)| !WORDS.contains(&name.as_str())).collect();
            kept.sort_by_key(|(name, _)| *name);
            let kept = kept.into_iter().map(|(name, value)| {
                let value = match value {
                    Value::Object(by_name) if NAMED.contains(&name.as_str()) => by_name
                        .iter()
                        .map(|(name, node)| (name.clone(), schema(node)))
                        .collect::<Map<_, _>>()
                        .into(),
                    Value::Array(nodes) if NESTED.contains(&name.as_str()) => {
                        nodes.iter().map(schema).collect()
                    }
                    node if NESTED.contains(&name.as_str()) => schema(node),
                    other => other.clone(),
                };
                (name.clone(), value)
            });
            kept.collect::<Map<_, _>>().into()
        }
        other => other.clone(),
    }
}
