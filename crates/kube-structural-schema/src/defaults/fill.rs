//! Filling defaults into an object, as the API server does after decoding it.
//!
//! Source: apiextensions-apiserver `pkg/apiserver/schema/defaulting/algorithm.go`.

use serde_json::{Map, Value};

use super::Node;

/// Fills in what is absent, and what is null and must not be. The default of the place itself is not
/// considered.
pub(crate) fn fill(value: &mut Value, node: &Node) {
    match value {
        Value::Object(fields) => fill_object(fields, node),
        Value::Array(items) => {
            if let Some(node) = &node.items {
                items.iter_mut().for_each(|item| fill_present(item, node));
            }
        }
        _ => {}
    }
}

fn fill_object(fields: &mut Map<String, Value>, node: &Node) {
    for (name, property) in &node.properties {
        if let Some(value) = fields.get_mut(name.as_ref()) {
            fill_present(value, property);
        } else if let Some(default) = &property.default {
            let mut value = Value::clone(default);
            fill(&mut value, property);
            fields.insert(name.to_string(), value);
        }
    }
    if let Some(values) = &node.values {
        for (name, value) in fields.iter_mut() {
            if node.property(name).is_none() {
                fill_present(value, values);
            }
        }
    }
}

fn fill_present(value: &mut Value, node: &Node) {
    if value.is_null()
        && let Some(default) = node.instead_of_null()
    {
        *value = Value::clone(default);
    }
    fill(value, node);
}

/// Whether a value has no more than `room` values once it is filled, which becomes what is left of it.
pub(crate) fn fits(value: &Value, node: Option<&Node>, room: &mut usize) -> bool {
    let Some(left) = room.checked_sub(1) else { return false };
    *room = left;
    let present = |value: &Value, node: Option<&Node>, room: &mut usize| {
        let instead = node.and_then(Node::instead_of_null).filter(|_| value.is_null());
        fits(instead.map_or(value, |default| default), node, room)
    };
    match value {
        Value::Object(fields) => {
            let properties = node.map_or(&[][..], |node| &node.properties);
            let mut absent = properties.iter().filter(|(name, _)| !fields.contains_key(name.as_ref()));
            fields.iter().all(|(name, value)| present(value, node.and_then(|node| node.child(name)), room))
                && absent.all(|(_, property)| {
                    property.default.as_ref().is_none_or(|default| fits(default, Some(property), room))
                })
        }
        Value::Array(items) => {
            let node = node.and_then(|node| node.items.as_deref());
            items.iter().all(|item| present(item, node, room))
        }
        _ => true,
    }
}
