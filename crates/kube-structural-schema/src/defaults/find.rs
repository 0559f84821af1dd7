//! Where filling would put a default, and where a present value is the one that filling would have put there.
//! It allocates nothing where it finds nothing.

use serde_json::{Map, Value};

use super::Node;
use crate::json::same;
use crate::path::{Trail, TrailStep};

/// Reports the topmost places that [`super::fill()`] would fill, each with its own default. What stands below
/// an absent value is not reported.
pub(crate) fn gaps(value: &Value, node: &Node, at: &Trail<'_>, report: &mut impl FnMut(&Trail<'_>, &Value)) {
    match value {
        Value::Object(fields) => {
            for (name, property) in &node.properties {
                let here = at.join(TrailStep::Field(name));
                match (fields.get(name.as_ref()), &property.default) {
                    (Some(value), _) => gaps_present(value, property, &here, report),
                    (None, Some(default)) => report(&here, default),
                    (None, None) => {}
                }
            }
            for (name, value, node) in others(fields, node) {
                gaps_present(value, node, &at.join(TrailStep::Key(name)), report);
            }
        }
        Value::Array(items) => {
            if let Some(node) = &node.items {
                for (index, item) in items.iter().enumerate() {
                    gaps_present(item, node, &at.join(TrailStep::Index(index)), report);
                }
            }
        }
        _ => {}
    }
}

fn gaps_present(value: &Value, node: &Node, at: &Trail<'_>, report: &mut impl FnMut(&Trail<'_>, &Value)) {
    match node.instead_of_null() {
        Some(default) if value.is_null() => report(at, default),
        _ => gaps(value, node, at, report),
    }
}

/// Reports the places whose value is the one that filling gives, each with that value: the object alone does
/// not show whether it was written or filled in. If the answer of `report` requests it, the search continues
/// below such a place; parents come first.
///
/// The value that filling gives is the default with the defaults below it filled in. Below a value that
/// differs the search continues. Items and values of maps are places too, because their default may have
/// replaced a null.
pub(crate) fn filled(
    value: &Value,
    node: &Node,
    at: &Trail<'_>,
    report: &mut impl FnMut(&Trail<'_>, &Value) -> Below,
) {
    match value {
        Value::Object(fields) => {
            for (name, property) in &node.properties {
                if let Some(value) = fields.get(name.as_ref()) {
                    let default = property.default.as_deref();
                    filled_present(value, default, property, &at.join(TrailStep::Field(name)), report);
                }
            }
            for (name, value, node) in others(fields, node) {
                let default = node.instead_of_null().map(|default| &**default);
                filled_present(value, default, node, &at.join(TrailStep::Key(name)), report);
            }
        }
        Value::Array(items) => {
            if let Some(node) = &node.items {
                let default = node.instead_of_null().map(|default| &**default);
                for (index, item) in items.iter().enumerate() {
                    filled_present(item, default, node, &at.join(TrailStep::Index(index)), report);
                }
            }
        }
        _ => {}
    }
}

/// Whether places below one that was found are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Below {
    /// They are found too.
    Search,
    /// The one that was found stands for them.
    Skip,
}

fn filled_present(
    value: &Value,
    default: Option<&Value>,
    node: &Node,
    at: &Trail<'_>,
    report: &mut impl FnMut(&Trail<'_>, &Value) -> Below,
) {
    let below = match default {
        Some(default) if is_filled(value, default, node) => report(at, value),
        _ => Below::Search,
    };
    if below == Below::Search {
        filled(value, node, at, report);
    }
}

/// Whether a value is what [`super::fill()`] makes of a default.
fn is_filled(value: &Value, default: &Value, node: &Node) -> bool {
    match (value, default) {
        (Value::Object(value), Value::Object(default)) => {
            let mut expected = default.len();
            for (name, property) in &node.properties {
                if let Some(added) =
                    property.default.as_ref().filter(|_| !default.contains_key(name.as_ref()))
                {
                    expected += 1;
                    if !value.get(name.as_ref()).is_some_and(|value| is_filled(value, added, property)) {
                        return false;
                    }
                }
            }
            value.len() == expected
                && default.iter().all(|(name, default)| {
                    value.get(name).is_some_and(|value| is_filled_part(value, default, node.child(name)))
                })
        }
        (Value::Array(value), Value::Array(default)) => {
            let node = node.items.as_deref();
            value.len() == default.len()
                && value.iter().zip(default).all(|(value, default)| is_filled_part(value, default, node))
        }
        _ => same(value, default),
    }
}

fn is_filled_part(value: &Value, default: &Value, node: Option<&Node>) -> bool {
    let Some(node) = node else { return same(value, default) };
    match node.instead_of_null() {
        Some(instead) if default.is_null() => is_filled(value, instead, node),
        _ => is_filled(value, default, node),
    }
}

/// Reports all places at which a default applies: where it is present, and where it is absent and its parent
/// is there. Below a place that is absent there is none. Parents come before what is in them.
pub(crate) fn places(value: &Value, node: &Node, at: &Trail<'_>, report: &mut impl FnMut(&Trail<'_>)) {
    match value {
        Value::Object(fields) => {
            for (name, property) in &node.properties {
                let here = at.join(TrailStep::Field(name));
                if property.default.is_some() {
                    report(&here);
                }
                if let Some(value) = fields.get(name.as_ref()) {
                    places(value, property, &here, report);
                }
            }
            for (name, value, node) in others(fields, node) {
                places(value, node, &at.join(TrailStep::Key(name)), report);
            }
        }
        Value::Array(items) => {
            if let Some(node) = &node.items {
                for (index, item) in items.iter().enumerate() {
                    places(item, node, &at.join(TrailStep::Index(index)), report);
                }
            }
        }
        _ => {}
    }
}

/// The values of a map that no property's node is for.
fn others<'a>(
    fields: &'a Map<String, Value>,
    node: &'a Node,
) -> impl Iterator<Item = (&'a str, &'a Value, &'a Node)> {
    node.values.iter().flat_map(move |values| {
        fields
            .iter()
            .filter(|(name, _)| node.property(name).is_none())
            .map(move |(name, value)| (name.as_str(), value, &**values))
    })
}
