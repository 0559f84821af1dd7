//! The walk over a CRD's document by the types of its parts.

use serde_json::Value;

use super::super::refusal::Part;
use super::types::{Type, fields};

/// Visits every object of a document whose type is known, with its place, parents first.
pub(super) fn each(document: &Value, visit: &mut dyn FnMut(Type, &Value, &[Part])) {
    walk(document, Type::Crd, &mut Vec::new(), visit);
}

/// Visits every node of the schemas, those of clauses too.
pub(super) fn schemas(document: &Value, visit: &mut dyn FnMut(&Value, &[Part])) {
    each(document, &mut |of, value, place| {
        if of == Type::Schema {
            visit(value, place);
        }
    });
}

/// Visits every object of a schema.
pub(super) fn of_schema(schema: &Value, visit: &mut dyn FnMut(Type, &Value, &[Part])) {
    walk(schema, Type::Schema, &mut Vec::new(), visit);
}

fn walk(value: &Value, of: Type, place: &mut Vec<Part>, visit: &mut dyn FnMut(Type, &Value, &[Part])) {
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                place.push(Part::Item(index));
                walk(item, of, place, visit);
                place.pop();
            }
        }
        Value::Object(object) => {
            visit(of, value, place);
            for (name, value) in object {
                let below = match of {
                    Type::MapOf(of) => Some(*of),
                    of => fields(of).and_then(|fields| {
                        fields.iter().find(|(known, _)| known == name).map(|(_, below)| *below)
                    }),
                };
                if let Some(below) = below.filter(|below| *below != Type::Any) {
                    place.push(Part::Field(name.clone()));
                    walk(value, below, place, visit);
                    place.pop();
                }
            }
        }
        _ => {}
    }
}
