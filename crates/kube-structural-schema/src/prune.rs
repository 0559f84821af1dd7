//! Dropping what a schema does not know.
//! For nulls and metadata see [`crate::defaults`].
//!
//! Source: apiextensions-apiserver `pkg/apiserver/schema/pruning/algorithm.go`.

use serde_json::Value;

use crate::path::{Step, Trail, TrailStep};
use crate::schema::{Additional, Schema};

/// Removes all fields that the schema does not specify and reports the topmost of them.
///
/// `whole` means that the value is a whole object: its `apiVersion`, `kind` and `metadata` stay unchanged, as
/// those of an embedded resource do.
pub fn prune(value: &mut Value, schema: &Schema, whole: bool, report: &mut impl FnMut(&Trail<'_>)) {
    let pruner = if whole { Pruner::root(schema) } else { Pruner::of(Some(schema)) };
    pruner.prune(value, &Trail::ROOT, report);
}

/// Whether what is at this place of a whole object is kept.
pub fn keeps(schema: &Schema, place: &[Step]) -> bool {
    let mut pruner = Pruner::root(schema);
    for step in place {
        let field = match step {
            Step::Field(name) | Step::Key(name) => pruner.field(name),
            // A name that no schema declares.
            Step::Values => pruner.undeclared(),
            Step::Items | Step::Index(_) => pruner.item().map_or(Field::Kept, Field::Pruned),
        };
        match field {
            Field::Kept => return true,
            Field::Pruned(inside) => pruner = inside,
            Field::Removed => return false,
        }
    }
    true
}

/// What pruning does at one place of an object.
#[derive(Clone, Copy, Debug)]
pub struct Pruner<'a> {
    /// `None` where there is no schema, as below `additionalProperties: true`: every field is removed there.
    schema: Option<&'a Schema>,
    /// Whether unknown fields are kept.
    keeps: bool,
    /// Whether this is a resource, whose type and metadata are always kept.
    resource: bool,
}

/// What pruning does with a field.
#[derive(Clone, Copy, Debug)]
pub enum Field<'a> {
    /// It is kept, whatever it holds.
    Kept,
    /// It is kept, and its inside is pruned in turn.
    Pruned(Pruner<'a>),
    /// It is removed.
    Removed,
}

impl<'a> Pruner<'a> {
    /// For a whole object.
    pub fn root(schema: &'a Schema) -> Self {
        Self { resource: true, ..Self::of(Some(schema)) }
    }

    /// For a value that is reached through the items of an array that keeps unknown fields: from array to
    /// items upstream hands this down, though not from object to property.
    pub(crate) fn keeping(schema: &'a Schema) -> Self {
        Self { keeps: true, ..Self::of(Some(schema)) }
    }

    fn of(schema: Option<&'a Schema>) -> Self {
        Self {
            schema,
            keeps: schema.is_some_and(|schema| schema.preserve_unknown_fields),
            resource: schema.is_some_and(|schema| schema.embedded_resource),
        }
    }

    /// The schema here; `None` if there is none.
    pub fn schema(self) -> Option<&'a Schema> {
        self.schema
    }

    /// What happens to a field.
    pub fn field(self, name: &str) -> Field<'a> {
        if self.resource && matches!(name, "apiVersion" | "kind" | "metadata") {
            return Field::Kept;
        }
        match self.schema.and_then(|schema| schema.properties.get(name)) {
            Some(property) => Field::Pruned(Self::of(Some(property))),
            None => self.undeclared(),
        }
    }

    /// What happens to a field that the schema does not declare by its name.
    pub fn undeclared(self) -> Field<'a> {
        match self.schema.map(|schema| &schema.additional) {
            Some(Some(Additional::Schema(values))) => Field::Pruned(Self::of(Some(values))),
            // Allowed or not: upstream checks only whether the keyword is there.
            Some(Some(Additional::Bool(_))) => Field::Pruned(Self::of(None)),
            Some(None) if self.keeps => Field::Kept,
            Some(None) | None => Field::Removed,
        }
    }

    /// Any item here; `None` if items are kept, whatever they hold. Items of a list that keeps unknown fields
    /// keep theirs.
    pub fn item(self) -> Option<Self> {
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
    pub fn step<'n>(self, name: &'n str) -> TrailStep<'n> {
        match self.schema {
            Some(schema) if schema.properties.get(name).is_none() => TrailStep::Key(name),
            _ => TrailStep::Field(name),
        }
    }

    /// Prunes a value and reports the topmost places that are removed.
    pub(crate) fn prune(self, value: &mut Value, at: &Trail<'_>, report: &mut impl FnMut(&Trail<'_>)) {
        match value {
            Value::Object(fields) => {
                fields.retain(|name, value| match self.field(name) {
                    Field::Kept => true,
                    Field::Pruned(inside) => {
                        inside.prune(value, &at.join(self.step(name)), report);
                        true
                    }
                    Field::Removed => {
                        report(&at.join(TrailStep::Field(name)));
                        false
                    }
                });
            }
            Value::Array(items) => {
                if let Some(item) = self.item() {
                    for (index, value) in items.iter_mut().enumerate() {
                        item.prune(value, &at.join(TrailStep::Index(index)), report);
                    }
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pruned(schema: &Value, mut value: Value, whole: bool) -> (Value, Vec<String>) {
        let mut removed = Vec::new();
        let schema = Schema::parse(schema).expect("a schema");
        prune(&mut value, &schema, whole, &mut |at| removed.push(at.to_path().to_string()));
        (value, removed)
    }

    #[test]
    fn reports_the_topmost_places_that_go() {
        let schema = json!({"properties": {
            "l": {"items": {"properties": {"a": {}}}},
            "m": {"additionalProperties": {"properties": {"a": {}}}},
            "open": {"additionalProperties": true},
        }});
        let value = json!({
            "l": [{"a": 1, "x": {"y": 1}}, [{"z": 1}]],
            "m": {"k.1": {"x": 1}},
            "open": {"k": [{"b": 1, "c": 2}]},
            "x": [{"y": 1}],
        });
        let (left, removed) = pruned(&schema, value, false);
        assert_eq!(left, json!({"l": [{"a": 1}, [{}]], "m": {"k.1": {}}, "open": {"k": [{}]}}));
        assert_eq!(
            removed,
            [".l[0].x", ".l[1][0].z", r#".m["k.1"].x"#, r#".open["k"][0].b"#, r#".open["k"][0].c"#, ".x"]
        );
    }

    #[test]
    fn only_whole_objects_keep_their_metadata() {
        let value = json!({"apiVersion": "v1", "kind": "K", "metadata": {"x": 1}, "spec": {}});
        assert_eq!(pruned(&json!({}), value.clone(), false).0, json!({}));
        let meta = json!({"apiVersion": "v1", "kind": "K", "metadata": {"x": 1}});
        assert_eq!(pruned(&json!({}), value.clone(), true), (meta.clone(), vec![".spec".to_owned()]));
        assert_eq!(pruned(&json!({"x-kubernetes-embedded-resource": true}), value, false).0, meta);
        assert_eq!(pruned(&json!({"items": {}}), json!([{"kind": "K"}]), true).0, json!([{}]));
        assert_eq!(pruned(&json!({}), json!("text"), true).0, json!("text"));
    }
}
