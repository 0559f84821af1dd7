//! `EmbeddedSchema`: what an API that other resources embed as a raw extension sets and requires.
//! For reviews see `etch_admission`.

#![expect(clippy::duplicated_attributes, reason = "each printed column has a type and a path of its own")]

use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Declaration;
use crate::spec::any_object;

/// How long the time of a look may stay behind that of a later one which found the same.
const RENEWED: SignedDuration = SignedDuration::from_hours(1);

/// The reason of `DefaultsPersisted` while defaults are about to be stored.
pub const SETTLING: &str = "Settling";

/// Declares an API that other resources embed as a raw extension: its types, defaults and rules, which the
/// API server neither knows nor validates.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "etch-operator.io",
    version = "v1alpha1",
    kind = "EmbeddedSchema",
    plural = "embeddedschemas",
    shortname = "emsc",
    category = "etch",
    status = "EmbeddedSchemaStatus",
    printcolumn(name = "Enforcement", type_ = "string", json_path = ".spec.enforcement"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status"
    ),
    printcolumn(name = "Denied", type_ = "integer", json_path = ".status.existing.denied"),
    printcolumn(name = "Defaults", type_ = "integer", json_path = ".status.existing.defaulted"),
    printcolumn(name = "Complete", type_ = "boolean", json_path = ".status.existing.complete"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
pub struct EmbeddedSchemaSpec {
    /// The declaration of the embedded API.
    #[serde(flatten)]
    pub declaration: Declaration,
}

/// The status of an `EmbeddedSchema`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EmbeddedSchemaStatus {
    /// The generation of the schema that this status is for.
    #[serde(default)]
    pub observed_generation: i64,
    /// `FactsKnown`, `Ready` and `Serving`, `Stalled` while `spec` is invalid, and `DefaultsPersisted` with
    /// `existing: Persist`.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// What the schema means for existing objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub existing: Option<ExistingObjects>,
    /// The last generation that Etch can serve, while it cannot serve the present one.
    // One value: fields that another manager leaves in it would be served as this generation's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub last_good: Option<LastGood>,
}

/// A generation that Etch can serve.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastGood {
    /// Its number.
    pub generation: i64,
    /// Its `spec`.
    #[schemars(schema_with = "any_object")]
    pub spec: serde_json::Value,
}

/// What a schema means for existing objects. Etch judges each object as if it were created at the time of the
/// check.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExistingObjects {
    /// The generation of the schema by which Etch judged them.
    #[serde(default)]
    pub observed_generation: i64,
    /// When Etch checked them. A check with the same result renews it once an hour at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_looked: Option<Time>,
    /// Whether Etch checked all of them.
    #[serde(default)]
    pub complete: bool,
    /// Why Etch did not check all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// How many objects the schema applies to. Those that are being deleted do not count.
    #[serde(default)]
    pub objects: u64,
    /// How many of them `enforcement: Deny` would refuse.
    #[serde(default)]
    pub denied: u64,
    /// The first 10 of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first_denied: Vec<ObjectName>,
    /// How many of them would get a default.
    #[serde(default)]
    pub defaulted: u64,
    /// The first 10 of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first_defaulted: Vec<ObjectName>,
    /// Whether Etch has stored their defaults, with `existing: Persist`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persisted: Option<PersistedDefaults>,
}

/// Whether Etch has stored the defaults that existing objects lack.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PersistedDefaults {
    /// The reason of the condition `DefaultsPersisted`.
    #[serde(default)]
    pub reason: String,
    /// Its message.
    #[serde(default)]
    pub message: String,
    /// How many objects hold all defaults of the schema.
    #[serde(default)]
    pub stored: u64,
    /// How many objects Etch holds because a write would do harm.
    #[serde(default)]
    pub held: u64,
    /// The first 10 of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first_held: Vec<ObjectTrouble>,
    /// How many objects the API server or admission rejected.
    #[serde(default)]
    pub rejected: u64,
    /// The first 10 of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first_rejected: Vec<ObjectTrouble>,
}

/// One object, and why Etch has not stored its defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectTrouble {
    /// The object.
    #[serde(flatten)]
    pub object: ObjectName,
    /// The reason, in one word.
    pub reason: String,
    /// The reason, in a sentence without values.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// One object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectName {
    /// The resource in plural, with its group: `machines.machine.openshift.io`.
    pub resource: String,
    /// The namespace; not set for cluster-scoped objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
}

impl ExistingObjects {
    /// Returns `before`, time included, if nothing else has changed and its time is recent. The earlier
    /// outcome for the same defaults stands until Etch is to store them again.
    #[must_use]
    pub fn or_as_it_was(mut self, before: Self) -> Self {
        let counts = |found: &Self| (found.observed_generation, found.objects, found.defaulted);
        let is_pending = self.persisted.as_ref().is_some_and(|persisted| persisted.reason == SETTLING);
        if is_pending && before.persisted.is_some() && counts(&self) == counts(&before) {
            self.persisted.clone_from(&before.persisted);
        }
        let renewed = Self { last_looked: before.last_looked.clone(), ..self.clone() };
        let age = |(now, then): (&Time, &Time)| now.0.duration_since(then.0);
        let age = self.last_looked.as_ref().zip(before.last_looked.as_ref()).map(age);
        let is_recent = age.is_some_and(|age| age < RENEWED);
        if renewed == before && is_recent { before } else { self }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn found(seconds: i64, denied: u64) -> ExistingObjects {
        let time = Time(Timestamp::from_second(seconds).expect("a time"));
        ExistingObjects { last_looked: Some(time), denied, ..ExistingObjects::default() }
    }

    #[test]
    fn the_same_once_more_is_not_written_again_for_an_hour() {
        assert_eq!(found(3_599, 1).or_as_it_was(found(0, 1)), found(0, 1));
        assert_eq!(found(3_600, 1).or_as_it_was(found(0, 1)), found(3_600, 1));
        assert_eq!(found(1, 2).or_as_it_was(found(0, 1)), found(1, 2));
        let never = ExistingObjects { last_looked: None, ..found(0, 1) };
        assert_eq!(found(1, 1).or_as_it_was(never), found(1, 1));
    }
}
