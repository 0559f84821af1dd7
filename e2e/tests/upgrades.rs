//! What `etch lint --old` finds in random upgrades of a schema, held against what becomes of objects: where it
//! finds no error, no object that was valid is refused, and no value is lost; where it finds nothing at all,
//! each value is shown as before. And what `etch impact` answers without etcd, held against what happens to
//! all that etcd may hold.

#![expect(clippy::print_stdout, reason = "how many upgrades and objects were judged is worth a line")]

use e2e::differential::{SchemaUpgrade, Seeds, schema_upgrade};
use e2e::environment::number;
use etch_core::crd::Crd;
use etch_core::impact::{Effect, EffectKind, Problem, Stored, Upgrade, by_effect};
use etch_core::object::Object;
use etch_lint::compatibility;
use kube_crd_validation::{Validator, crd};
use kube_structural_schema::compile::Compiled;
use kube_structural_schema::defaults;
use kube_structural_schema::json::Json;
use kube_structural_schema::path::{Path, Step};
use kube_structural_schema::schema::Schema;
use serde_json::{Map, Value, json};

const SEED: u64 = 20_261_201;

/// How many upgrades are made; `UPGRADES` in the environment gives another number.
fn upgrades() -> u64 {
    number("UPGRADES").expect("a number").unwrap_or(40_000)
}

/// A schema that the server accepts, and whose defaults are valid; other rules report the others.
struct Served {
    schema: Schema,
    compiled: Compiled,
}

impl Served {
    fn new(schema: &Value, crd: &Json) -> Option<Self> {
        let schema = Schema::parse(schema).ok()?;
        let compiled = Compiled::new(&schema);
        let is_sound = crd::validate_create(crd).is_ok_and(|found| found.is_empty())
            && kube_crd_validation::defaults(&schema).sites.is_empty();
        is_sound.then_some(Self { schema, compiled })
    }

    /// The object as a reader gets it.
    fn read(&self, stored: &Json) -> Result<Json, String> {
        let mut object = stored.clone();
        defaults::read(&mut object, &self.schema, &self.compiled, &mut |_| {})
            .map_err(|error| error.to_string())?;
        Ok(object)
    }

    /// Why the server refuses to create an object.
    fn refusal(&self, object: &Json) -> Option<String> {
        let found = Validator::new(&self.schema).object(object);
        found.values.iter().chain(&found.rules).next().map(|finding| format!("{finding:?}"))
    }

    /// What an object that is stored may be, if a reader gets a valid one: with its defaults, or without.
    fn stored(&self, object: &Json) -> Vec<Json> {
        let Ok(shown) = self.read(object) else { return Vec::new() };
        let is_lasting = self.read(&shown).as_ref() == Ok(&shown);
        if !is_lasting || self.refusal(&shown).is_some() {
            return Vec::new();
        }
        // What the server would have dropped is not stored.
        let bare = Some(object.clone()).filter(|bare| has_all(&shown, bare, true));
        bare.into_iter().chain([shown]).collect()
    }

    /// What becomes of a stored object that does harm.
    fn harm(&self, stored: &Json) -> Option<String> {
        let shown = match self.read(stored) {
            Ok(shown) => shown,
            Err(error) => return Some(error),
        };
        let lost = (!has_all(&shown, stored, false)).then(|| format!("is shown as {}", *shown));
        self.refusal(&shown).filter(|refusal| !is_list_for_text(refusal)).or(lost)
    }
}

/// The server accepts a list for a text that has a format, and `etch lint` does not say that such a list is
/// refused once the format is gone (docs/lint.md).
fn is_list_for_text(refusal: &str) -> bool {
    refusal.contains(r#"must be of type string: \"array\""#)
}

/// Whether a value has all that another one has, to its nulls or apart from these.
fn has_all(value: &Value, other: &Value, with_nulls: bool) -> bool {
    match (value, other) {
        (_, Value::Null) if !with_nulls => true,
        (Value::Object(value), Value::Object(other)) => other
            .iter()
            .filter(|(_, other)| with_nulls || !other.is_null())
            .all(|(name, other)| value.get(name).is_some_and(|value| has_all(value, other, with_nulls))),
        (Value::Array(value), Value::Array(other)) => {
            let mut items = value.iter().zip(other);
            value.len() == other.len() && items.all(|(value, other)| has_all(value, other, with_nulls))
        }
        _ => value == other,
    }
}

fn crd_of(schema: &Value) -> Json {
    let version =
        json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.stable.example.com"},
        "spec": {
            "group": "stable.example.com", "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [version],
        },
    })
    .into()
}

#[test]
fn what_refuses_objects_or_takes_from_them_is_an_error() {
    let seeds = Seeds::load().expect("the project has vectors of real CRDs");
    let (mut compared, mut judged, mut harmful, mut with_errors) = (0, 0, 0, 0);
    let mut missed = Vec::new();
    for number in 0..upgrades() {
        let SchemaUpgrade { old, new, objects } = schema_upgrade(&seeds, SEED, number);
        let (before, after) = (crd_of(&old), crd_of(&new));
        let (Some(served), Some(serves)) = (Served::new(&old, &before), Served::new(&new, &after)) else {
            continue;
        };
        let found = compatibility(&before, &after);
        let has_error = found.iter().any(|finding| finding.rule.can_refuse_objects());
        let stored: Vec<Json> =
            objects.into_iter().flat_map(|object| served.stored(&object.into())).collect();
        compared += 1;
        judged += stored.len();
        with_errors += usize::from(has_error);
        let harm = stored.iter().find_map(|object| Some((serves.harm(object)?, object)));
        harmful += usize::from(harm.is_some());
        let change = || {
            let is_shown_otherwise = |object: &&Json| match (served.read(object), serves.read(object)) {
                (Ok(before), Ok(after)) => !has_all(&after, &before, true),
                _ => true,
            };
            Some(("is shown otherwise".to_owned(), stored.iter().find(is_shown_otherwise)?))
        };
        let unreported = match has_error {
            true => None,
            false => harm.or_else(|| found.is_empty().then(change).flatten()),
        };
        missed
            .extend(unreported.map(|(what, object)| {
                format!("{number}: {what}\nold {old}\nnew {new}\nobject {}", **object)
            }));
    }
    println!("{compared} upgrades, {with_errors} with errors; {harmful} harmed some of {judged} objects");
    missed.sort_by_key(String::len);
    assert!(missed.is_empty(), "{} missed\n{}", missed.len(), missed[..missed.len().min(9)].join("\n\n"));
    assert!(harmful > 100, "hardly any upgrade did harm");
}

/// What etcd may hold of an object that is shown like this: all of it, or less by some of the defaults. Each
/// bit of `kept` decides on one of them.
fn held(shown: &Json, served: &Served, kept: u64) -> Json {
    let mut places = Vec::new();
    served.compiled.filled(shown, &mut |at, _| places.push(at.to_path()));
    let mut stored = shown.clone();
    for (index, mut place) in places.into_iter().enumerate() {
        let is_kept = kept >> (index % 64) & 1 == 1;
        if let (false, Some(Step::Field(name) | Step::Key(name))) = (is_kept, place.pop())
            && let Some(Value::Object(fields)) = stored.pointer_mut(&place.pointer())
        {
            fields.remove(&name);
        }
    }
    stored
}

/// Where an answer without etcd is wrong about an object of which this is what really happens.
fn contradiction(answer: &Effect, truth: &Effect) -> Option<String> {
    let (answered, happening) = (by_effect(answer), by_effect(truth));
    let is_gone = |kind| matches!(kind, EffectKind::Disappears | EffectKind::Hidden);
    // Which of the two it is depends on what etcd holds; that it is open is known then.
    let is_like = |one, other| one == other || is_gone(one) && is_gone(other);
    // There the answer depends on a claim, and it says so.
    let is_claimed = |place: &Path| answer.claimed.iter().any(|at| at.contains(place));
    for (kind, places) in happening {
        let is_answered = |place: &Path| {
            let of_kind = answered.iter().filter(|(other, _)| is_like(*other, kind));
            is_claimed(place) || of_kind.flat_map(|(_, places)| *places).any(|at| at.contains(place))
        };
        if let Some(place) = places.iter().find(|place| !is_answered(place)) {
            return Some(format!("{} {place}, which is not answered", kind.as_str()));
        }
    }
    for (kind, places) in answered {
        let is_so = |place: &Path| {
            answer.open.is_open(kind, place)
                || is_claimed(place)
                || happening.iter().any(|(other, at)| {
                    *other == kind && at.iter().any(|at| at.contains(place) || place.contains(at))
                })
        };
        if let Some(place) = places.iter().find(|place| !is_so(place)) {
            return Some(format!("{} {place} is answered, and does not happen", kind.as_str()));
        }
    }
    // A rule judges several places at once.
    let depends_on_claims = !answer.claimed.is_empty();
    let is_answered = |problem: &&Problem| depends_on_claims || answer.problems.contains(problem);
    let is_so = |problem: &&Problem| {
        depends_on_claims || truth.problems.contains(problem) || answer.open.problems.contains(problem)
    };
    let missed = truth.problems.iter().find(|problem| !is_answered(problem));
    let untrue = answer.problems.iter().find(|problem| !is_so(problem));
    missed.or(untrue).map(|problem| format!("a problem: {problem}"))
}

#[test]
fn what_is_answered_without_etcd_holds_whatever_it_holds() {
    const KEPT: [u64; 5] = [0, u64::MAX, u64::MAX / 3, u64::MAX / 3 * 2, u64::MAX / 5];
    let seeds = Seeds::load().expect("the project has vectors of real CRDs");
    let (mut objects, mut open, mut claimed, mut cases) = (0, 0, 0, 0);
    let mut wrong = Vec::new();
    for number in 0..upgrades() {
        let SchemaUpgrade { old, new, objects: made } = schema_upgrade(&seeds, SEED, number);
        let (before, after) = (crd_of(&old), crd_of(&new));
        let (Some(served), Some(_)) = (Served::new(&old, &before), Served::new(&new, &after)) else {
            continue;
        };
        let [before, after] = [before, after].map(|crd| Crd::read(&crd).expect("the server accepts it"));
        let upgrade = Upgrade::new(&before, &after);
        for (index, mut object) in made.into_iter().enumerate() {
            object["metadata"]["uid"] = "1".into();
            if let (Value::Object(fields), 0) = (&object, index % 2) {
                let owned: Map<_, _> = fields.keys().map(|name| (format!("f:{name}"), json!({}))).collect();
                object["metadata"]["managedFields"] = json!([{
                    "manager": "user", "operation": "Update", "apiVersion": "stable.example.com/v1",
                    "fieldsType": "FieldsV1", "fieldsV1": owned,
                }]);
            }
            let Some(shown) = served.stored(&object.into()).pop() else { continue };
            let answer = upgrade.object(&Object::from(shown.clone()));
            objects += 1;
            open += usize::from(!answer.open.is_none());
            claimed += usize::from(!answer.claimed.is_empty());
            for stored in KEPT.map(|kept| held(&shown, &served, kept)) {
                // 1 and 1.0 are equal, and rules tell them apart.
                if !served.read(&stored).is_ok_and(|read| read.to_string() == shown.to_string()) {
                    continue;
                }
                cases += 1;
                let stored = Stored { value: stored, version: "v1".to_owned() };
                if let Some(complaint) = contradiction(&answer, &upgrade.effect(&shown, &stored)) {
                    let Stored { value, .. } = stored;
                    wrong.push(format!("{number}: {complaint}\nold {old}\nnew {new}\nstored {}", *value));
                }
            }
        }
    }
    println!(
        "{objects} objects, {open} with something open and {claimed} with claims; {cases} contents of etcd"
    );
    wrong.sort_by_key(String::len);
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong[..wrong.len().min(9)].join("\n\n"));
    assert!(open > 100 && claimed > 100, "hardly any answer depends on what etcd holds");
}
