//! The body of an apply under `ownership: Own`: the defaults, so that Etch's manager owns them.
//! It must not name a value that the object does not show or that its default would not give.

use serde_json::{Map, Value};

use super::body;
use crate::domain::crd::Crd;
use crate::domain::json::{Json, copy, level, same};
use crate::domain::object::Object;
use crate::domain::ownership::{MANAGER, owners};
use crate::domain::path::{Path, Step};
use crate::domain::schema::Schema;

/// The identity, the values at the missing places, and what Etch already owns: an apply gives up what it leaves out, and
/// the server would then remove it.
///
/// Places inside atomic lists and maps are left out: to own the part one would have to own the whole.
pub(super) fn body<'a>(object: &Object, crd: &Crd, missing: impl Iterator<Item = &'a Path>) -> Json {
    let mut filled = object.json().clone();
    crd.compiled().fill(&mut filled);
    let schema = Some(&crd.storage().schema);
    let mut body = body::identity(object, crd);
    for path in missing {
        insert(&mut body, &filled, schema, path.steps(), Extent::Whole);
    }
    for owner in owners(object).filter(|owner| owner.manager == MANAGER && owner.operation == "Apply") {
        named(owner.fields, &filled, schema, &mut Vec::new(), &mut |path| {
            insert(&mut body, &filled, schema, path, Extent::Itself);
        });
    }
    body
}

/// How much of a value is meant.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// The value with all its parts.
    Whole,
    /// The value alone: parts that can be owned one by one belong to whoever owns them.
    Itself,
}

/// Copies the value at `path` into `body`, with the keys of the list-map items on the way; nothing if it cannot be owned.
fn insert(body: &mut Value, object: &Value, schema: Option<&Schema>, path: &[Step], extent: Extent) {
    if !can_reach(object, schema, path) {
        return;
    }
    let Some((step, rest)) = path.split_first() else {
        match (extent, object) {
            (Extent::Itself, Value::Object(_)) if !is_atomic_map(schema) => drop(fields_of(body)),
            (Extent::Itself, Value::Array(_)) if is_associative(schema) => drop(items_of(body)),
            _ => *body = copy(object),
        }
        return;
    };
    let (slot, value, child) = match step {
        Step::Field(name) | Step::Key(name) => {
            let Some(value) = object.get(name) else { return };
            let slot = fields_of(body).entry(name.clone()).or_insert(Value::Null);
            (slot, value, schema.and_then(|schema| schema.child(name)))
        }
        Step::Index(index) => {
            let (Some(item), Some(list)) = (object.get(index), schema) else { return };
            let Some(slot) = item_slot(items_of(body), item, list) else { return };
            (slot, item, list.items.as_deref())
        }
        Step::Items | Step::Values => return,
    };
    insert(slot, value, child, rest, extent);
}

/// Whether the place is there, and every parent on the way lets its parts be owned one by one. Where the schema says
/// nothing, objects do and lists do not.
fn can_reach(object: &Value, schema: Option<&Schema>, path: &[Step]) -> bool {
    let (mut value, mut schema) = (object, schema);
    for step in path {
        let part = match step {
            Step::Field(name) | Step::Key(name) if !is_atomic_map(schema) => {
                value.get(name).map(|part| (part, schema.and_then(|schema| schema.child(name))))
            }
            Step::Index(index) if is_associative(schema) => {
                let keys = schema.map_or(&[][..], |list| &list.list_map_keys);
                let item = value.get(index).filter(|item| keys.iter().all(|key| item.get(key).is_some()));
                item.map(|item| (item, schema.and_then(|list| list.items.as_deref())))
            }
            _ => None,
        };
        let Some(part) = part else { return false };
        (value, schema) = part;
    }
    true
}

/// The place in `items` of an item with the same keys, or of the same member of a set; a new one where there is none.
fn item_slot<'b>(items: &'b mut Vec<Value>, item: &Value, list: &Schema) -> Option<&'b mut Value> {
    let mut keys = Map::new();
    for key in &list.list_map_keys {
        keys.insert(key.clone(), copy(item.get(key)?));
    }
    let index = items
        .iter()
        .position(|other| if keys.is_empty() { same(other, item) } else { has_keys(other, &keys) });
    let index = match index {
        Some(index) => index,
        None => {
            items.push(if keys.is_empty() { copy(item) } else { Value::Object(keys) });
            items.len() - 1
        }
    };
    items.get_mut(index)
}

/// Calls `found` with every place of the object that a field set names: an element with others below it is named with a
/// `.` among them if it is meant itself.
fn named(
    fields: &Value,
    object: &Value,
    schema: Option<&Schema>,
    path: &mut Vec<Step>,
    found: &mut impl FnMut(&[Step]),
) {
    let Some(elements) = fields.as_object() else { return };
    if elements.is_empty() || elements.contains_key(".") {
        found(path);
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

/// The part of an object that an element of a field set means, and its schema.
fn resolve<'v, 's>(
    element: &str,
    object: &'v Value,
    schema: Option<&'s Schema>,
) -> Option<(Step, &'v Value, Option<&'s Schema>)> {
    let (kind, text) = element.split_at_checked(2)?;
    if kind == "f:" {
        return Some((
            Step::Field(text.to_owned()),
            object.get(text)?,
            schema.and_then(|schema| schema.child(text)),
        ));
    }
    let wanted = Json::parse(text.as_bytes()).ok()?;
    let items = object.as_array()?;
    let index = match kind {
        "k:" => items.iter().position(|item| wanted.as_object().is_some_and(|keys| has_keys(item, keys)))?,
        "v:" => items.iter().position(|item| same(item, &wanted))?,
        _ => return None,
    };
    Some((Step::Index(index), items.get(index)?, schema.and_then(|list| list.items.as_deref())))
}

fn has_keys(item: &Value, keys: &Map<String, Value>) -> bool {
    keys.iter().all(|(key, value)| item.get(key).is_some_and(|other| same(other, value)))
}

fn is_atomic_map(schema: Option<&Schema>) -> bool {
    schema.is_some_and(|schema| schema.map_type.as_deref() == Some("atomic"))
}

fn is_associative(schema: Option<&Schema>) -> bool {
    schema.is_some_and(|schema| matches!(schema.list_type.as_deref(), Some("map" | "set")))
}

/// The fields of a value that is to be an object.
fn fields_of(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().expect("it was just made an object")
}

/// The items of a value that is to be an array.
fn items_of(value: &mut Value) -> &mut Vec<Value> {
    if !value.is_array() {
        *value = Value::Array(Vec::new());
    }
    value.as_array_mut().expect("it was just made an array")
}
