//! The body of an apply under `ownership: Own`: the defaults, so that Etch's manager owns them.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::{Body, body};
use crate::crd::Crd;
use crate::object::Object;
use crate::ownership::{Claimants, Items, is_applied_by_etch, others, owners};
use kube_structural_schema::json::Json;
use kube_structural_schema::path::{Path, Step};
use kube_structural_schema::schema::Schema;

/// The identity, the values at the missing places that Etch may own, and what it already owns: an apply gives
/// up what it leaves out, and the server would then remove it.
///
/// Items of lists come in the order that they have in the object, which is the order that they get from an
/// apply.
///
/// Items that are there twice are left out: the server would put the applied one in the place of both
/// (structured-merge-diff v6 `typed/merge.go`).
pub(super) fn body<'a>(object: &Object, crd: &Crd, missing: impl Iterator<Item = &'a Path>) -> Body {
    let mut filled = object.json().clone();
    crd.compiled().fill(&mut filled);
    let schema = Some(&crd.storage().schema);
    let mut body = body::identity(object, crd);
    let mut lists = Lists::default();
    let mut ownable = Ownable::of(object, crd, &filled);
    let new = missing.filter(|path| ownable.has(path));
    let mut places: Vec<_> = new.map(|path| (path.steps().to_vec(), Extent::Whole)).collect();
    for owner in owners(object).filter(is_applied_by_etch) {
        named(owner.fields, &filled, schema, &mut Vec::new(), &mut lists, &mut |path| {
            places.push((path.to_vec(), Extent::Itself));
        });
    }
    places.sort();
    for (path, extent) in &places {
        insert(&mut body, &filled, schema, path, *extent, &mut lists);
    }
    let names_values = fields(&body).any(|name| !matches!(name, "apiVersion" | "kind" | "metadata"));
    if names_values { Body::Values(body) } else { Body::Identity(body) }
}

/// Which places of an object Etch may come to own.
pub(super) struct Ownable<'a> {
    filled: &'a Value,
    schema: &'a Schema,
    has_status: bool,
    others: Claimants<'a>,
}

impl<'a> Ownable<'a> {
    /// `filled` is the object with its defaults.
    pub(super) fn of(object: &'a Object, crd: &'a Crd, filled: &'a Value) -> Self {
        let others = Claimants::of(others(object));
        let storage = crd.storage();
        Self { filled, schema: &storage.schema, has_status: storage.status_subresource, others }
    }

    /// Whether a place may be Etch's:
    ///
    /// - no other manager owns it: its next apply of another value would conflict;
    /// - it is in no item of a list: to own a part is to own the item, which its user could no longer remove
    ///   (structured-merge-diff v6 `merge/update.go`, `addBackOwnedItems`);
    /// - it is in no atomic map: to own a part is to own the whole;
    /// - it is not in a status that is a subresource: a write of the object leaves it alone.
    pub(super) fn has(&mut self, path: &Path) -> bool {
        let is_in_item = path.steps().iter().any(|step| matches!(step, Step::Index(_)));
        let is_apart = self.has_status && matches!(path.steps(), [Step::Field(name), ..] if name == "status");
        !is_in_item
            && !is_apart
            && can_reach(self.filled, Some(self.schema), path.steps(), &mut Lists::default())
            && !self.others.claim(self.filled, self.schema, path.steps())
    }
}

fn fields(body: &Value) -> impl Iterator<Item = &str> {
    body.as_object().into_iter().flat_map(Map::keys).map(String::as_str)
}

/// How much of a value is meant. The whole comes before a part of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Extent {
    /// The value with all its parts.
    Whole,
    /// The value alone: parts that can be owned one by one stay with their owners.
    Itself,
}

/// The lists of an object, by where they are in memory.
#[derive(Default)]
struct Lists<'v> {
    items: HashMap<usize, Items<'v>>,
    /// Where items of them stand in the body.
    slots: HashMap<(usize, usize), usize>,
    /// The values that the body has with all their parts.
    copied: HashSet<usize>,
}

impl<'v> Lists<'v> {
    fn items(&mut self, list: &'v [Value]) -> &mut Items<'v> {
        self.items.entry(list.as_ptr().addr()).or_insert_with(|| Items::of(list))
    }
}

/// Copies the value at `path` into `body`, with the keys of the list-map items on the way; nothing if it
/// cannot be owned.
fn insert<'v>(
    body: &mut Value,
    object: &'v Value,
    schema: Option<&Schema>,
    path: &[Step],
    extent: Extent,
    lists: &mut Lists<'v>,
) {
    if can_reach(object, schema, path, lists) {
        put(body, object, schema, path, extent, lists);
    }
}

fn put(
    body: &mut Value,
    object: &Value,
    schema: Option<&Schema>,
    path: &[Step],
    extent: Extent,
    lists: &mut Lists<'_>,
) {
    let address = std::ptr::from_ref(object).addr();
    if lists.copied.contains(&address) {
        return;
    }
    let Some((step, rest)) = path.split_first() else {
        match (extent, object) {
            (Extent::Itself, Value::Object(_)) if !is_atomic_map(schema) => drop(fields_of(body)),
            (Extent::Itself, Value::Array(_)) if is_associative(schema) => drop(items_of(body)),
            _ => {
                *body = object.clone();
                lists.copied.insert(address);
            }
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
            let (Some(items), Some(list)) = (object.as_array(), schema) else { return };
            let Some(item) = items.get(*index) else { return };
            let known = items_of(body);
            let place = *lists.slots.entry((items.as_ptr().addr(), *index)).or_insert(known.len());
            if place == known.len() {
                known.push(name_of(item, list));
            }
            let Some(slot) = known.get_mut(place) else { return };
            (slot, item, list.items.as_deref())
        }
        Step::Items | Step::Values => return,
    };
    put(slot, value, child, rest, extent, lists);
}

/// Whether the place is there, and every parent on the way lets its parts be owned one by one. Without a
/// schema, objects do and lists do not.
fn can_reach<'v>(object: &'v Value, schema: Option<&Schema>, path: &[Step], lists: &mut Lists<'v>) -> bool {
    let (mut value, mut schema) = (object, schema);
    for step in path {
        let part = match step {
            Step::Field(name) | Step::Key(name) if !is_atomic_map(schema) => {
                value.get(name).map(|part| (part, schema.and_then(|schema| schema.child(name))))
            }
            Step::Index(index) if is_associative(schema) => {
                let keys = schema.map_or(&[][..], |list| &list.list_map_keys);
                let items = value.as_array().map_or(&[][..], Vec::as_slice);
                let item = items.get(*index).filter(|_| lists.items(items).is_unique(*index, keys));
                item.map(|item| (item, schema.and_then(|list| list.items.as_deref())))
            }
            _ => None,
        };
        let Some(part) = part else { return false };
        (value, schema) = part;
    }
    true
}

/// What identifies an item: its keys, or in a set the item.
fn name_of(item: &Value, list: &Schema) -> Value {
    if list.list_map_keys.is_empty() {
        return item.clone();
    }
    let keys = list.list_map_keys.iter().filter_map(|key| Some((key.clone(), item.get(key)?.clone())));
    Value::Object(keys.collect())
}

/// Calls `found` with every place of the object that a field set names: an element with others below it is
/// named with a `.` among them if it is meant itself.
fn named<'v>(
    fields: &Value,
    object: &'v Value,
    schema: Option<&Schema>,
    path: &mut Vec<Step>,
    lists: &mut Lists<'v>,
    found: &mut impl FnMut(&[Step]),
) {
    let Some(elements) = fields.as_object() else { return };
    if elements.is_empty() || elements.contains_key(".") {
        found(path);
    }
    for (element, inner) in elements {
        let Some((step, value, child)) = resolve(element, object, schema, lists) else { continue };
        path.push(step);
        named(inner, value, child, path, lists, found);
        path.pop();
    }
}

/// The part of an object that an element of a field set means, and its schema.
fn resolve<'v, 's>(
    element: &str,
    object: &'v Value,
    schema: Option<&'s Schema>,
    lists: &mut Lists<'v>,
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
    let known = lists.items(items);
    let index = match kind {
        "k:" => known.keyed(wanted.as_object()?)?,
        "v:" => known.member(&wanted)?,
        _ => return None,
    };
    Some((Step::Index(index), items.get(index)?, schema.and_then(|list| list.items.as_deref())))
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::crd::sample::things_document;

    #[test]
    fn nothing_in_a_status_that_is_a_subresource_may_come_to_be_ours() {
        let phase = json!({ "type": "string", "default": "New" });
        let status = json!({ "type": "object", "properties": { "phase": phase } });
        let mut document = things_document(json!({ "type": "object", "properties": { "status": status } }));
        let object = Object::from(json!({ "metadata": { "name": "a" }, "status": { "phase": "New" } }));
        let path: Path = ".status.phase".parse().expect("a path");
        for is_subresource in [false, true] {
            if is_subresource {
                document["spec"]["versions"][0]["subresources"] = json!({ "status": {} });
            }
            let crd = Crd::read(&document.clone().into()).expect("a CRD");
            let body = body(&object, &crd, [&path].into_iter());
            assert_eq!(matches!(body, Body::Identity(_)), is_subresource, "{body:?}");
        }
    }
}
