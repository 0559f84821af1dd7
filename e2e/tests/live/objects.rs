//! A thousand objects in ten states: how each is made, and what etcd lacks of it for that reason.
//! The tests ask Etch and look at results.

use e2e::cluster::{crd, with_spec};
use serde_json::{Value, json};

pub(crate) const GROUP: &str = "live.example.com";
/// Objects in each state.
pub(crate) const EACH: usize = 100;

/// What is done to an object once its CRD has defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    /// An empty merge patch at the storage version.
    Merge,
    /// An empty JSON patch at the storage version.
    Json,
    /// A server-side apply of another field at the storage version.
    ApplyNote,
    /// Values are written at the storage version.
    Write(i64, &'static str),
    /// An empty merge patch at the older version, which knows fewer fields.
    MergeOld,
    /// Its owners are removed in etcd, and nothing else.
    ClearOwners,
}

/// How an object is made, and what follows from it.
#[derive(Clone, Debug)]
pub(crate) struct Form {
    /// One of the ten.
    pub(crate) state: &'static str,
    /// The spec it is made with; null for none.
    pub(crate) spec: Value,
    /// Whether it is made by server-side apply.
    pub(crate) applied: bool,
    /// What is done to it afterwards, in order.
    pub(crate) then: &'static [Deed],
    /// The topmost defaults that etcd lacks, in order; a gap is one that no reader sees either.
    pub(crate) phantoms: &'static [&'static str],
    pub(crate) gaps: &'static [&'static str],
    /// The fields that only etcd holds.
    pub(crate) hidden: &'static [&'static str],
    /// Why it cannot be written, and where the reason is shown.
    pub(crate) held: Option<(&'static str, &'static [&'static str])>,
}

/// One of the thousand.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    pub(crate) name: String,
    pub(crate) form: Form,
}

/// All objects; those of one state take its forms in turn.
pub(crate) fn objects() -> Vec<Made> {
    let forms = forms();
    let mut states: Vec<&str> = forms.iter().map(|form| form.state).collect();
    states.dedup();
    let mut objects = Vec::new();
    for state in states {
        let of_state: Vec<&Form> = forms.iter().filter(|form| form.state == state).collect();
        for index in 0..EACH {
            let form = of_state[index % of_state.len()].clone();
            objects.push(Made { name: format!("{state}-{index}"), form });
        }
    }
    objects
}

/// The forms of all states, the most typical one of each state first.
fn forms() -> Vec<Form> {
    let form = |state: &'static str, spec: Value| Form {
        state,
        spec,
        applied: false,
        then: &[],
        phantoms: &[],
        gaps: &[],
        hidden: &[],
        held: None,
    };
    let both = &[".spec.a", ".spec.o"][..];
    let (n, m) = (|n: i64| json!({ "n": n }), |n: i64| json!({ "n": n, "protocol": "TCP" }));
    let stored = |then| Form { then, ..form("stored", json!({ "schedule": "x" })) };
    let owned = |spec, phantoms| Form { applied: true, phantoms, ..form("owned", spec) };
    let cleared = |spec, phantoms| Form { then: &[Deed::ClearOwners], phantoms, ..form("cleared", spec) };
    let versions = |spec, then| Form { then, ..form("versions", spec) };
    vec![
        Form { phantoms: both, ..form("phantom", json!({ "schedule": "x" })) },
        Form { phantoms: &[".spec.o"], ..form("phantom", json!({ "a": 1 })) },
        Form { phantoms: &[".spec.a", ".spec.o.x"], ..form("phantom", json!({ "o": {} })) },
        Form { phantoms: both, ..form("phantom", json!({})) },
        stored(&[Deed::Merge]),
        stored(&[Deed::Json]),
        stored(&[Deed::ApplyNote]),
        // No default applies where there is no parent (fact C5).
        form("stored", Value::Null),
        owned(json!({ "a": 1, "o": { "x": 5 } }), &[]),
        owned(json!({ "a": 1, "o": {} }), &[".spec.o.x"]),
        owned(json!({ "note": "n" }), both),
        Form {
            phantoms: both,
            hidden: &[".spec.legacy"],
            held: Some(("HiddenFields", &[".spec.legacy"])),
            ..form("hidden", json!({ "legacy": "secret" }))
        },
        Form {
            phantoms: &[".spec.a"],
            hidden: &[".spec.o.old"],
            held: Some(("HiddenFields", &[".spec.o.old"])),
            ..form("hidden", json!({ "o": { "x": 5, "old": 1 } }))
        },
        // Nothing is missing, so there is nothing to hold.
        Form {
            hidden: &[".spec.legacy"],
            ..form("hidden", json!({ "a": 1, "o": { "x": 5 }, "legacy": "x" }))
        },
        Form {
            phantoms: &[".spec.a", ".spec.o", ".spec.odd[\"k\"].n"],
            held: Some(("InvalidDefaults", &[".spec.odd[\"k\"].n"])),
            ..form("held", json!({ "odd": { "k": {} } }))
        },
        Form {
            phantoms: both,
            held: Some(("Misfit", &[".spec.kind"])),
            ..form("held", json!({ "kind": "a text where there is to be a number" }))
        },
        Form { phantoms: both, ..form("held", json!({ "odd": { "k": { "n": 3 } } })) },
        cleared(json!({ "schedule": "x" }), both),
        cleared(json!({ "a": 1 }), &[".spec.o"]),
        cleared(json!({ "a": 1, "o": { "x": 5 } }), &[]),
        Form {
            phantoms: &[".spec.o", ".spec.ports[0].protocol"],
            ..form("atomic", json!({ "a": 1, "ports": [n(1), m(2)] }))
        },
        Form {
            phantoms: &[".spec.ports[1].protocol", ".spec.ports[2].protocol"],
            ..form("atomic", json!({ "a": 1, "o": { "x": 5 }, "ports": [m(1), n(2), n(3)] }))
        },
        Form { phantoms: both, ..form("atomic", json!({ "ports": [] })) },
        form("atomic", json!({ "a": 1, "o": { "x": 5 }, "ports": [m(1)] })),
        Form {
            phantoms: &[".spec.a", ".spec.o", ".spec.rules[0].weight"],
            ..form("listmap", json!({ "rules": [{ "name": "r" }, { "name": "s", "weight": 10 }] }))
        },
        Form {
            applied: true,
            phantoms: &[".spec.rules[1].weight"],
            ..form(
                "listmap",
                json!({ "a": 1, "o": { "x": 5 }, "rules": [{ "name": "s", "weight": 10 }, { "name": "r" }] }),
            )
        },
        form("listmap", json!({ "a": 1, "o": { "x": 5 }, "rules": [{ "name": "s", "weight": 10 }] })),
        Form { phantoms: &[".spec.b"], gaps: &[".spec.color"], ..form("gap", json!({ "a": 1 })) },
        Form { gaps: &[".spec.color"], ..form("gap", json!({ "a": 3, "b": 2 })) },
        Form {
            phantoms: &[".spec.b"],
            gaps: &[".spec.color"],
            applied: true,
            ..form("gap", json!({ "a": 2 }))
        },
        versions(json!({ "a": 1 }), &[Deed::Write(2, "red")]),
        versions(json!({ "a": 1 }), &[Deed::Merge]),
        versions(json!({ "a": 3 }), &[Deed::Write(3, "blue")]),
        // A write through a version without the field takes its value away again, and leaves its owner (fact
        // W10).
        Form {
            phantoms: &[".spec.color"],
            ..versions(json!({ "a": 1 }), &[Deed::Write(2, "red"), Deed::MergeOld])
        },
    ]
}

impl Made {
    /// `tabs`, which have one version, or `pairs`, which have two.
    pub(crate) fn plural(&self) -> &'static str {
        if matches!(self.form.state, "gap" | "versions") { "pairs" } else { "tabs" }
    }

    /// The object as it is sent at first.
    pub(crate) fn document(&self) -> Value {
        let (version, kind) = if self.plural() == "tabs" { ("v1", "Tab") } else { ("v1beta1", "Pair") };
        let mut object = json!({
            "apiVersion": format!("{GROUP}/{version}"), "kind": kind, "metadata": { "name": self.name },
        });
        if !self.form.spec.is_null() {
            object["spec"] = self.form.spec.clone();
        }
        object
    }

    /// Where it is at a version.
    pub(crate) fn path(&self, version: &str) -> String {
        format!("{}/{}", collection(version, self.plural()), self.name)
    }
}

pub(crate) fn collection(version: &str, plural: &str) -> String {
    format!("/apis/{GROUP}/{version}/namespaces/default/{plural}")
}

/// The places whose default etcd does not hold, by the schemas: the topmost ones, in order.
pub(crate) fn missing(plural: &str, raw: &Value) -> Vec<String> {
    let spec = &raw["spec"];
    let mut places = Vec::new();
    let mut lacks = |value: &Value, place: String| {
        if value.is_null() {
            places.push(place);
        }
    };
    if spec.is_null() {
        return places;
    }
    if plural == "pairs" {
        lacks(&spec["b"], ".spec.b".to_owned());
        lacks(&spec["color"], ".spec.color".to_owned());
        return places;
    }
    lacks(&spec["a"], ".spec.a".to_owned());
    match &spec["o"] {
        Value::Null => lacks(&Value::Null, ".spec.o".to_owned()),
        o => lacks(&o["x"], ".spec.o.x".to_owned()),
    }
    for (list, field) in [("ports", "protocol"), ("rules", "weight")] {
        for (index, item) in spec[list].as_array().into_iter().flatten().enumerate() {
            lacks(&item[field], format!(".spec.{list}[{index}].{field}"));
        }
    }
    for (key, value) in spec["odd"].as_object().into_iter().flatten() {
        lacks(&value["n"], format!(".spec.odd[{key:?}].n"));
    }
    places.sort();
    places
}

/// The CRD of tabs.
pub(crate) fn tabs(schema: &Value) -> Value {
    crd(GROUP, "Tab", &[("v1", true, schema.clone())])
}

/// The CRD of pairs.
pub(crate) fn pairs(versions: &[(&str, bool, Value)]) -> Value {
    crd(GROUP, "Pair", versions)
}

/// The schema of tabs: as it is at first, or with defaults, without two fields, and with another type for a
/// third.
pub(crate) fn tab_schema(defaults: bool) -> Value {
    let with = |mut schema: Value, default: Value| {
        if defaults {
            schema["default"] = default;
        }
        schema
    };
    let integer = || json!({ "type": "integer" });
    let mut schema = with_spec(json!({
        "schedule": { "type": "string" },
        "note": { "type": "string" },
        "legacy": { "type": "string" },
        "kind": { "type": if defaults { "integer" } else { "string" } },
        "a": with(integer(), json!(1)),
        "o": with(json!({ "type": "object", "properties": {
            "x": with(integer(), json!(5)), "old": integer(),
        } }), json!({})),
        "ports": { "type": "array", "items": { "type": "object", "properties": {
            "n": integer(), "protocol": with(json!({ "type": "string" }), json!("TCP")),
        } } },
        "rules": { "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": { "type": "object", "required": ["name"], "properties": {
                "name": { "type": "string" }, "weight": with(integer(), json!(10)),
        } } },
        // The server does not look for invalid defaults below a map.
        "odd": { "type": "object", "additionalProperties": { "type": "object", "properties": {
            "n": with(json!({ "type": "integer", "maximum": 5 }), json!(9)),
        } } },
    }));
    let fields = &mut schema["properties"]["spec"]["properties"];
    for (place, name) in [("", "legacy"), ("/o/properties", "old")] {
        if let Some(fields) = fields.pointer_mut(place).and_then(Value::as_object_mut).filter(|_| defaults) {
            fields.remove(name);
        }
    }
    schema
}

/// The schema of pairs: fields with the values that they have by default.
pub(crate) fn pair_schema(defaults: &[(&str, Value)]) -> Value {
    let mut properties =
        json!({ "a": { "type": "integer" }, "b": { "type": "integer" }, "note": { "type": "string" } });
    for (name, value) in defaults {
        let kind = if value.is_string() { "string" } else { "integer" };
        properties[*name] = json!({ "type": kind, "default": value });
    }
    with_spec(properties)
}
