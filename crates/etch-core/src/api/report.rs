//! `DefaultsReport`: what Etch did for one CRD, and the checkpoint for the next start.
//! It must not hold a value of any object.

#![expect(clippy::duplicated_attributes, reason = "each printed column has a type and a path of its own")]

use k8s_openapi::ByteString;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::selection::ObjectSelector;

use super::canary::CanaryProgress;
use super::change::ChangeAction;
use super::counts::Counts;

/// Reports what Etch did for the objects of one CRD. It has the name of the CRD and is deleted with it.
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
    printcolumn(name = "Unproved", type_ = "integer", json_path = ".status.counts.unproved", priority = 1),
    printcolumn(name = "Held", type_ = "integer", json_path = ".status.counts.held"),
    printcolumn(name = "Rejected", type_ = "integer", json_path = ".status.counts.rejected"),
    printcolumn(name = "Ignored", type_ = "integer", json_path = ".status.counts.ignored"),
    printcolumn(
        name = "Terminating",
        type_ = "integer",
        json_path = ".status.counts.terminating",
        priority = 1
    ),
    printcolumn(name = "TooDeep", type_ = "integer", json_path = ".status.counts.tooDeep", priority = 1),
    printcolumn(name = "Unknown", type_ = "integer", json_path = ".status.counts.unknown", priority = 1),
    printcolumn(
        name = "Removable",
        type_ = "string",
        json_path = ".status.storedVersions.removable",
        priority = 1
    ),
    printcolumn(name = "Settles", type_ = "string", json_path = ".status.settlesAt", priority = 1),
    printcolumn(name = "Finished", type_ = "date", json_path = ".status.finished")
)]
#[serde(rename_all = "camelCase")]
pub struct DefaultsReportSpec {
    /// The CRD's name.
    pub crd: String,
    /// The CRD's uid: a CRD that is created again starts with a new report.
    pub crd_uid: String,
}

/// What Etch found and did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DefaultsReportStatus {
    /// The reason of the CRD's `DefaultsPersisted` condition.
    #[serde(default)]
    pub state: String,
    /// The `DefaultsPolicy` that governs the CRD.
    #[serde(default)]
    pub policy: String,
    /// The uid of the CRD that this status is for. It may be that of an earlier CRD with this name, while
    /// `spec.crdUid` names the current one.
    #[serde(default)]
    pub crd_uid: String,
    /// The CRD's generation that this status is for.
    #[serde(default)]
    pub generation: i64,
    /// The versions that the API server has served since `through`. `*` stands for those of generations that
    /// Etch did not see.
    #[serde(default)]
    pub served: Vec<ServedVersion>,
    /// The CRD's storage version.
    #[serde(default)]
    pub storage_version: String,
    /// The digest of the effective defaults that this status is for.
    #[serde(default)]
    pub digest: String,
    /// When Etch first saw these defaults; it stores them `settle` later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_seen: Option<Time>,
    /// When Etch starts to write objects; set while it waits for the schema to settle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settles_at: Option<Time>,
    /// When Etch verifies again what was written since the pass: an API server that lags behind a schema
    /// change stores objects without the new defaults, and no read shows it. Not set after that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verify_at: Option<Time>,
    /// When the pass over the objects started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<Time>,
    /// When the pass ended; not set while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished: Option<Time>,
    /// The resource version up to which Etch has processed every object, except those listed below.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub through: Option<String>,
    /// Whether `through` is only what the CRD itself shows, by an annotation or a condition, and no pass has
    /// proved: one that writes does not rely on it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shown_by_crd: bool,
    /// While a pass runs: the object, as `namespace/name`, up to which Etch has processed every object. For
    /// the objects after it, `through` means only that those written later hold their defaults.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upto: Option<String>,
    /// The policy's `objects` when this was found: `through` covers no other object. Not set if it selected
    /// all objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub objects: Option<ObjectSelector>,
    /// The namespaces of the objects that Etch has read, if its permissions reach no others: the report
    /// counts no object of another namespace. Empty if it has read all objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read_namespaces: Vec<String>,
    /// The objects that `through` does not cover. The lists below name only the first of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exceptions: Option<Exceptions>,
    /// The write that made the API server drop field owners. Etch writes no object of the CRD until its
    /// defaults change, or until a user deletes this report and restarts Etch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owners_lost: Option<LostOwners>,
    /// How far the policy's canary has come. Not set if the policy has none, or the pass did not begin with
    /// one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canary: Option<CanaryProgress>,
    /// At which versions etcd holds the objects. Set while the CRD's `status.storedVersions` names a version
    /// that is not its storage version, unless the policy has `storedVersions: Ignore`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored_versions: Option<StoredVersionsReport>,
    /// Whether etcd holds every object at `storageVersion`: Etch has proved it, and no generation of the CRD
    /// since then has had another storage version. `counts` and `through` do not limit it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all_at_storage_version: bool,
    /// How many objects there were, by result.
    #[serde(default)]
    pub counts: Counts,
    /// The defaults of the storage version, ordered by path: as many as fit.
    #[serde(default)]
    pub defaults: Vec<DefaultPath>,
    /// How many more defaults there are than `defaults` lists.
    #[serde(default)]
    pub more_defaults: u64,
    /// Objects that Etch holds because a write would do harm: the first 50 of `counts.held`.
    #[serde(default)]
    pub held: Vec<ObjectProblem>,
    /// Objects whose writes the API server or admission rejected: the first 50 of `counts.rejected`.
    #[serde(default)]
    pub rejected: Vec<ObjectProblem>,
    /// Objects that Etch skips because of their annotation: the first 50 of `counts.ignored`.
    #[serde(default)]
    pub ignored: Vec<ObjectProblem>,
    /// Objects that Etch skips because they are being deleted: the first 50 of `counts.terminating`.
    #[serde(default)]
    pub terminating: Vec<ObjectProblem>,
    /// Objects that Etch skips because they are nested more than 1,000 levels deep: the first 50 of
    /// `counts.tooDeep`.
    #[serde(default)]
    pub too_deep: Vec<ObjectProblem>,
    /// Fields that the schema no longer has and that writes dropped, as the policy allows: the first 50, in
    /// order. Etch does not know whether etcd held them in each of these objects: managedFields or the
    /// last-applied annotation named them.
    #[serde(default)]
    pub dropped: Vec<DroppedField>,
    /// Objects that no longer have fields which managedFields or the last-applied annotation still name,
    /// because Etch has written them without these fields: as many as fit.
    #[serde(default)]
    pub cleared: Vec<ClearedObject>,
    /// The defaults that have changed or disappeared since the previous pass, and how many objects keep or
    /// follow them.
    #[serde(default)]
    pub changed: Vec<ChangedDefault>,
    /// The defaults of earlier schemas, newest first; at most three.
    #[serde(default)]
    pub previous: Vec<PreviousDefaults>,
    /// The fields that had a default once and have none now: as many as fit. Etch or another client may have
    /// stored it without owning it. Once the schema no longer has such a field, reads do not show it, and a
    /// write destroys it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub former_defaults: Vec<FormerDefault>,
}

/// What names fields that etcd may hold and no read shows.
const EVIDENCE: [&str; 5] = ["crdUid", "storageVersion", "defaults", "moreDefaults", "formerDefaults"];

impl DefaultsReportStatus {
    /// Reads a status as another version of Etch, or a user, may have written it. Of one that cannot
    /// be read as a whole, what remains is what names fields that no read shows: nothing else is believed.
    /// Returns why, too.
    ///
    /// # Errors
    /// If that cannot be read either.
    pub fn read(status: Value) -> Result<(Self, Option<serde_json::Error>), serde_json::Error> {
        let why = match serde_json::from_value(status.clone()) {
            Ok(status) => return Ok((status, None)),
            Err(why) => why,
        };
        let Value::Object(mut fields) = status else { return Err(why) };
        fields.retain(|name, _| EVIDENCE.contains(&name.as_str()));
        Ok((serde_json::from_value(fields.into())?, Some(why)))
    }
}

/// A field that had a default once and has none now.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FormerDefault {
    /// Its path in the schema.
    pub path: String,
    /// A resource version at which the schema no longer had the field, at every API server: objects that were
    /// written after it do not hold the default. Not set while the schema has the field, or an API server may
    /// still have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

/// At which versions etcd holds the objects of a CRD.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StoredVersionsReport {
    /// Objects that are proved to be stored at the storage version.
    #[serde(default)]
    pub proved: u64,
    /// Objects that are known to be stored at another version.
    #[serde(default)]
    pub elsewhere: u64,
    /// Objects of which nothing proves at which version they are stored.
    #[serde(default)]
    pub unknown: u64,
    /// Whether a pass has asked about each object since no API server lags behind the storage version.
    /// Otherwise the numbers are what reads prove.
    #[serde(default)]
    pub verified: bool,
    /// The old versions in `status.storedVersions` that could go: each object is proved to be stored at the
    /// storage version.
    #[serde(default)]
    pub removable: Vec<String>,
    /// The old versions in `status.storedVersions` that have to stay.
    #[serde(default)]
    pub kept: Vec<KeptVersion>,
}

/// An old version that has to stay in `status.storedVersions`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeptVersion {
    /// Its name.
    pub name: String,
    /// Why it has to stay, in sentences without values.
    #[serde(default)]
    pub reasons: Vec<String>,
}

/// A served version of the CRD, and what writes through it may leave out of etcd.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServedVersion {
    /// Its name.
    pub name: String,
    /// Whether a write through it may store an object without defaults of the storage version: it has another
    /// schema, or a webhook converts it.
    #[serde(default)]
    pub may_drop_defaults: bool,
    /// Whether it has the status subresource: a create through it stores no default at or below `status`.
    #[serde(default)]
    pub status_subresource: bool,
}

/// A write that made the API server drop field owners.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LostOwners {
    /// The object, as `namespace/name`.
    pub object: String,
    /// The field managers whose entries are gone: the first 10.
    #[serde(default)]
    pub managers: Vec<String>,
}

/// Objects, as Bloom filters: the number of probes in the first byte, then the bits. The members are the
/// first 64 bits of SHA-256.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Exceptions {
    /// The uids of objects that are held, rejected or unknown, or that an audit leaves open.
    #[schemars(with = "String")]
    pub uids: ByteString,
    /// Rejected objects, by uid, a slash and resource version: until they change, they would be rejected
    /// again.
    #[schemars(with = "String")]
    pub rejected: ByteString,
}

/// One default of the schema.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DefaultPath {
    /// Its path in the schema: `.spec.ports[].protocol`.
    pub path: String,
    /// The value that the API server fills in there, including the defaults below it, as JSON. It comes from
    /// the schema, not from an object; omitted if it is long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Whether the field may be null: then the default does not replace a null.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub nullable: bool,
    /// The CRD's resource version at which Etch first saw this default: objects written later hold it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// How many objects lacked it.
    #[serde(default)]
    pub objects: u64,
}

/// The defaults of an earlier schema.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreviousDefaults {
    /// The digest of these defaults. Empty for generations that Etch did not see.
    #[serde(default)]
    pub digest: String,
    /// The CRD's storage version at that time.
    #[serde(default)]
    pub storage_version: String,
    /// The last generation of the CRD that had them.
    #[serde(default)]
    pub generation: i64,
    /// When Etch first saw them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_seen: Option<Time>,
    /// When the pass that stored them ended; not set if none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished: Option<Time>,
    /// When Etch had to verify again what was written since; not set if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verify_at: Option<Time>,
    /// The resource version up to which Etch had processed every object, except `exceptions`. Not set if the
    /// policy did not select all objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub through: Option<String>,
    /// The uids of the objects that were held or rejected at that time.
    #[serde(default)]
    pub exceptions: Vec<String>,
    /// The uids of all objects that were not known to store them, as a Bloom filter, if `exceptions` does not
    /// list each of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub open: Option<ByteString>,
    /// What was served then, and until the next schema.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub served: Vec<ServedVersion>,
    /// Their paths and values: as many as fit.
    #[serde(default)]
    pub defaults: Vec<DefaultValue>,
    /// How many more there were than `defaults` lists.
    #[serde(default)]
    pub more_defaults: u64,
}

/// A field that the schema no longer has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DroppedField {
    /// Its path in the schema.
    pub path: String,
    /// How many objects Etch dropped it from.
    #[serde(default)]
    pub objects: u64,
}

/// An object that no longer has some fields.
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
    /// The fields, as schema paths.
    #[serde(default)]
    pub paths: Vec<String>,
}

/// A default that has changed or disappeared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangedDefault {
    /// Its path in the schema.
    pub path: String,
    /// Whether values follow it, according to the policy that governs the CRD.
    #[serde(default)]
    pub action: ChangeAction,
    /// In how many objects a value has followed it.
    #[serde(default)]
    pub followed: u64,
    /// How many objects keep its previous value.
    #[serde(default)]
    pub kept: u64,
}

/// One default of an earlier schema.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DefaultValue {
    /// Its path in the schema.
    pub path: String,
    /// The value that the API server filled in there, as JSON; omitted if it was long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Whether the field could be null.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub nullable: bool,
}

/// One object, and why Etch has not stored its defaults.
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
    /// The reason, in one word.
    pub reason: String,
    /// The reason, in a sentence without values.
    #[serde(default)]
    pub message: String,
    /// The first fields that the reason is about.
    #[serde(default)]
    pub paths: Vec<String>,
    /// How many more fields there are than `paths` lists.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_paths: u64,
}

impl ObjectProblem {
    /// The sentence, and the first fields that it is about.
    pub fn in_words(&self) -> String {
        match &self.paths[..] {
            [] => self.message.clone(),
            paths => format!("{}: {}", self.message, paths.join(", ")),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}
