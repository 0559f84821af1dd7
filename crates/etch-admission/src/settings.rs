//! How the author of an `EmbeddedSchema` has the API server call the webhooks, which `webhooks` makes.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the API server calls the webhooks for a schema's targets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = etch_core::described::fields)]
pub struct Webhooks {
    /// What happens to a request whose defaults are not set because no replica answers. `Ignore` (the
    /// default): it passes. `Fail`: it is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mutation_failure_policy: Option<FailurePolicy>,
    /// What happens to a request that is not judged because no replica answers. `Ignore` (the default): it
    /// passes. `Fail`: it is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation_failure_policy: Option<FailurePolicy>,
    /// CEL that the API server evaluates before it calls the webhook. It does not call the webhook if one of
    /// them is false.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 64),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub match_conditions: Vec<MatchCondition>,
    /// Only namespaces with these labels. `kube-system` and Etch's own namespace are always excluded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<LabelSelector>,
}

/// What the API server does if a webhook does not answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum FailurePolicy {
    /// The request passes.
    #[default]
    Ignore,
    /// The request is refused.
    Fail,
}

/// A condition of a webhook.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MatchCondition {
    /// Its name, which errors mention.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// CEL over `object`, `oldObject`, `request` and `authorizer`.
    #[schemars(length(min = 1, max = 10_000))]
    pub expression: String,
}

impl Webhooks {
    /// Whether API servers send requests for some objects only. Etch cannot determine which.
    pub fn restricts(&self) -> bool {
        !self.match_conditions.is_empty() || self.namespace_selector.is_some()
    }
}
