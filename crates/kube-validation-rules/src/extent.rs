//! How large the values of a schema can be: what the estimate of a rule's cost goes by.
//! It must not look at values.
//!
//! Source: apiserver `pkg/cel/common/schemas.go` (`SchemaDeclType`) and `pkg/cel/limits.go`.

use kube_structural_schema::schema::{Constraints, Schema};

use super::model::{Fields, Format, Node, Shape};

/// The largest request that the server takes, in bytes.
pub(super) const MAX_REQUEST: i64 = 3 << 20;

/// The longest texts of duration and date-time, and of date, with their quotes, in bytes.
const MAX_TIME: i64 = 32;
const DATE: i64 = 12;

/// The sizes of a node's values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Extent {
    /// The most characters, items or entries; 0 for what has no size, objects with named fields among them.
    pub(super) elements: u64,
    /// The fewest bytes of JSON.
    pub(super) bytes: i64,
}

impl Extent {
    /// Of a text with at most so many code points, each of up to four bytes.
    pub(super) fn of_text(max_length: Option<i64>) -> Self {
        Self { elements: characters(max_length), bytes: 2 }
    }

    /// Of a node; `own` says which fields are the server's declarations and not the schema's.
    pub(super) fn of(schema: &Schema, shape: &Shape, own: impl Fn(&str) -> bool) -> Self {
        let none = Constraints::default();
        let constraints = schema.constraints.as_deref().unwrap_or(&none);
        match shape {
            Shape::IntOrString => Self { elements: characters(constraints.max_length), bytes: 1 },
            Shape::Array { items, .. } => {
                let least = items.as_ref().map_or(0, |items| items.extent.bytes);
                let most = constraints.max_items.map_or((MAX_REQUEST - 2) / (least + 1), |max| max.max(0));
                Self { elements: most.cast_unsigned(), bytes: 2 }
            }
            Shape::Map(values) | Shape::Object(Fields { entries: Some(values), .. }) => {
                let least = values.extent.bytes + 6;
                let most = constraints.max_properties.map_or((MAX_REQUEST - 2) / least, |max| max.max(0));
                Self { elements: most.cast_unsigned(), bytes: 2 }
            }
            Shape::Object(fields) => {
                let defaulted = |name: &str| {
                    !own(name) && schema.properties.get(name).is_some_and(|field| field.default.is_some())
                };
                let bytes = fields
                    .named
                    .iter()
                    .filter(|(name, field)| {
                        field.declared
                            && !defaulted(name)
                            && constraints.required.iter().any(|it| **it == ***name)
                    })
                    .map(|(name, field)| name.len() as i64 + field.extent.bytes + 4)
                    .sum::<i64>();
                Self { elements: 0, bytes: 2 + bytes }
            }
            Shape::Text(format) => text(*format, constraints),
            Shape::Bool => Self { elements: 0, bytes: 4 },
            Shape::Integer | Shape::Number => Self { elements: 0, bytes: 1 },
            Shape::Unknown | Shape::Invalid => Self::default(),
        }
    }
}

/// How often a value of a node can be there at most in one request, as if it were an item of a list.
pub(super) fn max_cardinality(node: &Node) -> u64 {
    (MAX_REQUEST / (node.extent.bytes + 1)).cast_unsigned()
}

fn text(format: Format, constraints: &Constraints) -> Extent {
    let unlimited = MAX_REQUEST - 2;
    let (elements, bytes) = match format {
        Format::Byte => (constraints.max_length.map_or(unlimited, |max| max.max(0)), 2),
        Format::Duration => (MAX_TIME, 3),
        Format::Date => (DATE, DATE),
        Format::DateTime => (MAX_TIME, 21),
        Format::None if constraints.max_length.is_none() && !constraints.allowed.is_empty() => {
            let lengths = constraints.allowed.iter().filter_map(|value| value.as_str()).map(str::len);
            (lengths.max().unwrap_or(0) as i64, 2)
        }
        Format::None => return Extent::of_text(constraints.max_length),
    };
    Extent { elements: elements.cast_unsigned(), bytes }
}

fn characters(max_length: Option<i64>) -> u64 {
    max_length.map_or(MAX_REQUEST - 2, |max| max.max(0).wrapping_mul(4)).cast_unsigned()
}
