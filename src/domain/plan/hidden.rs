//! Fields that etcd may still hold and that no read shows: what the owners and the last applied document name and the
//! schema does not know.
//! It must not claim that they are there: `managedFields` goes on naming a field that is long gone (fact R5).

use std::collections::BTreeSet;

use serde_json::Value;

use crate::domain::crd::Crd;
use crate::domain::json::{Json, level};
use crate::domain::object::Object;
use crate::domain::ownership::{MANAGER, owners};
use crate::domain::path::{Path, Trail, TrailStep};
use crate::domain::schema::{Additional, Schema};

/// What kubectl's client-side apply keeps of the document it sent.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The topmost fields that a write may destroy, in order.
pub fn hidden(object: &Object, crd: &Crd) -> Vec<Path> {
    if crd.preserves_unknown_fields() {
        return Vec::new();
    }
    let mut found = BTreeSet::new();
    let storage = Place::root(&crd.storage().schema);
    for owner in owners(object).filter(|owner| owner.manager != MANAGER) {
        let spoken = crd.version(owner.version()).map_or(storage, |version| Place::root(&version.schema));
        unknown_owned(owner.fields, spoken, &Trail::ROOT, &mut found);
        if crd.names_fields_alike(owner.version()) {
            unknown_owned(owner.fields, storage, &Trail::ROOT, &mut found);
        }
    }
    if let Some(applied) = object.annotation(LAST_APPLIED).and_then(|text| Json::parse(text.as_bytes()).ok())
        && crd.names_fields_alike(version_of(&applied))
    {
        unknown_values(&applied, storage, &Trail::ROOT, &mut found);
    }
    found.into_iter().collect()
}

/// Whether an object has a field that a schema does not know.
pub(super) fn would_be_pruned(object: &Object, schema: &Schema) -> bool {
    let mut found = BTreeSet::new();
    unknown_values(object.json(), Place::root(schema), &Trail::ROOT, &mut found);
    !found.is_empty()
}

/// The version at which a document was sent.
fn version_of(applied: &Value) -> &str {
    let group_version = applied.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    group_version.rsplit('/').next().unwrap_or_default()
}

fn unknown_owned(fields: &Value, place: Place<'_>, at: &Trail<'_>, found: &mut BTreeSet<Path>) {
    let Value::Object(elements) = fields else { return };
    level(|| {
        for (element, inner) in elements {
            if let Some(name) = element.strip_prefix("f:") {
                match place.field(name) {
                    Field::Kept => {}
                    Field::Judged(inside) => {
                        unknown_owned(inner, inside, &at.join(place.step(name)), found);
                    }
                    Field::Removed => drop(found.insert(at.join(TrailStep::Field(name)).to_path())),
                }
            } else if element != "."
                && let Some(item) = place.item()
            {
                unknown_owned(inner, item, &at.join(TrailStep::Items), found);
            }
        }
    });
}

fn unknown_values(value: &Value, place: Place<'_>, at: &Trail<'_>, found: &mut BTreeSet<Path>) {
    level(|| match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match place.field(name) {
                    Field::Kept => {}
                    Field::Judged(inside) => unknown_values(value, inside, &at.join(place.step(name)), found),
                    Field::Removed => drop(found.insert(at.join(TrailStep::Field(name)).to_path())),
                }
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                if let Some(item) = place.item() {
                    unknown_values(value, item, &at.join(TrailStep::Index(index)), found);
                }
            }
        }
        _ => {}
    });
}

/// A place of an object, as pruning looks at it.
///
/// Source: apiextensions-apiserver `pkg/apiserver/schema/pruning/algorithm.go`.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    /// None where the schema says nothing, as below `additionalProperties: true`: every field is removed there.
    schema: Option<&'a Schema>,
    /// Whether unknown fields are kept.
    keeps: bool,
    /// Whether this is a resource, whose type and metadata are always kept.
    resource: bool,
}

/// What pruning does with a field.
pub(super) enum Field<'a> {
    /// It is kept, whatever it holds.
    Kept,
    /// It is kept, and its inside is looked at in turn.
    Judged(Place<'a>),
    /// It is removed.
    Removed,
}

impl<'a> Place<'a> {
    pub(super) fn root(schema: &'a Schema) -> Self {
        Self { resource: true, ..Self::of(Some(schema)) }
    }

    fn of(schema: Option<&'a Schema>) -> Self {
        Self {
            schema,
            keeps: schema.is_some_and(|schema| schema.preserve_unknown_fields),
            resource: schema.is_some_and(|schema| schema.embedded_resource),
        }
    }

    /// The schema here; none where the schema says nothing.
    pub(super) fn schema(self) -> Option<&'a Schema> {
        self.schema
    }

    /// Whether this is a resource, whose type and metadata pruning leaves alone.
    pub(super) fn is_resource(self) -> bool {
        self.resource
    }

    pub(super) fn field(self, name: &str) -> Field<'a> {
        if self.resource && matches!(name, "apiVersion" | "kind" | "metadata") {
            return Field::Kept;
        }
        let Some(schema) = self.schema else { return Field::Removed };
        match (schema.properties.get(name), &schema.additional) {
            (Some(property), _) => Field::Judged(Self::of(Some(property))),
            (None, Some(Additional::Schema(values))) => Field::Judged(Self::of(Some(values))),
            (None, Some(Additional::Bool(_))) => Field::Judged(Self::of(None)),
            (None, None) if self.keeps => Field::Kept,
            (None, None) => Field::Removed,
        }
    }

    /// Any item here; none where pruning does not look at items. Items of a list that keeps unknown fields keep theirs.
    pub(super) fn item(self) -> Option<Self> {
        let items = self.schema.and_then(|schema| schema.items.as_deref());
        match (items, self.keeps) {
            (None, true) => None,
            (items, keeps) => {
                let item = Self::of(items);
                Some(Self { keeps: keeps || item.keeps, ..item })
            }
        }
    }

    /// The step to a field: a declared property, or a key of a map.
    pub(super) fn step<'n>(self, name: &'n str) -> TrailStep<'n> {
        match self.schema {
            Some(schema) if schema.properties.get(name).is_none() => TrailStep::Key(name),
            _ => TrailStep::Field(name),
        }
    }
}
