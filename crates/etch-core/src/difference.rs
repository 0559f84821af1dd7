//! Two views of one object compared, without metadata.

use serde_json::{Map, Value};

use kube_structural_schema::json::same;
use kube_structural_schema::path::{Path, Step, Trail, TrailStep};
use kube_structural_schema::schema::Schema;

/// The topmost places at which two views differ, in order.
#[derive(Debug, Default)]
pub(crate) struct Difference {
    /// Only in the later view.
    pub(crate) appears: Vec<Path>,
    /// Another value.
    pub(crate) changes: Vec<Path>,
    /// Only in the earlier view.
    pub(crate) disappears: Vec<Path>,
}

/// Compares two views; the schemas distinguish fields from keys of maps.
pub(crate) fn difference(before: &Value, after: &Value, old: &Schema, new: &Schema) -> Difference {
    let mut found = Difference::default();
    let schemas = Schemas { old: Some(old), new: Some(new) };
    if let (Value::Object(before), Value::Object(after)) = (before, after) {
        let is_payload = |name: &str| !matches!(name, "apiVersion" | "kind" | "metadata");
        objects(before, after, schemas, &Trail::ROOT, &is_payload, &mut found);
    }
    found.appears.sort();
    found.changes.sort();
    found.disappears.sort();
    found
}

/// A place as both schemas have it: what is a key of a map in one of them is data of users, whatever the
/// other makes of it.
pub(crate) fn place(path: &Path, old: &Schema, new: &Schema) -> Path {
    let mut schemas = Schemas { old: Some(old), new: Some(new) };
    let step = |step: &Step| {
        let (step, below) = match step {
            Step::Field(name) | Step::Key(name) => match schemas.step(name) {
                TrailStep::Key(key) => (Step::Key(key.to_owned()), schemas.child(name)),
                _ => (Step::Field(name.clone()), schemas.child(name)),
            },
            step => (step.clone(), schemas.items()),
        };
        schemas = below;
        step
    };
    path.steps().iter().map(step).collect()
}

#[derive(Clone, Copy)]
struct Schemas<'s> {
    old: Option<&'s Schema>,
    new: Option<&'s Schema>,
}

impl<'s> Schemas<'s> {
    fn child(self, name: &str) -> Self {
        Self { old: self.old.and_then(|old| old.child(name)), new: self.new.and_then(|new| new.child(name)) }
    }

    fn items(self) -> Self {
        Self {
            old: self.old.and_then(|old| old.items.as_deref()),
            new: self.new.and_then(|new| new.items.as_deref()),
        }
    }

    /// A declared property, or a key of a map.
    fn step(self, name: &str) -> TrailStep<'_> {
        let both = || [self.old, self.new].into_iter().flatten();
        let is_key = both().any(|schema| schema.additional.is_some())
            && !both().any(|schema| schema.properties.contains(name));
        if is_key { TrailStep::Key(name) } else { TrailStep::Field(name) }
    }
}

fn objects(
    before: &Map<String, Value>,
    after: &Map<String, Value>,
    schemas: Schemas<'_>,
    at: &Trail<'_>,
    counts: &dyn Fn(&str) -> bool,
    found: &mut Difference,
) {
    for (name, value) in before.iter().filter(|(name, _)| counts(name)) {
        let at = at.join(schemas.step(name));
        match after.get(name) {
            Some(later) => values(value, later, schemas.child(name), &at, found),
            None => found.disappears.push(at.to_path()),
        }
    }
    for name in after.keys().filter(|name| counts(name) && !before.contains_key(*name)) {
        found.appears.push(at.join(schemas.step(name)).to_path());
    }
}

fn values(before: &Value, after: &Value, schemas: Schemas<'_>, at: &Trail<'_>, found: &mut Difference) {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            objects(before, after, schemas, at, &|_| true, found);
        }
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            for (index, (before, after)) in before.iter().zip(after).enumerate() {
                values(before, after, schemas.items(), &at.join(TrailStep::Index(index)), found);
            }
        }
        _ if same(before, after) => {}
        _ => found.changes.push(at.to_path()),
    }
}
