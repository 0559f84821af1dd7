//! The type and `metadata` of objects inside objects: what the server requires of them beside the schema.
//! The `metadata` of the object itself is left out: the server that stored it has checked that.
//!
//! Source: apiextensions-apiserver `pkg/apiserver/schema/objectmeta/validation.go`, and apimachinery
//! `pkg/api/validation/objectmeta.go`. The declarative rules of apimachinery 0.37 are of alpha level and
//! refuse nothing.

mod misfits;
pub(super) mod names;
pub(super) mod rules;

use serde_json::{Map, Value};

use super::field::Field;
use kube_structural_schema::finding::{Finding, Kind};
use kube_structural_schema::schema::Schema;

use misfits::decoded;
pub(super) use misfits::find as misfits;

/// Reports what is wrong with the objects inside a value, and with the value itself if it is to be one.
pub(super) fn check(
    schema: &Schema,
    value: &Value,
    is_object: bool,
    at: &mut Field,
    found: &mut Vec<Finding>,
) {
    match value {
        Value::Object(fields) => {
            if is_object || schema.embedded_resource {
                object(fields, at, found);
            }
            for (name, field) in fields {
                if let Some((below, mark)) = at.below(schema, name) {
                    check(below, field, false, at, found);
                    at.back(mark);
                }
            }
        }
        Value::Array(items) => {
            let Some(schema) = &schema.items else { return };
            for (index, item) in items.iter().enumerate() {
                let mark = at.index(index);
                check(schema, item, false, at, found);
                at.back(mark);
            }
        }
        _ => {}
    }
}

fn object(fields: &Map<String, Value>, at: &mut Field, found: &mut Vec<Finding>) {
    for (name, check) in [("apiVersion", api_version as fn(&str) -> Option<String>), ("kind", kind)] {
        let mark = at.child(name);
        let problem = match fields.get(name) {
            None => {
                found.push(Finding::new(Kind::Required, at.to_string(), ""));
                None
            }
            Some(Value::String(text)) if text.is_empty() => Some("must not be empty".to_owned()),
            Some(Value::String(text)) => check(text),
            Some(_) => Some("must be a string".to_owned()),
        };
        if let (Some(problem), Some(value)) = (problem, fields.get(name)) {
            found.push(Finding::new(Kind::Invalid, at.to_string(), problem).quoting(value));
        }
        at.back(mark);
    }
    let Some(given) = fields.get("metadata") else { return };
    let mark = at.child("metadata");
    match decoded(given) {
        Ok(decoded) => rules::check(&decoded, at, found),
        Err(misfit) => {
            found.push(Finding::new(Kind::Invalid, at.to_string(), misfit.words).quoting(given));
        }
    }
    at.back(mark);
}

fn api_version(text: &str) -> Option<String> {
    (text.matches('/').count() > 1).then(|| format!("unexpected GroupVersion string: {text}"))
}

fn kind(text: &str) -> Option<String> {
    let problems = names::dns_1035_label(&names::small(text));
    (!problems.is_empty())
        .then(|| format!("may have mixed case, but should otherwise match: {}", problems.join(",")))
}
