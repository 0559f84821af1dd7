//! The form of a file of cases: one CRD in short, and objects of it with what is to be decided about them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::crd::Crd;
use crate::object::Object;
use crate::plan::{Change, HiddenEvidence, HiddenFields, OldDefault, Ownership, Record, Terms, changes};
use crate::selection::ObjectSelector;
use kube_structural_schema::json::Json;

/// One CRD and what is decided about its objects.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct File<C = Case> {
    #[serde(default)]
    cluster_scoped: bool,
    #[serde(default)]
    conversion_webhook: bool,
    /// The versions at which objects may be stored, beside the storage version.
    #[serde(default)]
    stored: Vec<String>,
    versions: Vec<Version>,
    /// The paths that a policy asks to follow.
    #[serde(default)]
    follow: Vec<String>,
    /// What defaults gave before, by their paths.
    #[serde(default)]
    past: BTreeMap<String, Vec<Value>>,
    pub(super) cases: Vec<C>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Version {
    name: String,
    #[serde(default = "yes")]
    served: bool,
    #[serde(default)]
    storage: bool,
    /// The schemas of `spec`, `status` and so on.
    properties: Value,
}

/// One object and what is to be decided about it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Case {
    pub(super) name: String,
    /// Merged into the metadata that every object has.
    #[serde(default)]
    metadata: Value,
    /// `managedFields` in short; not set at all where this is not given.
    owners: Option<Vec<OwnerInShort>>,
    /// The payload: `spec` and `status`.
    #[serde(default)]
    object: Value,
    #[serde(default)]
    own: bool,
    #[serde(default)]
    drop_hidden: bool,
    #[serde(default)]
    moves: bool,
    #[serde(default)]
    doubts_stored_versions: bool,
    #[serde(default)]
    repairs: bool,
    /// The objects that the policy selects.
    objects: Option<ObjectSelector>,
    #[serde(default)]
    record: RecordInShort,
    pub(super) plan: Expected,
    /// What changed defaults mean for it; nothing where this is not given.
    #[serde(default)]
    pub(super) following: ExpectedFollowing,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OwnerInShort {
    manager: String,
    #[serde(default = "update")]
    operation: String,
    #[serde(default = "v1")]
    version: String,
    #[serde(default)]
    subresource: Option<String>,
    #[serde(default)]
    time: Option<String>,
    fields: Value,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct RecordInShort {
    through: Option<u64>,
    exceptions: Vec<String>,
    versions_disagree: bool,
    storage_changed: bool,
    creates_drop_status: bool,
    /// Fields that are known to be gone from the object that every case is about.
    cleared: Vec<String>,
    /// The objects that were selected then.
    objects: Option<ObjectSelector>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Expected {
    Stored,
    Skip(String),
    Hold {
        reason: String,
        paths: Vec<String>,
        /// What the object would break with its defaults.
        #[serde(default)]
        broken: Vec<String>,
    },
    #[serde(untagged)]
    Write(ExpectedWrite),
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ExpectedFollowing {
    /// The moved places and the operations at them.
    pub(super) moved: BTreeMap<String, Value>,
    pub(super) kept: Vec<String>,
    /// The reason of a hold, and its places.
    pub(super) hold: Option<(String, Vec<String>)>,
}

/// A write, by what its body holds beyond the identity.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExpectedWrite {
    #[serde(rename = "write")]
    pub(super) strategy: String,
    #[serde(default)]
    pub(super) missing: Vec<String>,
    #[serde(default)]
    pub(super) prove: bool,
    /// Of an apply: the values.
    #[serde(default)]
    values: Value,
    /// Of a rewrite: the owners; the empty entry that removes them all where there are none.
    #[serde(default)]
    owners: Vec<OwnerInShort>,
}

impl<C> File<C> {
    pub(super) fn crd(&self) -> Crd {
        let versions: Vec<Value> = self
            .versions
            .iter()
            .map(|version| {
                json!({
                    "name": version.name, "served": version.served, "storage": version.storage,
                    "schema": { "openAPIV3Schema": { "type": "object", "properties": version.properties } },
                })
            })
            .collect();
        let document = json!({
            "metadata": { "name": "things.example.com", "uid": "crd", "generation": 1 },
            "spec": {
                "group": "example.com",
                "names": { "kind": "Thing", "plural": "things" },
                "scope": if self.cluster_scoped { "Cluster" } else { "Namespaced" },
                "conversion": { "strategy": if self.conversion_webhook { "Webhook" } else { "None" } },
                "versions": versions,
            },
            "status": { "storedVersions": self.stored },
        });
        Crd::read(&Json::from(document)).expect("a CRD")
    }

    pub(super) fn changes(&self, crd: &Crd) -> Vec<Change> {
        let path = |text: &String| text.parse().expect("a path");
        let past: Vec<OldDefault> = self
            .past
            .iter()
            .map(|(text, values)| OldDefault {
                path: path(text),
                values: values.iter().cloned().map(Json::from).collect(),
            })
            .collect();
        changes(&past, crd, &self.follow.iter().map(path).collect::<Vec<_>>())
    }
}

/// An object, in whose metadata these fields replace those that every object has; null removes one.
pub(super) fn object(metadata: &Value, owners: Option<&[OwnerInShort]>, payload: &Value) -> Object {
    let mut all = json!({ "name": "a", "namespace": "ns", "uid": "u1", "resourceVersion": "10" });
    if let Some(owners) = owners {
        all["managedFields"] = owners.iter().map(OwnerInShort::entry).collect();
    }
    for (field, value) in metadata.as_object().into_iter().flatten() {
        all[field] = value.clone();
    }
    all.as_object_mut().expect("an object").retain(|_, value| !value.is_null());
    let mut object = json!({ "apiVersion": "example.com/v1", "kind": "Thing", "metadata": all });
    for (field, value) in payload.as_object().into_iter().flatten() {
        object[field] = value.clone();
    }
    Object::from(object)
}

impl Case {
    /// The object that it is about.
    pub(super) fn object(&self) -> Object {
        object(&self.metadata, self.owners.as_deref(), &self.object)
    }

    pub(super) fn terms(&self) -> Terms {
        Terms {
            ownership: if self.own { Ownership::Own } else { Ownership::None },
            hidden_fields: if self.drop_hidden { HiddenFields::Drop } else { HiddenFields::Hold },
            moves: self.moves,
            doubts_stored_versions: self.doubts_stored_versions,
            repairs: self.repairs,
            selection: self.objects.clone().into(),
            writes_status: false,
        }
    }

    pub(super) fn record(&self) -> Record {
        let RecordInShort {
            through,
            exceptions,
            versions_disagree,
            storage_changed,
            creates_drop_status,
            cleared,
            objects,
        } = &self.record;
        let cleared = cleared.iter().map(|path| path.parse().expect("a path")).collect();
        Record {
            through: *through,
            exceptions: exceptions.iter().cloned().collect(),
            versions_disagree: *versions_disagree,
            storage_changed: *storage_changed,
            creates_drop_status: *creates_drop_status,
            selection: objects.clone().into(),
            hidden: Arc::new(HiddenEvidence {
                cleared: [("u1".to_owned(), cleared)].into(),
                ..HiddenEvidence::default()
            }),
            ..Record::default()
        }
    }

    /// The whole body that is expected.
    pub(super) fn body(&self, expected: &ExpectedWrite, crd: &Crd) -> Json {
        let object = self.object();
        let mut body = json!({
            "metadata": { "uid": object.uid(), "resourceVersion": object.resource_version() },
        });
        match expected.strategy.as_str() {
            "Apply" => {
                body["apiVersion"] = crd.api_version().into();
                body["kind"] = crd.kind().into();
                body["metadata"]["name"] = object.name().into();
                if let Some(namespace) = object.namespace() {
                    body["metadata"]["namespace"] = namespace.into();
                }
                for (field, value) in expected.values.as_object().into_iter().flatten() {
                    body[field] = value.clone();
                }
            }
            "Rewrite" => {
                body["metadata"]["managedFields"] = match &expected.owners[..] {
                    [] => json!([{}]),
                    owners => owners.iter().map(OwnerInShort::entry).collect(),
                };
            }
            _ => {}
        }
        body.into()
    }
}

impl OwnerInShort {
    fn entry(&self) -> Value {
        let mut entry = json!({
            "manager": self.manager, "operation": self.operation, "fieldsType": "FieldsV1",
            "apiVersion": format!("example.com/{}", self.version), "fieldsV1": self.fields,
        });
        for (name, value) in [("subresource", &self.subresource), ("time", &self.time)] {
            if let Some(value) = value {
                entry[name] = value.as_str().into();
            }
        }
        entry
    }
}

fn yes() -> bool {
    true
}

fn update() -> String {
    "Update".to_owned()
}

fn v1() -> String {
    "v1".to_owned()
}
