//! `DefaultsReport`: what Etch did for one CRD, and the checkpoint for the next start.
//! It must not hold a value of any object.

#![expect(clippy::duplicated_attributes, reason = "each printed column has a type and a path of its own")]

use k8s_openapi::ByteString;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::change::ChangeAction;

/// Reports what Etch did for the objects of one CRD. It is named like the CRD and is deleted with it.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "etch-operator.io",
    version = "v1alpha1",
    kind = "DefaultsReport",
    plural = "defaultsreports",
    shortname = "drep",
    category = "etch",
    status = "DefaultsReportStatus",
    printcolumn(name = "State", type_ = "string", json_path = ".status.state"),
    printcolumn(name = "Policy", type_ = "string", json_path = ".status.policy"),
    printcolumn(name = "Objects", type_ = "integer", json_path = ".status.counts.objects"),
    printcolumn(name = "Written", type_ = "integer", json_path = ".status.counts.written"),
    printcolumn(name = "Stored", type_ = "integer", json_path = ".status.counts.alreadyStored"),
    printcolumn(name = "Due", type_ = "integer", json_path = ".status.counts.due"),
    printcolumn(name = "Held", type_ = "integer", json_path = ".status.counts.held"),
    printcolumn(name = "Rejected", type_ = "integer", json_path = ".status.counts.rejected"),
    printcolumn(name = "Ignored", type_ = "integer", json_path = ".status.counts.ignored"),
    printcolumn(
        name = "Terminating",
        type_ = "integer",
        json_path = ".status.counts.terminating",
        priority = 1
    ),
    printcolumn(name = "Unknown", type_ = "integer", json_path = ".status.counts.unknown", priority = 1),
    printcolumn(name = "Settles", type_ = "string", json_path = ".status.settlesAt", priority = 1),
    printcolumn(name = "Finished", type_ = "date", json_path = ".status.finished")
)]
#[serde(rename_all = "camelCase")]
pub struct DefaultsReportSpec {
    /// The CRD's name.
    pub crd: String,
    /// The CRD's uid: a CRD that is created again starts afresh.
    pub crd_uid: String,
}

/// What was seen and done.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DefaultsReportStatus {
    /// The reason of the CRD's `DefaultsPersisted` condition.
    #[serde(default)]
    pub state: String,
    /// The `DefaultsPolicy` that the CRD falls under.
    #[serde(default)]
    pub policy: String,
    /// The uid of the CRD that this is about. A status may be left from an earlier CRD of the name while `spec.crdUid` names the
    /// one there is.
    #[serde(default)]
    pub crd_uid: String,
    /// The CRD's generation that this is about.
    #[serde(default)]
    pub generation: i64,
    /// The CRD's storage version.
    #[serde(default)]
    pub storage_version: String,
    /// The digest of the effective defaults that this is about.
    #[serde(default)]
    pub digest: String,
    /// When these defaults were first seen; they are stored `settle` later.
    pub first_seen: Option<Time>,
    /// From when on objects are written; set while the schema is given time to settle.
    pub settles_at: Option<Time>,
    /// When what was written since the pass is verified once more: an API server that lags behind a change of the schema stores
    /// objects without the new defaults, and nothing shows it. Not set once that is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verify_at: Option<Time>,
    /// When the pass over the objects began.
    pub started: Option<Time>,
    /// When it ended; not set while it is under way.
    pub finished: Option<Time>,
    /// The resource version up to which every object was processed, apart from those listed below.
    pub through: Option<String>,
    /// While a pass is under way: the object, as `namespace/name`, up to which every one was processed; of those after it,
    /// `through` says only that what was written later holds its defaults.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upto: Option<String>,
    /// The objects that `through` says nothing of. The lists below name the first of them only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exceptions: Option<Exceptions>,
    /// How many objects there were, and what became of them.
    #[serde(default)]
    pub counts: Counts,
    /// The defaults of the storage version, in the order of their paths: as many as fit.
    #[serde(default)]
    pub defaults: Vec<DefaultPath>,
    /// How many more defaults there are than `defaults` lists.
    #[serde(default)]
    pub more_defaults: u64,
    /// Objects that were not written because it would do harm: the first 50 of `counts.held`.
    #[serde(default)]
    pub held: Vec<ObjectProblem>,
    /// Objects whose write was rejected: the first 50 of `counts.rejected`.
    #[serde(default)]
    pub rejected: Vec<ObjectProblem>,
    /// Objects that are left alone because their annotation asks for it: the first 50 of `counts.ignored`.
    #[serde(default)]
    pub ignored: Vec<ObjectProblem>,
    /// Objects that are left alone because they are being deleted: the first 50 of `counts.terminating`.
    #[serde(default)]
    pub terminating: Vec<ObjectProblem>,
    /// Fields that the schema no longer knows and that writes have dropped, as the policy says: the first 50, in order. Whether
    /// etcd held them in each of these objects nobody knows: they are those that managedFields or the last applied document
    /// named.
    #[serde(default)]
    pub dropped: Vec<DroppedField>,
    /// Objects that are known to be without fields that managedFields or the last applied document still name, for Etch has
    /// written them without: as many as are remembered.
    #[serde(default)]
    pub cleared: Vec<ClearedObject>,
    /// The defaults that have changed or gone since the pass before, and what became of their old values.
    #[serde(default)]
    pub changed: Vec<ChangedDefault>,
    /// What the schema gave before, newest first; at most three.
    #[serde(default)]
    pub previous: Vec<PreviousDefaults>,
}

/// Objects, as Bloom filters: the number of probes in the first byte, then the bits. The members are the first 64 bits of
/// SHA-256.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Exceptions {
    /// The uids of those that are held, rejected or unknown.
    #[schemars(with = "String")]
    pub uids: ByteString,
    /// Those that were rejected, by uid, a slash and resource version: as they are, they would be rejected again.
    #[schemars(with = "String")]
    pub rejected: ByteString,
}

/// How many objects there were, and what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// Objects that were processed.
    #[serde(default)]
    pub objects: u64,
    /// Objects whose defaults a write of Etch has stored.
    #[serde(default)]
    pub written: u64,
    /// Objects that had nothing missing.
    #[serde(default)]
    pub already_stored: u64,
    /// Objects that would be written if the policy allowed it. To know for certain one would have to write, so this is an
    /// estimate: a default counts as stored where an owner names it, or where the object was last written after the
    /// schema had it.
    #[serde(default)]
    pub due: u64,
    /// Objects that were not written because it would do harm.
    #[serde(default)]
    pub held: u64,
    /// Objects whose write was rejected.
    #[serde(default)]
    pub rejected: u64,
    /// Objects whose annotation `etch-operator.io/ignore` asks for them to be left alone: they are not stored, as far as is
    /// known.
    #[serde(default)]
    pub ignored: u64,
    /// Objects that are being deleted: they are left alone, and not stored, as far as is known.
    #[serde(default)]
    pub terminating: u64,
    /// Objects that changed and have not been processed since.
    #[serde(default)]
    pub unknown: u64,
    /// Objects that a write has rid of fields that the schema no longer knows, as the policy says, since there is this report.
    #[serde(default)]
    pub dropped: u64,
    /// Objects in which a value has followed a changed default. Those in which one would are due.
    #[serde(default)]
    pub followed: u64,
    /// Objects that keep a value which a changed default gave before: somebody owns it or may, or the policy does not ask to
    /// follow.
    #[serde(default)]
    pub kept: u64,
}

/// One default of the schema.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DefaultPath {
    /// Its place in the schema: `.spec.ports[].protocol`.
    pub path: String,
    /// What is filled in there, the defaults below it included, as JSON. It is the schema's, and no object's, value; left
    /// out where it is long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// The CRD's resource version at which this default was first seen here: what was written later holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// How many objects it was missing in.
    #[serde(default)]
    pub objects: u64,
}

/// What an earlier schema gave.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreviousDefaults {
    /// The digest of these defaults.
    #[serde(default)]
    pub digest: String,
    /// The CRD's storage version then.
    #[serde(default)]
    pub storage_version: String,
    /// The last generation of the CRD that had them.
    #[serde(default)]
    pub generation: i64,
    /// When they were first seen.
    pub first_seen: Option<Time>,
    /// When the pass that stored them ended; not set if none did.
    pub finished: Option<Time>,
    /// When what was written since was to be verified once more; not set if it was.
    pub verify_at: Option<Time>,
    /// The resource version up to which every object was processed, apart from `exceptions`.
    pub through: Option<String>,
    /// The uids of the objects that were held or rejected then.
    #[serde(default)]
    pub exceptions: Vec<String>,
    /// Their places and values: as many as fit.
    #[serde(default)]
    pub defaults: Vec<DefaultValue>,
    /// How many more there were than `defaults` lists.
    #[serde(default)]
    pub more_defaults: u64,
}

/// A field that the schema no longer knows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DroppedField {
    /// Its place, as in a schema.
    pub path: String,
    /// How many objects it was dropped from.
    #[serde(default)]
    pub objects: u64,
}

/// An object that is known to be without some fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClearedObject {
    /// The namespace; not set for cluster-scoped objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
    /// The uid.
    pub uid: String,
    /// The fields, as places in a schema.
    #[serde(default)]
    pub paths: Vec<String>,
}

/// A default that is no longer what it was.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangedDefault {
    /// Its place in the schema.
    pub path: String,
    /// Whether values are to follow it, by the policy that is in force.
    #[serde(default)]
    pub action: ChangeAction,
    /// In how many objects a value has followed it.
    #[serde(default)]
    pub followed: u64,
    /// How many objects keep what it gave before.
    #[serde(default)]
    pub kept: u64,
}

/// One default of an earlier schema.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DefaultValue {
    /// Its place in the schema.
    pub path: String,
    /// What was filled in there, as JSON; left out where it was long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// One object, and why its defaults are not stored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectProblem {
    /// The namespace; not set for cluster-scoped objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
    /// The uid.
    pub uid: String,
    /// Why, in one word.
    pub reason: String,
    /// Why, in a sentence without values.
    #[serde(default)]
    pub message: String,
    /// The fields that it is about: the first of them.
    #[serde(default)]
    pub paths: Vec<String>,
    /// How many more fields there are than `paths` lists.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_paths: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}
