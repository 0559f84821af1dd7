//! A CRD as API servers store it, in the form in which they serve it.

use serde_json::{Value, json};

use kube_structural_schema::json::Json;

/// Brings a stored CRD into the form of `apiextensions.k8s.io/v1`.
///
/// Servers store CRDs as `v1beta1` (fact R7), where one schema for all versions stands beside them, and a CRD
/// may name its only version by itself. It keeps unknown fields there unless it states otherwise.
///
/// Source: apiextensions-apiserver `pkg/apis/apiextensions/{v1/conversion,v1beta1/defaults}.go`.
pub fn definition(mut stored: Json) -> Json {
    let is_old = stored.get("apiVersion").is_some_and(|version| version == "apiextensions.k8s.io/v1beta1");
    if !is_old {
        return stored;
    }
    stored["apiVersion"] = Value::from("apiextensions.k8s.io/v1");
    let Some(spec) = stored.get_mut("spec").and_then(Value::as_object_mut) else { return stored };
    // At `v1beta1` it is the default.
    let preserves = spec.entry("preserveUnknownFields").or_insert(Value::Null);
    if preserves.is_null() {
        *preserves = Value::Bool(true);
    }
    let shared = spec.remove("validation").filter(|validation| !validation.is_null());
    let only = spec.remove("version").filter(|version| version.as_str().is_some_and(|name| !name.is_empty()));
    let versions = spec.entry("versions").or_insert_with(|| json!([]));
    if let (Value::Array(versions), Some(only)) = (&mut *versions, only)
        && versions.is_empty()
    {
        versions.push(json!({ "name": only, "served": true, "storage": true }));
    }
    if let (Value::Array(versions), Some(shared)) = (versions, shared) {
        for version in versions.iter_mut().filter_map(Value::as_object_mut) {
            if version.get("schema").is_none_or(Value::is_null) {
                version.insert("schema".to_owned(), Json::from(shared.clone()).into_inner());
            }
        }
    }
    stored
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_schema_is_each_versions_own() {
        let stored = json!({
            "apiVersion": "apiextensions.k8s.io/v1beta1",
            "spec": {
                "version": "v1beta1", "preserveUnknownFields": false, "validation": {
                    "openAPIV3Schema": { "type": "object" },
                },
                "versions": [{ "name": "v1beta1" }, { "name": "v1", "schema": { "openAPIV3Schema": {} } }],
            },
        });
        let expected = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "spec": { "preserveUnknownFields": false, "versions": [
                { "name": "v1beta1", "schema": { "openAPIV3Schema": { "type": "object" } } },
                { "name": "v1", "schema": { "openAPIV3Schema": {} } },
            ] },
        });
        assert_eq!(*definition(stored.into()), expected);
        assert_eq!(*definition(expected.clone().into()), expected);
        let single = json!({ "apiVersion": "apiextensions.k8s.io/v1beta1", "spec": { "version": "v1" } });
        let versions = json!([{ "name": "v1", "served": true, "storage": true }]);
        let single = definition(single.into());
        assert_eq!(single["spec"], json!({ "preserveUnknownFields": true, "versions": versions }));
    }
}
