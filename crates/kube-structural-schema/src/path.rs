//! Places in schemas and objects, and the ways in which they are written down.

mod read;

use std::fmt;

use serde_json::Value;

pub use read::PathError;

/// One step down from a value or a schema to a part of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// A declared property of an object: `.name`.
    Field(String),
    /// A value of a map, by its key: `["key"]`.
    Key(String),
    /// An item of an array: `[3]`.
    Index(usize),
    /// Every item of an array, in a schema path: `[]`.
    Items,
    /// Every value of a map, in a schema path: `{}`.
    Values,
}

impl Step {
    /// The part of a value one step down; `None` if it has none, or if the step stands for many.
    pub fn part_of<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        match self {
            Self::Field(name) | Self::Key(name) => value.get(name),
            Self::Index(index) => value.get(index),
            Self::Items | Self::Values => None,
        }
    }
}

/// A place in a schema (`.spec.ports[].name`) or in an object (`.spec.ports[0].name`).
///
/// `Display` writes a leading dot, and a name that holds `.`, `[`, `{` or `"` in double quotes.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path(Vec<Step>);

impl Path {
    /// The whole object.
    pub fn root() -> Self {
        Self::default()
    }

    /// The steps from the root.
    pub fn steps(&self) -> &[Step] {
        &self.0
    }

    /// Whether this is the whole object.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// This place with one more step.
    #[must_use]
    pub fn join(&self, step: Step) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Self(steps)
    }

    /// Goes one step down in place.
    pub fn push(&mut self, step: Step) {
        self.0.push(step);
    }

    /// Goes one step up in place.
    pub fn pop(&mut self) -> Option<Step> {
        self.0.pop()
    }

    /// Whether `other` is this place or lies below it.
    pub fn contains(&self, other: &Self) -> bool {
        other.0.starts_with(&self.0)
    }

    /// The value at this place of an object; `None` if it has none there.
    pub fn value_in<'v>(&self, object: &'v Value) -> Option<&'v Value> {
        self.0.iter().try_fold(object, |value, step| step.part_of(value))
    }

    /// The place as RFC 6901 writes it: `/spec/ports/0/name`; each item of a list or map is `-`.
    pub fn pointer(&self) -> String {
        let token = |step: &Step| match step {
            Step::Field(name) | Step::Key(name) => name.replace('~', "~0").replace('/', "~1"),
            Step::Index(index) => index.to_string(),
            Step::Items | Step::Values => "-".to_owned(),
        };
        self.0.iter().map(|step| format!("/{}", token(step))).collect()
    }

    /// The schema place that an object's place belongs to: indices become `[]` and keys `{}`.
    #[must_use]
    pub fn to_schema(&self) -> Self {
        Self(
            self.0
                .iter()
                .map(|step| match step {
                    Step::Index(_) => Step::Items,
                    Step::Key(_) => Step::Values,
                    other => other.clone(),
                })
                .collect(),
        )
    }

    /// The same place with each key of a map as `*`: names of fields are the schema's, and keys are data of
    /// users.
    #[must_use]
    pub fn without_keys(&self) -> Self {
        let hidden = |step: &Step| match step {
            Step::Key(_) => Step::Key("*".to_owned()),
            other => other.clone(),
        };
        self.0.iter().map(hidden).collect()
    }
}

/// Whether one of some places is this one, lies below it or has it below. The places are sorted; the steps
/// that it takes to find out hardly grow with their number.
pub fn touches(places: &[Path], place: &Path) -> bool {
    let first = places.partition_point(|other| other < place);
    let is_below = places.get(first).is_some_and(|other| place.contains(other));
    let is_there = |steps: &[Step]| places.binary_search_by(|other| other.steps().cmp(steps)).is_ok();
    is_below || (0..place.0.len()).any(|depth| is_there(&place.0[..depth]))
}

impl From<Vec<Step>> for Path {
    fn from(steps: Vec<Step>) -> Self {
        Self(steps)
    }
}

impl FromIterator<Step> for Path {
    fn from_iter<I: IntoIterator<Item = Step>>(steps: I) -> Self {
        Self(steps.into_iter().collect())
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str(".");
        }
        for step in &self.0 {
            match step {
                Step::Field(name) if name.is_empty() || name.contains(['.', '[', '{', '"']) => {
                    write!(f, ".{name:?}")?;
                }
                Step::Field(name) => write!(f, ".{name}")?,
                Step::Key(key) => write!(f, "[{key:?}]")?,
                Step::Index(index) => write!(f, "[{index}]")?,
                Step::Items => f.write_str("[]")?,
                Step::Values => f.write_str("{}")?,
            }
        }
        Ok(())
    }
}

/// A place while walking: a list through the stack frames, so that a walk that finds nothing allocates
/// nothing.
#[derive(Clone, Copy, Debug)]
pub struct Trail<'a> {
    parent: Option<&'a Trail<'a>>,
    step: Option<TrailStep<'a>>,
}

/// A [`Step`] that borrows its name.
#[derive(Clone, Copy, Debug)]
pub enum TrailStep<'a> {
    /// See [`Step::Field`].
    Field(&'a str),
    /// See [`Step::Key`].
    Key(&'a str),
    /// See [`Step::Index`].
    Index(usize),
    /// See [`Step::Items`].
    Items,
    /// See [`Step::Values`].
    Values,
}

impl<'a> Trail<'a> {
    /// The whole object.
    pub const ROOT: Trail<'static> = Trail { parent: None, step: None };

    /// One step below this place.
    pub fn join(&'a self, step: TrailStep<'a>) -> Trail<'a> {
        Trail { parent: Some(self), step: Some(step) }
    }

    /// The place above and the last step; none for the whole object.
    pub fn last(&self) -> Option<(&'a Trail<'a>, TrailStep<'a>)> {
        self.parent.zip(self.step)
    }

    /// The place as owned data, for a finding.
    pub fn to_path(&self) -> Path {
        let mut steps = Vec::new();
        let mut at = Some(self);
        while let Some(trail) = at {
            if let Some(step) = trail.step {
                steps.push(match step {
                    TrailStep::Field(name) => Step::Field(name.to_owned()),
                    TrailStep::Key(key) => Step::Key(key.to_owned()),
                    TrailStep::Index(index) => Step::Index(index),
                    TrailStep::Items => Step::Items,
                    TrailStep::Values => Step::Values,
                });
            }
            at = trail.parent;
        }
        steps.reverse();
        Path(steps)
    }
}

impl<'a> From<&'a Step> for TrailStep<'a> {
    fn from(step: &'a Step) -> Self {
        match step {
            Step::Field(name) => Self::Field(name),
            Step::Key(key) => Self::Key(key),
            Step::Index(index) => Self::Index(*index),
            Step::Items => Self::Items,
            Step::Values => Self::Values,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_schema_and_object_places() {
        let field = |name: &str| Step::Field(name.to_owned());
        let cases = [
            (vec![], "."),
            (vec![field("spec"), field("foo"), Step::Items, field("bar"), Step::Values], ".spec.foo[].bar{}"),
            (vec![field("spec"), Step::Index(0), Step::Key("a.b".to_owned())], r#".spec[0]["a.b"]"#),
            (vec![field("a.b"), field("c")], r#"."a.b".c"#),
        ];
        for (steps, expected) in cases {
            assert_eq!(Path::from(steps).to_string(), expected);
        }
    }

    #[test]
    fn places_touch_what_is_above_and_below_them() {
        let path = |text: &str| text.parse::<Path>().expect("a path");
        let mut places: Vec<Path> = [".a.b", ".a.b.c", ".d[].e", ".f{}", ".g"].map(path).into();
        places.sort();
        for (place, expected) in [
            (".", true),
            (".a", true),
            (".a.b", true),
            (".a.b.x", true),
            (".a.c", false),
            (".a.bc", false),
            (".d", true),
            (".d[]", true),
            (".d[].e.x", true),
            (".d[].f", false),
            (".f", true),
            (".f{}.x", true),
            (".h", false),
        ] {
            assert_eq!(touches(&places, &path(place)), expected, "{place}");
        }
        assert!(!touches(&[], &Path::root()));
    }

    #[test]
    fn a_trail_becomes_the_path_it_walked() {
        let spec = Trail::ROOT.join(TrailStep::Field("spec"));
        let item = spec.join(TrailStep::Index(2));
        assert_eq!(item.to_path().to_string(), ".spec[2]");
        assert_eq!(item.to_path().to_schema().to_string(), ".spec[]");
    }
}
