//! Whether anybody may own a value or a part of it.
//! It must not say no where it cannot tell: whoever asks is about to change the value.

use serde_json::Value;

use super::Owner;
use kube_structural_schema::json::{Json, same};
use kube_structural_schema::path::Step;
use kube_structural_schema::schema::{Schema, SchemaType};

/// Whether an owner names the value at `path`, something in it, or an atomic list or map that it is a part of.
///
/// Whoever owns an atomic list owns its items too, for a write of one takes the whole from its owner. Where the schema says
/// nothing, or an item has no keys to be told by, an owner of the whole counts as one of the part.
///
/// `path` is a place of `object`, and `schema` the schema of `object`; the owners name fields in its terms.
pub fn is_claimed<'a>(
    owners: impl Iterator<Item = Owner<'a>>,
    object: &Value,
    schema: &Schema,
    path: &[Step],
) -> bool {
    let mut sets: Vec<&Value> = owners.map(|owner| owner.fields).collect();
    let (mut value, mut schema) = (object, Some(schema));
    for step in path {
        let (Some(parent), Some(child)) = (schema.filter(|schema| !is_atomic(schema)), part(value, step))
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
                sets = sets.into_iter().flat_map(|set| about_item(set, child, parent)).collect();
                schema = parent.items.as_deref();
            }
            _ => break,
        }
        value = child;
    }
    !sets.is_empty()
}

/// The parts of a field set that are about an item of a list map, or may be.
fn about_item<'a>(set: &'a Value, item: &Value, list: &Schema) -> impl Iterator<Item = &'a Value> {
    let is_meant = move |element: &str| {
        let Some(keys) = element.strip_prefix("k:") else { return element != "." };
        let Ok(keys) = Json::parse(keys.as_bytes()) else { return true };
        list.list_map_keys.iter().all(|name| {
            // A key that the owner does not name is the default that the key had then.
            keys.get(name).zip(item.get(name)).is_none_or(|(theirs, ours)| same(theirs, ours))
        })
    };
    let elements = set.as_object().into_iter().flatten();
    elements.filter(move |(element, _)| is_meant(element)).map(|(_, inner)| inner)
}

fn part<'v>(value: &'v Value, step: &Step) -> Option<&'v Value> {
    match step {
        Step::Field(name) | Step::Key(name) => value.get(name),
        Step::Index(index) => value.get(index),
        Step::Items | Step::Values => None,
    }
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
            "one": { "type": "object", "properties": { "a": { "type": "integer" }, "b": { "type": "integer" } } },
            "whole": { "type": "object", "x-kubernetes-map-type": "atomic", "properties": { "a": { "type": "integer" } } },
            "list": { "type": "array", "items": { "type": "object", "properties": { "a": { "type": "integer" } } } },
            "ports": {
                "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "name"],
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
            "one": { "a": 1, "b": 2 }, "whole": { "a": 1 }, "list": [{ "a": 1 }], "names": { "x": { "a": 1 } },
            "ports": [{ "port": 80, "name": "a<b", "a": 1 }, { "port": 81, "a": 1 }], "free": { "x": { "a": 1 } },
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
