//! Dropping what a schema does not know.
//! It must not drop nulls or look at metadata; see [`crate::defaults`].
//!
//! Source: apiextensions-apiserver `pkg/apiserver/schema/pruning/algorithm.go`.

use serde_json::{Map, Value};

use crate::json::{Json, level};
use crate::path::{Trail, TrailStep};
use crate::schema::{Additional, Schema};

/// Removes all fields that the schema does not specify and reports the topmost of them.
///
/// `whole` says that the value is a whole object: its `apiVersion`, `kind` and `metadata` stay as they are, as those of an
/// embedded resource do.
pub fn prune(value: &mut Value, schema: &Schema, whole: bool, report: &mut impl FnMut(&Trail<'_>)) {
    match value {
        Value::Object(fields) => object(fields, schema, Unknown::of(schema), whole, &Trail::ROOT, report),
        value => known(value, schema, Unknown::of(schema), &Trail::ROOT, report),
    }
}

/// Like [`prune`], for a value that is reached through the items of an array that keeps unknown fields: from array to items
/// upstream hands this down, though not from object to property.
pub(crate) fn prune_kept(value: &mut Value, schema: &Schema) {
    known(value, schema, Unknown::Kept, &Trail::ROOT, &mut |_| {});
}

/// What happens to fields that the schema does not specify.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unknown {
    Kept,
    Removed,
}

impl Unknown {
    fn of(schema: &Schema) -> Self {
        if schema.preserve_unknown_fields { Self::Kept } else { Self::Removed }
    }
}

/// A value with a schema.
fn known(
    value: &mut Value,
    schema: &Schema,
    unknown: Unknown,
    at: &Trail<'_>,
    report: &mut impl FnMut(&Trail<'_>),
) {
    match value {
        Value::Object(fields) => level(|| object(fields, schema, unknown, false, at, report)),
        Value::Array(items) => level(|| {
            for (index, item) in items.iter_mut().enumerate() {
                let at = at.join(TrailStep::Index(index));
                match (&schema.items, unknown) {
                    (Some(schema), Unknown::Kept) => known(item, schema, Unknown::Kept, &at, report),
                    (Some(schema), Unknown::Removed) => known(item, schema, Unknown::of(schema), &at, report),
                    (None, Unknown::Kept) => {}
                    (None, Unknown::Removed) => untold(item, &at, report),
                }
            }
        }),
        _ => {}
    }
}

fn object(
    fields: &mut Map<String, Value>,
    schema: &Schema,
    unknown: Unknown,
    whole: bool,
    at: &Trail<'_>,
    report: &mut impl FnMut(&Trail<'_>),
) {
    let whole = whole || schema.embedded_resource;
    fields.retain(|name, value| {
        if whole && matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
            return true;
        }
        if let Some(property) = schema.properties.get(name) {
            known(value, property, Unknown::of(property), &at.join(TrailStep::Field(name)), report);
            return true;
        }
        match &schema.additional {
            Some(Additional::Schema(schema)) => {
                known(value, schema, Unknown::of(schema), &at.join(TrailStep::Key(name)), report);
            }
            // Allowed or not: upstream asks only whether the keyword is there.
            Some(Additional::Bool(_)) => untold(value, &at.join(TrailStep::Key(name)), report),
            None if unknown == Unknown::Removed => {
                report(&at.join(TrailStep::Field(name)));
                discard(value);
                return false;
            }
            None => {}
        }
        true
    });
}

/// A value that has its place but no schema: objects in it lose all fields.
fn untold(value: &mut Value, at: &Trail<'_>, report: &mut impl FnMut(&Trail<'_>)) {
    match value {
        Value::Object(fields) => {
            fields.keys().for_each(|name| report(&at.join(TrailStep::Field(name))));
            fields.values_mut().for_each(discard);
            fields.clear();
        }
        Value::Array(items) => level(|| {
            for (index, item) in items.iter_mut().enumerate() {
                untold(item, &at.join(TrailStep::Index(index)), report);
            }
        }),
        _ => {}
    }
}

/// Drops a value of any depth.
fn discard(value: &mut Value) {
    drop(Json::from(std::mem::take(value)));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pruned(schema: &Value, mut value: Value, whole: bool) -> (Value, Vec<String>) {
        let mut removed = Vec::new();
        let schema = Schema::parse(schema).expect("a schema");
        prune(&mut value, &schema, whole, &mut |at| removed.push(at.to_path().to_string()));
        (value, removed)
    }

    #[test]
    fn reports_the_topmost_places_that_go() {
        let schema = json!({"properties": {
            "l": {"items": {"properties": {"a": {}}}},
            "m": {"additionalProperties": {"properties": {"a": {}}}},
            "open": {"additionalProperties": true},
        }});
        let value = json!({
            "l": [{"a": 1, "x": {"y": 1}}, [{"z": 1}]],
            "m": {"k.1": {"x": 1}},
            "open": {"k": [{"b": 1, "c": 2}]},
            "x": [{"y": 1}],
        });
        let (left, removed) = pruned(&schema, value, false);
        assert_eq!(left, json!({"l": [{"a": 1}, [{}]], "m": {"k.1": {}}, "open": {"k": [{}]}}));
        assert_eq!(
            removed,
            [".l[0].x", ".l[1][0].z", r#".m["k.1"].x"#, r#".open["k"][0].b"#, r#".open["k"][0].c"#, ".x"]
        );
    }

    #[test]
    fn only_whole_objects_keep_their_metadata() {
        let value = json!({"apiVersion": "v1", "kind": "K", "metadata": {"x": 1}, "spec": {}});
        assert_eq!(pruned(&json!({}), value.clone(), false).0, json!({}));
        let meta = json!({"apiVersion": "v1", "kind": "K", "metadata": {"x": 1}});
        assert_eq!(pruned(&json!({}), value.clone(), true), (meta.clone(), vec![".spec".to_owned()]));
        assert_eq!(pruned(&json!({"x-kubernetes-embedded-resource": true}), value, false).0, meta);
        assert_eq!(pruned(&json!({"items": {}}), json!([{"kind": "K"}]), true).0, json!([{}]));
        assert_eq!(pruned(&json!({}), json!("text"), true).0, json!("text"));
    }
}
