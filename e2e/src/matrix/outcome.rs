//! The outcome of a request, in a form that is the same each time: without times, uids, names and numbers of
//! revisions. Objects and sets of fields are [`Parts`], held once, and outcomes name them.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::manifest::{GROUP, KIND, Place};
use crate::cluster::Answer;

/// The name of a part: the beginning of its hash.
pub type Id = String;

/// Objects without owners, and sets of fields, by their ids.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parts(pub BTreeMap<Id, Value>);

/// Some of the six places.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Places(pub BTreeSet<Place>);

/// The outcome of one request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Outcome {
    /// The status code, with the message of a refusal.
    pub answer: String,
    /// What the answer itself shows, where it is the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered: Option<Places>,
    /// What etcd holds after it; `None` if there is no object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Stored>,
    /// What a reader sees after it, at each version that is served.
    pub views: BTreeMap<String, Places>,
    /// The whole view at S, except the owners.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub view: Option<Id>,
    /// What a reader at S sees once no other version is served, where that is something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Places>,
    /// By how much `metadata.generation` went up.
    pub generation: i64,
    /// Whether etcd was written to, and `resourceVersion` moved.
    pub written: bool,
    /// The owners before it.
    pub before: Vec<Entry>,
    /// The owners after it.
    pub after: Vec<Entry>,
    /// An apply of the identity after it, at S.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<FollowUp>,
    /// Instead of that, an empty merge patch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub empty: Option<FollowUp>,
}

/// What is in etcd.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Stored {
    /// The version of the bytes.
    pub version: String,
    /// The places that have a value.
    pub holds: Places,
    /// The object, except its owners.
    pub body: Id,
}

/// An entry of `managedFields`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Entry {
    /// Manager, operation, version and subresource.
    pub owner: String,
    /// The places that it covers.
    #[serde(default, skip_serializing_if = "Places::is_empty")]
    pub covers: Places,
    /// Its set of fields.
    pub fields: Id,
}

/// A request of Etch's, sent twice.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FollowUp {
    /// The status code, with the message of a refusal.
    pub answer: String,
    /// Whether etcd was written to.
    pub written: bool,
    /// What etcd holds then.
    pub raw: Held,
    /// What a reader at S sees then.
    pub shows: Places,
    /// The answer to the repeat.
    pub repeat: String,
    /// Whether the repeat wrote to etcd.
    pub rewritten: bool,
    /// What etcd holds after the repeat, where that is something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_then: Option<Held>,
}

/// What is in etcd, in short.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Held {
    /// The version of the bytes; empty where there is no object.
    pub version: String,
    /// The places that have a value.
    pub holds: Places,
}

impl Places {
    /// The places of an object that have a value.
    pub fn of(object: &Value) -> Self {
        let all = Place::ALL.iter().copied();
        Self(all.filter(|place| object.pointer(place.pointer()).is_some()).collect())
    }

    fn covered(fields: &Value) -> Self {
        let covers = |place: &Place| {
            place.owned().iter().try_fold(fields, |fields, element| fields.get(*element)).is_some()
        };
        Self(Place::ALL.iter().copied().filter(covers).collect())
    }

    /// Those of them that others lack.
    pub fn beyond(&self, others: &Self) -> Self {
        Self(self.0.difference(&others.0).copied().collect())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// As words.
    pub fn words(&self) -> String {
        if self.0.len() == Place::ALL.len() {
            return "all".to_owned();
        }
        self.0.iter().map(|place| place.word()).collect::<Vec<_>>().join(" ")
    }
}

impl Serialize for Places {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.words())
    }
}

impl<'de> Deserialize<'de> for Places {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let words = String::deserialize(deserializer)?;
        if words == "all" {
            return Ok(Self(Place::ALL.iter().copied().collect()));
        }
        let places = words.split_whitespace().map(|word| {
            Place::of(word).ok_or_else(|| serde::de::Error::custom(format!("{word} is no place")))
        });
        Ok(Self(places.collect::<Result<_, _>>()?))
    }
}

impl Parts {
    fn add(&mut self, value: Value) -> Id {
        let hash = Sha256::digest(value.to_string().as_bytes());
        let id: Id = hash.iter().take(5).map(|byte| format!("{byte:02x}")).collect();
        self.0.insert(id.clone(), value);
        id
    }

    /// Records what others hold.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// The object without what differs from run to run, and without its owners.
    pub(super) fn body(&mut self, object: &Value, group: &str) -> Id {
        let mut object = object.clone();
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            for field in ["managedFields", "uid", "resourceVersion", "name"] {
                metadata.remove(field);
            }
            for time in ["creationTimestamp", "deletionTimestamp"] {
                if let Some(value) = metadata.get_mut(time) {
                    *value = json!("2026-01-01T00:00:00Z");
                }
            }
        }
        if let Some(version) = object["apiVersion"].as_str() {
            object["apiVersion"] = json!(version.replace(group, GROUP));
        }
        self.add(object)
    }

    /// The owners of an object, in an order of their own: the server sorts by time.
    pub(super) fn owners(&mut self, object: &Value) -> Vec<Entry> {
        let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
        let mut entries: Vec<Entry> = entries
            .map(|entry| {
                let word = |field: &str| entry[field].as_str().unwrap_or_default();
                let version = word("apiVersion").rsplit('/').next().unwrap_or_default();
                let owner =
                    format!("{} {} {version} {}", word("manager"), word("operation"), word("subresource"));
                Entry {
                    owner: owner.trim_end().to_owned(),
                    covers: Places::covered(&entry["fieldsV1"]),
                    fields: self.add(entry["fieldsV1"].clone()),
                }
            })
            .collect();
        entries.sort();
        entries
    }

    /// The view at S after the request, as the API returns it; the uid is `uid`, the resource version as
    /// given.
    pub fn view(&self, outcome: &Outcome, revision: u64) -> Option<Value> {
        let mut object = self.0.get(outcome.view.as_ref()?)?.clone();
        let owners = outcome.after.iter().map(|entry| self.entry(entry)).collect::<Option<Vec<_>>>()?;
        let metadata = object.get_mut("metadata")?.as_object_mut()?;
        metadata.insert("name".to_owned(), json!("a"));
        metadata.insert("uid".to_owned(), json!("uid"));
        metadata.insert("resourceVersion".to_owned(), json!(revision.to_string()));
        if !owners.is_empty() {
            metadata.insert("managedFields".to_owned(), json!(owners));
        }
        Some(object)
    }

    /// An entry of `managedFields`, as the API returns it.
    pub fn entry(&self, entry: &Entry) -> Option<Value> {
        let mut words = entry.owner.split(' ');
        let (manager, operation, version) = (words.next()?, words.next()?, words.next()?);
        let mut document = json!({
            "manager": manager, "operation": operation, "apiVersion": format!("{GROUP}/{version}"),
            "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": self.0.get(&entry.fields)?,
        });
        if let Some(subresource) = words.next() {
            document["subresource"] = json!(subresource);
        }
        Some(document)
    }
}

impl Held {
    pub(super) fn of(raw: Option<&Value>) -> Self {
        raw.map(|raw| Self { version: version(raw), holds: Places::of(raw) }).unwrap_or_default()
    }
}

impl Stored {
    pub(super) fn of(raw: &Value, group: &str, parts: &mut Parts) -> Self {
        Self { version: version(raw), holds: Places::of(raw), body: parts.body(raw, group) }
    }
}

/// The version of an object.
pub(super) fn version(object: &Value) -> String {
    object["apiVersion"].as_str().and_then(|text| text.rsplit('/').next()).unwrap_or_default().to_owned()
}

/// An answer in short, and the places that it shows where it is the object.
pub(super) fn answer(answer: &Answer, group: &str, name: &str, uid: &str) -> (String, Option<Places>) {
    let Answer { code, body, .. } = answer;
    if *code < 300 {
        let is_object = body["kind"] == KIND;
        return (code.to_string(), is_object.then(|| Places::of(body)));
    }
    let message = body["message"].as_str().unwrap_or_default();
    let message = message.replace(group, GROUP).replace(name, "NAME").replace(uid, "UID");
    let message = message.lines().next().unwrap_or_default();
    (format!("{code} {message}"), None)
}
