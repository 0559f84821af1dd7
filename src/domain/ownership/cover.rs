//! Whether the owners of an object cover a value in it.
//! It must not look at owners that name fields in other terms than the schema's: the caller leaves them out.

use serde_json::Value;

use super::Owner;
use crate::domain::json::level;
use crate::domain::path::Step;
use crate::domain::schema::{Schema, SchemaType};

/// Whether every leaf of the value at `path` is named by at least one owner.
///
/// Inside an atomic list or map an owner names only the whole, which says nothing of the part: such a part is not covered.
/// `path` is a place of `object`, and `schema` the schema of `object`.
pub fn is_covered<'a>(
    owners: impl Iterator<Item = Owner<'a>>,
    object: &Value,
    schema: &Schema,
    path: &[Step],
) -> bool {
    let mut key = String::new();
    let Some((sets, value, schema)) = followed(owners, object, schema, path, &mut key) else { return false };
    leaves_are_covered(&sets, value, schema, &mut key)
}

/// Whether any owner names the place at `path` or something in it; see [`is_covered`].
pub fn is_named<'a>(
    owners: impl Iterator<Item = Owner<'a>>,
    object: &Value,
    schema: &Schema,
    path: &[Step],
) -> bool {
    followed(owners, object, schema, path, &mut String::new()).is_some_and(|(sets, ..)| !sets.is_empty())
}

/// The parts of the owners' sets that are about a place, with its value and schema; none where owners do not name parts.
fn followed<'a, 'v, 's>(
    owners: impl Iterator<Item = Owner<'a>>,
    object: &'v Value,
    schema: &'s Schema,
    path: &[Step],
    key: &mut String,
) -> Option<(Vec<&'a Value>, &'v Value, &'s Schema)> {
    let mut sets: Vec<&Value> = owners.map(|owner| owner.fields).collect();
    let (mut value, mut schema) = (object, schema);
    for step in path {
        let (child, child_schema) = step_into(value, schema, step)?;
        if !write_element(key, schema, step, child) {
            return None;
        }
        sets.retain_mut(|set| set.get(&*key).map(|inner| *set = inner).is_some());
        (value, schema) = (child, child_schema);
    }
    Some((sets, value, schema))
}

fn leaves_are_covered(sets: &[&Value], value: &Value, schema: &Schema, key: &mut String) -> bool {
    if sets.is_empty() {
        return false;
    }
    match value {
        Value::Object(fields) if !fields.is_empty() && !is_atomic_map(schema) => level(|| {
            fields.iter().all(|(name, child)| {
                let Some(child_schema) = schema.child(name) else { return false };
                element_is_covered(sets, schema, &Step::Field(name.clone()), child, child_schema, key)
            })
        }),
        Value::Array(items) if !items.is_empty() && is_associative(schema) => level(|| {
            items.iter().enumerate().all(|(index, child)| {
                let Some(child_schema) = schema.items.as_deref() else { return false };
                element_is_covered(sets, schema, &Step::Index(index), child, child_schema, key)
            })
        }),
        _ => true,
    }
}

fn element_is_covered(
    sets: &[&Value],
    schema: &Schema,
    step: &Step,
    child: &Value,
    child_schema: &Schema,
    key: &mut String,
) -> bool {
    if !write_element(key, schema, step, child) {
        return false;
    }
    let inner: Vec<&Value> = sets.iter().filter_map(|set| set.get(&*key)).collect();
    leaves_are_covered(&inner, child, child_schema, key)
}

fn step_into<'v, 's>(value: &'v Value, schema: &'s Schema, step: &Step) -> Option<(&'v Value, &'s Schema)> {
    match step {
        Step::Field(name) | Step::Key(name) => Some((value.get(name)?, schema.child(name)?)),
        Step::Index(index) => Some((value.get(index)?, schema.items.as_deref()?)),
        Step::Items | Step::Values => None,
    }
}

/// Writes the FieldsV1 name of a step; false where owners do not name the parts of this parent.
fn write_element(key: &mut String, parent: &Schema, step: &Step, child: &Value) -> bool {
    key.clear();
    match step {
        Step::Field(name) | Step::Key(name) => {
            key.push_str("f:");
            key.push_str(name);
            !is_atomic_map(parent)
        }
        Step::Index(_) => match parent.list_type.as_deref() {
            Some("map") => write_list_map_key(key, parent, child),
            Some("set") => {
                key.push_str("v:");
                push_json(key, child);
                true
            }
            _ => false,
        },
        Step::Items | Step::Values => false,
    }
}

fn write_list_map_key(key: &mut String, parent: &Schema, item: &Value) -> bool {
    let mut names: Vec<&String> = parent.list_map_keys.iter().collect();
    names.sort();
    key.push_str("k:{");
    for (index, name) in names.into_iter().enumerate() {
        let Some(value) = item.get(name) else { return false };
        if index > 0 {
            key.push(',');
        }
        push_json(key, &Value::String(name.clone()));
        key.push(':');
        push_json(key, value);
    }
    key.push('}');
    true
}

fn push_json(key: &mut String, value: &Value) {
    key.push_str(&value.to_string());
}

fn is_atomic_map(schema: &Schema) -> bool {
    schema.map_type.as_deref() == Some("atomic") && schema.kind == SchemaType::Object
}

fn is_associative(schema: &Schema) -> bool {
    matches!(schema.list_type.as_deref(), Some("map" | "set"))
}
