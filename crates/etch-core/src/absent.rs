//! What one value of an object has and another lacks.

use serde_json::Value;

use kube_structural_schema::path::{Path, Trail, TrailStep};
use kube_structural_schema::schema::Schema;

/// The topmost places, outside of metadata, at which `object` has a value and `other`, which differs by what
/// was filled in or pruned, has none, or null. The schema distinguishes properties from the keys of maps.
pub(super) fn absent(object: &Value, other: &Value, schema: &Schema) -> Vec<Path> {
    let mut found = Vec::new();
    for (name, value) in object.as_object().into_iter().flatten() {
        if !matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
            let at = Trail::ROOT.join(TrailStep::Field(name));
            walk(value, other.get(name), schema.properties.get(name), &at, &mut found);
        }
    }
    found.sort();
    found
}

fn walk(
    value: &Value,
    other: Option<&Value>,
    schema: Option<&Schema>,
    at: &Trail<'_>,
    found: &mut Vec<Path>,
) {
    match (value, other) {
        (Value::Null, _) => {}
        (_, None | Some(Value::Null)) => found.push(at.to_path()),
        (Value::Object(fields), Some(Value::Object(others))) => {
            for (name, value) in fields {
                let property = schema.and_then(|schema| schema.properties.get(name));
                let step = if property.is_some() { TrailStep::Field(name) } else { TrailStep::Key(name) };
                let schema = schema.and_then(|schema| schema.child(name));
                walk(value, others.get(name), schema, &at.join(step), found);
            }
        }
        // Neither adds or removes an item.
        (Value::Array(items), Some(Value::Array(others))) if items.len() == others.len() => {
            let schema = schema.and_then(|schema| schema.items.as_deref());
            for (index, (item, other)) in items.iter().zip(others).enumerate() {
                walk(item, Some(other), schema, &at.join(TrailStep::Index(index)), found);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn places_are_topmost_and_nulls_are_absent() {
        let schema = json!({ "properties": { "spec": { "properties": {
            "list": { "items": { "properties": { "a": {} } } },
            "map": { "additionalProperties": { "properties": { "a": {} } } },
        } } } });
        let schema = Schema::parse(&schema).expect("a schema");
        let whole = json!({ "kind": "Thing", "metadata": { "name": "x" }, "spec": {
            "list": [{ "a": { "b": 1 } }, { "a": 1 }, 1],
            "map": { "k": { "a": 1, "other": null } },
            "other": { "a": 1 },
        } });
        let other = json!({ "spec": { "list": [{}, { "a": null }, null], "map": { "k": {} }, "other": {} } });
        let places: Vec<String> = absent(&whole, &other, &schema).iter().map(Path::to_string).collect();
        let expected = [
            ".spec.list[0].a",
            ".spec.list[1].a",
            ".spec.list[2]",
            r#".spec.map["k"].a"#,
            r#".spec["other"]["a"]"#,
        ];
        assert_eq!(places, expected);
        assert!(absent(&whole, &whole, &schema).is_empty());
    }
}
