//! ETCH328 and ETCH313: defaults and nulls of an upgrade that a clause, or a number of fields, of an object
//! around them judges. Clauses are evaluated for what a read makes of an object before and after. What is not
//! known, such as whether a text matches a pattern, may be so or not.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use serde_json::{Map, Value, json};

use super::keywords::{fields, list, number, present};
use super::nulls::REMOVED;
use super::pair::{Changes, Pair};
use super::read_by_rule::READ;
use super::reads::{About, Choice, Reads, Side, State};
use kube_crd_validation::validate;
use kube_structural_schema::path::{Path, Step};
use kube_structural_schema::schema::Schema;

const CLAUSES: [&str; 4] = ["allOf", "anyOf", "oneOf", "not"];
/// What judges how many fields there are.
const NUMBER: &str = "maxProperties";
/// How many objects are tried; where there are more, a refusal counts as possible.
const MOST: usize = 1 << 12;

/// A place that a read shows otherwise than before, and what a manifest has there; `None` for what is inside.
type Changed = (Path, Option<Choice>);

pub(super) fn check(pair: &Pair<'_>, changes: &mut Changes) {
    let reads = Reads::of(pair);
    let is_judged = CLAUSES.iter().chain([&NUMBER]).any(|keyword| present(pair.new, keyword).is_some());
    if !is_judged || !reads.differ_in(&Path::root()) {
        return;
    }
    let of_clauses = CLAUSES
        .iter()
        .flat_map(|keyword| refused_by(pair, &reads, keyword).into_iter().map(|at| (at, *keyword)));
    let found: Vec<_> = too_many(pair, &reads).into_iter().map(|at| (at, NUMBER)).chain(of_clauses).collect();
    for ((place, choice), keyword) in found {
        let path = place.steps().iter().fold(pair.path.clone(), |path, step| path.join(step.clone()));
        // What requires a default that is gone has a finding of its own.
        if changes.has_error_at(&path) {
            continue;
        }
        let of = if pair.path.is_root() { "the object".to_owned() } else { pair.path.to_string() };
        let judges = format!("{keyword} of {of} judges");
        let [before, after] =
            [Side::Before, Side::After].map(|side| choice.map(|choice| reads.state(&place, choice, side)));
        let (rule, message) = match (choice, before, after) {
            (Some(Choice::Null), _, Some(State::Null)) => {
                (&REMOVED, format!("a null is kept now, and {judges} the field"))
            }
            (Some(Choice::Null), Some(State::Null), _) => {
                (&REMOVED, format!("a null is no value any more, and {judges} the field"))
            }
            (Some(_), Some(State::Absent), _) => {
                (&READ, format!("the default is new, and {judges} the field"))
            }
            (Some(_), _, Some(State::Absent)) => {
                (&READ, format!("the default is gone, and {judges} the field"))
            }
            (Some(_), ..) => (&READ, format!("the default has changed, and {judges} the field")),
            (None, ..) => (&READ, format!("defaults or nulls in it have changed, and {judges} them")),
        };
        changes.add(rule, path, message);
    }
}

/// What an object may have more of than `maxProperties` allows.
fn too_many(pair: &Pair<'_>, reads: &Reads<'_>) -> Vec<Changed> {
    let [before, after] = [pair.old, pair.new].map(|schema| number(schema, NUMBER));
    // A limit that is new is reported as such.
    let (Some(before), Some(after)) = (before, after) else { return Vec::new() };
    let comes = |place: &Path| {
        let shown = |choice, side| reads.state(place, choice, side) != State::Absent;
        let mut choices = reads.choices(place).iter();
        choices.find(|choice| !shown(**choice, Side::Before) && shown(**choice, Side::After)).copied()
    };
    let field = |name: &String| Path::root().join(Step::Field(name.clone()));
    let of_map = Path::root().join(Step::Values);
    if let Some(choice) = comes(&of_map) {
        return vec![(of_map, Some(choice))];
    }
    let coming: Vec<Changed> = fields(pair.new)
        .map(|(name, _)| field(name))
        .filter_map(|place| comes(&place).map(|choice| (place, Some(choice))))
        .collect();
    if coming.is_empty() {
        return coming;
    }
    let comes_to_old = fields(pair.old).filter(|(name, _)| comes(&field(name)).is_some()).count();
    let stay = reads.most(&Path::root(), Side::Before).map(|most| (most - comes_to_old) as f64);
    let most = stay.map_or(before, |stay| before.min(stay)) + coming.len() as f64;
    if most > after { coming } else { Vec::new() }
}

/// The places by which an object that was valid may not meet a keyword of the new schema.
fn refused_by(pair: &Pair<'_>, reads: &Reads<'_>, keyword: &str) -> BTreeSet<Changed> {
    let part = |schema: &Value, keywords: &[&str]| -> Value {
        let named = keywords.iter().filter_map(|keyword| Some((*keyword, present(schema, keyword)?.clone())));
        named.map(|(keyword, value)| (keyword.to_owned(), value)).collect::<Map<_, _>>().into()
    };
    let new = part(pair.new, &[keyword]);
    let held = part(pair.old, &["allOf", "anyOf", "oneOf", "not", "required", "minProperties", NUMBER]);
    // One that is new as a whole is reported as such.
    if new[keyword].is_null() || keyword != "allOf" && held[keyword].is_null() {
        return BTreeSet::new();
    }
    let mut tried = Tried::of(reads);
    if !tried.is_concerned(&new, &Path::root()) {
        return BTreeSet::new();
    }
    let mut found: Vec<BTreeSet<Changed>> = Vec::new();
    for tries in 0.. {
        let is_refused =
            tried.meets(&held, &Path::root(), Side::Before) && !tried.meets(&new, &Path::root(), Side::After);
        let changed = if is_refused { tried.changed() } else { BTreeSet::new() };
        if !changed.is_empty() && !found.iter().any(|fewer| fewer.is_subset(&changed)) {
            found.push(changed);
        }
        match tried.another() {
            true if tries < MOST => {}
            true if found.is_empty() => return BTreeSet::from([(Path::root(), None)]),
            _ => break,
        }
    }
    let is_least = |changed: &&BTreeSet<Changed>| {
        !found.iter().any(|fewer| fewer != *changed && fewer.is_subset(changed))
    };
    found.iter().filter(is_least).flatten().cloned().collect()
}

/// What is asked about an object: what its manifest has at a place, or whether a keyword holds there.
type Question = (Path, Option<(String, Option<Side>)>);

/// An object of which only what was asked for is known.
struct Tried<'a> {
    reads: &'a Reads<'a>,
    /// The answers so far, each with the number of possible ones.
    choices: Vec<(usize, usize)>,
    next: usize,
    known: BTreeMap<Question, usize>,
    /// What holds of all objects: about places, and whether a default meets a clause.
    places: BTreeMap<Path, Rc<About>>,
    met: BTreeMap<(*const Value, Side), bool>,
}

impl<'a> Tried<'a> {
    fn of(reads: &'a Reads<'a>) -> Self {
        Self {
            reads,
            choices: Vec::new(),
            next: 0,
            known: BTreeMap::new(),
            places: BTreeMap::new(),
            met: BTreeMap::new(),
        }
    }

    fn about(&mut self, place: &Path) -> Rc<About> {
        let reads = self.reads;
        self.places.entry(place.clone()).or_insert_with(|| Rc::new(reads.about(place))).clone()
    }

    /// Whether a clause says something of a place that a read shows otherwise than before.
    fn is_concerned(&mut self, clause: &Value, place: &Path) -> bool {
        let keywords = clause.as_object().into_iter().flatten();
        keywords.into_iter().any(|(keyword, value)| {
            let clauses = list(clause, keyword);
            let field = |name: &str| place.join(Step::Field(name.to_owned()));
            match keyword.as_str() {
                "required" => {
                    clauses.iter().filter_map(Value::as_str).any(|name| self.about(&field(name)).differs())
                }
                "properties" => fields(clause).any(|(name, clause)| {
                    self.about(&field(name)).differs() || self.is_concerned(clause, &field(name))
                }),
                "allOf" | "anyOf" | "oneOf" => clauses.iter().any(|clause| self.is_concerned(clause, place)),
                "not" => self.is_concerned(value, place),
                "minProperties" | NUMBER => {
                    let (grows, shrinks) = self.about(place).count_differs;
                    grows || shrinks
                }
                _ => judges_inside(keyword, value) && self.about(place).differs_inside,
            }
        })
    }

    /// Whether the object, as it is read, meets what a clause says of a place.
    fn meets(&mut self, clause: &Value, place: &Path, side: Side) -> bool {
        let keywords = clause.as_object().into_iter().flatten();
        keywords.into_iter().all(|(keyword, value)| self.meets_keyword(keyword, value, clause, place, side))
    }

    fn meets_keyword(
        &mut self,
        keyword: &str,
        value: &Value,
        clause: &Value,
        place: &Path,
        side: Side,
    ) -> bool {
        let clauses = list(clause, keyword);
        let field = |name: &str| place.join(Step::Field(name.to_owned()));
        match keyword {
            _ if value.is_null() => true,
            "required" => clauses
                .iter()
                .filter_map(Value::as_str)
                .all(|name| *self.chosen(&field(name)).state(side) != State::Absent),
            "properties" => {
                fields(clause).all(|(name, clause)| match self.chosen(&field(name)).state(side) {
                    State::Absent => true,
                    // Of a null the server looks at the enum alone.
                    State::Null => list(clause, "enum").is_empty(),
                    State::Default(value) => {
                        let known = (std::ptr::from_ref(clause), side);
                        *self.met.entry(known).or_insert_with(|| is_met(clause, value))
                    }
                    State::Value => self.meets(clause, &field(name), side),
                })
            }
            "allOf" => clauses.iter().all(|clause| self.meets(clause, place, side)),
            "anyOf" => clauses.is_empty() || clauses.iter().any(|clause| self.meets(clause, place, side)),
            "oneOf" => {
                clauses.is_empty()
                    || clauses.iter().filter(|clause| self.meets(clause, place, side)).count() == 1
            }
            "not" => !self.meets(value, place, side),
            "description" | "title" | "example" | "externalDocs" | "exclusiveMinimum"
            | "exclusiveMaximum" => true,
            "minProperties" if *value == 0 => true,
            "minProperties" | NUMBER => {
                let most = self.about(place).most[side as usize].filter(|_| keyword == NUMBER);
                most.is_some_and(|most| value.as_u64() >= Some(most as u64))
                    || self.meets_count(keyword, value, place, side)
            }
            _ => {
                let exclusive = ["exclusiveMinimum", "exclusiveMaximum"].map(|keyword| &clause[keyword]);
                let question = json!([keyword, value, exclusive]).to_string();
                let is_read_otherwise = judges_inside(keyword, value) && self.about(place).differs_inside;
                self.holds(question, place, is_read_otherwise.then_some(side))
            }
        }
    }

    fn meets_count(&mut self, keyword: &str, value: &Value, place: &Path, side: Side) -> bool {
        let question = json!([keyword, value]).to_string();
        let (grows, shrinks) = self.about(place).count_differs;
        if !grows && !shrinks {
            return self.holds(question, place, None);
        }
        let before = self.holds(question.clone(), place, Some(Side::Before));
        // With more fields only, an object that had enough of them still has, and one that had too many.
        let is_stable = if before == (keyword == "minProperties") { !shrinks } else { !grows };
        if side == Side::Before || is_stable { before } else { self.holds(question, place, Some(side)) }
    }

    /// Whether a keyword holds at a place; read by one of the schemas, where that makes a difference.
    fn holds(&mut self, question: String, place: &Path, side: Option<Side>) -> bool {
        self.answer((place.clone(), Some((question, side))), 2) == 0
    }

    fn chosen(&mut self, place: &Path) -> Chosen {
        let about = self.about(place);
        let choice = self.answer((place.clone(), None), about.choices.len());
        Chosen { about, choice }
    }

    fn answer(&mut self, question: Question, possible: usize) -> usize {
        let Self { choices, next, known, .. } = self;
        *known.entry(question).or_insert_with(|| {
            if *next == choices.len() {
                choices.push((0, possible));
            }
            *next += 1;
            choices[*next - 1].0
        })
    }

    /// The places that a read shows otherwise than before.
    fn changed(&self) -> BTreeSet<Changed> {
        let changed = |(question, answer): (&Question, &usize)| match question {
            (place, None) => {
                let About { choices, states, .. } = &**self.places.get(place)?;
                let [before, after] = &states[*answer];
                (before != after).then(|| (place.clone(), Some(choices[*answer])))
            }
            (place, Some((question, Some(Side::After)))) => {
                let before = self.known.get(&(place.clone(), Some((question.clone(), Some(Side::Before)))));
                (before != Some(answer)).then(|| (place.clone(), None))
            }
            (_, Some(_)) => None,
        };
        self.known.iter().filter_map(changed).collect()
    }

    /// Goes on to another object; false if there is none.
    fn another(&mut self) -> bool {
        self.known.clear();
        self.next = 0;
        while let Some((choice, possible)) = self.choices.pop() {
            if choice + 1 < possible {
                self.choices.push((choice + 1, possible));
                return true;
            }
        }
        false
    }
}

/// What a manifest has at a place.
struct Chosen {
    about: Rc<About>,
    choice: usize,
}

impl Chosen {
    fn state(&self, side: Side) -> &State {
        &self.about.states[self.choice][side as usize]
    }
}

/// Whether a keyword judges what a read may change: fields, and not how many items there are.
fn judges_inside(keyword: &str, value: &Value) -> bool {
    match keyword {
        "enum" | "required" | "minProperties" | NUMBER | "properties" => true,
        "items" | "not" => {
            value.as_object().into_iter().flatten().any(|(keyword, value)| judges_inside(keyword, value))
        }
        "allOf" | "anyOf" | "oneOf" => {
            let mut clauses = value.as_array().into_iter().flatten();
            clauses.any(|clause| judges_inside("not", clause))
        }
        _ => false,
    }
}

/// Whether a value meets a clause.
fn is_met(clause: &Value, value: &Value) -> bool {
    let field = json!({ "x-kubernetes-preserve-unknown-fields": true, "allOf": [clause] });
    let document = json!({ "type": "object", "properties": { "value": field } });
    // A clause that cannot be parsed is refused.
    Schema::parse(&document).is_ok_and(|schema| validate(&schema, &json!({ "value": value })).is_empty())
}
