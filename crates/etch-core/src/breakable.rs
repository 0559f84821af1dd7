//! Where in a schema a default can break what stands around it, and what the validation of objects by that
//! schema needs. Whether a default can break any object is decided once for each CRD, without looking at
//! objects.
//!
//! The server validates each default by itself, and never the object that it becomes a part of.

use std::sync::OnceLock;

use kube_crd_validation::Prepared;
use kube_structural_schema::compile::has_default;
use kube_structural_schema::path::{Path, Step, touches};
use kube_structural_schema::schema::Schema;

/// What a schema's defaults can break.
#[derive(Debug, Default)]
pub struct BreakableScopes {
    /// The topmost places of which a default below may break a rule or a restriction, sorted.
    scopes: Vec<Path>,
    /// Made when the first object has to be judged: most CRDs need none.
    prepared: OnceLock<Prepared>,
}

impl BreakableScopes {
    /// Looks for the places of a schema.
    pub fn of(schema: &Schema) -> Self {
        let mut scopes = Vec::new();
        collect(schema, &mut Path::root(), &mut scopes);
        scopes.sort();
        Self { scopes, prepared: OnceLock::new() }
    }

    /// The topmost places of which a default below may break a rule or a restriction. Empty if no default of
    /// the schema can make an object invalid, unless it is itself invalid.
    pub fn scopes(&self) -> &[Path] {
        &self.scopes
    }

    /// Whether a default that is filled in at a place of an object, with the defaults below it, can break
    /// anything there.
    pub fn covers(&self, place: &Path) -> bool {
        !self.scopes.is_empty() && touches(&self.scopes, &place.to_schema())
    }

    /// What judging objects by the schema needs; `schema` is the one that this was made of.
    pub(super) fn prepared(&self, schema: &Schema) -> &Prepared {
        self.prepared.get_or_init(|| Prepared::of(schema))
    }
}

/// Collects the topmost places at and below a schema; whether there is a default.
fn collect(schema: &Schema, at: &mut Path, scopes: &mut Vec<Path>) -> bool {
    let before = scopes.len();
    let mut below = false;
    let mut enter = |step: Step, part: &Schema| {
        at.push(step);
        below |= collect(part, at, scopes);
        at.pop();
    };
    for (name, property) in schema.properties.iter() {
        enter(Step::Field(name.to_owned()), property);
    }
    if let Some(items) = &schema.items {
        enter(Step::Items, items);
    }
    if let Some(values) = schema.additional_schema() {
        enter(Step::Values, values);
    }
    if below && can_be_broken(schema) {
        scopes.truncate(before);
        scopes.push(at.clone());
    }
    below || schema.default.is_some()
}

/// Whether a value that gets a default somewhere below can break what its schema requires of the value as a
/// whole.
///
/// Lengths of texts and lists, ranges, patterns and formats are about what a default is not below. A field
/// that appears can only help `required` and `minProperties`.
fn can_be_broken(schema: &Schema) -> bool {
    let constraints = schema.constraints.as_deref();
    !schema.rules.is_empty()
        || constraints.is_some_and(|constraints| {
            constraints.max_properties.is_some()
                || !constraints.allowed.is_empty()
                || constraints.unique_items
                || !constraints.all_of.is_empty()
                || !constraints.any_of.is_empty()
                || !constraints.one_of.is_empty()
                || constraints.not.is_some()
        })
        || items_can_become_the_same(schema)
        || (schema.embedded_resource && describes_itself(schema))
}

/// Whether two items of a set or map that differ may be the same with their defaults.
fn items_can_become_the_same(list: &Schema) -> bool {
    let Some(items) = list.items.as_deref() else { return false };
    let has_default = |key: &String| items.child(key).is_some_and(|property| property.default.is_some());
    match list.list_type.as_deref() {
        Some("set") => true,
        Some("map") => items.default.is_some() || list.list_map_keys.iter().any(has_default),
        _ => false,
    }
}

/// Whether an object inside the object gets its type or metadata by default: the server judges them together.
fn describes_itself(resource: &Schema) -> bool {
    ["apiVersion", "kind", "metadata"]
        .iter()
        .any(|name| resource.properties.get(name).is_some_and(has_default))
}

#[cfg(test)]
mod tests;
