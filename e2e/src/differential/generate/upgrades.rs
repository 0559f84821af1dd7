//! Upgrades of a schema, with objects that were stored before.

use serde_json::Value;

use super::changes::copy_without;
use super::{Generator, Seeds, Temper};
use crate::conformance::Op;
use simulator::random::Random;

/// Objects of each schema.
const OBJECTS: usize = 6;

/// A schema, what replaces it, and objects that fit one of them for the most part.
#[derive(Clone, Debug, PartialEq)]
pub struct SchemaUpgrade {
    /// The schema of the version before.
    pub old: Value,
    /// The schema of the same version afterwards.
    pub new: Value,
    /// Objects as they may have been stored before.
    pub objects: Vec<Value>,
}

/// Makes the upgrade with a number under a seed: always the same one.
pub fn schema_upgrade(seeds: &Seeds, seed: u64, number: u64) -> SchemaUpgrade {
    let mut random = Random::new(seed, number);
    let mut temper = Temper::new(&mut random, Op::Validate);
    temper.noise = temper.noise.min(6);
    let mut generator = Generator { left: temper.nodes, random, temper, seeds };
    let old = generator.root();
    let mut new = old.clone();
    for _ in 0..generator.random.between(1, 3) {
        match generator.random.chance(30) {
            true => generator.change_clauses(&mut new),
            false => generator.change_schema(&mut new),
        }
    }
    let (old, new) = if generator.random.chance(50) { (old, new) } else { (new, old) };
    let mut objects = Vec::new();
    for schema in [&old, &new] {
        objects.extend((0..OBJECTS).map(|_| generator.object(schema)));
    }
    SchemaUpgrade { old, new, objects }
}

impl Generator<'_> {
    /// Adds, drops or replaces a clause of some schema.
    fn change_clauses(&mut self, root: &mut Value) {
        let pointer = self.somewhere(root);
        let Some(Value::Object(node)) = root.pointer_mut(&pointer) else { return };
        let keyword = self.random.pick(&["allOf", "anyOf", "oneOf", "not"]);
        let mut other = copy_without(node, keyword);
        self.add_clause(&mut other, 9);
        let Some(other) = other.remove(keyword) else { return };
        match (node.get_mut(keyword), other) {
            (Some(Value::Array(clauses)), Value::Array(others)) => match self.random.below(3) {
                0 => clauses.extend(others),
                1 if clauses.len() > 1 => drop(clauses.swap_remove(0)),
                _ => {
                    let place = self.random.below(clauses.len().max(1));
                    clauses.splice(place..(place + 1).min(clauses.len()), others);
                }
            },
            (_, other) => drop(node.insert(keyword.to_owned(), other)),
        }
    }
}
