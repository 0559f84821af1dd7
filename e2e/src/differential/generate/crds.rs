//! Whole CRDs, sound for the most part and each wrong in a few places, and CRDs that replace others.

use serde_json::{Value, json};

use super::Generator;

/// Faults of one CRD: none for a good part of them.
const FAULTS: [usize; 5] = [5, 4, 3, 2, 1];

impl Generator<'_> {
    /// A CRD.
    pub(super) fn crd(&mut self) -> Value {
        let mut crd = match self.seeds.crd(&mut self.random) {
            Some(real) if self.temper.real => real,
            _ => self.made_up(),
        };
        self.disturb(&mut crd);
        crd
    }

    /// A CRD, and the one before it: much the same, or another version of a real one. Either may have what
    /// the other lacks.
    pub(super) fn upgrade(&mut self) -> (Value, Value) {
        let one = self.crd();
        let sibling = match self.temper.real && self.random.chance(60) {
            true => self.seeds.sibling(&one, &mut self.random),
            false => None,
        };
        let is_sibling = sibling.is_some();
        let mut other = sibling.unwrap_or_else(|| one.clone());
        if !is_sibling || self.random.chance(50) {
            self.disturb(&mut other);
        }
        let (crd, mut old) = if self.random.chance(50) { (one, other) } else { (other, one) };
        if self.random.chance(45) {
            let status = self.status(&old);
            set(&mut old, "status", status);
        }
        if self.random.chance(10) {
            set(&mut old["metadata"], "finalizers", json!(["a.b/c"]));
        }
        if self.random.chance(5) {
            set(&mut old["metadata"], "deletionTimestamp", "2024-01-01T00:00:00Z".into());
        }
        (crd, old)
    }

    fn disturb(&mut self, crd: &mut Value) {
        for _ in 0..self.random.weighted(&FAULTS) {
            match self.random.weighted(&[30, 40, 60, 60, 3]) {
                0 => self.disturb_spec(crd),
                1 => self.disturb_version(crd),
                2 => self.disturb_schema(crd),
                3 => self.change(crd),
                _ => self.misplace(crd),
            }
        }
    }

    /// Changes the schema of one version, or of all in the same way.
    fn change(&mut self, crd: &mut Value) {
        let Some(Value::Array(versions)) = crd.pointer_mut("/spec/versions") else { return };
        if versions.is_empty() {
            return;
        }
        let index = self.random.below(versions.len());
        let mut schema = match versions[index].pointer("/schema/openAPIV3Schema") {
            Some(schema) if schema.is_object() => schema.clone(),
            _ => return,
        };
        self.change_schema(&mut schema);
        let everywhere = self.random.chance(40);
        for (place, version) in versions.iter_mut().enumerate() {
            if (everywhere || place == index)
                && let Some(at) = version.pointer_mut("/schema/openAPIV3Schema")
            {
                *at = schema.clone();
            }
        }
    }

    /// Puts something of another type in the place of something outside schemas.
    fn misplace(&mut self, crd: &mut Value) {
        let mut pointer = String::new();
        let mut node: &Value = crd;
        while !pointer.ends_with("/schema") {
            let below: Vec<String> = match node {
                Value::Object(fields) => fields.keys().cloned().collect(),
                Value::Array(items) => (0..items.len()).map(|index| index.to_string()).collect(),
                _ => break,
            };
            if below.is_empty() || (!pointer.is_empty() && self.random.chance(20)) {
                break;
            }
            let step = &below[self.random.below(below.len())];
            pointer = format!("{pointer}/{}", step.replace('~', "~0").replace('/', "~1"));
            node = crd.pointer(&pointer).unwrap_or(&Value::Null);
        }
        let junk = if self.random.chance(30) { Value::Null } else { self.junk(2) };
        if let Some(place) = crd.pointer_mut(&pointer).filter(|_| !pointer.is_empty()) {
            *place = junk;
        }
    }

    fn made_up(&mut self) -> Value {
        let mut versions: Vec<Value> = Vec::new();
        for name in ["v1", "v1beta1", "v2"].into_iter().take(1 + self.random.weighted(&[6, 3, 1])) {
            let schema = match versions.first() {
                Some(first) if self.random.chance(60) => first["schema"]["openAPIV3Schema"].clone(),
                _ => self.root(),
            };
            let mut version = json!({"name": name, "served": true, "storage": versions.is_empty(),
                "schema": {"openAPIV3Schema": schema}});
            if self.random.chance(40) {
                version["subresources"] = json!({"status": {}});
            }
            if self.random.chance(15) {
                version["subresources"]["scale"] = json!({"specReplicasPath": ".spec.replicas",
                    "statusReplicasPath": ".status.replicas"});
            }
            versions.push(version);
        }
        let scope = self.random.pick(&["Namespaced", "Cluster"]);
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "things.example.com"},
            "spec": {"group": "example.com", "scope": scope, "names": {"plural": "things", "kind": "Thing"},
                "versions": versions}})
    }

    fn status(&mut self, crd: &Value) -> Value {
        let established = self.random.pick(&["True", "True", "False", "Unknown"]);
        let own: Vec<&str> = crd["spec"]["versions"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|version| version["name"].as_str())
            .collect();
        let mut stored: Vec<&str> = own.iter().copied().filter(|_| self.random.chance(60)).collect();
        for _ in 0..self.random.weighted(&[5, 3, 1]) {
            stored.push(self.random.pick(&["v1beta1", "v2", "v0", "v1", ""]));
        }
        let names = match self.random.below(8) {
            0 => {
                json!({
                    "plural": "Things", "kind": "T T", "listKind": "T T", "shortNames": ["", "x"],
                    "categories": [
                        "A",
                    ],
                })
            }
            1 => json!({"plural": "", "kind": "", "singular": "-"}),
            2 => json!(null),
            _ => crd["spec"]["names"].clone(),
        };
        let mut condition = json!({"type": "Established", "status": established});
        if self.random.chance(30) {
            let time = self.random.pick(&["2024-01-01T00:00:00Z", "yesterday", ""]);
            condition["lastTransitionTime"] = time.into();
        }
        json!({"storedVersions": stored, "acceptedNames": names,
            "conditions": [{"type": "NamesAccepted", "status": "True"}, condition]})
    }

    /// Puts a CRD into a group that belongs to Kubernetes, approved or not.
    fn protect(&mut self, crd: &mut Value) {
        let group = self.random.pick(&[
            "example.k8s.io",
            "k8s.io",
            "x.kubernetes.io",
            "kubernetes.io",
            "myk8s.io",
            "a.x-k8s.io",
        ]);
        let plural = crd["spec"]["names"]["plural"].as_str().unwrap_or_default().to_owned();
        set(&mut crd["spec"], "group", group.into());
        set(&mut crd["metadata"], "name", format!("{plural}.{group}").into());
        if self.random.chance(75) {
            let approval = self.random.pick(APPROVALS);
            set(&mut crd["metadata"], "annotations", json!({ "api-approved.kubernetes.io": approval }));
        }
    }

    fn disturb_spec(&mut self, crd: &mut Value) {
        let choices = [
            ("/metadata", "name", json!("things.other.com")),
            ("/metadata", "name", json!("Things.example.com")),
            ("/metadata", "name", json!("")),
            ("/metadata", "generateName", json!("things-")),
            ("/metadata", "labels", json!({"a": "b c"})),
            ("/metadata", "labels", json!({"-": "", "ok": "x"})),
            ("/metadata", "annotations", json!({"api-approved.kubernetes.io": "unapproved, a try"})),
            ("/metadata", "annotations", json!({"api-approved.kubernetes.io": "https://example.com/1"})),
            ("/metadata", "annotations", json!({"api-approved.kubernetes.io": "yes"})),
            ("/metadata", "finalizers", json!(["foregroundDeletion", "orphan", "x"])),
            (
                "/metadata",
                "ownerReferences",
                json!([{"apiVersion": "v1", "kind": "Event", "name": "", "uid": "1"}]),
            ),
            ("/metadata", "uid", json!("1-2")),
            ("/metadata", "generation", json!(-1)),
            ("/metadata", "creationTimestamp", json!("2020-01-01T00:00:00Z")),
            ("/metadata", "deletionTimestamp", json!("2020-01-01T00:00:00Z")),
            ("/metadata", "deletionGracePeriodSeconds", json!(3)),
            ("/metadata", "name", json!("x".repeat(254))),
            ("/metadata", "annotations", json!({"a": "x".repeat(262_145)})),
            ("/spec", "group", json!("a".repeat(254))),
            ("/spec", "group", json!("-a.b")),
            ("/spec", "group", json!("example.k8s.io")),
            ("/spec", "group", json!("kubernetes.io")),
            ("/spec", "group", json!("example")),
            ("/spec", "group", json!("")),
            ("/spec", "group", json!("Example.com")),
            ("/spec", "scope", json!("")),
            ("/spec", "scope", json!("cluster")),
            ("/spec", "scope", json!("Cluster")),
            ("/spec", "preserveUnknownFields", json!(true)),
            ("/spec", "preserveUnknownFields", json!(true)),
            ("/spec", "versions", json!([])),
            ("/spec/names", "plural", json!("")),
            ("/spec/names", "plural", json!("Things")),
            ("/spec/names", "plural", json!("t".repeat(64))),
            ("/spec/names", "singular", json!("a.thing")),
            ("/spec/names", "kind", json!("")),
            ("/spec/names", "kind", json!("A Thing")),
            ("/spec/names", "kind", json!("Étage")),
            ("/spec/names", "listKind", json!("Thing")),
            ("/spec/names", "listKind", json!("Things!")),
            ("/spec/names", "singular", json!("")),
            ("/spec/names", "listKind", json!("")),
            ("/spec/names", "kind", json!("K".repeat(64))),
            ("/spec/names", "plural", json!("1a")),
            ("/spec/names", "shortNames", json!(["t", "", "T"])),
            ("/spec/names", "shortNames", json!(["t", "t", "a.b", "9"])),
            ("/spec/names", "shortNames", json!([null])),
            ("/spec/names", "categories", json!(["all", "a b"])),
        ];
        match self.random.below(24) {
            0..=4 => {
                let conversion = self.conversion();
                return set(&mut crd["spec"], "conversion", conversion);
            }
            5 | 6 => return self.protect(crd),
            7 => return self.many_selectable(crd),
            8 | 9 => {
                if let Some(Value::Object(metadata)) = crd.get_mut("metadata") {
                    self.meta_fields(metadata);
                }
                return;
            }
            _ => {}
        }
        let (at, name, value) = &choices[self.random.below(choices.len())];
        if let Some(Value::Object(fields)) = crd.pointer_mut(at) {
            fields.insert((*name).to_owned(), value.clone());
        }
    }

    fn disturb_schema(&mut self, crd: &mut Value) {
        let Some(Value::Array(versions)) = crd.pointer_mut("/spec/versions") else { return };
        if versions.is_empty() {
            return;
        }
        let index = self.random.below(versions.len());
        let Some(schema) = versions[index].pointer_mut("/schema/openAPIV3Schema") else { return };
        if self.random.chance(20) {
            self.disturb_root(schema);
        } else {
            self.damage(schema);
        }
    }

    fn disturb_root(&mut self, schema: &mut Value) {
        let Value::Object(root) = schema else { return };
        let choices = [
            ("nullable", json!(true)),
            ("default", json!({"a": 1})),
            ("enum", json!([])),
            ("maxProperties", json!(3)),
            ("title", json!("A thing")),
            ("x-kubernetes-preserve-unknown-fields", json!(true)),
            (
                "x-kubernetes-validations",
                json!([{"rule": "self.metadata.name.size() < 9 && self.kind == 'Thing'"}]),
            ),
            (
                "x-kubernetes-validations",
                json!([{"rule": "self == oldSelf", "messageExpression": "self.kind"}]),
            ),
            ("x-kubernetes-validations", json!([{"rule": "has(self.spec)", "optionalOldSelf": true}])),
            (
                "x-kubernetes-validations",
                json!([{
                    "rule": "self.metadata.generateName.startsWith(self.metadata.name)", "fieldPath": ".spec",
                }]),
            ),
            ("x-kubernetes-list-type", json!("map")),
            ("x-kubernetes-map-type", json!("atomic")),
            ("allOf", json!([{"required": ["spec"]}])),
            ("not", json!({"required": ["a"]})),
            ("additionalProperties", json!(false)),
            ("type", json!("array")),
            ("id", json!("a")),
        ];
        let (name, value) = &choices[self.random.below(choices.len())];
        root.insert((*name).to_owned(), value.clone());
    }
}

/// Sets a field of what is an object; what took its place stays as it is.
pub(super) fn set(object: &mut Value, name: &str, value: Value) {
    if let Value::Object(fields) = object {
        fields.insert(name.to_owned(), value);
    }
}

/// Approvals of an API: links, reasons and neither.
const APPROVALS: &[&str] = &[
    "https://github.com/kubernetes/kubernetes/pull/1",
    "unapproved, a try",
    "unapproved",
    "Unapproved",
    "",
    "yes",
    "example.com",
    "//example.com/a",
    "https://",
    "http://a b",
    "mailto:a@b",
    "https://example.com:x",
    " https://example.com",
    "https://[::1]/",
];
