//! Places that stay what they are when the items of a list move: an API server finds an item of a map list in
//! the old list by its keys (apiserver `pkg/cel/common`, `CorrelatedObject`).

use std::fmt::Write as _;

use serde_json::Value;

use kube_structural_schema::path::Step;
use kube_structural_schema::schema::Schema;

use super::place::written;

/// A place of an extension, with the keys of items of map lists instead of their indices.
pub(super) fn correlated(location: &[Step], schema: &Schema, extension: &Value) -> String {
    let mut text = String::new();
    let (mut schema, mut value) = (Some(schema), Some(extension));
    for (depth, step) in location.iter().enumerate() {
        let part = value.and_then(|value| step.part_of(value));
        match (step, schema.filter(|list| list.list_type.as_deref() == Some("map")), part) {
            (Step::Index(_), Some(list), Some(item)) => {
                let keys = list.list_map_keys.iter().map(|key| &item[&**key]);
                let _ = write!(text, "[{}]", Value::from_iter(keys.cloned()));
            }
            _ => {
                let _ = write!(text, ".{}", written(&location[depth..=depth]));
            }
        }
        schema = schema.and_then(|schema| schema.below(step));
        value = part;
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn items_of_map_lists_are_named_by_their_keys() {
        let item = json!({ "type": "object", "properties": { "name": { "type": "string" },
            "ports": { "type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["port", "protocol"],
                       "items": { "type": "object" } } } });
        let schema = |list: &str| {
            let schema = json!({ "type": "object", "properties": { "disks": { "type": "array", "items": item,
                "x-kubernetes-list-type": list, "x-kubernetes-list-map-keys": ["name"] } } });
            Schema::parse(&schema).expect("a schema")
        };
        let extension = json!({ "disks": [{ "name": "a" }, { "name": "b", "ports": [{ "port": 1 }] }] });
        let place = [
            Step::Field("disks".to_owned()),
            Step::Index(1),
            Step::Field("ports".to_owned()),
            Step::Index(0),
            Step::Field("port".to_owned()),
        ];
        let at = |list: &str, depth: usize| correlated(&place[..depth], &schema(list), &extension);
        assert_eq!(at("map", 5), r#".disks[["b"]].ports[[1,null]].port"#);
        assert_eq!(at("atomic", 5), r#".disks.[1].ports[[1,null]].port"#);
        assert_eq!(at("map", 1), ".disks");
    }
}
