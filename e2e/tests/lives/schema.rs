//! The CRD of a life: its versions, what each of them knows, and how it changes.

use fastrand::Rng;
use serde_json::{Map, Value, json};

use crate::model::with;

/// The API group of all lives.
pub(crate) const GROUP: &str = "lives.example.com";

/// A CRD in its present state.
#[derive(Clone, Debug)]
pub(crate) struct Crd {
    pub(crate) versions: Vec<Version>,
    pub(crate) conversion: Conversion,
    pub(crate) status: bool,
    pub(crate) scale: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Version {
    pub(crate) name: &'static str,
    pub(crate) served: bool,
    pub(crate) storage: bool,
    fields: Vec<Field>,
    /// The default of `.status.phase`.
    phase: Option<Value>,
    /// Whether `.status` itself has the default `{}`.
    whole_status: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Field {
    name: String,
    shape: Shape,
    default: Option<Value>,
    /// The default of the field inside.
    inner: Option<Value>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Shape {
    Number,
    Text,
    Object,
    List {
        keyed: bool,
    },
    Map,
    /// An embedded resource; the field inside is its `metadata.labels`.
    Embedded,
}

/// How objects come from one version to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Conversion {
    None,
    /// A webhook that drops nothing.
    New,
    /// The webhook of an earlier release: it drops the fields of `spec` whose name begins with `new`.
    Old,
}

/// What a user changes in the CRD.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// The default of a field in one version, or in all.
    Default {
        version: Option<&'static str>,
        field: String,
        value: Option<Value>,
    },
    /// The default of the field inside.
    Inner {
        version: Option<&'static str>,
        field: String,
        value: Option<Value>,
    },
    Phase {
        version: Option<&'static str>,
        value: Option<Value>,
    },
    WholeStatus(bool),
    Add {
        version: Option<&'static str>,
        field: Field,
    },
    Remove {
        version: Option<&'static str>,
        field: String,
    },
    /// A version that has what the storage version has.
    Version {
        name: &'static str,
        storage: bool,
    },
    Serve {
        name: &'static str,
        served: bool,
    },
    Storage(&'static str),
    /// All versions have what the storage version has.
    Level,
    Conversion(Conversion),
    Status(bool),
    Scale(bool),
}

/// The names of versions, in the order in which they come.
const VERSIONS: [&str; 3] = ["v1beta1", "v1", "v2"];

impl Crd {
    pub(crate) fn random(rng: &mut Rng) -> Self {
        let mut fields: Vec<Field> = (0..1 + rng.usize(..4)).map(|index| Field::random(rng, index)).collect();
        fields.push(Field {
            name: "replicas".to_owned(),
            shape: Shape::Number,
            default: (rng.u8(..4) == 0).then(|| json!(1)),
            inner: None,
        });
        let phase = (rng.u8(..4) == 0).then(|| json!("New"));
        let storage = Version {
            name: "v1",
            served: true,
            storage: true,
            fields,
            phase,
            whole_status: rng.u8(..6) == 0,
        };
        let mut versions = vec![storage.clone()];
        if rng.u8(..3) > 0 {
            let mut old = Version { name: "v1beta1", storage: false, ..storage };
            if rng.bool() {
                old.forget(rng);
            }
            versions.insert(0, old);
        }
        let conversion = match rng.u8(..6) {
            0 => Conversion::New,
            1 => Conversion::Old,
            _ => Conversion::None,
        };
        Self { versions, conversion, status: rng.u8(..4) > 0, scale: rng.u8(..3) == 0 }
    }

    pub(crate) fn storage(&self) -> &Version {
        self.versions.iter().find(|version| version.storage).unwrap_or(&self.versions[0])
    }

    /// The versions that are served.
    pub(crate) fn served(&self) -> impl Iterator<Item = &'static str> {
        self.versions.iter().filter(|version| version.served).map(|version| version.name)
    }

    /// A change that makes sense for the present CRD.
    pub(crate) fn change(&self, rng: &mut Rng) -> Change {
        let storage = self.storage();
        let some = |rng: &mut Rng| self.versions[rng.usize(..self.versions.len())].name;
        let version = (rng.u8(..3) == 0).then(|| some(rng));
        let field = &storage.fields[rng.usize(..storage.fields.len())];
        let name = field.name.clone();
        match rng.u8(..20) {
            0..=3 => Change::Default { version, value: field.shape.default(rng), field: name },
            4..=6 => Change::Inner { version, value: field.shape.inner(rng), field: name },
            7 => Change::Phase {
                version,
                value: [None, Some(json!("New")), Some(json!("Old"))][rng.usize(..3)].clone(),
            },
            8 => Change::WholeStatus(rng.bool()),
            9 | 10 => Change::Add { version, field: Field::random(rng, storage.fields.len() + 1) },
            11 if name != "replicas" => Change::Remove { version, field: name },
            12 | 13 if self.versions.len() < VERSIONS.len() => {
                let free =
                    VERSIONS.iter().find(|name| self.versions.iter().all(|version| version.name != **name));
                Change::Version { name: free.copied().unwrap_or("v2"), storage: rng.bool() }
            }
            12..=14 => Change::Serve { name: some(rng), served: rng.bool() },
            15 => Change::Storage(some(rng)),
            16 | 17 => Change::Level,
            18 => Change::Conversion([Conversion::None, Conversion::New, Conversion::Old][rng.usize(..3)]),
            _ if rng.bool() => Change::Status(!self.status),
            _ => Change::Scale(!self.scale),
        }
    }

    /// Makes a change; what has no place in the CRD changes nothing.
    pub(crate) fn apply(&mut self, change: &Change) {
        match change {
            Change::Default { version, field, value } => {
                self.fields(*version, field, |field| field.default.clone_from(value));
            }
            Change::Inner { version, field, value } => {
                self.fields(*version, field, |field| field.inner.clone_from(value));
            }
            Change::Phase { version, value } => {
                self.meant(*version).for_each(|version| version.phase.clone_from(value));
            }
            Change::WholeStatus(has) => self.meant(None).for_each(|version| version.whole_status = *has),
            Change::Add { version, field } => self.meant(*version).for_each(|version| {
                if version.fields.iter().all(|other| other.name != field.name) {
                    version.fields.push(field.clone());
                }
            }),
            Change::Remove { version, field } => {
                self.meant(*version).for_each(|version| version.fields.retain(|other| other.name != *field));
            }
            Change::Version { name, storage } => {
                if self.versions.iter().all(|version| version.name != *name) {
                    let version = Version { name, storage: false, ..self.storage().clone() };
                    self.versions.push(version);
                    if *storage {
                        self.store(name);
                    }
                }
            }
            Change::Serve { name, served } => {
                let others =
                    self.versions.iter_mut().filter(|version| version.name == *name && !version.storage);
                others.for_each(|version| version.served = *served);
            }
            Change::Storage(name) => self.store(name),
            Change::Level => {
                let storage = self.storage().clone();
                for version in &mut self.versions {
                    let Version { name, served, storage: is_storage, .. } = *version;
                    *version = Version { name, served, storage: is_storage, ..storage.clone() };
                }
            }
            Change::Conversion(conversion) => self.conversion = *conversion,
            Change::Status(has) => self.status = *has,
            Change::Scale(has) => self.scale = *has,
        }
    }

    fn store(&mut self, name: &str) {
        if self.versions.iter().any(|version| version.name == name) {
            for version in &mut self.versions {
                version.storage = version.name == name;
                version.served |= version.storage;
            }
        }
    }

    fn meant(&mut self, version: Option<&'static str>) -> impl Iterator<Item = &mut Version> {
        self.versions.iter_mut().filter(move |other| version.is_none_or(|name| other.name == name))
    }

    fn fields(&mut self, version: Option<&'static str>, name: &str, change: impl Fn(&mut Field)) {
        for version in self.meant(version) {
            version.fields.iter_mut().filter(|field| field.name == name).for_each(&change);
        }
    }

    /// Values for some fields of any version, by the fields that the storage version knows.
    pub(crate) fn values(&self, rng: &mut Rng) -> Value {
        let mut spec = Map::new();
        for field in &self.storage().fields {
            if rng.u8(..3) == 0 {
                spec.insert(field.name.clone(), field.value(rng));
            }
        }
        Value::Object(spec)
    }

    /// The name of one field of the storage version.
    pub(crate) fn field(&self, rng: &mut Rng) -> String {
        let fields = &self.storage().fields;
        fields[rng.usize(..fields.len())].name.clone()
    }

    /// The document. Each schema has `serving`: no object has it, and it shows which state of the schema is
    /// served.
    pub(crate) fn document(&self, kind: &str, serving: &str, conversion: &Value) -> Value {
        let plural = format!("{}s", kind.to_lowercase());
        let versions: Vec<Value> = self
            .versions
            .iter()
            .map(|version| {
                let mut schema = version.schema();
                schema["properties"]["spec"]["properties"]["serving"] =
                    json!({ "type": "string", "enum": [serving] });
                let mut subresources = Map::new();
                if self.status {
                    subresources.insert("status".to_owned(), json!({}));
                }
                if self.scale {
                    let paths = json!({
                        "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
                    });
                    subresources.insert("scale".to_owned(), paths);
                }
                json!({
                    "name": version.name, "served": version.served, "storage": version.storage,
                    "schema": { "openAPIV3Schema": schema }, "subresources": subresources,
                })
            })
            .collect();
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": { "name": format!("{plural}.{GROUP}") },
            "spec": {
                "group": GROUP,
                "scope": "Namespaced",
                "names": { "kind": kind, "plural": plural, "singular": kind.to_lowercase() },
                "versions": versions,
                "conversion": conversion,
            },
        })
    }
}

impl Version {
    /// Lacks some of the defaults or fields from now on.
    fn forget(&mut self, rng: &mut Rng) {
        for field in &mut self.fields {
            if rng.bool() {
                field.default = None;
            }
            if rng.bool() {
                field.inner = None;
            }
        }
        self.fields.retain(|field| field.name == "replicas" || rng.u8(..3) > 0);
    }

    pub(crate) fn schema(&self) -> Value {
        let mut fields: Map<String, Value> =
            self.fields.iter().map(|field| (field.name.clone(), field.schema())).collect();
        fields.insert("note".to_owned(), json!({ "type": "string" }));
        let mut status = json!({ "type": "object", "properties": {
            "seen": { "type": "integer" }, "replicas": { "type": "integer" },
            "phase": with(json!({ "type": "string" }), self.phase.as_ref()),
        } });
        if self.whole_status {
            status["default"] = json!({});
        }
        let spec = json!({ "type": "object", "properties": fields });
        json!({ "type": "object", "properties": { "spec": spec, "status": status } })
    }

    pub(crate) fn has_defaults(&self) -> bool {
        self.schema().to_string().contains("\"default\":")
    }
}

impl Field {
    fn random(rng: &mut Rng, index: usize) -> Self {
        let shape = match rng.u8(..10) {
            0..=2 => Shape::Number,
            3 => Shape::Text,
            4 | 5 => Shape::Object,
            6 => Shape::List { keyed: rng.bool() },
            7 | 8 => Shape::Map,
            _ => Shape::Embedded,
        };
        let name = if rng.u8(..3) == 0 { format!("new{index}") } else { format!("f{index}") };
        Self { name, shape, default: shape.default(rng), inner: shape.inner(rng) }
    }

    fn schema(&self) -> Value {
        let inner = with(json!({ "type": "integer" }), self.inner.as_ref());
        let schema = match self.shape {
            Shape::Number => json!({ "type": "integer" }),
            Shape::Text => json!({ "type": "string" }),
            Shape::Object => json!({ "type": "object", "properties": {
                "x": inner, "y": { "type": "integer" } } }),
            Shape::List { keyed } => {
                let item = json!({ "type": "object", "required": ["name"], "properties": {
                    "name": { "type": "string" }, "x": inner } });
                let mut list = json!({ "type": "array", "items": item });
                if keyed {
                    list["x-kubernetes-list-type"] = json!("map");
                    list["x-kubernetes-list-map-keys"] = json!(["name"]);
                }
                list
            }
            Shape::Map => json!({ "type": "object", "additionalProperties": {
                "type": "object", "properties": { "x": inner, "y": { "type": "integer" } } } }),
            Shape::Embedded => {
                let labels = json!({ "type": "object", "additionalProperties": { "type": "string" } });
                let labels = with(labels, self.inner.as_ref());
                json!({ "type": "object", "x-kubernetes-embedded-resource": true, "properties": {
                    "apiVersion": { "type": "string" }, "kind": { "type": "string" },
                    "metadata": { "type": "object", "properties": {
                        "name": { "type": "string" }, "labels": labels } },
                } })
            }
        };
        with(schema, self.default.as_ref())
    }

    fn value(&self, rng: &mut Rng) -> Value {
        let mut inner = Map::new();
        if rng.bool() {
            inner.insert("x".into(), json!([1, 5, 9][rng.usize(..3)]));
        }
        match self.shape {
            Shape::Number => json!([1, 5, 9][rng.usize(..3)]),
            Shape::Text => json!(["x", "y", "z"][rng.usize(..3)]),
            Shape::Object => Value::Object(inner),
            Shape::List { .. } => {
                inner.insert("name".into(), json!(["a", "b"][rng.usize(..2)]));
                json!([inner])
            }
            Shape::Map => json!({ (["k", "other"][rng.usize(..2)]): inner }),
            Shape::Embedded => {
                let mut metadata = json!({ "name": "inner" });
                if rng.u8(..3) == 0 {
                    metadata["labels"] = json!({ "tier": "own" });
                }
                json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata })
            }
        }
    }
}

impl Shape {
    fn default(self, rng: &mut Rng) -> Option<Value> {
        let values = match self {
            Self::Number => [json!(1), json!(5)],
            Self::Text => [json!("x"), json!("y")],
            Self::Object => [json!({}), json!({ "x": 3 })],
            Self::List { .. } => [json!([]), json!([{ "name": "a" }])],
            Self::Map => [json!({}), json!({ "k": {} })],
            Self::Embedded => return None,
        };
        let chance = if matches!(self, Self::Number | Self::Text | Self::Object) { 2 } else { 1 };
        (rng.u8(..4) < chance).then(|| values[rng.usize(..2)].clone())
    }

    fn inner(self, rng: &mut Rng) -> Option<Value> {
        let values = match self {
            Self::Number | Self::Text => return None,
            Self::Object | Self::List { .. } | Self::Map => [json!(1), json!(5)],
            Self::Embedded => [json!({ "tier": "x" }), json!({ "tier": "y" })],
        };
        rng.bool().then(|| values[rng.usize(..2)].clone())
    }
}
