//! `EmbeddedSchema`: what an API that other resources embed as a raw extension sets and asks for.
//! It must not review anything; see `domain::admission`.

#![expect(clippy::duplicated_attributes, reason = "each printed column has a type and a path of its own")]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::admission::Declaration;

/// Says what an API that other resources embed as a raw extension sets and asks for: its defaults and rules, which the API
/// server neither knows nor checks.
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
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
pub struct EmbeddedSchemaSpec {
    /// What is declared.
    #[serde(flatten)]
    pub declaration: Declaration,
}

/// What has become of an `EmbeddedSchema`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EmbeddedSchemaStatus {
    /// The generation of the schema that this is about.
    #[serde(default)]
    pub observed_generation: i64,
    /// `Ready`: whether it can be served.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}
