//! `DefaultsPolicy`: which CRDs Etch cares for, and how.
//! It must not select anything itself; see `selector`.

#![expect(clippy::duplicated_attributes, reason = "each printed column has a type and a path of its own")]

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::assign::Pause;
use super::change::{ChangeRule, followed};
use super::selector::CrdSelector;
use crate::domain::path::Path;
use crate::domain::plan::{HiddenFields, Ownership, Terms};

/// Says which CRDs Etch cares for, and how. A CRD that no policy selects is left alone.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "etch-operator.io",
    version = "v1alpha1",
    kind = "DefaultsPolicy",
    plural = "defaultspolicies",
    shortname = "dpol",
    category = "etch",
    status = "DefaultsPolicyStatus",
    printcolumn(name = "Mode", type_ = "string", json_path = ".status.mode"),
    printcolumn(name = "CRDs", type_ = "integer", json_path = ".status.crds"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].reason"
    ),
    printcolumn(
        name = "Conflicting",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Conflicting\")].status"
    ),
    printcolumn(name = "Settle", type_ = "string", json_path = ".spec.settle", priority = 1),
    printcolumn(name = "Ownership", type_ = "string", json_path = ".spec.ownership", priority = 1),
    printcolumn(name = "Hidden", type_ = "string", json_path = ".spec.hiddenFields", priority = 1),
    printcolumn(
        name = "Paused",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Paused\")].status"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct DefaultsPolicySpec {
    /// Which CRDs this policy is for; all of them if it is empty. One policy governs a CRD: of those that select it, the most
    /// specific one. A policy with the CRD's name in `names` comes before one that reaches it by a pattern in `names`, and that
    /// before one without `names`; where that is equal, one with `matchLabels` before one without; where that is equal too, one
    /// with the group in `groups` before one with a pattern in `groups`, and that before one without `groups`. Of several that
    /// are equal in all of this the first by name governs, and the condition `Conflicting` of each tells.
    #[serde(default)]
    pub selector: CrdSelector,
    /// What is done for their objects: `Persist` (the default), `Audit` or `Ignore`.
    pub mode: Option<Mode>,
    /// Whether stored defaults become fields of the manager `etch`: `None` (the default) or `Own`.
    pub ownership: Option<Ownership>,
    /// What is done about objects that hold fields which the schema no longer knows: `Hold` (the default) or `Drop`.
    pub hidden_fields: Option<HiddenFields>,
    /// How long a changed schema must stand before objects are written, such as `10s` or `24h`. The operator's `--settle`
    /// applies if this is not set.
    #[schemars(
        length(max = 32),
        extend("x-kubernetes-validations" = [{
            "rule": "self.matches('^([0-9]{1,5}(ms|s|m|h|d))+$')",
            "message": "settle is a time such as 10s, 30m, 24h or 1d12h",
        }])
    )]
    pub settle: Option<String>,
    /// At most this many writes per second for each CRD of this policy.
    #[schemars(range(min = 1))]
    pub max_writes_per_second: Option<u32>,
    /// Stop a CRD's pass after this many objects were rejected.
    #[schemars(range(min = 1))]
    pub stop_after_rejected: Option<u32>,
    /// Stop writing to the objects of the CRDs that this policy governs, until this is taken back. CRDs for which a more
    /// specific policy is in force go on; `pauseAll` stops those too.
    pub paused: Option<bool>,
    /// Stop writing to the objects of every CRD, whichever policy governs it, until this is taken back. It counts on any
    /// policy, whatever that selects: the one switch that stops all writes.
    pub pause_all: Option<bool>,
    /// What is done when a default changes or is taken back. Values of defaults that are not named here stay.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 200),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["path"])
    )]
    pub on_change: Vec<ChangeRule>,
}

/// What is done for the objects of a CRD.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Mode {
    /// Defaults are stored.
    #[default]
    Persist,
    /// Everything is computed and reported, nothing is written to objects.
    Audit,
    /// Nothing is done.
    Ignore,
}

/// A policy's word for one CRD, with everything that it leaves open filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The policy's name.
    pub policy: String,
    /// What is done.
    pub mode: Mode,
    /// What writes may do.
    pub terms: Terms,
    /// How long a changed schema must stand first.
    pub settle: Duration,
    /// Writes per second; none for no limit of its own.
    pub max_writes_per_second: Option<u32>,
    /// Rejections after which a pass stops; none for never.
    pub stop_after_rejected: Option<u32>,
    /// Who has stopped writing for now; none while objects may be written.
    pub pause: Option<Pause>,
    /// The places of defaults whose changes are followed.
    pub follow: Vec<Path>,
}

impl DefaultsPolicySpec {
    /// What this policy alone says for a CRD that it selects; `settle` is the operator's own.
    ///
    /// A `settle` that cannot be read counts as the operator's: the CRD's schema refuses it before it gets here.
    pub(super) fn settings(&self, policy: &str, settle: Duration) -> Settings {
        Settings {
            policy: policy.to_owned(),
            mode: self.mode.unwrap_or_default(),
            terms: Terms {
                ownership: self.ownership.unwrap_or_default(),
                hidden_fields: self.hidden_fields.unwrap_or_default(),
            },
            settle: self
                .settle
                .as_deref()
                .and_then(|text| humantime::parse_duration(text).ok())
                .unwrap_or(settle),
            max_writes_per_second: self.max_writes_per_second,
            stop_after_rejected: self.stop_after_rejected,
            // A question to all policies: see `assign`.
            pause: None,
            follow: followed(&self.on_change),
        }
    }
}

impl Settings {
    /// Whether another policy's word comes to the same, but for a pause.
    pub(crate) fn same_apart_from_pause(&self, other: &Self) -> bool {
        *self == Self { pause: self.pause.clone(), ..other.clone() }
    }
}

/// What a policy does at present.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DefaultsPolicyStatus {
    /// The generation of the policy that this is about.
    #[serde(default)]
    pub observed_generation: i64,
    /// What is done for the objects of its CRDs, with what the spec leaves open filled in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// How many CRDs fall under it. Of those, only CRDs with defaults have reports.
    #[serde(default)]
    pub crds: u64,
    /// The first of them, by name.
    #[serde(default)]
    pub names: Vec<String>,
    /// Other policies that select a CRD as specifically as this one.
    #[serde(default)]
    pub conflicts: Vec<PolicyConflict>,
    /// `Ready`: whether it can be read and its selector matches a CRD. `Conflicting`: whether there are `conflicts`. `Paused`:
    /// whether this or another policy has paused writes to its CRDs' objects. `UnknownPaths`: whether `onChange` names fields
    /// that no schema of its CRDs has.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// Two policies that select a CRD as specifically as each other. The first by name wins.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyConflict {
    /// The other policy.
    pub policy: String,
    /// The policy that the CRDs fall under.
    pub winner: String,
    /// How many CRDs it is about.
    #[serde(default)]
    pub crds: u64,
    /// The first of them, by name.
    #[serde(default)]
    pub names: Vec<String>,
}
