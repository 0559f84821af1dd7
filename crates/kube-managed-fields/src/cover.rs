//! Whether the owners of an object cover a value in it.
//! The caller leaves out owners that name fields in other terms than the schema's.

use std::str;
use std::sync::LazyLock;

use serde_json::Value;

use super::Owner;
use super::name::{write, write_text};
use kube_structural_schema::path::{Step, Trail, TrailStep};
use kube_structural_schema::schema::{Schema, SchemaType};

/// Whether every leaf of the value at `path` is named by at least one owner.
///
/// Inside an atomic list or map an owner names only the whole, which proves nothing about the part: such a
/// part is not covered. `path` is a place of `object`, and `schema` the schema of `object`.
pub fn is_covered<'a>(
    owners: impl Iterator<Item = Owner<'a>>,
    object: &Value,
    schema: &Schema,
    path: &[Step],
) -> bool {
    let mut claims = Claims::default();
    claims.take(owners);
    claims.walk(object, schema, path).is_some_and(|(value, schema)| claims.cover_leaves(0, value, schema))
}

/// Whether any owner names the place at `path` or something in it; see [`is_covered`].
///
/// This shows what a client has written. What no manager may own is another question, with another answer for
/// parts of atomic lists and maps: [`is_claimed`](super::is_claimed).
pub fn is_named<'a>(
    owners: impl Iterator<Item = Owner<'a>>,
    object: &Value,
    schema: &Schema,
    path: &[Step],
) -> bool {
    let mut claims = Claims::default();
    claims.take(owners);
    claims.walk(object, schema, path).is_some() && !claims.sets.is_empty()
}

/// The working memory of questions about owners, kept from one place to the next: many questions allocate no
/// more than the deepest one.
#[derive(Debug, Default)]
pub struct Claims<'a> {
    /// The owners' sets for the place in question, above those for the places that lead there.
    sets: Vec<&'a Value>,
    /// The FieldsV1 name of a step.
    key: Vec<u8>,
}

impl<'a> Claims<'a> {
    /// As [`is_covered`], for a place that a walk over the object has reached.
    pub fn cover(
        &mut self,
        owners: impl Iterator<Item = Owner<'a>>,
        object: &Value,
        schema: &Schema,
        at: &Trail<'_>,
    ) -> bool {
        self.take(owners);
        self.follow(object, schema, at).is_some_and(|(value, schema)| self.cover_leaves(0, value, schema))
    }

    fn take(&mut self, owners: impl Iterator<Item = Owner<'a>>) {
        self.sets.clear();
        self.sets.extend(owners.map(|owner| owner.fields));
    }

    /// Goes down a path; `None` if owners do not name the parts of what is on the way.
    fn walk<'v, 's>(
        &mut self,
        object: &'v Value,
        schema: &'s Schema,
        path: &[Step],
    ) -> Option<(&'v Value, &'s Schema)> {
        path.iter()
            .try_fold((object, schema), |(value, schema), step| self.step_into(value, schema, step.into()))
    }

    /// Goes down to a place that a walk has reached; `None` if owners do not name the parts of what is on the
    /// way.
    fn follow<'v, 's>(
        &mut self,
        object: &'v Value,
        schema: &'s Schema,
        at: &Trail<'_>,
    ) -> Option<(&'v Value, &'s Schema)> {
        let Some((above, step)) = at.last() else { return Some((object, schema)) };
        let (value, schema) = self.follow(object, schema, above)?;
        self.step_into(value, schema, step)
    }

    /// Goes one step down, and the owners' sets with it.
    fn step_into<'v, 's>(
        &mut self,
        value: &'v Value,
        schema: &'s Schema,
        step: TrailStep<'_>,
    ) -> Option<(&'v Value, &'s Schema)> {
        let (child, child_schema) = match step {
            TrailStep::Field(name) | TrailStep::Key(name) => (value.get(name)?, field_schema(schema, name)?),
            TrailStep::Index(index) => (value.get(index)?, schema.items.as_deref()?),
            TrailStep::Items | TrailStep::Values => return None,
        };
        let name = element(&mut self.key, schema, step, child)?;
        self.sets.retain_mut(|set| set.get(name).map(|inner| *set = inner).is_some());
        Some((child, child_schema))
    }

    /// Whether the sets from `first` on name every leaf of a value.
    fn cover_leaves(&mut self, first: usize, value: &Value, schema: &Schema) -> bool {
        if self.sets.len() == first {
            return false;
        }
        match value {
            Value::Object(fields) if !fields.is_empty() && !is_atomic_map(schema) => {
                fields.iter().all(|(name, child)| {
                    let Some(below) = field_schema(schema, name) else { return false };
                    self.cover_part(first, schema, TrailStep::Field(name), child, below)
                })
            }
            Value::Array(items) if !items.is_empty() && is_associative(schema) => {
                items.iter().enumerate().all(|(index, child)| {
                    let Some(below) = schema.items.as_deref() else { return false };
                    self.cover_part(first, schema, TrailStep::Index(index), child, below)
                })
            }
            _ => true,
        }
    }

    fn cover_part(
        &mut self,
        first: usize,
        parent: &Schema,
        step: TrailStep<'_>,
        child: &Value,
        schema: &Schema,
    ) -> bool {
        let Some(name) = element(&mut self.key, parent, step, child) else { return false };
        let end = self.sets.len();
        for index in first..end {
            self.sets.extend(self.sets[index].get(name));
        }
        let covered = self.cover_leaves(end, child, schema);
        self.sets.truncate(end);
        covered
    }
}

/// The schema of a field. Where unknown fields are preserved, the server deduces one for them: owners name
/// the parts of objects, and lists as a whole.
///
/// Source: kube-openapi `pkg/schemaconv/smd.go`, `__untyped_deduced_`.
fn field_schema<'s>(schema: &'s Schema, name: &str) -> Option<&'s Schema> {
    static DEDUCED: LazyLock<Schema> =
        LazyLock::new(|| Schema { preserve_unknown_fields: true, ..Schema::default() });
    schema.child(name).or_else(|| schema.preserve_unknown_fields.then(|| &*DEDUCED))
}

/// The FieldsV1 name of a step; `None` if owners do not name the parts of this parent.
fn element<'k>(key: &'k mut Vec<u8>, parent: &Schema, step: TrailStep<'_>, child: &Value) -> Option<&'k str> {
    key.clear();
    match step {
        TrailStep::Field(name) | TrailStep::Key(name) if !is_atomic_map(parent) => {
            key.extend_from_slice(b"f:");
            key.extend_from_slice(name.as_bytes());
        }
        TrailStep::Index(_) => match parent.list_type.as_deref() {
            Some("map") => list_map_key(key, parent, child)?,
            Some("set") => {
                key.extend_from_slice(b"v:");
                write(child, key);
            }
            _ => return None,
        },
        _ => return None,
    }
    str::from_utf8(key).ok()
}

/// The keys of an item, in the order of their names.
fn list_map_key(key: &mut Vec<u8>, parent: &Schema, item: &Value) -> Option<()> {
    let after = |last: Option<&str>| {
        parent
            .list_map_keys
            .iter()
            .map(String::as_str)
            .filter(|name| last.is_none_or(|last| *name > last))
            .min()
    };
    key.extend_from_slice(b"k:{");
    let mut name = after(None);
    while let Some(known) = name {
        write_text(known, key);
        key.push(b':');
        write(item.get(known)?, key);
        name = after(name);
        key.extend(name.map(|_| b','));
    }
    key.push(b'}');
    Some(())
}

fn is_atomic_map(schema: &Schema) -> bool {
    schema.map_type.as_deref() == Some("atomic") && schema.kind == SchemaType::Object
}

fn is_associative(schema: &Schema) -> bool {
    matches!(schema.list_type.as_deref(), Some("map" | "set"))
}
