//! Whole CRDs, sound for the most part and each wrong in a few places, and CRDs that replace others.
//! It must not know which faults the API server lets pass.

use etch::domain::json::copy;
use serde_json::{Map, Value, json};

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

    /// The CRD before one: much the same.
    pub(super) fn crd_before(&mut self, crd: &Value) -> Value {
        let mut old = copy(crd);
        self.disturb(&mut old);
        if self.random.chance(25) {
            old["status"] = self.status();
        }
        if self.random.chance(10) {
            old["metadata"]["finalizers"] = json!(["a.b/c"]);
        }
        old
    }

    fn disturb(&mut self, crd: &mut Value) {
        for _ in 0..self.random.weighted(&FAULTS) {
            match self.random.weighted(&[3, 4, 8]) {
                0 => self.disturb_spec(crd),
                1 => self.disturb_version(crd),
                _ => self.disturb_schema(crd),
            }
        }
    }

    fn made_up(&mut self) -> Value {
        let mut versions: Vec<Value> = Vec::new();
        for name in ["v1", "v1beta1", "v2"].into_iter().take(1 + self.random.weighted(&[6, 3, 1])) {
            let schema = match versions.first() {
                Some(first) if self.random.chance(60) => copy(&first["schema"]["openAPIV3Schema"]),
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

    fn status(&mut self) -> Value {
        let established = self.random.pick(&["True", "False"]);
        let mut stored = vec!["v1"];
        if self.random.chance(30) {
            stored.push(self.random.pick(&["v1beta1", "v2", "v0", "v1"]));
        }
        json!({"storedVersions": stored, "acceptedNames": {"plural": "things", "kind": "Thing"},
            "conditions": [{"type": "Established", "status": established}]})
    }

    fn disturb_spec(&mut self, crd: &mut Value) {
        let choices = [
            ("/metadata", "name", json!("things.other.com")),
            ("/metadata", "name", json!("Things.example.com")),
            ("/metadata", "name", json!("")),
            ("/metadata", "generateName", json!("things-")),
            ("/metadata", "namespace", json!("default")),
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
            ("/spec", "conversion", json!({"strategy": "Webhook"})),
            ("/spec", "conversion", json!({"strategy": ""})),
            (
                "/spec",
                "conversion",
                json!({"strategy": "None", "webhook": {"conversionReviewVersions": ["v1"]}}),
            ),
            (
                "/spec",
                "conversion",
                json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": []}}),
            ),
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
            ("/spec/names", "shortNames", json!(["t", "", "T"])),
            ("/spec/names", "categories", json!(["all", "a b"])),
        ];
        if self.random.chance(15) {
            let webhook = self.webhook();
            crd["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": webhook});
            return;
        }
        let (at, name, value) = &choices[self.random.below(choices.len())];
        if let Some(Value::Object(fields)) = crd.pointer_mut(at) {
            fields.insert((*name).to_owned(), value.clone());
        }
    }

    fn webhook(&mut self) -> Value {
        let clients = [
            json!({"url": "https://example.com/convert"}),
            json!({"url": "http://u:p@/convert?a=b#c"}),
            json!({"url": "https://example.com", "service": {"name": "a", "namespace": "b"}}),
            json!({"service": {"name": "a", "namespace": "b", "path": "/x/y/"}}),
            json!({"service": {"name": "", "namespace": "b", "port": 0, "path": "x//Y"}}),
            json!({"service": {"name": "a", "namespace": "", "port": 70000, "path": "//"}}),
            json!({"service": {"name": "a", "namespace": "b"}, "caBundle": "eHl6"}),
            json!({}),
        ];
        let versions = [
            json!(["v1"]),
            json!(["v1beta1", "v1"]),
            json!(["v2"]),
            json!(["v1", "v1", "1x"]),
            json!([]),
            json!(null),
        ];
        json!({"clientConfig": clients[self.random.below(clients.len())],
            "conversionReviewVersions": versions[self.random.below(versions.len())]})
    }

    fn disturb_version(&mut self, crd: &mut Value) {
        let Some(Value::Array(versions)) = crd.pointer_mut("/spec/versions") else { return };
        if versions.is_empty() {
            return;
        }
        let index = self.random.below(versions.len());
        if self.random.chance(8) {
            let again = copy(&versions[index]);
            versions.push(again);
            return;
        }
        if self.random.chance(6) {
            versions.remove(index);
            return;
        }
        let Value::Object(version) = &mut versions[index] else { return };
        let (name, value) = self.version_fault(version);
        version.insert(name.to_owned(), value);
    }

    fn version_fault(&mut self, version: &Map<String, Value>) -> (&'static str, Value) {
        match self.random.below(9) {
            0 => ("name", self.random.pick(&["v1", "V1", "", "1a", "v1.0", "v3alpha1"]).into()),
            1 => ("storage", self.random.chance(50).into()),
            2 => ("served", self.random.chance(50).into()),
            3 => ("deprecated", self.random.chance(50).into()),
            4 => {
                let long = "é".repeat(130);
                let warning = self.random.pick(&["gone soon", "", "a\tb", "é\u{7f}", &long]);
                ("deprecationWarning", warning.into())
            }
            5 => ("selectableFields", self.selectable(version)),
            6 => ("additionalPrinterColumns", self.columns()),
            7 => {
                let subresources = [
                    json!({"status": {}}),
                    json!({"status": null}),
                    json!({"scale": {"specReplicasPath": "spec", "statusReplicasPath": ".spec.a"}}),
                    json!({"scale": {"specReplicasPath": "", "statusReplicasPath": ".", "labelSelectorPath": ".meta"}}),
                    json!({"scale": {"specReplicasPath": ".spec.", "statusReplicasPath": ".status.b",
                        "labelSelectorPath": "status.c"}, "status": {}}),
                    json!(null),
                ];
                ("subresources", subresources[self.random.below(subresources.len())].clone())
            }
            _ => {
                let schemas = [
                    json!(null),
                    json!({}),
                    json!({"openAPIV3Schema": null}),
                    json!({"openAPIV3Schema": {}}),
                ];
                ("schema", schemas[self.random.below(schemas.len())].clone())
            }
        }
    }

    fn selectable(&mut self, version: &Map<String, Value>) -> Value {
        let names: Vec<String> = version
            .get("schema")
            .and_then(|schema| schema.pointer("/openAPIV3Schema/properties"))
            .and_then(Value::as_object)
            .into_iter()
            .flat_map(|properties| properties.keys().map(|name| format!(".{name}")))
            .collect();
        let paths: Vec<Value> = (0..self.random.between(0, 10))
            .map(|_| {
                let path = if names.is_empty() || self.random.chance(40) {
                    let odd = [
                        ".spec.a",
                        ".metadata.name",
                        "",
                        "spec",
                        ".",
                        ".spec[0]",
                        ".a.b",
                        ".spec.",
                        "..a",
                        "['a']",
                    ];
                    self.random.pick(&odd).to_owned()
                } else {
                    names[self.random.below(names.len())].clone()
                };
                json!({ "jsonPath": path })
            })
            .collect();
        paths.into()
    }

    fn columns(&mut self) -> Value {
        let columns: Vec<Value> = (0..self.random.between(0, 3))
            .map(|_| {
                json!({"name": self.random.pick(&["A", "", "Age"]),
                    "type": self.random.pick(&["string", "date", "", "int", "number"]),
                    "format": self.random.pick(&["", "int32", "x", "date-time"]),
                    "jsonPath": self.random.pick(&[".spec.a", "spec", "", ".", ".a[?(@.b==\"c\")]"])})
            })
            .collect();
        columns.into()
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
                json!([{"rule": "self.metadata.generateName.startsWith(self.metadata.name)", "fieldPath": ".spec"}]),
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
