//! What an API server makes of a request to one custom resource: the bytes in etcd, the read view, the
//! owners. It must not use Etch's decisions. Pruning, nulls and filling are the library's that vectors hold
//! against Kubernetes; what is stored when, by whom it is owned, and what is refused, is worked out here and
//! held against a real server by `tests/simulator/conform.rs`.
//!
//! Source: apiextensions-apiserver `customresource_handler.go`; apimachinery `util/managedfields`;
//! structured-merge-diff v6 `merge/update.go`.

use std::sync::Arc;

use etch_core::crd::Crd;
use etch_core::ownership::MANAGER;
use etch_core::plan::{self, PatchKind};
use etch_core::refusal::Refusal;
use kube_structural_schema::compile::Compiled;
use kube_structural_schema::defaults::read;
use kube_structural_schema::json::Json;
use kube_structural_schema::prune::prune;
use kube_structural_schema::schema::Schema;
use serde_json::{Value, json};

use super::admission::Admission;
use super::fields::{self, Fields};
use super::patch::{merge, operate};
use super::write::Write;

/// The group of the simulator's CRDs.
pub const GROUP: &str = "model.example.com";
/// What its objects are.
pub const KIND: &str = "Thing";
/// What the simulator's objects are called, unless they are named otherwise.
pub const NAME: &str = "a";
/// Where all objects are.
pub const NAMESPACE: &str = "default";

/// One state of the CRD.
pub struct Release {
    /// The CRD, as Etch reads it.
    pub crd: Arc<Crd>,
    /// The same, as it is sent.
    pub document: Value,
    versions: Vec<(String, Schema, Compiled)>,
    /// See [`World::webhook_knows`](super::worlds::World::webhook_knows).
    webhook_knows: Option<&'static [&'static str]>,
    /// Whether the CRD has the status subresource: then a request for an object leaves its status alone.
    pub has_status: bool,
}

/// An entry of `managedFields`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Entry {
    /// Whether it is one of `Update`, and not of `Apply`.
    pub is_update: bool,
    /// Whose it is.
    pub manager: String,
    /// At which version its fields are named.
    pub version: String,
    /// Whether it is of what is written to the status subresource.
    pub is_of_status: bool,
    /// What is owned.
    pub fields: Fields,
}

/// What etcd holds, apart from the names under which it is there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Content {
    /// The version at which it is stored.
    pub version: String,
    /// `spec`, where there is one.
    pub value: Value,
    /// In order.
    pub owners: Vec<Entry>,
}

/// Which object, counted in the order of their creation.
pub type Uid = u16;

/// A revision of etcd.
pub type Revision = u32;

/// Whose bytes they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tag {
    /// Which object.
    pub uid: Uid,
    /// When it was written last.
    pub revision: Revision,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    /// At which version.
    pub version: String,
    /// The field manager.
    pub manager: String,
    /// What is asked for.
    pub verb: Verb,
    /// Whether it is sent to the status subresource.
    pub is_to_status: bool,
    /// The body.
    pub body: Value,
}

impl Request {
    /// A request of Etch's, at this version.
    pub fn of_etch(request: &plan::Request, version: &str) -> Self {
        let verb = match request.kind {
            PatchKind::Apply => Verb::Apply,
            PatchKind::Merge => Verb::Merge,
            PatchKind::Json => Verb::Json,
            PatchKind::DryRun | PatchKind::ApplyDryRun => Verb::DryRun,
        };
        let body = Value::clone(&request.body);
        Self { version: version.to_owned(), manager: MANAGER.to_owned(), verb, is_to_status: false, body }
    }
}

/// How a body is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    /// A POST.
    Create,
    /// What is read, with a merge patch on it, put back as it was read.
    Edit,
    /// A merge patch.
    Merge,
    /// A JSON patch.
    Json,
    /// The same as a dry run.
    DryRun,
    /// A server-side apply.
    Apply,
    /// The same with force.
    Force,
    /// A DELETE.
    Delete,
}

/// What a request that is not refused comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// These bytes are stored: other ones than before, or the same.
    Stored(Content),
    /// The object is gone.
    Deleted,
}

/// A refusal: its status and its message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Refused {
    /// The HTTP status.
    pub code: u16,
    /// Its message.
    pub message: String,
}

/// A refusal as a client reads it.
pub fn refusal(refused: &Refused) -> Refusal {
    let mut status = json!({ "message": refused.message, "code": refused.code });
    // The server names the object in all but the answer about a resource that it does not serve.
    if !refused.message.contains("requested resource") {
        status["details"] = json!({ "name": NAME });
    }
    Refusal::read(refused.code, None, &Json::from(status).to_vec())
}

/// A refusal.
pub fn refused<T>(code: u16, message: &str) -> Result<T, Refused> {
    Err(Refused { code, message: message.to_owned() })
}

/// What servers before 1.37 do where they cannot put the object into an owner's terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Untypable {
    /// A write that is no apply stores it, and all owners are forgotten.
    Wipes,
    /// It stores it, and the owners are those from before.
    Keeps,
}

impl Release {
    /// Reads a CRD; `stored` are the versions at which objects may be stored.
    pub fn new(mut document: Value, stored: &[String]) -> Self {
        document["status"] = json!({ "storedVersions": stored });
        Self::read(document).expect("the simulator's CRDs can be read")
    }

    /// Reads a CRD.
    ///
    /// # Errors
    /// It cannot be read, or one of its schemas cannot.
    pub fn read(document: Value) -> anyhow::Result<Self> {
        let crd = Crd::read(&Json::from(document.clone()))?;
        let all = document["spec"]["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
        let mut versions = Vec::new();
        for version in all {
            let schema = Schema::parse(&version["schema"]["openAPIV3Schema"])?;
            let compiled = Compiled::new(&schema);
            versions.push((version["name"].as_str().unwrap_or_default().to_owned(), schema, compiled));
        }
        let has_status = document["spec"]["versions"][0]["subresources"]["status"].is_object();
        Ok(Self { crd: Arc::new(crd), document, versions, webhook_knows: None, has_status })
    }

    /// The same with a conversion webhook that knows these fields of `spec` alone.
    #[must_use]
    pub fn converted_by(mut self, webhook_knows: Option<&'static [&'static str]>) -> Self {
        self.webhook_knows = webhook_knows;
        self
    }

    /// Whether a webhook converts objects.
    pub fn is_converted_by_webhook(&self) -> bool {
        self.webhook_knows.is_some()
    }

    /// The storage version.
    pub fn storage(&self) -> &str {
        &self.crd.storage().name
    }

    /// Whether it has a version.
    pub fn has(&self, version: &str) -> bool {
        self.find(version).is_some()
    }

    /// Whether it answers requests at a version.
    pub fn serves(&self, version: &str) -> bool {
        self.crd.versions().iter().any(|known| known.name == version && known.served)
    }

    fn find(&self, version: &str) -> Option<(&Schema, &Compiled)> {
        let found = self.versions.iter().find(|(name, ..)| name == version);
        found.map(|(_, schema, compiled)| (schema, compiled))
    }

    /// What a version makes of a value that comes in.
    pub fn decode(&self, value: &Value, version: &str) -> Result<Value, Refused> {
        let Some((schema, compiled)) = self.find(version) else {
            return refused(500, "request to convert CR from an invalid group/version: model.example.com/v0");
        };
        let mut value = value.clone();
        match read(&mut value, schema, compiled, &mut |_| {}) {
            Ok(()) => Ok(value),
            Err(error) => refused(500, &error.to_string()),
        }
    }

    /// A value with the defaults of a version.
    pub fn fill(&self, mut value: Value, version: &str) -> Value {
        if let Some((_, compiled)) = self.find(version) {
            compiled.fill(&mut value);
        }
        value
    }

    /// A value as it is converted.
    pub fn convert(&self, mut value: Value, from: &str, to: &str) -> Value {
        if let Some((schema, _)) = self.find(to).filter(|_| from != to) {
            value = self.left_by_webhook(value);
            prune(&mut value, schema, true, &mut |_| {});
        }
        value
    }

    /// A value as the conversion webhook, if there is one, returns it: no schema prunes it yet.
    fn left_by_webhook(&self, mut value: Value) -> Value {
        let Some(known) = self.webhook_knows else { return value };
        for part in ["spec", "status"] {
            if let Some(fields) = value.get_mut(part).and_then(Value::as_object_mut) {
                fields.retain(|name, _| known.contains(&name.as_str()));
            }
        }
        value
    }

    /// What a reader at a version sees.
    pub fn view(&self, content: &Content, version: &str) -> Result<Value, Refused> {
        let value = self.decode(&content.value, &content.version)?;
        Ok(self.convert(value, &content.version, version))
    }

    /// The part of the bytes that the storage version knows, without any default, and the rest of them.
    pub fn known(&self, content: &Content) -> Value {
        let mut value = content.value.clone();
        if let Some((schema, _)) = self.find(&content.version) {
            prune(&mut value, schema, true, &mut |_| {});
        }
        self.convert(value, &content.version, self.storage())
    }

    /// Whether the bytes hold every default that the storage version gives this object, and all that readers
    /// see of those of the version at which it is stored.
    pub fn is_stored(&self, content: &Content) -> bool {
        let known = self.known(content);
        let mut held = Vec::new();
        fields::leaves(&known, "", &mut |place, value| held.push((place.to_owned(), value)));
        [self.decode(&known, self.storage()), self.view(content, self.storage())].iter().all(|shown| {
            let Ok(shown) = shown else { return false };
            let mut all = true;
            fields::leaves(shown, "", &mut |place, value| all &= held.contains(&(place.to_owned(), value)));
            all
        })
    }

    /// Whether a version can express a value that is converted to it.
    pub fn express(&self, value: &Value, version: &str) -> Result<(), Refused> {
        self.declares(self.left_by_webhook(value.clone()), version)
    }

    /// Whether a version declares all fields of a value.
    pub fn declares(&self, mut value: Value, version: &str) -> Result<(), Refused> {
        let Some((schema, _)) = self.find(version) else {
            return refused(500, "request to convert CR to an invalid group/version: model.example.com/v0");
        };
        let mut unknown = None;
        prune(&mut value, schema, true, &mut |trail| {
            unknown.get_or_insert_with(|| trail.to_path().to_string());
        });
        match unknown {
            Some(path) => refused(500, &format!("{path}: field not declared in schema")),
            None => Ok(()),
        }
    }
}

/// An object as it is read at a version; `metadata` is all of its metadata but the owners.
pub fn document(
    release: &Release,
    content: &Content,
    metadata: Value,
    version: &str,
) -> Result<Value, Refused> {
    let mut object = release.view(content, version)?;
    let group = release.crd.group();
    let owners: Vec<Value> = content.owners.iter().map(|owner| owner.json(group)).collect();
    object["apiVersion"] = json!(format!("{group}/{version}"));
    object["kind"] = json!(release.crd.kind());
    object["metadata"] = metadata;
    if !owners.is_empty() {
        object["metadata"]["managedFields"] = json!(owners);
    }
    Ok(object)
}

impl Tag {
    /// The metadata of the simulator's object.
    pub fn metadata(self) -> Value {
        json!({
            "name": NAME, "namespace": NAMESPACE, "uid": uid(self.uid),
            "resourceVersion": self.revision.to_string(),
        })
    }
}

/// The uid of an object.
pub fn uid(number: Uid) -> String {
    format!("uid-{number}")
}

/// The effect of a request on a server that serves `release`, without admission; `live` is the object that is
/// there, and its metadata without the owners.
pub fn handle(
    release: &Release,
    untypable: Untypable,
    live: Option<(&Content, Value)>,
    request: &Request,
) -> Result<Effect, Refused> {
    admit(release, untypable, None, live, request)
}

/// The effect of a request on a server that serves `release`.
pub fn admit(
    release: &Release,
    untypable: Untypable,
    admission: Option<Admission>,
    live: Option<(&Content, Value)>,
    request: &Request,
) -> Result<Effect, Refused> {
    let Request { version, verb, body, .. } = request;
    if !release.serves(version) {
        return refused(404, "the server could not find the requested resource");
    }
    let sent = &body["metadata"];
    let write = Write { release, untypable, admission, request };
    match (verb, live) {
        (Verb::Create, Some(_)) => refused(409, "already exists"),
        (Verb::Create, None) => write.update(None, body),
        (Verb::Apply | Verb::Force, None) if sent.get("uid").is_some() => refused(409, "uid mismatch"),
        (Verb::Apply | Verb::Force, None) if !request.is_to_status => write.validated(write.apply(None)?),
        (_, None) => refused(404, "not found"),
        (Verb::Delete, Some(_)) => Ok(Effect::Deleted),
        (Verb::Apply | Verb::Force, Some((content, metadata))) => {
            let applied = write.apply(Some(content))?;
            preconditions(sent, &metadata)?;
            write.validated(applied)
        }
        (verb, Some((content, metadata))) => {
            let before = document(release, content, metadata.clone(), version)?;
            let after = match verb {
                Verb::Edit | Verb::Merge => merge(before, body),
                _ => operate(before, body)?,
            };
            preconditions(&after["metadata"], &metadata)?;
            write.update(Some(content), &after)
        }
    }
}

/// The conditions that a body sets by naming a uid and a resource version.
fn preconditions(sent: &Value, metadata: &Value) -> Result<(), Refused> {
    let differs = |field: &str| sent.get(field).is_some_and(|named| *named != metadata[field]);
    if differs("uid") {
        return refused(409, "Precondition failed: UID in precondition");
    }
    if differs("resourceVersion") {
        return refused(409, "the object has been modified");
    }
    Ok(())
}

impl Entry {
    /// An update is an entry of its own for each version, an apply is not.
    pub fn is_same(&self, other: &Self) -> bool {
        let key = |entry: &Self| (entry.is_update, entry.is_of_status);
        key(self) == key(other)
            && self.manager == other.manager
            && (!self.is_update || self.version == other.version)
    }

    /// It as the API has it in a group.
    pub fn json(&self, group: &str) -> Value {
        let mut entry = json!({
            "manager": self.manager, "operation": if self.is_update { "Update" } else { "Apply" },
            "apiVersion": format!("{group}/{}", self.version), "fieldsType": "FieldsV1",
            "fieldsV1": fields::to_json(&self.fields),
        });
        if self.is_of_status {
            entry["subresource"] = json!("status");
        }
        entry
    }

    /// It as the API has it.
    pub fn read(entry: &Value) -> Self {
        let text = |field: &str| entry[field].as_str().unwrap_or_default().to_owned();
        Self {
            is_update: entry["operation"] == "Update",
            manager: text("manager"),
            version: text("apiVersion").rsplit('/').next().unwrap_or_default().to_owned(),
            is_of_status: entry["subresource"] == "status",
            fields: fields::from_json(&entry["fieldsV1"]),
        }
    }
}

/// Of entries that are the same, the server keeps the last (fact W17).
pub fn united(given: impl Iterator<Item = Entry>) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    for entry in given {
        entries.retain(|known| !known.is_same(&entry));
        entries.push(entry);
    }
    entries
}

/// The part of a document that the schema describes.
pub fn payload(document: &Value) -> Value {
    let parts = ["spec", "status"].into_iter();
    parts.filter_map(|part| Some((part.to_owned(), document.get(part)?.clone()))).collect()
}
