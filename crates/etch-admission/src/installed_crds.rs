//! The CRDs of Etch's own resources, in the form in which they are installed.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::CustomResourceExt;

use crate::api::EmbeddedSchema;
use etch_core::api::{DefaultsPolicy, DefaultsReport};

/// The CRDs that Etch brings, in the form in which they are installed.
pub fn crds() -> Vec<CustomResourceDefinition> {
    let mut crds = vec![DefaultsPolicy::crd(), DefaultsReport::crd(), EmbeddedSchema::crd()];
    for version in crds.iter_mut().flat_map(|crd| &mut crd.spec.versions) {
        if let Some(schema) = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut()) {
            simplify(schema);
            schema.properties.iter_mut().filter_map(|fields| fields.get_mut("spec")).for_each(without_nulls);
            // What `kubectl explain` shows first.
            let spec = schema.properties.as_ref().and_then(|fields| fields.get("spec"));
            schema.description = spec.and_then(|spec| spec.description.clone());
        }
    }
    crds
}

/// Takes out of a derived schema what would do harm in a cluster.
///
/// Defaults: Etch would process its own reports, and each of its writes would cause another. Formats of Rust:
/// the API server warns about formats that it does not know.
fn simplify(schema: &mut JSONSchemaProps) {
    schema.default = None;
    if schema.format.as_deref().is_some_and(|format| format.starts_with("uint")) {
        schema.format = None;
    }
    parts(schema).for_each(simplify);
}

/// Has the server drop nulls, which mean the same as no value: `kubectl get -o wide` shows them as
/// `<no value>`. A status may have them: an older release that runs while a new one is installed writes them.
fn without_nulls(schema: &mut JSONSchemaProps) {
    schema.nullable = None;
    parts(schema).for_each(without_nulls);
}

/// The schemas of what is in an object or a list.
fn parts(schema: &mut JSONSchemaProps) -> impl Iterator<Item = &mut JSONSchemaProps> {
    let fields = schema.properties.iter_mut().flat_map(BTreeMap::values_mut);
    let items = schema.items.as_mut().and_then(|items| match items {
        JSONSchemaPropsOrArray::Schema(items) => Some(&mut **items),
        JSONSchemaPropsOrArray::Schemas(_) => None,
    });
    let values = schema.additional_properties.as_mut().and_then(|values| match values {
        JSONSchemaPropsOrBool::Schema(values) => Some(&mut **values),
        JSONSchemaPropsOrBool::Bool(_) => None,
    });
    fields.chain(items).chain(values)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::crds;
    use crate::api::EmbeddedSchemaStatus;
    use etch_core::api::{DefaultsPolicyStatus, DefaultsReportStatus};
    use etch_core::duration;

    /// Every value of a key, at any depth.
    fn values<'a>(document: &'a Value, key: &str, found: &mut Vec<&'a Value>) {
        match document {
            Value::Object(fields) => fields.iter().for_each(|(name, value)| {
                if name == key {
                    found.push(value);
                }
                values(value, key, found);
            }),
            Value::Array(items) => items.iter().for_each(|item| values(item, key, found)),
            _ => {}
        }
    }

    #[test]
    fn our_own_schemas_have_no_defaults_and_no_formats_of_rust() {
        let crds = serde_json::to_value(crds()).expect("JSON");
        let (mut defaults, mut formats) = (Vec::new(), Vec::new());
        values(&crds, "default", &mut defaults);
        values(&crds, "format", &mut formats);
        assert!(defaults.is_empty(), "{defaults:?}");
        formats
            .retain(|format| !["int32", "int64", "date-time"].contains(&format.as_str().unwrap_or_default()));
        assert!(formats.is_empty(), "{formats:?}");
    }

    /// `kubectl get -o wide` would show `<no value>` for a null.
    #[test]
    fn no_column_has_a_null() {
        let (crds, mut nullable) = (serde_json::to_value(crds()).expect("JSON"), Vec::new());
        for crd in crds.as_array().expect("CRDs") {
            let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            values(&schema["properties"]["spec"], "nullable", &mut nullable);
        }
        assert!(nullable.is_empty());
        let statuses = [
            serde_json::to_value(DefaultsPolicyStatus::default()),
            serde_json::to_value(DefaultsReportStatus::default()),
            serde_json::to_value(EmbeddedSchemaStatus::default()),
        ];
        for status in statuses {
            let status = status.expect("JSON");
            assert!(!status.to_string().contains("null"), "{status}");
        }
    }

    /// `kubectl explain` gives the meaning of each value, and the default of what may be left out.
    #[test]
    fn each_choice_is_explained_with_its_default() {
        fn look(schema: &Value, path: &str, wrong: &mut Vec<String>) {
            let required = schema["required"].as_array().cloned().unwrap_or_default();
            for (name, field) in schema["properties"].as_object().into_iter().flatten() {
                let path = format!("{path}.{name}");
                let description = field["description"].as_str().unwrap_or_default();
                let choices = field["enum"].as_array().into_iter().flatten();
                let is_named = |choice: &&Value| {
                    description.contains(&format!("`{}`", choice.as_str().unwrap_or_default()))
                };
                wrong.extend(
                    choices.filter(|choice| !is_named(choice)).map(|choice| format!("{path}: {choice}")),
                );
                let has_default = description.contains("default") || description.contains("not set");
                if field["enum"].is_array() && !required.contains(&json!(name)) && !has_default {
                    wrong.push(format!("{path}: its default"));
                }
                if description.is_empty() {
                    wrong.push(format!("{path}: no description"));
                }
                look(field, &path, wrong);
                look(&field["items"], &path, wrong);
            }
        }
        let mut wrong = Vec::new();
        for crd in serde_json::to_value(crds()).expect("JSON").as_array().expect("CRDs") {
            let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
            look(schema, crd["spec"]["names"]["kind"].as_str().expect("a kind"), &mut wrong);
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn the_schema_takes_the_times_that_flags_take() {
        let crds = serde_json::to_value(crds()).expect("JSON");
        let schema = &crds[0]["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        let settle = &schema["properties"]["spec"]["properties"]["settle"];
        let rule = &settle["x-kubernetes-validations"][0];
        assert_eq!(rule["rule"], format!("self.matches('{}')", duration::PATTERN));
        assert_eq!(rule["message"], duration::NotADuration.to_string());
        assert_eq!(settle["maxLength"], duration::MAX_LENGTH);
    }
}
