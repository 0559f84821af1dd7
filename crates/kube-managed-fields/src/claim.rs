//! Whether a manager may own a value or a part of it. If that cannot be determined, the answer is yes: the
//! caller is about to change the value.

use std::collections::HashMap;

use serde_json::Value;

use super::Owner;
use super::items::key_of;
use kube_structural_schema::json::{Json, same};
use kube_structural_schema::path::Step;
use kube_structural_schema::schema::{Schema, SchemaType};

/// Whether an owner names the value at `path`, something in it, or an atomic list or map that it is a part
/// of.
///
/// The owner of an atomic list owns its items too, because a write of one takes the whole from its owner.
/// Where there is no schema, or an item has no keys that identify it, an owner of the whole counts as one of
/// the part.
///
/// `path` is a place of `object`, and `schema` the schema of `object`; the owners name fields in its terms.
pub fn is_claimed<'a>(
    owners: impl Iterator<Item = Owner<'a>>,
    object: &Value,
    schema: &Schema,
    path: &[Step],
) -> bool {
    Claimants::of(owners).claim(object, schema, path)
}

/// Owners, for questions about many places of one object.
#[derive(Debug, Default)]
pub struct Claimants<'a> {
    sets: Vec<&'a Value>,
    /// The sets at list maps that were looked up, by where they are in memory.
    lists: HashMap<usize, Elements<'a>>,
}

impl<'a> Claimants<'a> {
    /// These owners.
    pub fn of(owners: impl Iterator<Item = Owner<'a>>) -> Self {
        Self { sets: owners.map(|owner| owner.fields).collect(), lists: HashMap::new() }
    }

    /// As [`is_claimed`].
    pub fn claim(&mut self, object: &Value, schema: &Schema, path: &[Step]) -> bool {
        let mut sets = self.sets.clone();
        let (mut value, mut schema) = (object, Some(schema));
        for step in path {
            let (Some(parent), Some(child)) =
                (schema.filter(|schema| !is_atomic(schema)), step.part_of(value))
            else {
                break;
            };
            match step {
                Step::Field(name) | Step::Key(name) => {
                    let element = format!("f:{name}");
                    sets = sets.into_iter().filter_map(|set| set.get(&element)).collect();
                    schema = parent.child(name);
                }
                Step::Index(_) if keys_are_there(parent, child) => {
                    let mut about = Vec::new();
                    for set in sets {
                        let address = std::ptr::from_ref(set).addr();
                        let elements = self.lists.entry(address).or_insert_with(|| Elements::of(set, parent));
                        elements.about(child, &mut about);
                    }
                    sets = about;
                    schema = parent.items.as_deref();
                }
                _ => break,
            }
            value = child;
        }
        !sets.is_empty()
    }
}

/// The parts of a field set at a list map, to be found by the items that they are about.
#[derive(Debug, Default)]
struct Elements<'a> {
    /// Those that may be about any item.
    any: Vec<&'a Value>,
    /// Those with keys, by which of the list's keys they name and by their values.
    keyed: HashMap<Vec<String>, HashMap<Vec<u8>, Vec<Element<'a>>>>,
}

#[derive(Debug)]
struct Element<'a> {
    keys: Json,
    inner: &'a Value,
}

impl<'a> Elements<'a> {
    fn of(set: &'a Value, list: &Schema) -> Self {
        let mut elements = Self::default();
        for (element, inner) in set.as_object().into_iter().flatten().filter(|(element, _)| *element != ".") {
            let keys = element.strip_prefix("k:").and_then(|keys| Json::parse(keys.as_bytes()).ok());
            let Some(keys) = keys else {
                elements.any.push(inner);
                continue;
            };
            // A key that the owner does not name is the default that the key had then.
            let is_named = |name: &&String| keys.get(name).is_some();
            let names: Vec<String> = list.list_map_keys.iter().filter(is_named).cloned().collect();
            match key_of_item(&names, &keys) {
                Some(key) if !names.is_empty() => {
                    let alike = elements.keyed.entry(names).or_default().entry(key).or_default();
                    alike.push(Element { keys, inner });
                }
                _ => elements.any.push(inner),
            }
        }
        elements
    }

    /// Adds the parts that are about an item, or may be.
    fn about(&self, item: &Value, found: &mut Vec<&'a Value>) {
        found.extend(&self.any);
        for (names, elements) in &self.keyed {
            let alike = key_of_item(names, item).and_then(|key| elements.get(&key));
            let is_meant = |element: &&Element<'a>| {
                names.iter().all(|name| {
                    element
                        .keys
                        .get(name)
                        .zip(item.get(name))
                        .is_some_and(|(theirs, ours)| same(theirs, ours))
                })
            };
            found.extend(alike.into_iter().flatten().filter(is_meant).map(|element| element.inner));
        }
    }
}

fn key_of_item(names: &[String], item: &Value) -> Option<Vec<u8>> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    if names.is_empty() { None } else { key_of(&names, |name| item.get(name)) }
}

/// Whether owners name the value as a whole only.
fn is_atomic(schema: &Schema) -> bool {
    match schema.kind {
        SchemaType::Array => schema.list_type.as_deref() != Some("map"),
        _ => schema.map_type.as_deref() == Some("atomic"),
    }
}

fn keys_are_there(list: &Schema, item: &Value) -> bool {
    !list.list_map_keys.is_empty() && list.list_map_keys.iter().all(|key| item.get(key).is_some())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn claimed(fields: Value, path: &[Step]) -> bool {
        let schema = Schema::parse(&json!({ "type": "object", "properties": {
            "one": {
                "type": "object", "properties": { "a": { "type": "integer" }, "b": { "type": "integer" } },
            },
            "whole": {
                "type": "object", "x-kubernetes-map-type": "atomic", "properties": {
                    "a": { "type": "integer" },
                },
            },
            "list": {
                "type": "array", "items": { "type": "object", "properties": { "a": { "type": "integer" } } },
            },
            "ports": {
                "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [
                    "port", "name",
                ],
                "items": { "type": "object", "properties": {
                    "port": { "type": "integer" }, "name": { "type": "string" }, "a": { "type": "integer" },
                }},
            },
            "names": { "type": "object", "additionalProperties": {
                "type": "object", "properties": { "a": { "type": "integer" } } } },
            "free": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
        }}))
        .expect("a schema");
        let object = json!({
            "one": { "a": 1, "b": 2 }, "whole": { "a": 1 }, "list": [{ "a": 1 }], "names": {
                "x": { "a": 1 },
            },
            "ports": [{ "port": 80, "name": "a<b", "a": 1 }, { "port": 81, "a": 1 }], "free": {
                "x": { "a": 1 },
            },
        });
        let entry = json!({ "manager": "user", "fieldsV1": fields });
        is_claimed([Owner::from_entry(&entry)].into_iter(), &object, &schema, path)
    }

    fn field(name: &str) -> Step {
        Step::Field(name.to_owned())
    }

    #[test]
    fn names_the_value_a_part_of_it_or_the_whole_that_it_belongs_to() {
        let (a, key) = (field("a"), Step::Key("x".to_owned()));
        let item = |name: &str, index| vec![field(name), Step::Index(index), a.clone()];
        let cases = [
            (json!({ "f:one": { "f:a": {} } }), vec![field("one"), a.clone()]),
            (json!({ "f:one": { "f:a": {} } }), vec![field("one")]),
            (json!({ "f:one": {} }), vec![field("one")]),
            (json!({ "f:whole": {} }), vec![field("whole"), a.clone()]),
            (json!({ "f:list": {} }), item("list", 0)),
            (json!({ "f:ports": { r#"k:{"name":"a\u003cb","port":80}"#: { "f:a": {} } } }), item("ports", 0)),
            (json!({ "f:ports": { r#"k:{"port":80}"#: { "f:a": {} } } }), item("ports", 0)),
            (json!({ "f:ports": { "k:?": { "f:a": {} } } }), item("ports", 0)),
            (json!({ "f:ports": { r#"k:{"name":"z","port":9}"#: {} } }), item("ports", 1)),
            (json!({ "f:names": { "f:x": { "f:a": {} } } }), vec![field("names"), key.clone(), a.clone()]),
            (json!({ "f:free": { "f:x": { "f:y": {} } } }), vec![field("free"), field("x"), a.clone()]),
        ];
        for (fields, path) in cases {
            assert!(claimed(fields.clone(), &path), "{fields} {path:?}");
        }
        let cases = [
            (json!({}), vec![field("one"), a.clone()]),
            (json!({ "f:one": { "f:b": {}, ".": {} } }), vec![field("one"), a.clone()]),
            (json!({ "f:one": {} }), vec![field("one"), a.clone()]),
            (json!({ "f:list": {} }), vec![field("whole"), a.clone()]),
            (json!({ "f:whole": {} }), item("list", 0)),
            (json!({ "f:ports": { r#"k:{"name":"z","port":80}"#: { "f:a": {} } } }), item("ports", 0)),
            (
                json!({ "f:ports": { r#"k:{"name":"a<b","port":80}"#: { ".": {}, "f:port": {} } } }),
                item("ports", 0),
            ),
            (json!({ "f:names": { "f:x": { ".": {} } } }), vec![field("names"), key, a.clone()]),
        ];
        for (fields, path) in cases {
            assert!(!claimed(fields.clone(), &path), "{fields} {path:?}");
        }
    }
}
