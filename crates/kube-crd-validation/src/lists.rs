//! Lists that are sets or maps: no item twice.
//! The server does not report an item that is there for the third time.
//!
//! Source: apiextensions-apiserver `pkg/apiserver/schema/listtype/validation.go`.

use std::collections::HashMap;

use serde_json::Value;

use super::field::Field;
use go_text::{self as go, number::Num};
use kube_structural_schema::finding::{Finding, Kind};
use kube_structural_schema::schema::Schema;

/// Reports what stands twice in the sets and maps of a value.
pub(super) fn check(schema: &Schema, value: &Value, at: &mut Field, found: &mut Vec<Finding>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                // Upstream looks at declared properties with both schemas.
                if let Some(additional) = schema.additional_schema() {
                    let mark = at.key(name);
                    check(additional, field, at, found);
                    at.back(mark);
                }
                if let Some(property) = schema.properties.get(name) {
                    let mark = at.child(name);
                    check(property, field, at, found);
                    at.back(mark);
                }
            }
        }
        Value::Array(items) => {
            match schema.list_type.as_deref() {
                Some("set") => report(repeated(items.iter().map(|item| identity(Some(item)))), at, found),
                Some("map") => map(schema, items, at, found),
                _ => {}
            }
            let Some(schema) = &schema.items else { return };
            for (index, item) in items.iter().enumerate() {
                let mark = at.index(index);
                check(schema, item, at, found);
                at.back(mark);
            }
        }
        _ => {}
    }
}

fn map(schema: &Schema, items: &[Value], at: &mut Field, found: &mut Vec<Finding>) {
    if let Some(index) = items.iter().position(|item| !matches!(item, Value::Null | Value::Object(_))) {
        let mark = at.index(index);
        let detail = "must be an object for an array of list-type map";
        found.push(Finding::new(Kind::Invalid, at.to_string(), detail));
        at.back(mark);
        return;
    }
    match &*schema.list_map_keys {
        [key] => report(repeated(items.iter().map(|item| identity(item.get(key)))), at, found),
        keys => report(repeated(items.iter().map(|item| Identity::Compound(keys_of(item, keys)))), at, found),
    }
}

/// The values under several keys as one text; a key that is not there is not in it.
fn keys_of(item: &Value, keys: &[String]) -> String {
    let present = keys.iter().filter_map(|key| item.get(key).map(|value| (key, value)));
    present.map(|(key, value)| format!("{}:{},", go::strconv::quote(key), go::json::marshal(value))).collect()
}

fn report(indices: Vec<usize>, at: &mut Field, found: &mut Vec<Finding>) {
    for index in indices {
        let mark = at.index(index);
        found.push(Finding::new(Kind::Duplicate, at.to_string(), ""));
        at.back(mark);
    }
}

/// How the server compares items: scalars as Go values, everything else by its JSON text.
#[derive(PartialEq, Eq, Hash)]
enum Identity<'v> {
    /// A key that an item does not have.
    Unset,
    Null,
    Bool(bool),
    Int(i64),
    Float(u64),
    Text(&'v str),
    Compound(String),
}

/// Where items stand for the second time.
fn repeated<'v>(items: impl Iterator<Item = Identity<'v>>) -> Vec<usize> {
    let mut times = HashMap::new();
    let mut indices = Vec::new();
    for (index, item) in items.enumerate() {
        let times = times.entry(item).or_insert(0_u32);
        *times += 1;
        if *times == 2 {
            indices.push(index);
        }
    }
    indices
}

fn identity(item: Option<&Value>) -> Identity<'_> {
    let Some(item) = item else { return Identity::Unset };
    match item {
        Value::Null => Identity::Null,
        Value::Bool(flag) => Identity::Bool(*flag),
        Value::Number(number) => match Num::of(number) {
            Num::Int(int) => Identity::Int(int),
            // Zero is the same with either sign.
            Num::Float(float) => Identity::Float((float + 0.0).to_bits()),
        },
        Value::String(text) => Identity::Text(text),
        Value::Array(_) | Value::Object(_) => Identity::Compound(go::json::marshal(item)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn repeated_in(list_type: &str, keys: &[&str], items: &Value) -> Vec<String> {
        let schema = json!({"properties": {"l": {
            "type": "array", "x-kubernetes-list-type": list_type, "x-kubernetes-list-map-keys": keys,
        }}});
        let schema = Schema::parse(&schema).expect("an accepted schema");
        let mut found = Vec::new();
        check(&schema, &json!({"l": items}), &mut Field::default(), &mut found);
        found.into_iter().map(|finding| finding.field).collect()
    }

    #[test]
    fn sets_compare_scalars_as_go_values_and_the_rest_as_text() {
        assert_eq!(repeated_in("set", &[], &json!([1, 1.0, "1", true, null, null, 1, 1])), ["l[5]", "l[6]"]);
        assert_eq!(repeated_in("set", &[], &json!([[1], [1.0], {"a": 1}, {"a": 1.0}])), ["l[1]", "l[3]"]);
        assert_eq!(repeated_in("set", &[], &json!([0.0, -0.0, 0, [0.0], [-0.0]])), ["l[1]"]);
        assert_eq!(repeated_in("atomic", &[], &json!([1, 1])), [""; 0]);
    }

    #[test]
    fn maps_compare_keys() {
        assert_eq!(
            repeated_in("map", &["k"], &json!([{"k": 1}, {"k": 1, "v": 2}, {}, null])),
            ["l[1]", "l[3]"]
        );
        assert_eq!(repeated_in("map", &["k"], &json!([{"k": null}, {}])), [""; 0]);
        let pairs = json!([{"a": 1, "b": 2}, {"a": 1}, {"a": 1, "b": 2}, {"b": 1}, {"a": 1.0}]);
        assert_eq!(repeated_in("map", &["a", "b"], &pairs), ["l[2]", "l[4]"]);
        assert_eq!(repeated_in("map", &["k"], &json!([{"k": 1}, 5, {"k": 1}, 6])), ["l[1]"]);
    }
}
