//! What must hold for every schema and every object, checked on the cases and on random ones.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::compile::Compiled;
use crate::json::{Json, same};
use crate::path::{Path, Step};
use crate::schema::Schema;

/// Fills an object, and checks what must be true of that.
pub(super) fn hold(compiled: &Compiled, object: &Value, name: &str) {
    let mut after = Json::from(object.clone());
    compiled.fill(&mut after);
    let mut again = after.clone();
    compiled.fill(&mut again);
    assert!(same(&again, &after), "{name}: filling twice is filling once");
    assert!(keeps(object, &after), "{name}: a present value that is not null never changes");

    let mut changed = BTreeSet::new();
    changes(object, &after, &mut Path::root(), &mut changed);
    assert_eq!(gaps(compiled, object), changed, "{name}: gaps are what filling changes");
    assert_eq!(gaps(compiled, &after), BTreeSet::new(), "{name}: filling leaves no gaps");

    let filled = filled(compiled, &after);
    for gap in &changed {
        let found = filled.iter().any(|place| shape(place).contains(gap));
        assert!(found, "{name}: what was filled at {gap} is found");
    }
    for place in &filled {
        let mut without = after.clone();
        take(&mut without, place.steps());
        compiled.fill(&mut without);
        assert!(same(&without, &after), "{name}: what is found at {place} is given again when it is taken");
    }
}

fn gaps(compiled: &Compiled, object: &Value) -> BTreeSet<Path> {
    let mut found = BTreeSet::new();
    compiled.gaps(object, &mut |at, _| assert!(found.insert(shape(&at.to_path()))));
    found
}

fn filled(compiled: &Compiled, object: &Value) -> BTreeSet<Path> {
    let mut found = BTreeSet::new();
    compiled.filled(object, &mut |at, _| assert!(found.insert(at.to_path())));
    found
}

/// Objects alone do not distinguish a map's key from a field.
fn shape(path: &Path) -> Path {
    path.steps()
        .iter()
        .map(|step| match step {
            Step::Key(key) => Step::Field(key.clone()),
            step => step.clone(),
        })
        .collect()
}

fn keeps(before: &Value, after: &Value) -> bool {
    match (before, after) {
        (Value::Null, _) => true,
        (Value::Object(before), Value::Object(after)) => {
            before.iter().all(|(key, before)| after.get(key).is_some_and(|after| keeps(before, after)))
        }
        (Value::Array(before), Value::Array(after)) => {
            before.len() == after.len()
                && before.iter().zip(after).all(|(before, after)| keeps(before, after))
        }
        _ => same(before, after),
    }
}

/// The topmost places that are new, or were null and no longer are.
fn changes(before: &Value, after: &Value, at: &mut Path, found: &mut BTreeSet<Path>) {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            for (key, after) in after {
                at.push(Step::Field(key.clone()));
                match before.get(key) {
                    Some(before) => changes(before, after, at, found),
                    None => {
                        found.insert(at.clone());
                    }
                }
                at.pop();
            }
        }
        (Value::Array(before), Value::Array(after)) => {
            for (index, (before, after)) in before.iter().zip(after).enumerate() {
                at.push(Step::Index(index));
                changes(before, after, at, found);
                at.pop();
            }
        }
        (Value::Null, after) if !after.is_null() => {
            found.insert(at.clone());
        }
        _ => {}
    }
}

/// Takes a declared field out; what has its place for other reasons becomes null.
fn take(value: &mut Value, steps: &[Step]) {
    let (step, rest) = steps.split_first().expect("nothing is filled at the root");
    let part = match step {
        Step::Field(name) if rest.is_empty() => {
            value.as_object_mut().expect("an object").remove(name);
            return;
        }
        Step::Field(name) | Step::Key(name) => &mut value[name],
        Step::Index(index) => &mut value[index],
        Step::Items | Step::Values => unreachable!("an object has no such steps"),
    };
    if rest.is_empty() { *part = Value::Null } else { take(part, rest) }
}

/// Random schemas and objects that have something to do with each other, from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    fn name(&mut self) -> String {
        ["a", "b", "c", "metadata", "*"][self.below(5) as usize].to_owned()
    }

    fn schema(&mut self, depth: u32) -> Value {
        let mut schema = Map::new();
        let below = depth > 0;
        let shape = self.below(4);
        if below && shape < 2 {
            let properties: Map<_, _> =
                (0..self.below(4)).map(|_| (self.name(), self.schema(depth - 1))).collect();
            schema.insert("properties".to_owned(), properties.into());
        }
        if below && (shape == 1 || shape == 0 && self.below(4) == 0) {
            schema.insert("additionalProperties".to_owned(), self.schema(depth - 1));
        }
        if below && shape == 2 {
            schema.insert("items".to_owned(), self.schema(depth - 1));
        }
        if self.below(3) == 0 {
            schema.insert("nullable".to_owned(), true.into());
        }
        if self.below(8) == 0 {
            schema.insert("x-kubernetes-embedded-resource".to_owned(), true.into());
        }
        if self.below(6) == 0 {
            schema.insert("x-kubernetes-preserve-unknown-fields".to_owned(), true.into());
        }
        if self.below(2) == 0 {
            let default = self.value(&Value::Object(schema.clone()), depth);
            schema.insert("default".to_owned(), default);
        }
        schema.into()
    }

    fn value(&mut self, schema: &Value, depth: u32) -> Value {
        if self.below(8) == 0 {
            return Value::Null;
        }
        if depth > 0 && (schema.get("properties").is_some() || schema.get("additionalProperties").is_some()) {
            let names: Vec<_> = (0..self.below(4)).map(|_| self.name()).collect();
            let fields = names.into_iter().map(|name| {
                let below = schema["properties"].get(&name).unwrap_or(&schema["additionalProperties"]);
                let value = self.value(below, depth - 1);
                (name, value)
            });
            return Value::Object(fields.collect());
        }
        if depth > 0 && schema.get("items").is_some() {
            return (0..self.below(4)).map(|_| self.value(&schema["items"], depth - 1)).collect();
        }
        [json!(1), json!("a"), json!({}), json!([]), json!(2.5), json!(1.0)][self.below(6) as usize].take()
    }
}

#[test]
fn the_laws_hold_for_random_schemas_and_objects() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut with_changes = 0;
    for round in 0..20_000 {
        let mut document = random.schema(4);
        document["default"].take();
        let compiled = Compiled::new(&Schema::parse(&document).expect("a schema"));
        let object = random.value(&document, 4);
        let name = format!("round {round}: {document} {object}");
        hold(&compiled, &object, &name);
        with_changes += usize::from(!gaps(&compiled, &object).is_empty());
    }
    assert!(with_changes > 2_000, "{with_changes} of the objects were filled");
}
