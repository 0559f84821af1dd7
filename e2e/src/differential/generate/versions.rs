//! What is wrong with the versions of a CRD: names, flags, subresources, columns and selectable fields.
//! Of schemas it uses only the fields.

use serde_json::{Map, Value, json};

use super::Generator;
use super::crds::set;

impl Generator<'_> {
    /// Gives all versions many selectable fields.
    pub(super) fn many_selectable(&mut self, crd: &mut Value) {
        let count = self.random.between(7, 11);
        let paths: Vec<Value> = (0..count).map(|index| json!({ "jsonPath": format!(".f{index}") })).collect();
        let every = self.random.chance(60);
        for version in crd.pointer_mut("/spec/versions").and_then(Value::as_array_mut).into_iter().flatten() {
            if !every && self.random.chance(50) {
                continue;
            }
            let Some(properties) = version.pointer_mut("/schema/openAPIV3Schema/properties") else {
                continue;
            };
            let Value::Object(properties) = properties else { continue };
            for index in 0..count {
                properties.insert(format!("f{index}"), json!({"type": "string"}));
            }
            set(version, "selectableFields", paths.clone().into());
        }
    }

    pub(super) fn disturb_version(&mut self, crd: &mut Value) {
        let Some(Value::Array(versions)) = crd.pointer_mut("/spec/versions") else { return };
        if versions.is_empty() {
            return;
        }
        let index = self.random.below(versions.len());
        if self.random.chance(8) {
            let again = versions[index].clone();
            versions.push(again);
            return;
        }
        match self.random.below(24) {
            0 => {
                versions.remove(index);
                return;
            }
            1 => return versions.reverse(),
            2 => {
                let last = versions.len() - 1;
                let name = versions[last]["name"].clone();
                return set(&mut versions[index], "name", name);
            }
            3 => {
                for (place, version) in versions.iter_mut().enumerate() {
                    set(version, "storage", (place == index).into());
                }
                return;
            }
            4 => {
                for version in versions {
                    set(version, "schema", Value::Null);
                }
                return;
            }
            _ => {}
        }
        let Value::Object(version) = &mut versions[index] else { return };
        let (name, value) = self.version_fault(version);
        version.insert(name.to_owned(), value);
    }

    fn version_fault(&mut self, version: &Map<String, Value>) -> (&'static str, Value) {
        match self.random.below(9) {
            0 => (
                "name",
                self.random.pick(&["v1", "V1", "", "1a", "v1.0", "v3alpha1", "v2", "-", "v1-", "é"]).into(),
            ),
            1 => ("storage", self.random.chance(50).into()),
            2 => ("served", self.random.chance(50).into()),
            3 => ("deprecated", self.random.chance(50).into()),
            4 => {
                let long = "é".repeat(130);
                let warning = self.random.pick(&[
                    "gone soon",
                    "",
                    "a\tb",
                    "é\u{7f}",
                    "\u{a0}",
                    "a\u{ad}",
                    "\u{e000}",
                    "a\u{2028}",
                    "\u{378}",
                    "🦀",
                    &long,
                ]);
                ("deprecationWarning", warning.into())
            }
            5 => ("selectableFields", self.selectable(version)),
            6 => ("additionalPrinterColumns", self.columns()),
            7 => {
                let subresources = [
                    json!({"status": {}}),
                    json!({"status": null}),
                    json!({}),
                    json!({"scale": {}}),
                    json!({"scale": null, "status": {}}),
                    json!({
                        "scale": {
                            "specReplicasPath": ".spec", "statusReplicasPath": ".spec.x",
                            "labelSelectorPath": "",
                        },
                    }),
                    json!({
                        "scale": {
                            "specReplicasPath": ".status.a", "statusReplicasPath": "a.status.",
                            "labelSelectorPath": ".",
                        },
                    }),
                    json!({"scale": {"specReplicasPath": "spec", "statusReplicasPath": ".spec.a"}}),
                    json!({
                        "scale": {
                            "specReplicasPath": "", "statusReplicasPath": ".", "labelSelectorPath": ".meta",
                        },
                    }),
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
        let mut names = Vec::new();
        let properties = version
            .get("schema")
            .and_then(|schema| schema.pointer("/openAPIV3Schema/properties"))
            .and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            names.push(format!(".{name}"));
            let below = property["properties"].as_object().into_iter().flat_map(Map::keys);
            names.extend(below.map(|below| format!(".{name}.{below}")));
        }
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
                        ".spec['a']",
                        ".metadata.labels['a']",
                        ".kind",
                        ".a.",
                        ".a]",
                        ".a b",
                        ".spec.a.b.c.d",
                        "$.a",
                        " .a",
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
                    "type": self.random.pick(&[
                        "string", "date", "", "int", "number", "boolean", "integer", "String",
                    ]),
                    "format": self.random.pick(&[
                        "", "", "int32", "x", "date-time", "date", "byte", "password", "double",
                    ]),
                    "description": self.random.pick(&["", "a", "b"]),
                    "priority": self.random.below(2),
                    "jsonPath": self.random.pick(&[".spec.a", "spec", "", ".", ".a[?(@.b==\"c\")]", "{.a}",
                        "..", ".a..b", " ", "é"])})
            })
            .collect();
        columns.into()
    }
}
