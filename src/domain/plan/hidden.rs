//! Fields that etcd may still hold and that no read shows: what the owners and the last applied document name and the
//! schema does not know.
//! It must not claim that they are there: `managedFields` goes on naming a field that is long gone (fact R5).

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::domain::crd::Crd;
use crate::domain::json::{Json, level};
use crate::domain::object::Object;
use crate::domain::ownership::{MANAGER, owners};
use crate::domain::path::{Path, Step, Trail, TrailStep};
use crate::domain::schema::{Additional, Schema};

/// What kubectl's client-side apply keeps of the document it sent.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The topmost fields that a write may destroy, in order.
pub(super) fn hidden(object: &Object, crd: &Crd) -> Vec<Path> {
    let mut found = BTreeSet::new();
    for owner in owners(object).filter(|owner| owner.manager != MANAGER) {
        let storage = &crd.storage().schema;
        let spoken = crd.version(owner.version()).map_or(storage, |version| &version.schema);
        unknown_owned(owner.fields, spoken, &Trail::ROOT, true, &mut found);
        if crd.names_fields_alike(owner.version()) {
            unknown_owned(owner.fields, storage, &Trail::ROOT, true, &mut found);
        }
    }
    if let Some(applied) = object.annotation(LAST_APPLIED).and_then(|text| Json::parse(text.as_bytes()).ok())
    {
        unknown_applied(&applied, crd, &mut found);
    }
    found.into_iter().collect()
}

/// The document was sent at some version of the CRD; only what that version and the storage version know is shown.
fn unknown_applied(applied: &Value, crd: &Crd, found: &mut BTreeSet<Path>) {
    let group_version = applied.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    let name = group_version.rsplit('/').next().unwrap_or_default();
    if !crd.names_fields_alike(name) {
        return;
    }
    unknown_values(applied, &crd.storage().schema, &Trail::ROOT, true, found);
}

fn unknown_owned(
    fields: &Value,
    schema: &Schema,
    at: &Trail<'_>,
    resource: bool,
    found: &mut BTreeSet<Path>,
) {
    let Value::Object(elements) = fields else { return };
    level(|| {
        for (element, inner) in elements {
            if let Some(name) = element.strip_prefix("f:") {
                match known(schema, name, resource) {
                    Known::Always => {}
                    Known::By(child) => {
                        unknown_owned(
                            inner,
                            child,
                            &at.join(TrailStep::Field(name)),
                            child.embedded_resource,
                            found,
                        );
                    }
                    Known::Not => {
                        found.insert(at.join(TrailStep::Field(name)).to_path());
                    }
                }
            } else if element != "."
                && let Some(items) = schema.items.as_deref()
            {
                unknown_owned(inner, items, &at.join(TrailStep::Items), items.embedded_resource, found);
            }
        }
    });
}

fn unknown_values(
    value: &Value,
    schema: &Schema,
    at: &Trail<'_>,
    resource: bool,
    found: &mut BTreeSet<Path>,
) {
    level(|| match value {
        Value::Object(fields) => unknown_fields(fields, schema, at, resource, found),
        Value::Array(items) => {
            if let Some(item) = schema.items.as_deref() {
                for (index, value) in items.iter().enumerate() {
                    unknown_values(
                        value,
                        item,
                        &at.join(TrailStep::Index(index)),
                        item.embedded_resource,
                        found,
                    );
                }
            }
        }
        _ => {}
    });
}

fn unknown_fields(
    fields: &Map<String, Value>,
    schema: &Schema,
    at: &Trail<'_>,
    resource: bool,
    found: &mut BTreeSet<Path>,
) {
    for (name, value) in fields {
        match known(schema, name, resource) {
            Known::Always => {}
            Known::By(child) => {
                unknown_values(
                    value,
                    child,
                    &at.join(TrailStep::Field(name)),
                    child.embedded_resource,
                    found,
                );
            }
            Known::Not => {
                found.insert(at.to_path().join(Step::Field(name.clone())));
            }
        }
    }
}

/// What pruning would do with a field.
enum Known<'a> {
    /// It is kept, whatever it holds.
    Always,
    /// It is kept, and its inside is judged by this schema.
    By(&'a Schema),
    /// It is removed.
    Not,
}

fn known<'a>(schema: &'a Schema, name: &str, resource: bool) -> Known<'a> {
    if resource && matches!(name, "apiVersion" | "kind" | "metadata") {
        return Known::Always;
    }
    match (schema.properties.get(name), &schema.additional) {
        (Some(child), _) if child.preserve_unknown_fields && child.properties.is_empty() => Known::Always,
        (Some(child), _) => Known::By(child),
        (None, Some(Additional::Schema(child))) => Known::By(child),
        (None, Some(Additional::Bool(_))) => Known::Always,
        (None, None) if schema.preserve_unknown_fields => Known::Always,
        (None, None) => Known::Not,
    }
}
