//! Cases for the differential fuzzing: schemas, and objects that nearly fit them, all from one seed.

mod changes;
mod clauses;
mod conversions;
mod crds;
mod damage;
mod expressions;
mod library;
mod metadata;
mod operands;
mod rules;
mod schemas;
mod seeds;
mod upgrades;
mod values;
mod versions;
mod words;

use serde_json::Value;

use crate::conformance::{Case, Op};
use simulator::random::Random;

pub use seeds::{Seeds, crds};
pub use upgrades::{SchemaUpgrade, schema_upgrade};

/// Makes the case with a number under a seed: always the same one.
pub fn case(seeds: &Seeds, seed: u64, number: u64, op: Op) -> Case {
    let mut random = Random::new(seed ^ op as u64, number);
    let mut temper = Temper::new(&mut random, op);
    temper.real |= seeds.whole;
    let mut generator = Generator { left: temper.nodes, random, temper, seeds };
    if op.is_about_crds() {
        let (crd, old) = match op {
            Op::CrdUpdate => generator.upgrade(),
            _ => (generator.crd(), Value::Null),
        };
        return Case { op, schema: crd.into(), object: old.into() };
    }
    let mut schema = generator.root();
    for _ in 0..generator.temper.damage {
        generator.damage(&mut schema);
    }
    let object = if op.takes_object() { generator.object(&schema) } else { Value::Null };
    Case { op, schema: schema.into(), object: object.into() }
}

/// What one case is like, so that cases differ from each other in more than details. Shares are percents.
struct Temper {
    /// Schemas at most, of any position.
    nodes: usize,
    /// Schemas with a default.
    defaults: usize,
    /// Schemas with `x-kubernetes-validations`.
    rules: usize,
    /// Schemas with `allOf`, `anyOf`, `oneOf` or `not`.
    clauses: usize,
    /// Schemas with further keywords that restrict values.
    limits: usize,
    /// Values that do not fit their schema on purpose.
    noise: usize,
    /// Names out of [`words::ODD_NAMES`].
    odd: usize,
    /// Objects with `x-kubernetes-embedded-resource`.
    embedded: usize,
    /// Unstructured changes of the finished schema.
    damage: usize,
    /// Whether the schema grows out of a real CRD's.
    real: bool,
}

impl Temper {
    fn new(random: &mut Random, op: Op) -> Self {
        let (defaults, rules, clauses, limits) = match op {
            Op::Read => (40, 0, 3, 3),
            Op::Structural => (15, 5, 40, 20),
            Op::Defaults => (45, 15, 15, 30),
            Op::Validate => (15, 20, 20, 40),
            Op::CrdCreate | Op::CrdUpdate => (15, 30, 8, 25),
        };
        let share = |random: &mut Random, usual: usize| match random.weighted(&[2, 5, 1]) {
            0 => 0,
            1 => usual,
            _ => (2 * usual).min(80),
        };
        let damage = match op {
            Op::Structural => random.weighted(&[2, 4, 3, 2, 1]),
            _ => random.weighted(&[12, 3, 1]),
        };
        Self {
            nodes: random.between(2, 24),
            defaults: share(random, defaults),
            rules: share(random, rules),
            clauses: share(random, clauses),
            limits: share(random, limits),
            noise: [0, 2, 6, 15, 40][random.weighted(&[2, 4, 4, 2, 1])],
            odd: [0, 5, 30][random.weighted(&[5, 4, 1])],
            embedded: [0, 10, 50][random.weighted(&[5, 4, 2])],
            damage,
            real: random.chance(if op.is_about_crds() { 25 } else { 12 }),
        }
    }
}

/// The state of making one case.
struct Generator<'a> {
    random: Random,
    temper: Temper,
    left: usize,
    seeds: &'a Seeds,
}

impl Generator<'_> {
    fn name(&mut self) -> String {
        let names = if self.random.chance(self.temper.odd) { words::ODD_NAMES } else { words::NAMES };
        self.random.pick(names).to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_depends_on_its_seed_and_number_alone() {
        let seeds = Seeds::default();
        for op in Op::ALL {
            assert_eq!(case(&seeds, 1, 5, op), case(&seeds, 1, 5, op));
            let differing =
                (0..50).filter(|number| case(&seeds, 1, *number, op) != case(&seeds, 2, *number, op));
            assert!(differing.count() > 40);
        }
    }
}
