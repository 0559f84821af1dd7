//! Where filling would put a default, and where a present value is the one that filling would have put there.
//! It allocates nothing where it finds nothing.

use serde_json::{Map, Value};

use super::Node;
use crate::json::same;
use crate::path::{Trail, TrailStep};

/// Reports the topmost places that [`super::fill()`] would fill, each with its own default. What stands below
/// an absent value is not reported.
pub(crate) fn gaps(value: &Value, node: &Node, at: &Trail<'_>, report: &mut impl FnMut(&Trail<'_>, &Value)) {
    each(value, node, at, &mut |value, node, at| match (value, &node.default) {
        (Some(value), _) => gaps_present(value, node, at, report),
        (None, Some(default)) => report(at, default),
        (None, None) => {}
    });
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
    each(value, node, at, &mut |value, node, at| {
        let default = if is_field(at) { node.default.as_ref() } else { node.instead_of_null() };
        let below = match (value, default) {
            (Some(value), Some(default)) if is_filled(value, default, node) => report(at, value),
            _ => Below::Search,
        };
        if let (Some(value), Below::Search) = (value, below) {
            filled(value, node, at, report);
        }
    });
}

/// Whether places below one that was found are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Below {
    /// They are found too.
    Search,
    /// The one that was found stands for them.
    Skip,
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
    each(value, node, at, &mut |value, node, at| {
        if node.default.is_some() && is_field(at) {
            report(at);
        }
        if let Some(value) = value {
            places(value, node, at, report);
        }
    });
}

/// Visits what stands one step below a value and has a node: fields, be they absent, values of maps, and
/// items.
fn each(
    value: &Value,
    node: &Node,
    at: &Trail<'_>,
    visit: &mut impl FnMut(Option<&Value>, &Node, &Trail<'_>),
) {
    match value {
        Value::Object(fields) => {
            for (name, property) in &node.properties {
                visit(fields.get(name.as_ref()), property, &at.join(TrailStep::Field(name)));
            }
            for (name, value, node) in others(fields, node) {
                visit(Some(value), node, &at.join(TrailStep::Key(name)));
            }
        }
        Value::Array(items) => {
            if let Some(node) = &node.items {
                for (index, item) in items.iter().enumerate() {
                    visit(Some(item), node, &at.join(TrailStep::Index(index)));
                }
            }
        }
        _ => {}
    }
}

/// Whether a place is a field that its schema names.
fn is_field(at: &Trail<'_>) -> bool {
    matches!(at.last(), Some((_, TrailStep::Field(_))))
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
