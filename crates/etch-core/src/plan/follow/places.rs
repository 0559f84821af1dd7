//! The places of an object that a place of its schema stands for.

use serde_json::Value;

use kube_structural_schema::path::{Path, Step};

/// Calls `found` with every place of `object` that `schema_path` stands for, and its value, in order. Absent
/// places are left out.
pub(crate) fn each<'v>(object: &'v Value, schema_path: &Path, found: &mut impl FnMut(&Path, &'v Value)) {
    walk(object, schema_path.steps(), &mut Path::root(), found);
}

fn walk<'v>(value: &'v Value, steps: &[Step], at: &mut Path, found: &mut impl FnMut(&Path, &'v Value)) {
    let Some((step, rest)) = steps.split_first() else { return found(at, value) };
    let mut enter = |step: Step, part: &'v Value| {
        at.push(step);
        walk(part, rest, at, found);
        at.pop();
    };
    match (step, value) {
        (Step::Items, Value::Array(items)) => {
            items.iter().enumerate().for_each(|(index, item)| enter(Step::Index(index), item));
        }
        (Step::Values, Value::Object(fields)) => {
            fields.iter().for_each(|(key, field)| enter(Step::Key(key.clone()), field));
        }
        (step, value) => {
            if let Some(part) = step.part_of(value) {
                enter(step.clone(), part);
            }
        }
    }
}
