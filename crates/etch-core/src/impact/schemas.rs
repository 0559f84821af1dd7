//! Two schemas compared: defaults that appear, change and go, and fields that go. Whether an object is
//! touched is decided elsewhere.

use serde_json::Value;

use crate::crd::Crd;
use kube_structural_schema::json::{Json, same};
use kube_structural_schema::path::{Path, Trail, TrailStep};
use kube_structural_schema::schema::Schema;

/// What is different between two schemas; all lists are sorted by path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SchemaChanges {
    /// Defaults that only the new schema has, as they stand there.
    pub defaults_added: Vec<(Path, Json)>,
    /// Defaults whose value is another; `1.0` and `1` are the same.
    pub defaults_changed: Vec<Changed>,
    /// Defaults that only the old schema has.
    pub defaults_removed: Vec<(Path, Json)>,
    /// The topmost places that only the old schema declares.
    pub fields_removed: Vec<Path>,
    /// The places that no longer keep fields which the schema does not declare; the whole object where the
    /// CRD no longer has `preserveUnknownFields: true`.
    pub unknown_removed: Vec<Path>,
}

/// A default that has changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Changed {
    /// Where it stands.
    pub path: Path,
    /// What it was.
    pub old: Json,
    /// What it is.
    pub new: Json,
}

impl SchemaChanges {
    /// Whether nothing that matters to stored objects is different.
    pub fn is_none(&self) -> bool {
        self.defaults_added.is_empty()
            && self.defaults_changed.is_empty()
            && self.defaults_removed.is_empty()
            && self.fields_removed.is_empty()
            && self.unknown_removed.is_empty()
    }
}

/// Compares the storage versions of two states of a CRD; without an old CRD, all is new.
pub fn compare_crds(old: Option<&Crd>, new: &Crd) -> SchemaChanges {
    let nothing = Schema::default();
    let new_schema = &new.storage().schema;
    let mut changes = compare(old.map_or(&nothing, |old| &old.storage().schema), new_schema);
    if new.preserves_unknown_fields() {
        // What the schema no longer declares is shown nevertheless.
        changes.fields_removed.clear();
        changes.unknown_removed.clear();
    } else if old.is_some_and(Crd::preserves_unknown_fields) && !keeps_unknown(new_schema) {
        changes.unknown_removed = vec![Path::root()];
    }
    changes
}

/// Compares the defaults and the declared fields of two schemas. A default of the whole object has no effect
/// and does not count.
pub fn compare(old: &Schema, new: &Schema) -> SchemaChanges {
    let mut changes = SchemaChanges::default();
    if old.preserve_unknown_fields && !keeps_unknown(new) {
        changes.unknown_removed.push(Path::root());
    }
    below(Some(old), Some(new), &Trail::ROOT, &mut changes);
    changes.defaults_added.sort_by(|(a, _), (b, _)| a.cmp(b));
    changes.defaults_changed.sort_by(|a, b| a.path.cmp(&b.path));
    changes.defaults_removed.sort_by(|(a, _), (b, _)| a.cmp(b));
    changes.fields_removed.sort();
    changes.unknown_removed.sort();
    changes
}

fn below(old: Option<&Schema>, new: Option<&Schema>, at: &Trail<'_>, changes: &mut SchemaChanges) {
    for (name, schema) in old.iter().flat_map(|old| old.properties.iter()) {
        let new_schema = new.and_then(|new| new.properties.get(name));
        place(Some(schema), new_schema, new.is_some(), &at.join(TrailStep::Field(name)), changes);
    }
    for (name, schema) in new.iter().flat_map(|new| new.properties.iter()) {
        if !old.is_some_and(|old| old.properties.contains(name)) {
            place(None, Some(schema), false, &at.join(TrailStep::Field(name)), changes);
        }
    }
    place(items(old), items(new), new.is_some(), &at.join(TrailStep::Items), changes);
    place(values(old), values(new), new.is_some(), &at.join(TrailStep::Values), changes);
}

/// One place that at least one schema may declare; `parent_stays` is whether the new one declares its parent.
fn place(
    old: Option<&Schema>,
    new: Option<&Schema>,
    parent_stays: bool,
    at: &Trail<'_>,
    changes: &mut SchemaChanges,
) {
    if old.is_none() && new.is_none() {
        return;
    }
    if new.is_none() && parent_stays {
        changes.fields_removed.push(at.to_path());
    }
    if old.is_some_and(|old| old.preserve_unknown_fields) && new.is_some_and(|new| !keeps_unknown(new)) {
        changes.unknown_removed.push(at.to_path());
    }
    match (default(old), default(new)) {
        (None, Some(value)) => changes.defaults_added.push((at.to_path(), value.clone().into())),
        (Some(value), None) => changes.defaults_removed.push((at.to_path(), value.clone().into())),
        (Some(old), Some(new)) if !same(old, new) => changes.defaults_changed.push(Changed {
            path: at.to_path(),
            old: old.clone().into(),
            new: new.clone().into(),
        }),
        _ => {}
    }
    below(old, new, at, changes);
}

/// Whether an object keeps the fields that its schema does not declare, or has a place for them.
fn keeps_unknown(schema: &Schema) -> bool {
    schema.preserve_unknown_fields || schema.additional.is_some()
}

fn items(schema: Option<&Schema>) -> Option<&Schema> {
    schema.and_then(|schema| schema.items.as_deref())
}

fn values(schema: Option<&Schema>) -> Option<&Schema> {
    schema.and_then(Schema::additional_schema)
}

fn default(schema: Option<&Schema>) -> Option<&Value> {
    schema.and_then(|schema| schema.default.as_deref())
}
