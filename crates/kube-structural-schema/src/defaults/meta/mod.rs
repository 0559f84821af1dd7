//! Bringing the metadata of embedded resources, and of whole objects, into the form that the server knows.
//!
//! Source: apiextensions-apiserver `pkg/apiserver/schema/objectmeta/{algorithm,coerce}.go`.

mod object_meta;

use serde_json::{Map, Value};

use crate::finding::{Finding, Kind};
use crate::json::Json;
use crate::schema::{Place, Schema};

pub use object_meta::{Malformed, Misfit, decode};

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
