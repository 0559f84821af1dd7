//! What a read makes of the fields of an object, by the schema before an upgrade and by the one after it.

use serde_json::{Value, json};

use super::defaults::value_as_read;
use super::keywords::{ANYTHING, META, fields, is_set, keeps_unknown, present, property, values};
use super::pair::Pair;
use kube_structural_schema::json::same;
use kube_structural_schema::path::{Path, Step};

/// Which of the two schemas reads the object.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Side {
    Before,
    After,
}

/// What a manifest has at a field.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Choice {
    Value,
    Absent,
    Null,
}

/// What a read shows at a field.
#[derive(Clone, PartialEq)]
pub(super) enum State {
    /// The value of the manifest.
    Value,
    Absent,
    Null,
    /// With the defaults below it.
    Default(Value),
}

/// All that is asked about a place.
pub(super) struct About {
    pub(super) choices: &'static [Choice],
    /// What a read shows with each choice, before and after.
    pub(super) states: Vec<[State; 2]>,
    /// Whether a read of what is inside is another than before.
    pub(super) differs_inside: bool,
    /// Whether a read may show more fields than before, and whether fewer.
    pub(super) count_differs: (bool, bool),
    /// How many fields there may be, before and after, where that is known.
    pub(super) most: [Option<usize>; 2],
}

impl About {
    /// Whether a read may show the place otherwise than before.
    pub(super) fn differs(&self) -> bool {
        self.states.iter().any(|[before, after]| before != after)
    }
}

/// The schemas of an object that is no clause.
pub(super) struct Reads<'a> {
    before: &'a Value,
    after: &'a Value,
    /// Whether it is an object of the CRD.
    is_whole: bool,
}

impl<'a> Reads<'a> {
    pub(super) fn of(pair: &Pair<'a>) -> Self {
        Self { before: pair.old, after: pair.new, is_whole: pair.path.is_root() }
    }

    pub(super) fn about(&self, place: &Path) -> About {
        let sides = [Side::Before, Side::After];
        let choices = self.choices(place);
        let states = choices.iter().map(|choice| sides.map(|side| self.state(place, *choice, side)));
        About {
            choices,
            states: states.collect(),
            differs_inside: self.differ_in(place),
            count_differs: self.count_differs(place),
            most: sides.map(|side| self.most(place, side)),
        }
    }

    /// What a manifest may have at a field; places are relative to the object.
    pub(super) fn choices(&self, place: &Path) -> &'static [Choice] {
        let of_whole = place.steps().first().filter(|step| self.is_whole && is_of_resource(step));
        if of_whole.is_some() {
            let is_there = place.steps().len() == 1;
            return if is_there { &[Choice::Value] } else { &[Choice::Absent, Choice::Value] };
        }
        // No object has a field that the server drops.
        if self.declared(place, Side::Before).is_none() {
            return &[Choice::Absent];
        }
        let is_as_absent = [Side::Before, Side::After]
            .map(|side| self.state(place, Choice::Null, side) == self.state(place, Choice::Absent, side));
        if is_as_absent == [true; 2] {
            &[Choice::Absent, Choice::Value]
        } else {
            &[Choice::Absent, Choice::Value, Choice::Null]
        }
    }

    pub(super) fn state(&self, place: &Path, choice: Choice, side: Side) -> State {
        let declared = self.declared(place, side);
        match (choice, declared) {
            (Choice::Value, _) => State::Value,
            (Choice::Null, Some((schema, _))) if is_set(schema, "nullable") => State::Null,
            (Choice::Null, Some((schema, _))) | (Choice::Absent, Some((schema, true))) => default(schema),
            _ => State::Absent,
        }
    }

    /// Whether a read of what is inside a place, or of the whole object, is another than before.
    pub(super) fn differ_in(&self, place: &Path) -> bool {
        let [before, after] = [Side::Before, Side::After]
            .map(|side| self.declared(place, side).map_or(Value::Null, |(schema, _)| inside(schema)));
        !same(&before, &after)
    }

    /// Whether a read may show more fields of a place than before, and whether fewer.
    fn count_differs(&self, place: &Path) -> (bool, bool) {
        let sides = [Side::Before, Side::After].map(|side| self.declared(place, side));
        let names = sides.into_iter().flatten().flat_map(|(schema, _)| fields(schema));
        let steps = names.map(|(name, _)| Step::Field(name.clone())).chain([Step::Values]);
        let (mut grows, mut shrinks) = (false, false);
        for place in steps.map(|step| place.join(step)) {
            for choice in self.choices(&place) {
                let [before, after] = [Side::Before, Side::After]
                    .map(|side| self.state(&place, *choice, side) != State::Absent);
                grows |= after && !before;
                shrinks |= before && !after;
            }
        }
        (grows, shrinks)
    }

    /// How many fields an object may have at a place, where that is known.
    pub(super) fn most(&self, place: &Path, side: Side) -> Option<usize> {
        let (schema, _) = self.declared(place, side)?;
        let is_resource = is_embedded(schema) || self.is_whole && place.is_root();
        let is_open = values(schema).is_some() || keeps_unknown(schema) || is_resource;
        (!is_open).then(|| fields(schema).count())
    }

    /// The schema of a place, and whether it is declared by name; `None` if the server drops what is there.
    fn declared(&self, place: &Path, side: Side) -> Option<(&'a Value, bool)> {
        let schema = if side == Side::Before { self.before } else { self.after };
        place.steps().iter().try_fold((schema, true), |(schema, _), step| {
            let declared = match step {
                Step::Field(name) => property(schema, name).map(|field| (field, true)),
                _ => None,
            };
            let is_kept = || keeps_unknown(schema) || is_embedded(schema) && is_of_resource(step);
            let unknown = || is_kept().then_some(&*ANYTHING);
            declared.or_else(|| values(schema).or_else(unknown).map(|value| (value, false)))
        })
    }
}

fn is_embedded(schema: &Value) -> bool {
    is_set(schema, "x-kubernetes-embedded-resource")
}

/// Whether it leads to a field that resources have without declaring it.
fn is_of_resource(step: &Step) -> bool {
    matches!(step, Step::Field(name) if META.contains(&name.as_str()))
}

fn default(schema: &Value) -> State {
    match present(schema, "default") {
        None => State::Absent,
        Some(default) => match value_as_read(default, schema).unwrap_or_else(|| default.clone()) {
            Value::Null => State::Null,
            value => State::Default(value),
        },
    }
}

/// What a read does inside a value: where it fills in defaults, and which nulls and unknown fields it drops.
fn inside(schema: &Value) -> Value {
    let whole = |schema: &Value| match schema {
        Value::Object(_) => json!([schema.get("default"), is_set(schema, "nullable"), inside(schema)]),
        other => other.clone(),
    };
    let properties: Value = fields(schema).map(|(name, field)| (name.clone(), whole(field))).collect();
    let values = whole(&schema["additionalProperties"]);
    // The server drops no items.
    let items = present(schema, "items").map(|items| json!([items.get("default"), inside(items)]));
    json!([properties, items, values, keeps_unknown(schema)])
}
