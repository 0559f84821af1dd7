//! Bringing the metadata of embedded resources, and of whole objects, into the form that the server knows.
//!
//! Source: apiextensions-apiserver `pkg/apiserver/schema/objectmeta/{algorithm,coerce}.go`.

mod object_meta;

use serde_json::{Map, Value};

use crate::finding::{Finding, Kind};
use crate::json::Json;
use crate::path::{Trail, TrailStep};
use crate::schema::{Place, Schema};

pub use object_meta::{Malformed, Misfit, decode, is_field};

/// Coerces `apiVersion`, `kind` and `metadata` of every embedded resource, and of the value itself if it is a
/// whole object.
///
/// # Errors
/// The first field of the wrong type, where these are refused. Places begin with `at`.
pub fn coerce(
    value: &mut Value,
    schema: &Schema,
    whole: bool,
    malformed: Malformed,
    at: &Place<'_>,
) -> Result<(), Finding> {
    match value {
        Value::Object(fields) => {
            if whole || schema.embedded_resource {
                type_meta(fields, malformed, at)?;
            }
            for (name, value) in fields.iter_mut() {
                let (below, here) = match schema.properties.get(name) {
                    Some(property) => (Some(property), at.child(name)),
                    None => (schema.additional_schema(), at.key(name)),
                };
                if name == "metadata" && (whole || schema.embedded_resource) {
                    object_meta(value, below, malformed, &at.child(name), &here)?;
                } else if let Some(below) = below {
                    coerce(value, below, false, malformed, &here)?;
                }
            }
            Ok(())
        }
        Value::Array(items) => match &schema.items {
            Some(schema) => {
                let mut items = items.iter_mut().enumerate();
                items.try_for_each(|(index, item)| coerce(item, schema, false, malformed, &at.index(index)))
            }
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Reports the topmost places of the type and the metadata of embedded resources that an object shows no
/// longer, once [`coerce`] has dropped what is malformed. A value without content, such as
/// `creationTimestamp: null`, does not count. `given` is the object before, `left` the one after.
pub fn dropped(
    given: &Value,
    left: &Value,
    schema: &Schema,
    at: &Trail<'_>,
    report: &mut impl FnMut(&Trail<'_>),
) {
    match (given, left) {
        (Value::Object(given), Value::Object(left)) => {
            for (name, value) in given {
                let (below, at) = match schema.properties.get(name) {
                    Some(property) => (Some(property), at.join(TrailStep::Field(name))),
                    None => (schema.additional_schema(), at.join(TrailStep::Key(name))),
                };
                let is_coerced = matches!(name.as_str(), "apiVersion" | "kind" | "metadata");
                match (left.get(name), below) {
                    (left, _) if schema.embedded_resource && is_coerced => lost(value, left, &at, report),
                    (Some(left), Some(below)) => dropped(value, left, below, &at, report),
                    _ => {}
                }
            }
        }
        (Value::Array(given), Value::Array(left)) if given.len() == left.len() => {
            for (index, (given, left)) in given.iter().zip(left).enumerate() {
                let Some(items) = schema.items.as_deref() else { continue };
                dropped(given, left, items, &at.join(TrailStep::Index(index)), report);
            }
        }
        _ => {}
    }
}

/// [`dropped`] for a whole object, whose own metadata is decoded as well.
pub fn dropped_of_object(given: &Value, left: &Value, schema: &Schema, report: &mut impl FnMut(&Trail<'_>)) {
    if let Some(metadata) = given.get("metadata") {
        lost(metadata, left.get("metadata"), &Trail::ROOT.join(TrailStep::Field("metadata")), report);
    }
    dropped(given, left, schema, &Trail::ROOT, report);
}

fn lost(given: &Value, left: Option<&Value>, at: &Trail<'_>, report: &mut impl FnMut(&Trail<'_>)) {
    match (given, left) {
        (Value::Object(given), Some(Value::Object(left))) => {
            for (name, value) in given {
                lost(value, left.get(name), &at.join(TrailStep::Field(name)), report);
            }
        }
        (given, None) if !says_nothing(given) => report(at),
        _ => {}
    }
}

/// Whether Go leaves a value out as it leaves out an absent one.
fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(value) => value.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.iter().all(says_nothing),
        Value::Object(fields) => fields.values().all(says_nothing),
    }
}

fn type_meta(fields: &mut Map<String, Value>, malformed: Malformed, at: &Place<'_>) -> Result<(), Finding> {
    for name in ["apiVersion", "kind"] {
        match fields.get_mut(name) {
            None | Some(Value::String(_)) => {}
            Some(_) if malformed == Malformed::Drop => drop(fields.remove(name)),
            Some(value) => {
                let finding = Finding::new(Kind::Invalid, at.child(name).to_string(), "must be a string");
                return Err(finding.quoting(value));
            }
        }
    }
    Ok(())
}

/// Upstream coerces what the schema embeds in metadata as well, but in the metadata as it was: the result is
/// lost, errors are not.
fn object_meta(
    value: &mut Value,
    schema: Option<&Schema>,
    malformed: Malformed,
    at: &Place<'_>,
    below: &Place<'_>,
) -> Result<(), Finding> {
    let further =
        |value: &mut Value| schema.map_or(Ok(()), |schema| coerce(value, schema, false, malformed, below));
    match decode(value, malformed) {
        Ok(decoded) => further(&mut Json::from(std::mem::replace(value, Value::Object(decoded)))),
        Err(_) if malformed == Malformed::Drop => further(value),
        Err(misfit) => Err(Finding::new(Kind::Invalid, at.to_string(), misfit.words).quoting(value)),
    }
}

#[cfg(test)]
mod tests;
