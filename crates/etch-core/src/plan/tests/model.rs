//! The effect of a write on the API server, as far as a write can break the laws: values, not owners. It must
//! not be kinder than the server: what an apply leaves out and no other manager owns is gone.

use serde_json::Value;

use crate::crd::Crd;
use crate::object::Object;
use crate::ownership::{MANAGER, owners};
use kube_structural_schema::json::Json;
use kube_structural_schema::schema::Schema;

/// The object after a server-side apply by Etch.
pub(super) fn applied(object: &Object, crd: &Crd, body: &Value) -> Value {
    let schema = Some(&crd.storage().schema);
    let mut result = object.json().clone().into_inner();
    let ours = owners(object).find(|owner| owner.manager == MANAGER && owner.operation == "Apply");
    if let Some(ours) = ours {
        let others: Vec<&Value> = owners(object)
            .filter(|owner| owner.manager != MANAGER || owner.operation != "Apply")
            .map(|owner| owner.fields)
            .collect();
        give_up(&mut result, ours.fields, &others, Some(body));
    }
    unite(&mut result, body, schema);
    crd.compiled().fill(&mut result);
    result
}

/// The object after a merge patch (RFC 7386).
pub(super) fn merged(object: &Object, crd: &Crd, body: &Value) -> Value {
    let mut result = object.json().clone().into_inner();
    merge(&mut result, body);
    if result["metadata"]["managedFields"] == serde_json::json!([{}]) {
        result["metadata"].as_object_mut().map(|metadata| metadata.remove("managedFields"));
    }
    crd.compiled().fill(&mut result);
    result
}

/// Removes what `ours` names and neither `others` nor `body` do.
fn give_up(value: &mut Value, ours: &Value, others: &[&Value], body: Option<&Value>) {
    for (element, inner) in ours.as_object().into_iter().flatten().filter(|(element, _)| *element != ".") {
        let others: Vec<&Value> = others.iter().filter_map(|other| other.get(element)).collect();
        let named = body.and_then(|body| Some(&body[position(body, element)?]));
        let Some(at) = position(value, element) else { continue };
        let is_itself = inner.as_object().is_some_and(|inner| inner.is_empty() || inner.contains_key("."));
        if is_itself && named.is_none() && others.is_empty() {
            match (&mut *value, at) {
                (Value::Object(fields), At::Field(name)) => drop(fields.remove(name)),
                (Value::Array(items), At::Index(index)) => drop(items.remove(index)),
                _ => {}
            }
            continue;
        }
        give_up(&mut value[at], inner, &others, named);
    }
}

/// Puts what `body` holds into `value`, item by item where lists are associative, and field by field where
/// there is no schema.
fn unite(value: &mut Value, body: &Value, schema: Option<&Schema>) {
    let list_type = schema.and_then(|schema| schema.list_type.as_deref());
    let atomic = schema.is_some_and(|schema| schema.map_type.as_deref() == Some("atomic"));
    match (&mut *value, body) {
        (Value::Object(fields), Value::Object(body)) if !atomic => {
            for (name, theirs) in body {
                let ours = fields.entry(name.clone()).or_insert(Value::Null);
                unite(ours, theirs, schema.and_then(|schema| schema.child(name)));
            }
        }
        (Value::Array(items), Value::Array(body)) if list_type == Some("set") => {
            for theirs in body {
                if !items.contains(theirs) {
                    items.push(theirs.clone());
                }
            }
        }
        (Value::Array(items), Value::Array(body)) if list_type == Some("map") => {
            let list = schema.expect("it has a list type");
            for theirs in body {
                let same = |ours: &&mut Value| list.list_map_keys.iter().all(|key| ours[key] == theirs[key]);
                match items.iter_mut().find(same) {
                    Some(ours) => unite(ours, theirs, list.items.as_deref()),
                    None => items.push(theirs.clone()),
                }
            }
        }
        _ => *value = body.clone(),
    }
}

fn merge(value: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *value = patch.clone();
        return;
    };
    if !value.is_object() {
        *value = Value::Object(serde_json::Map::new());
    }
    for (name, theirs) in patch {
        match theirs {
            Value::Null => drop(value.as_object_mut().and_then(|fields| fields.remove(name))),
            theirs => merge(&mut value[name], theirs),
        }
    }
}

#[derive(Clone, Copy)]
enum At<'a> {
    Field(&'a str),
    Index(usize),
}

/// Where an element of a field set is in a value.
fn position<'e>(value: &Value, element: &'e str) -> Option<At<'e>> {
    if let Some(name) = element.strip_prefix("f:") {
        return value.get(name).map(|_| At::Field(name));
    }
    let items = value.as_array()?;
    let (kind, text) = element.split_at_checked(2)?;
    let wanted = Json::parse(text.as_bytes()).ok()?;
    let index = items.iter().position(|item| match kind {
        "v:" => *item == *wanted,
        "k:" => wanted.as_object().into_iter().flatten().all(|(key, value)| item.get(key) == Some(value)),
        _ => false,
    });
    index.map(At::Index)
}

impl std::ops::Index<At<'_>> for Value {
    type Output = Value;

    fn index(&self, at: At<'_>) -> &Value {
        match at {
            At::Field(name) => &self[name],
            At::Index(index) => &self[index],
        }
    }
}

impl std::ops::IndexMut<At<'_>> for Value {
    fn index_mut(&mut self, at: At<'_>) -> &mut Value {
        match at {
            At::Field(name) => &mut self[name],
            At::Index(index) => &mut self[index],
        }
    }
}
