//! Dropping what a schema does not know.
//! It must not drop nulls or look at metadata; see [`crate::domain::defaults`].
//!
//! Source: apiextensions-apiserver `pkg/apiserver/schema/pruning/algorithm.go`.

use serde_json::{Map, Value};

use crate::domain::json::{Json, level};
use crate::domain::path::{Trail, TrailStep};
use crate::domain::schema::{Additional, Schema};

/// Removes all fields that the schema does not specify and reports the topmost of them.
///
/// `whole` says that the value is a whole object: its `apiVersion`, `kind` and `metadata` stay as they are, as those of an
/// embedded resource do.
pub fn prune(value: &mut Value, schema: &Schema, whole: bool, report: &mut impl FnMut(&Trail<'_>)) {
    match value {
        Value::Object(fields) => object(fields, schema, Unknown::of(schema), whole, &Trail::ROOT, report),
        value => known(value, schema, Unknown::of(schema), &Trail::ROOT, report),
    }
}

/// Like [`prune`], for a value that is reached through the items of an array that keeps unknown fields: from array to items
/// upstream hands this down, though not from object to property.
pub(in crate::domain) fn prune_kept(value: &mut Value, schema: &Schema) {
    known(value, schema, Unknown::Kept, &Trail::ROOT, &mut |_| {});
}

/// What happens to fields that the schema does not specify.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unknown {
    Kept,
    Removed,
}

impl Unknown {
    fn of(schema: &Schema) -> Self {
        if schema.preserve_unknown_fields { Self::Kept } else { Self::Removed }
    }
}

/// A value with a schema.
fn known(
    value: &mut Value,
    schema: &Schema,
    unknown: Unknown,
    at: &Trail<'_>,
    report: &mut impl FnMut(&Trail<'_>),
) {
    match value {
        Value::Object(fields) => level(|| object(fields, schema, unknown, false, at, report)),
        Value::Array(items) => level(|| {
            for (index, item) in items.iter_mut().enumerate() {
                let at = at.join(TrailStep::Index(index));
                match (&schema.items, unknown) {
                    (Some(schema), Unknown::Kept) => known(item, schema, Unknown::Kept, &at, report),
                    (Some(schema), Unknown::Removed) => known(item, schema, Unknown::of(schema), &at, report),
                    (None, Unknown::Kept) => {}
                    (None, Unknown::Removed) => untold(item, &at, report),
                }
            }
        }),
        _ => {}
    }
}

fn object(
    fields: &mut Map<String, Value>,
    schema: &Schema,
    unknown: Unknown,
    whole: bool,
    at: &Trail<'_>,
    report: &mut impl FnMut(&Trail<'_>),
) {
    let whole = whole || schema.embedded_resource;
    fields.retain(|name, value| {
        if whole && matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
            return true;
        }
        if let Some(property) = schema.properties.get(name) {
            known(value, property, Unknown::of(property), &at.join(TrailStep::Field(name)), report);
            return true;
        }
        match &schema.additional {
            Some(Additional::Schema(schema)) => {
                known(value, schema, Unknown::of(schema), &at.join(TrailStep::Key(name)), report);
            }
            // Allowed or not: upstream asks only whether the keyword is there.
            Some(Additional::Bool(_)) => untold(value, &at.join(TrailStep::Key(name)), report),
            None if unknown == Unknown::Removed => {
                report(&at.join(TrailStep::Field(name)));
                discard(value);
                return false;
            }
            None => {}
        }
        true
    });
}

/// A value that has its place but no schema: objects in it lose all fields.
fn untold(value: &mut Value, at: &Trail<'_>, report: &mut impl FnMut(&Trail<'_>)) {
    match value {
        Value::Object(fields) => {
            fields.keys().for_each(|name| report(&at.join(TrailStep::Field(name))));
            fields.values_mut().for_each(discard);
            fields.clear();
        }
        Value::Array(items) => level(|| {
            for (index, item) in items.iter_mut().enumerate() {
                untold(item, &at.join(TrailStep::Index(index)), report);
            }
        }),
        _ => {}
    }
}

/// Drops a value of any depth.
fn discard(value: &mut Value) {
    drop(Json::from(std::mem::take(value)));
}
