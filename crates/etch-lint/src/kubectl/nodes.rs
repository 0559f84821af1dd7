//! The walk over a CRD's document by the types of its parts.

use serde_json::Value;

use super::super::refusal::Part;
use super::types::{Type, fields};

/// An object whose type is known, and its place in the document.
pub(super) struct Node<'a> {
    pub(super) of: Type,
    pub(super) value: &'a Value,
    pub(super) place: &'a [Part],
    /// Whether strict decoding and server-side apply know its type, too.
    pub(super) is_strict: bool,
}

/// The keywords whose values the server reads leniently, whatever the request asks for: they may be a schema
/// or something else, and server-side apply knows no type of them.
///
/// Source: apiextensions-apiserver `pkg/apis/apiextensions/v1/marshal.go`; kubernetes#128033.
const LENIENT: [&str; 4] = ["items", "additionalItems", "additionalProperties", "dependencies"];

/// Visits every object of a document whose type is known, parents first.
pub(super) fn each(document: &Value, visit: &mut dyn FnMut(&Node<'_>)) {
    walk(document, Type::Crd, true, &mut Vec::new(), visit);
}

/// Visits every node of the schemas, those of clauses too.
pub(super) fn schemas(document: &Value, visit: &mut dyn FnMut(&Node<'_>)) {
    each(document, &mut |node| {
        if node.of == Type::Schema {
            visit(node);
        }
    });
}

/// Visits every object of a schema.
pub(super) fn of_schema(schema: &Value, visit: &mut dyn FnMut(&Node<'_>)) {
    walk(schema, Type::Schema, true, &mut Vec::new(), visit);
}

fn walk(value: &Value, of: Type, is_strict: bool, place: &mut Vec<Part>, visit: &mut dyn FnMut(&Node<'_>)) {
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                place.push(Part::Item(index));
                walk(item, of, is_strict, place, visit);
                place.pop();
            }
        }
        Value::Object(object) => {
            visit(&Node { of, value, place, is_strict });
            for (name, value) in object {
                let is_strict = is_strict && !(of == Type::Schema && LENIENT.contains(&name.as_str()));
                let below = match of {
                    Type::MapOf(of) => Some(*of),
                    of => fields(of).and_then(|fields| {
                        fields.iter().find(|(known, _)| known == name).map(|(_, below)| *below)
                    }),
                };
                if let Some(below) = below.filter(|below| *below != Type::Any) {
                    place.push(Part::Field(name.clone()));
                    walk(value, below, is_strict, place, visit);
                    place.pop();
                }
            }
        }
        _ => {}
    }
}
