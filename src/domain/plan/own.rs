//! The body of an apply under `ownership: Own`: the defaults, so that Etch's manager owns them.
//! It must not name a value that the object does not show or that its default would not give.

use serde_json::{Map, Value};

use super::body;
use crate::domain::crd::Crd;
use crate::domain::json::{Json, copy, level};
use crate::domain::object::Object;
use crate::domain::ownership::{MANAGER, owners};
use crate::domain::path::{Path, Step};
use crate::domain::schema::Schema;

/// The identity, the values at the missing places, and what Etch already owns: an apply gives up what it leaves out, and
/// the server would then remove it.
///
/// Places inside atomic lists and maps, and in sets, are left out: to own the part one would have to own the whole.
pub(super) fn body<'a>(object: &Object, crd: &Crd, missing: impl Iterator<Item = &'a Path>) -> Json {
    let mut filled = object.json().clone();
    crd.compiled().fill(&mut filled);
    let schema = &crd.storage().schema;
    let mut body = body::identity(object, crd);
    for path in missing {
        insert(&mut body, &filled, schema, path.steps());
    }
    for owner in owners(object).filter(|owner| owner.manager == MANAGER && owner.operation == "Apply") {
        named(owner.fields, &filled, schema, &mut Vec::new(), &mut |path| {
            insert(&mut body, &filled, schema, path)
        });
    }
    body
}

/// Copies the value at `path` into `body`, with the keys of the list-map items on the way; nothing if it cannot be owned.
fn insert(body: &mut Value, object: &Value, schema: &Schema, path: &[Step]) {
    let Some((step, rest)) = path.split_first() else {
        *body = copy(object);
        return;
    };
    if !can_reach(schema, path) {
        return;
    }
    match step {
        Step::Field(name) | Step::Key(name) => {
            let (Some(value), Some(child)) = (object.get(name), schema.child(name)) else { return };
            if !body.is_object() {
                *body = Value::Object(Map::new());
            }
            let slot = body.as_object_mut().map(|fields| fields.entry(name.clone()).or_insert(Value::Null));
            if let Some(slot) = slot {
                insert(slot, value, child, rest);
            }
        }
        Step::Index(index) => {
            let (Some(item), Some(child)) = (object.get(index), schema.items.as_deref()) else { return };
            if let Some(slot) = item_slot(body, item, schema) {
                insert(slot, item, child, rest);
            }
        }
        Step::Items | Step::Values => {}
    }
}

/// Whether every parent on the way lets its parts be owned one by one.
fn can_reach(schema: &Schema, path: &[Step]) -> bool {
    let mut schema = schema;
    for step in path {
        let child = match step {
            Step::Field(name) | Step::Key(name) if schema.map_type.as_deref() != Some("atomic") => {
                schema.child(name)
            }
            Step::Index(_) if schema.list_type.as_deref() == Some("map") => schema.items.as_deref(),
            _ => None,
        };
        let Some(child) = child else { return false };
        schema = child;
    }
    true
}

/// The item of `body` with the same keys as `item`; a new one with just the keys where there is none.
fn item_slot<'b>(body: &'b mut Value, item: &Value, list: &Schema) -> Option<&'b mut Value> {
    let mut keys = Map::new();
    for key in &list.list_map_keys {
        keys.insert(key.clone(), copy(item.get(key)?));
    }
    if !body.is_array() {
        *body = Value::Array(Vec::new());
    }
    let items = body.as_array_mut()?;
    let same = |other: &Value| keys.iter().all(|(key, value)| other.get(key) == Some(value));
    let index = match items.iter().position(same) {
        Some(index) => index,
        None => {
            items.push(Value::Object(keys));
            items.len() - 1
        }
    };
    items.get_mut(index)
}

/// Calls `found` with every place of the object that a field set names, topmost leaves first.
fn named(
    fields: &Value,
    object: &Value,
    schema: &Schema,
    path: &mut Vec<Step>,
    found: &mut impl FnMut(&[Step]),
) {
    let Some(elements) = fields.as_object() else { return };
    if elements.keys().all(|element| element == ".") {
        found(path);
        return;
    }
    level(|| {
        for (element, inner) in elements {
            let Some((step, value, child)) = resolve(element, object, schema) else { continue };
            path.push(step);
            named(inner, value, child, path, found);
            path.pop();
        }
    });
}

/// The part of an object that an element of a field set means.
fn resolve<'v, 's>(
    element: &str,
    object: &'v Value,
    schema: &'s Schema,
) -> Option<(Step, &'v Value, &'s Schema)> {
    if let Some(name) = element.strip_prefix("f:") {
        return Some((Step::Field(name.to_owned()), object.get(name)?, schema.child(name)?));
    }
    let keys = Json::parse(element.strip_prefix("k:")?.as_bytes()).ok()?;
    let items = object.as_array()?;
    let index = items.iter().position(|item| {
        keys.as_object().is_some_and(|keys| keys.iter().all(|(key, value)| item.get(key) == Some(value)))
    })?;
    Some((Step::Index(index), items.get(index)?, schema.items.as_deref()?))
}
