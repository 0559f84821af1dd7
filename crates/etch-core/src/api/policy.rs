//! `DefaultsPolicy`: which CRDs Etch processes, and how.
//! `selector` selects the CRDs.

#![expect(clippy::duplicated_attributes, reason = "each printed column has a type and a path of its own")]

use std::fmt;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::amount::Amount;
use super::canary::Canary;
use super::change::{ChangeRule, followed};
use super::selector::CrdSelector;
use crate::plan::{HiddenFields, Ownership, Terms};
use crate::selection::ObjectSelector;
use crate::upgrade::GuardMode;
use crate::{described, duration};
use kube_structural_schema::path::Path;

/// Which policies have paused the writes to the objects of a CRD; at least one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pause {
    /// The policy that governs the CRD, if it has `paused`.
    pub paused: Option<String>,
    /// The policies with `pauseAll`, by name, whichever CRDs they select.
    pub pause_all: Vec<String>,
}

impl Pause {
    /// How to end it, as an imperative: `set paused to false in DefaultsPolicy default`.
    pub fn remedy(&self) -> String {
        let all = self.pause_all.iter().map(|policy| ("pauseAll", policy));
        let own = self.paused.iter().map(|policy| ("paused", policy));
        let each =
            all.chain(own).map(|(field, policy)| format!("{field} to false in DefaultsPolicy {policy}"));
        format!("set {}", each.collect::<Vec<_>>().join(" and "))
    }
}

impl fmt::Display for Pause {
    /// Each policy with the field that has to be taken back: `DefaultsPolicy default (paused)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.pause_all.iter().map(|policy| (policy, "pauseAll"));
        let own = self.paused.iter().map(|policy| (policy, "paused"));
        for (index, (policy, field)) in all.chain(own).enumerate() {
            let and = if index > 0 { " and " } else { "" };
            write!(f, "{and}DefaultsPolicy {policy} ({field})")?;
        }
        Ok(())
    }
}

/// Selects CRDs, and sets how Etch processes their objects. Etch ignores a CRD that no policy selects.
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
    printcolumn(name = "Guard", type_ = "string", json_path = ".spec.guard", priority = 1),
    printcolumn(
        name = "Paused",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Paused\")].status"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = described::fields)]
pub struct DefaultsPolicySpec {
    /// The CRDs that this policy selects; all of them if it is empty. One policy governs a CRD: the most
    /// specific one of those that select it. Compare in this order: 1. `names`: the exact name beats a
    /// pattern, and a pattern beats no `names`;
    /// 2. `matchLabels`: given beats not given; 3. `groups`: the exact group beats a pattern, and a pattern
    ///    beats no `groups`.
    /// For example, `names: [certificates.cert-manager.io]` beats `matchLabels: {tier: gold}`, and that beats
    /// `groups: [cert-manager.io]`. In a tie the first policy by name governs, and the condition
    /// `Conflicting` of each is `True`.
    #[serde(default)]
    pub selector: CrdSelector,
    /// Which objects of these CRDs Etch processes; all of them if it is not set or empty. Etch writes no
    /// other object and makes no claim about one, but counts it, and it keeps old versions in
    /// `status.storedVersions`. When this selects more objects than before, Etch processes those as well.
    pub objects: Option<ObjectSelector>,
    /// What Etch does with their objects. `Persist` (the default): store their defaults. `Audit`: check them
    /// and report what is missing, but write none. `Ignore`: do not check them.
    pub mode: Option<Mode>,
    /// Who owns the defaults that Etch stores. `None` (the default): no manager, so the next client that sets
    /// such a field gets no conflict. `Own`: the manager `etch`, so another manager that applies another
    /// value gets a conflict. `Own` is no lock: a forced apply and any update, such as `kubectl edit`, change
    /// the value without a conflict, and Etch does not restore it. It takes no field from another manager,
    /// owns nothing inside atomic lists and maps, and does not make values follow a changed default.
    pub ownership: Option<Ownership>,
    /// What Etch does with objects that have fields which the schema no longer has. `Hold` (the default):
    /// report them and do not write them. `Drop`: write them, which destroys these fields in etcd.
    pub hidden_fields: Option<HiddenFields>,
    /// How long to wait after a schema change before writing objects, such as `10s`, `1m30s` or `24h`. If not
    /// set, the operator's `--settle` applies (`10s` unless it is changed).
    #[schemars(
        length(max = 32),
        extend("x-kubernetes-validations" = [{
            "rule": "self.matches('^([0-9]{1,5}(ms|s|m|h|d))+$')",
            "message": "expected a time such as 10s, 1m30s, 1h or 1d12h",
        }])
    )]
    pub settle: Option<String>,
    /// At most this many writes per second for each CRD of this policy. If not set, only the operator's own
    /// limits apply.
    #[schemars(range(min = 1))]
    pub max_writes_per_second: Option<u32>,
    /// Stop a CRD's pass after this many rejected objects, or after this percentage of the objects that it
    /// has tried to write, such as `5%`. Fewer than 100 tried objects count as 100, or as all objects of the
    /// CRD if that is less. If not set, a pass goes on whatever is rejected.
    pub stop_after_rejected: Option<Amount>,
    /// Write only some objects at first after a schema change, and make sure that etcd holds their defaults.
    /// If not set, a pass writes all objects.
    pub canary: Option<Canary>,
    /// Pause writes to the objects of the CRDs that this policy governs. Writes go on for CRDs that a more
    /// specific policy governs; `pauseAll` pauses those too. `false` by default.
    pub paused: Option<bool>,
    /// Pause all writes to objects, whichever policy governs their CRD. The field works on any policy,
    /// whatever it selects. `false` by default.
    pub pause_all: Option<bool>,
    /// What Etch does when one of these CRDs is upgraded, if admission is installed. `Warn` (the default):
    /// warn about values that change or disappear, fields that become hidden, and objects that become
    /// invalid. `Deny`: refuse such an upgrade, unless the CRD's annotation `etch-operator.io/allow-upgrade`
    /// has the digest that the refusal names. `Off`, in quotes in YAML: nothing; this is the default with
    /// `mode: Ignore`. The same goes for the deletion of a CRD that has objects: `Warn` counts them, and
    /// `Deny` refuses it unless the annotation `etch-operator.io/allow-deletion` has the CRD's uid. And for a
    /// StorageVersionMigration of its objects: `Deny` refuses one that destroys hidden fields.
    pub guard: Option<GuardMode>,
    /// What Etch does about versions in a CRD's `status.storedVersions` that are not its storage version.
    /// `Report` (the default): report how many objects are proved to be stored at the storage version, and
    /// which old versions could go. `Trim`: also store the objects of CRDs without defaults at the storage
    /// version, and take out old versions once each object is proved. `Ignore`: nothing.
    pub stored_versions: Option<StoredVersions>,
    /// What Etch does about `metadata.managedFields` that name a version which is no longer served: once the
    /// CRD lacks that version, the API server refuses every apply to the object. `Leave` (the default):
    /// nothing, unless a default of the object is to be stored. `Repair`: name the same owners and fields at
    /// the storage version, also in objects of CRDs without defaults.
    pub managed_fields: Option<ManagedFields>,
    /// What Etch does with an object whose write an admission webhook or ValidatingAdmissionPolicy refuses.
    /// `Report` (the default): report it as rejected. `WriteStatus`: if the CRD has the status subresource,
    /// send the same write, which changes nothing that a read shows, to the object's status. The API server
    /// stores the whole object with it, the defaults in `spec` included, and asks only the webhooks and
    /// policies that match the status. Etch needs the permission to patch the status for this, which
    /// `etch rbac --policy` prints.
    pub refused_objects: Option<RefusedObjects>,
    /// What happens to stored values when their default changes or is removed. Values of defaults that are
    /// not listed stay.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 200),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["path"])
    )]
    pub on_change: Vec<ChangeRule>,
}

/// What Etch does with the objects of a CRD.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Mode {
    /// Store defaults.
    #[default]
    Persist,
    /// Check and report objects, but do not write them.
    Audit,
    /// Do not check objects.
    Ignore,
}

/// What Etch does about old versions in `status.storedVersions`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum StoredVersions {
    /// Nothing.
    Ignore,
    /// Report which could go.
    #[default]
    Report,
    /// Take them out once each object is proved to be stored at the storage version.
    Trim,
}

/// What Etch does about owners at versions that are served no more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ManagedFields {
    /// Nothing.
    #[default]
    Leave,
    /// Name them at the storage version.
    Repair,
}

/// What Etch does with objects whose write admission refuses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RefusedObjects {
    /// Report them.
    #[default]
    Report,
    /// Write them through their status.
    WriteStatus,
}

/// What a policy sets for one CRD, with a value for everything that it leaves open.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// The policy's name.
    pub policy: String,
    /// What Etch does.
    pub mode: Mode,
    /// What writes may do.
    pub terms: Terms,
    /// How long to wait after a schema changed.
    pub settle: Duration,
    /// Writes per second; none for no limit of its own.
    pub max_writes_per_second: Option<u32>,
    /// Rejections after which a pass stops; none for never.
    pub stop_after_rejected: Option<Amount>,
    /// How many objects a pass writes before all others; `None` if it makes no difference.
    pub canary: Option<Canary>,
    /// What Etch does with old versions in `status.storedVersions`.
    pub stored_versions: StoredVersions,
    /// Which policies have paused writes; none while objects may be written.
    pub pause: Option<Pause>,
    /// The places of defaults whose changes are followed.
    pub follow: Vec<Path>,
    /// Whether the policy names any path, also one that cannot be read.
    pub names_paths: bool,
}

impl DefaultsPolicySpec {
    /// What this policy sets for a CRD that it selects; `settle` is the operator's own.
    ///
    /// A `settle` that cannot be read counts as the operator's: the CRD's schema refuses it before it gets
    /// here.
    pub(super) fn settings(&self, policy: &str, settle: Duration) -> Settings {
        Settings {
            policy: policy.to_owned(),
            mode: self.mode.unwrap_or_default(),
            terms: Terms {
                ownership: self.ownership.unwrap_or_default(),
                hidden_fields: self.hidden_fields.unwrap_or_default(),
                moves: self.stored_versions == Some(StoredVersions::Trim),
                doubts_stored_versions: false,
                repairs: self.managed_fields == Some(ManagedFields::Repair),
                selection: self.objects.clone().into(),
                writes_status: self.refused_objects == Some(RefusedObjects::WriteStatus),
            },
            settle: self.settle.as_deref().and_then(|text| duration::parse(text).ok()).unwrap_or(settle),
            max_writes_per_second: self.max_writes_per_second,
            stop_after_rejected: self.stop_after_rejected,
            canary: self.canary,
            stored_versions: self.stored_versions.unwrap_or_default(),
            // A question to all policies: see `assign`.
            pause: None,
            follow: followed(&self.on_change),
            names_paths: !self.on_change.is_empty(),
        }
    }
}

impl DefaultsPolicySpec {
    /// What Etch does with requests that upgrade the CRDs that it governs, with the default where it sets
    /// nothing.
    pub fn guard_mode(&self) -> GuardMode {
        let otherwise = if self.mode == Some(Mode::Ignore) { GuardMode::Off } else { GuardMode::default() };
        self.guard.unwrap_or(otherwise)
    }
}

impl Settings {
    /// Whether the operator writes to objects.
    pub fn writes(&self) -> bool {
        self.mode == Mode::Persist && self.pause.is_none()
    }

    /// Whether other settings are the same, apart from a pause.
    pub fn same_apart_from_pause(&self, other: &Self) -> bool {
        *self == Self { pause: self.pause.clone(), ..other.clone() }
    }
}

/// The status of a policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = described::fields)]
pub struct DefaultsPolicyStatus {
    /// The generation of the policy that this status is for.
    #[serde(default)]
    pub observed_generation: i64,
    /// What Etch does with the objects of its CRDs; the default if the spec has no `mode`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// How many CRDs the policy governs. Only CRDs with defaults or with old stored versions have reports.
    #[serde(default)]
    pub crds: u64,
    /// The first of them, by name.
    #[serde(default)]
    pub names: Vec<String>,
    /// Other policies that select the same CRDs and are equally specific.
    #[serde(default)]
    pub conflicts: Vec<PolicyConflict>,
    /// `Ready`: this version can read the policy, and its selector matches a CRD. `Conflicting`: there are
    /// `conflicts`. `Paused`: this or another policy has paused writes to the objects of its CRDs.
    /// `UnknownPaths`: `onChange` names fields that no schema of its CRDs has.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// Two equally specific policies that select the same CRDs. The first by name governs them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyConflict {
    /// The other policy.
    pub policy: String,
    /// The policy that governs the CRDs.
    pub winner: String,
    /// How many CRDs both select.
    #[serde(default)]
    pub crds: u64,
    /// The first of them, by name.
    #[serde(default)]
    pub names: Vec<String>,
}
