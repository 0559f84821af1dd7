//! Types and metadata that the server cannot decode, and the one of them that it reports.
//! What has the right type and is wrong is for the other checks.
//!
//! Source: apiextensions-apiserver `pkg/apiserver/schema/objectmeta/algorithm.go`, where malformed fields are
//! refused.

use serde_json::Value;

use crate::field::Field;
use kube_structural_schema::defaults::meta::{Malformed, Misfit, decode};
use kube_structural_schema::finding::{Finding, Kind};
use kube_structural_schema::json::Json;
use kube_structural_schema::schema::Schema;

/// Everything that the server may stop at, the likeliest first. It stops at one: the first in a list, and in
/// an object whichever its map, which has no order, gives it first.
pub(crate) fn find(schema: &Schema, value: &Value, is_object: bool, at: &mut Field) -> Vec<Finding> {
    match value {
        Value::Object(fields) => {
            let is_object = is_object || schema.embedded_resource;
            let mut found = Vec::new();
            for (name, field) in fields {
                if is_object {
                    let mark = at.child(name);
                    let misfit =
                        misfit(name, field).map(|detail| Finding::new(Kind::Invalid, at.to_string(), detail));
                    at.back(mark);
                    if let Some(misfit) = misfit {
                        found.push(misfit);
                        continue;
                    }
                }
                if let Some((below, mark)) = at.below(schema, name) {
                    found.extend(find(below, field, false, at));
                    at.back(mark);
                }
            }
            found
        }
        Value::Array(items) => {
            let Some(schema) = &schema.items else { return Vec::new() };
            let found = items.iter().enumerate().map(|(index, item)| {
                let mark = at.index(index);
                let found = find(schema, item, false, at);
                at.back(mark);
                found
            });
            { found }.find(|found| !found.is_empty()).unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

/// Metadata as the server holds it.
pub(super) fn decoded(metadata: &Value) -> Result<Json, Misfit> {
    decode(metadata, Malformed::Refuse).map(|decoded| Json::from(Value::Object(decoded)))
}

fn misfit(name: &str, field: &Value) -> Option<String> {
    match name {
        "apiVersion" | "kind" if !field.is_string() => Some("must be a string".to_owned()),
        "metadata" => decoded(field).err().map(|misfit| misfit.words),
        _ => None,
    }
}
