//! Places that a declaration names, and the places of an object that they stand for.

use serde_json::Value;

use kube_structural_schema::path::{Path, PathError, Step};

/// A place with any number of lists and maps to go through: `.spec.disks[*].name`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Place(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Field(String),
    /// Every item of a list, or value of a map.
    Each,
}

/// A place of one object.
pub(super) type Location = Vec<Step>;

impl Place {
    /// Reads a place: the form of paths elsewhere, with `[*]` for every item or value.
    pub(super) fn read(text: &str) -> Result<Self, PathError> {
        let path = Path::with_stars(text)?;
        let part = |step: &Step| match step {
            Step::Field(name) | Step::Key(name) => Part::Field(name.clone()),
            Step::Index(_) | Step::Items | Step::Values => Part::Each,
        };
        Ok(Self(path.steps().iter().map(part).collect()))
    }

    pub(super) fn parts(&self) -> &[Part] {
        &self.0
    }

    /// The part up to the last `[*]`, and the names after it.
    pub(super) fn split(&self) -> (Self, Vec<String>) {
        let end = self.0.iter().rposition(|part| *part == Part::Each).map_or(0, |last| last + 1);
        let (before, after) = self.0.split_at(end);
        let name = |part: &Part| match part {
            Part::Field(name) => Some(name.clone()),
            Part::Each => None,
        };
        (Self(before.to_vec()), after.iter().filter_map(name).collect())
    }

    /// Every place of a value that this stands for, with what is there. `at` is where the value stands.
    pub(super) fn find<'v>(&self, value: &'v Value, at: &Location) -> Vec<(Location, &'v Value)> {
        let mut found = Vec::new();
        self.visit(value, at, &mut |at, value| found.push((at.clone(), value)));
        found
    }

    /// As [`Self::find`], one after the other: there may be very many.
    pub(super) fn visit<'v>(&self, value: &'v Value, at: &Location, visit: &mut Visit<'_, 'v>) {
        descend(&self.0, value, &mut at.clone(), visit);
    }
}

type Visit<'f, 'v> = dyn FnMut(&Location, &'v Value) + 'f;

/// Every place of a value that these parts stand for, with what is there.
pub(super) fn find<'v>(parts: &[Part], value: &'v Value) -> Vec<(Location, &'v Value)> {
    let mut found = Vec::new();
    descend(parts, value, &mut Location::new(), &mut |at, value| found.push((at.clone(), value)));
    found
}

fn descend<'v>(parts: &[Part], value: &'v Value, at: &mut Location, visit: &mut Visit<'_, 'v>) {
    let Some((part, rest)) = parts.split_first() else {
        visit(at, value);
        return;
    };
    let mut enter = |step: Step, value: &'v Value| {
        at.push(step);
        descend(rest, value, at, visit);
        at.pop();
    };
    match (part, value) {
        (Part::Field(name), Value::Object(fields)) => {
            if let Some(value) = fields.get(name) {
                enter(Step::Field(name.clone()), value);
            }
        }
        (Part::Each, Value::Array(items)) => {
            items.iter().enumerate().for_each(|(index, item)| enter(Step::Index(index), item));
        }
        (Part::Each, Value::Object(fields)) => {
            fields.iter().for_each(|(key, value)| enter(Step::Key(key.clone()), value));
        }
        _ => {}
    }
}

/// What stands at a place of an object.
pub(super) fn value_at<'v>(value: &'v Value, location: &[Step]) -> Option<&'v Value> {
    location.iter().try_fold(value, |value, step| step.part_of(value))
}

/// What stands at a place of an object, to be changed.
pub(super) fn value_at_mut<'v>(value: &'v mut Value, location: &[Step]) -> Option<&'v mut Value> {
    location.iter().try_fold(value, |value, step| match step {
        Step::Field(name) | Step::Key(name) => value.get_mut(name),
        Step::Index(index) => value.get_mut(index),
        Step::Items | Step::Values => None,
    })
}

/// A place as API servers write it in errors: `spec.disks[0].name`.
pub(super) fn written(location: &[Step]) -> String {
    let mut text = String::new();
    for step in location {
        match step {
            Step::Field(name) => {
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(name);
            }
            Step::Key(key) => text.extend(["[", key, "]"]),
            Step::Index(index) => text.extend(["[", &index.to_string(), "]"]),
            Step::Items | Step::Values => text.push_str("[]"),
        }
    }
    text
}

/// The indices and keys that a place went through, as `[*]` stands for them.
pub(super) fn indices(location: &[Step]) -> impl Iterator<Item = String> + '_ {
    location.iter().filter_map(|step| match step {
        Step::Index(index) => Some(index.to_string()),
        Step::Key(key) => Some(key.clone()),
        _ => None,
    })
}

/// A text with each `[*]` replaced by the next index or key; those that are left over stay.
pub(super) fn with_indices(text: &str, mut indices: impl Iterator<Item = String>) -> String {
    let mut parts = text.split("[*]");
    let mut written = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        written.push('[');
        written.push_str(indices.next().as_deref().unwrap_or("*"));
        written.push(']');
        written.push_str(part);
    }
    written
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn places_go_through_lists_and_maps() {
        let value = json!({ "a": [{ "b": { "x": 1, "y": 2 } }, { "c": 1 }, { "b": { "z": 3 } }] });
        let place = Place::read(".a[*].b[*]").expect("a place");
        let found: Vec<String> = place
            .find(&value, &Vec::new())
            .iter()
            .map(|(at, value)| format!("{}={value}", written(at)))
            .collect();
        assert_eq!(found, ["a[0].b[x]=1", "a[0].b[y]=2", "a[2].b[z]=3"]);
        let (lists, fields) = Place::read(".a[*].d.e").expect("a place").split();
        assert_eq!((lists.parts().len(), fields), (2, vec!["d".to_owned(), "e".to_owned()]));
        assert!(Place::read("a.b").is_err());
    }

    #[test]
    fn indices_stand_where_the_author_put_them() {
        let indices = ["2", "k"].map(str::to_owned);
        assert_eq!(with_indices("spec.disks[*].names[*]", indices.into_iter()), "spec.disks[2].names[k]");
        assert_eq!(with_indices("spec.tags", std::iter::empty()), "spec.tags");
    }
}
