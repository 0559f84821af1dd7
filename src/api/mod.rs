//! The three resources of Etch's own API group, `etch-operator.io/v1alpha1`.
//! They must not hold logic but the one question of which policy governs a CRD: they are what users write and read.

mod assign;
mod change;
mod embedded_schema;
mod policy;
mod report;
mod selector;

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray,
};
use kube::CustomResourceExt;

pub use assign::{Assignment, Pause, Policies, assign, counting, only_pauses, pause};
pub use change::{ChangeAction, ChangeRule};
pub(crate) use embedded_schema::SETTLING;
pub use embedded_schema::{
    EmbeddedSchema, EmbeddedSchemaSpec, EmbeddedSchemaStatus, ExistingObjects, ObjectName, ObjectTrouble,
    PersistedDefaults,
};
pub use policy::{DefaultsPolicy, DefaultsPolicySpec, DefaultsPolicyStatus, Mode, PolicyConflict, Settings};
pub use report::{
    ChangedDefault, ClearedObject, Counts, DefaultPath, DefaultValue, DefaultsReport, DefaultsReportSpec,
    DefaultsReportStatus, DroppedField, Exceptions, LostOwners, ObjectProblem, PreviousDefaults,
    ServedVersion,
};
pub use selector::CrdSelector;

/// The API group of Etch's own resources.
pub const GROUP: &str = "etch-operator.io";

/// The CRDs that Etch brings, as they are installed.
pub fn crds() -> Vec<CustomResourceDefinition> {
    let mut crds = vec![DefaultsPolicy::crd(), DefaultsReport::crd(), EmbeddedSchema::crd()];
    for version in crds.iter_mut().flat_map(|crd| &mut crd.spec.versions) {
        if let Some(schema) = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut()) {
            simplify(schema);
            // What `kubectl explain` shows first.
            let spec = schema.properties.as_ref().and_then(|fields| fields.get("spec"));
            schema.description = spec.and_then(|spec| spec.description.clone());
        }
    }
    crds
}

/// Takes out of a derived schema what would do harm in a cluster.
///
/// Defaults: Etch would process its own reports, and each of its writes would cause another. Formats of Rust's: the API server
/// warns of those that it does not know.
fn simplify(schema: &mut JSONSchemaProps) {
    schema.default = None;
    if schema.format.as_deref().is_some_and(|format| format.starts_with("uint")) {
        schema.format = None;
    }
    let fields = schema.properties.iter_mut().flat_map(BTreeMap::values_mut);
    fields.for_each(simplify);
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        simplify(items);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::crds;

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
}
