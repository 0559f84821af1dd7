//! ETCH328: defaults and nulls of an upgrade inside of an object or a list whose enum was there before.

use serde_json::Value;

use super::defaults::value_as_read;
use super::keywords::{list, present, property, values};
use super::pair::{Changes, Pair};
use super::read_by_rule::READ;
use kube_structural_schema::json::same;

pub(super) fn check(pair: &Pair<'_>, changes: &mut Changes) {
    let [old, new] = [pair.old, pair.new].map(|schema| list(schema, "enum"));
    let is_read = |value: &Value, schema: &Value, allowed: &[Value]| {
        value_as_read(value, schema).is_some_and(|read| allowed.iter().any(|other| same(&read, other)))
    };
    // Of what is shown, all may be stored, or all but what the defaults give.
    let mut stored = old
        .iter()
        .filter(|value| value.is_object() || value.is_array())
        .flat_map(|value| [value.clone(), without_defaults(value, pair.old)]);
    let is_refused = stored
        .any(|value| is_read(&value, pair.old, old) && !new.is_empty() && !is_read(&value, pair.new, new));
    if is_refused && !changes.has_error_at(&pair.path) {
        changes.add(
            &READ,
            pair.path.clone(),
            "defaults or nulls in it have changed, and its enum judges them",
        );
    }
}

/// A value without the fields that the schema gives it.
fn without_defaults(value: &Value, schema: &Value) -> Value {
    match value {
        Value::Object(object) => {
            let kept = object.iter().filter_map(|(name, value)| {
                let field = property(schema, name);
                if field
                    .and_then(|field| present(field, "default"))
                    .is_some_and(|default| same(default, value))
                {
                    return None;
                }
                let inside = field.or_else(|| values(schema));
                Some((
                    name.clone(),
                    inside.map_or_else(|| value.clone(), |schema| without_defaults(value, schema)),
                ))
            });
            Value::Object(kept.collect())
        }
        Value::Array(items) => {
            let schema = present(schema, "items").unwrap_or(&Value::Null);
            items.iter().map(|item| without_defaults(item, schema)).collect()
        }
        other => other.clone(),
    }
}
