//! Random clusters: a CRD in three states, its objects, what is done to them, and the policy that it falls
//! under. No cluster is asked: the same seed gives the same plan everywhere.

use fastrand::Rng;
use serde_json::{Map, Value, json};

use crate::model::{Phase, with};

/// The API group of all CRDs.
pub(crate) const GROUP: &str = "answers.example.com";
/// The namespaces of the objects.
pub(crate) const NAMESPACES: [&str; 2] = ["default", "web"];
/// The states of a CRD: when its objects are made, when Etch meets them, and after an upgrade.
pub(crate) const BEFORE: usize = 0;
pub(crate) const NOW: usize = 1;
pub(crate) const NEXT: usize = 2;

/// One random cluster.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) kind: String,
    pub(crate) plural: String,
    pub(crate) namespaced: bool,
    pub(crate) phases: [Phase; 3],
    pub(crate) objects: Vec<Thing>,
    /// The spec of its policy; `None` if no policy selects it.
    pub(crate) policy: Option<Value>,
    /// How `etch persist` is tried before the operator comes.
    pub(crate) partial: Partial,
}

/// One object.
#[derive(Clone, Debug)]
pub(crate) struct Thing {
    pub(crate) name: String,
    pub(crate) namespace: Option<&'static str>,
    pub(crate) version: String,
    pub(crate) spec: Value,
    pub(crate) status: Option<Value>,
    /// Whether it is made by server-side apply.
    pub(crate) applied: bool,
    /// Whether its owners are cleared before the upgrade.
    pub(crate) ownerless: bool,
    pub(crate) ignored: bool,
    pub(crate) refused: bool,
    /// Whether it is deleted before the upgrade, and kept by a finalizer.
    pub(crate) terminating: bool,
    /// What is done to it after the upgrade, and after the operator's pass.
    pub(crate) deeds: [Option<Deed>; 2],
}

/// What a user does to an object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Deed {
    /// An empty merge patch at the storage version.
    Touch,
    /// An empty merge patch at the oldest version.
    TouchOld,
    /// A merge patch with values.
    Set(Value),
    /// A server-side apply of a note.
    Note,
    /// The annotation is put on it, by a write that stores what is shown.
    Ignore,
    /// It is deleted, and a finalizer keeps it.
    Delete,
}

/// The scope of a run of `etch persist`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Partial {
    Nothing,
    /// `-n web`.
    Namespace,
    /// `--after` the object of this index, in the order of the list.
    After(usize),
    Whole,
}

impl Plan {
    /// The plan of a seed, for the place it has among others.
    pub(crate) fn random(seed: u64, index: usize) -> Self {
        let mut rng = Rng::with_seed(seed);
        let rng = &mut rng;
        let kind = format!("Random{index}");
        let two_versions = rng.u8(..3) == 0;
        let namespaced = rng.u8(..4) > 0;
        let schemas = Schemas::random(rng);
        let mut phases: [Phase; 3] = std::array::from_fn(|phase| {
            let now = schemas.at(phase);
            let mut versions = vec![("v1".to_owned(), true, now)];
            if two_versions {
                versions.insert(0, ("v1alpha1".to_owned(), false, schemas.at(BEFORE)));
            }
            Phase { versions }
        });
        if two_versions && rng.bool() {
            // The storage version itself is new.
            phases[BEFORE].versions = vec![("v1alpha1".to_owned(), true, schemas.at(BEFORE))];
        }
        let count = 1 + rng.usize(..20);
        let objects = (0..count)
            .map(|index| {
                Thing::random(rng, &schemas, index, namespaced, two_versions, phases[BEFORE].storage())
            })
            .collect();
        Self {
            seed,
            plural: format!("{}s", kind.to_lowercase()),
            kind,
            namespaced,
            policy: policy(rng, &schemas),
            phases,
            objects,
            partial: match rng.u8(..5) {
                0 | 1 if namespaced => Partial::Namespace,
                2 => Partial::After(rng.usize(..count)),
                3 => Partial::Whole,
                _ => Partial::Nothing,
            },
        }
    }

    /// The CRD's name.
    pub(crate) fn crd(&self) -> String {
        format!("{}.{GROUP}", self.plural)
    }

    /// The CRD in one of its states.
    pub(crate) fn document(&self, phase: usize) -> Value {
        let versions: Vec<Value> = self.phases[phase]
            .versions
            .iter()
            .map(|(name, storage, schema)| {
                let mut schema = schema.clone();
                // No object has it: it shows which state of the schema is served.
                schema["properties"]["spec"]["properties"]["serving"] =
                    json!({ "type": "string", "enum": [format!("phase-{phase}")] });
                json!({
                    "name": name, "served": true, "storage": storage,
                    "schema": { "openAPIV3Schema": schema }, "subresources": { "status": {} },
                })
            })
            .collect();
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": { "name": self.crd() },
            "spec": {
                "group": GROUP,
                "scope": if self.namespaced { "Namespaced" } else { "Cluster" },
                "names": { "kind": self.kind, "plural": self.plural, "singular": self.kind.to_lowercase() },
                "versions": versions,
            },
        })
    }

    /// The policy's value for a key, if there is one.
    pub(crate) fn says(&self, key: &str) -> &Value {
        self.policy.as_ref().map_or(&Value::Null, |policy| &policy[key])
    }
}

impl Thing {
    fn random(
        rng: &mut Rng,
        schemas: &Schemas,
        index: usize,
        namespaced: bool,
        two_versions: bool,
        storage: &str,
    ) -> Self {
        let version = if two_versions && rng.bool() { "v1alpha1" } else { storage };
        let applied = rng.bool();
        let refused = rng.u8(..8) == 0;
        let terminating = rng.u8(..10) == 0;
        let is_written = !(refused || terminating);
        let deed = |rng: &mut Rng| {
            let deed = match rng.u8(..13) {
                0 | 1 => Deed::Touch,
                2 if two_versions => Deed::TouchOld,
                3 => Deed::Set(json!({ "spec": schemas.values(rng, NOW) })),
                4 => Deed::Note,
                5 => Deed::Ignore,
                6 => Deed::Delete,
                _ => return None,
            };
            is_written.then_some(deed)
        };
        let deeds = [deed(rng), deed(rng)];
        let namespace = namespaced.then(|| NAMESPACES[rng.usize(..2)]);
        let mut spec = schemas.values(rng, BEFORE);
        if version == "v1alpha1" {
            // Both versions know the same fields at first.
            spec["note"] = json!("old");
        }
        Self {
            name: format!("object-{index}"),
            namespace,
            version: version.to_owned(),
            spec,
            status: (rng.u8(..5) == 0).then(|| json!({ "seen": 1 })),
            applied,
            ownerless: rng.u8(..12) == 0,
            ignored: rng.u8(..7) == 0,
            refused,
            terminating,
            deeds,
        }
    }
}

/// A field of `spec` in the three states of the CRD.
struct Field {
    name: String,
    shape: Shape,
    /// Which states know the field.
    known: [bool; 3],
    /// Its own default in each state.
    default: [Option<Value>; 3],
    /// The default of the field inside, where there is one.
    inner: [Option<Value>; 3],
}

#[derive(Clone, Copy, PartialEq)]
enum Shape {
    Number,
    Text,
    /// An integer that was a string at first.
    Retyped,
    Object,
    /// A list whose items have a default; with keys, or atomic.
    List {
        keyed: bool,
    },
    /// A map whose values have a default, which may be one that the schema itself refuses.
    Map {
        broken: bool,
    },
}

/// The fields of `spec`, and a rule that a new default may break.
struct Schemas {
    fields: Vec<Field>,
    /// The default of `max`, which a rule compares with `min`, in each state.
    max: Option<[Option<Value>; 3]>,
    /// The default of `status`'s field.
    phase: [Option<Value>; 3],
}

/// A default in each of the states: mostly one that comes, stays, changes or goes.
fn evolving(rng: &mut Rng, values: &[Value]) -> [Option<Value>; 3] {
    let mut some = |chance: u8| (rng.u8(..10) < chance).then(|| values[rng.usize(..values.len())].clone());
    let before = some(2);
    let now = some(7).or_else(|| before.clone());
    let next = if some(5).is_some() { now.clone() } else { some(6) };
    [before, now, next]
}

impl Schemas {
    fn random(rng: &mut Rng) -> Self {
        let numbers = [json!(1), json!(5), json!(7)];
        let texts = [json!("x"), json!("y")];
        let count = 1 + rng.usize(..6);
        let fields = (0..count)
            .map(|index| {
                let shape = match rng.u8(..12) {
                    0..=2 => Shape::Number,
                    3 | 4 => Shape::Text,
                    5 => Shape::Retyped,
                    6 | 7 => Shape::Object,
                    8 | 9 => Shape::List { keyed: rng.bool() },
                    10 => Shape::Map { broken: rng.u8(..3) == 0 },
                    _ => Shape::Map { broken: false },
                };
                let default = match shape {
                    Shape::Number => evolving(rng, &numbers),
                    Shape::Text => evolving(rng, &texts),
                    Shape::Object => evolving(rng, &[json!({}), json!({}), json!({ "x": 3 })]),
                    Shape::List { .. } => evolving(rng, &[json!([]), json!([{ "name": "a" }])])
                        .map(|default| default.filter(|_| rng.u8(..3) == 0)),
                    Shape::Map { .. } | Shape::Retyped => [None, None, None],
                };
                let inner = match shape {
                    Shape::Map { broken: true } => [None, Some(json!("no number")), Some(json!("no number"))],
                    _ => evolving(rng, &numbers),
                };
                let known = match rng.u8(..12) {
                    0 => [true, false, false],
                    1 => [true, true, false],
                    _ => [true, true, true],
                };
                Field { name: format!("f{index}"), shape, known, default, inner }
            })
            .collect();
        let max = (rng.u8(..4) == 0).then(|| [None, Some(json!(5)), evolving(rng, &numbers)[NEXT].clone()]);
        let phase = evolving(rng, &texts);
        Self { fields, max, phase: if rng.u8(..4) == 0 { phase } else { [None, None, None] } }
    }

    /// The schema in one of the states.
    fn at(&self, phase: usize) -> Value {
        let mut fields = Map::new();
        fields.insert("note".into(), json!({ "type": "string" }));
        for field in self.fields.iter().filter(|field| field.known[phase]) {
            fields.insert(field.name.clone(), field.at(phase));
        }
        let mut spec = json!({ "type": "object" });
        if let Some(max) = &self.max {
            fields.insert("min".into(), json!({ "type": "integer" }));
            fields.insert("max".into(), with(json!({ "type": "integer" }), max[phase].as_ref()));
            if phase > BEFORE {
                spec["x-kubernetes-validations"] =
                    json!([{ "rule": "!has(self.min) || !has(self.max) || self.min <= self.max" }]);
            }
        }
        spec["properties"] = Value::Object(fields);
        let status = json!({ "type": "object", "properties": {
            "seen": { "type": "integer" },
            "phase": with(json!({ "type": "string" }), self.phase[phase].as_ref()),
        } });
        json!({ "type": "object", "properties": { "spec": spec, "status": status } })
    }

    /// Values for some of the fields that a state knows.
    fn values(&self, rng: &mut Rng, phase: usize) -> Value {
        let mut spec = Map::new();
        for field in self.fields.iter().filter(|field| field.known[phase]) {
            if rng.u8(..5) < 2 {
                spec.insert(field.name.clone(), field.value(rng, phase));
            }
        }
        if self.max.is_some() && phase == BEFORE {
            if rng.bool() {
                spec.insert("min".into(), json!(1 + rng.u8(..9)));
            }
            if rng.u8(..4) == 0 {
                spec.insert("max".into(), json!(9));
            }
        }
        Value::Object(spec)
    }

    /// The places of all defaults in one of the states, as a policy names them.
    fn places(&self, phase: usize) -> Vec<String> {
        let mut places = Vec::new();
        for field in self.fields.iter().filter(|field| field.known[phase]) {
            let place = format!(".spec.{}", field.name);
            places.extend(field.default[phase].is_some().then(|| place.clone()));
            if field.inner[phase].is_some() {
                match field.shape {
                    Shape::Object => places.push(format!("{place}.x")),
                    Shape::List { .. } => places.push(format!("{place}[].x")),
                    Shape::Map { .. } => places.push(format!("{place}{{}}.x")),
                    _ => {}
                }
            }
        }
        places
    }
}

impl Field {
    fn at(&self, phase: usize) -> Value {
        let inner = with(json!({ "type": "integer" }), self.inner[phase].as_ref());
        let schema = match self.shape {
            Shape::Number => json!({ "type": "integer" }),
            Shape::Text => json!({ "type": "string" }),
            Shape::Retyped if phase == BEFORE => json!({ "type": "string" }),
            Shape::Retyped => json!({ "type": "integer" }),
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
            Shape::Map { .. } => json!({ "type": "object", "additionalProperties": {
                "type": "object", "properties": { "x": inner, "y": { "type": "integer" } } } }),
        };
        with(schema, self.default[phase].as_ref())
    }

    fn value(&self, rng: &mut Rng, phase: usize) -> Value {
        let mut inner = |x: bool| {
            let mut inner = Map::new();
            if x && rng.bool() {
                inner.insert("x".into(), json!([1, 5, 9][rng.usize(..3)]));
            }
            inner
        };
        match self.shape {
            Shape::Number => json!([1, 5, 9][rng.usize(..3)]),
            Shape::Text => json!(["x", "y", "z"][rng.usize(..3)]),
            Shape::Retyped if phase == BEFORE => json!("a string"),
            Shape::Retyped => json!(4),
            Shape::Object => Value::Object(inner(true)),
            Shape::List { .. } => {
                let items = ["a", "b"].map(|name| {
                    let mut item = inner(true);
                    item.insert("name".into(), json!(name));
                    item
                });
                json!(items)
            }
            Shape::Map { broken } => json!({ "k": inner(!broken), "other": inner(!broken) }),
        }
    }
}

/// The policy of a CRD; `None` if none selects it.
fn policy(rng: &mut Rng, schemas: &Schemas) -> Option<Value> {
    let mode = match rng.u8(..10) {
        0..=5 => "Persist",
        6 | 7 => "Audit",
        8 => "Ignore",
        _ => return None,
    };
    let mut policy = json!({ "mode": mode });
    if rng.u8(..6) == 0 {
        policy["paused"] = json!(true);
    }
    if rng.u8(..5) == 0 {
        policy["ownership"] = json!("Own");
    }
    if rng.u8(..4) == 0 {
        policy["hiddenFields"] = json!("Drop");
    }
    let followed: Vec<Value> = schemas
        .places(NOW)
        .into_iter()
        .filter(|_| rng.u8(..4) == 0)
        .map(|path| json!({ "path": path, "action": "Follow" }))
        .collect();
    if !followed.is_empty() {
        policy["onChange"] = json!(followed);
    }
    Some(policy)
}
