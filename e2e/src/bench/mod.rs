//! How long filling and deciding take, beside Go's `Default` and the simplest operations on the same object.
//! All numbers of a report come from one run on one machine.

pub mod admission;
pub mod admission_server;
pub mod audit;
mod clock;
mod figures;
mod go;
pub mod guard;
mod inputs;
pub mod judging;
pub mod memory;
mod objects;
pub mod pass;
pub mod restart;
mod steady;
pub mod verdicts;

use etch_core::crd::Crd;
use etch_core::object::Object;
use etch_core::plan::{Record, Terms, decide};
use kube_structural_schema::compile::Compiled;
use kube_structural_schema::schema::Schema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use clock::{Nanoseconds, each, fresh};
use figures::rounded;
pub use inputs::{Input, crd_of};

/// What was measured of one object. Times are nanoseconds, the best of several rounds.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Measurement {
    /// Which schema and object.
    pub name: String,
    /// The filled object's size as JSON.
    pub bytes: usize,
    /// Filling the object as it is stored.
    pub fill_stored: Nanoseconds,
    /// Filling the object when nothing is missing.
    pub fill_filled: Nanoseconds,
    /// Deciding about the filled object, all of whose fields have an owner.
    pub decide: Nanoseconds,
    /// A deep copy of the filled object.
    pub copy: Nanoseconds,
    /// serde_json's parse of the filled object.
    pub parse: Nanoseconds,
    /// Go's `Default` on the object as it is stored.
    pub go_default_stored: Nanoseconds,
    /// Go's `Default` on the filled object.
    pub go_default_filled: Nanoseconds,
    /// Go's `DeepCopyJSONValue` of the filled object.
    pub go_copy: Nanoseconds,
    /// The numbers above by each other.
    pub ratios: Ratios,
}

/// Ratios of one measurement.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Ratios {
    /// Filling when nothing is missing, by a deep copy: at most 0.5 is wanted.
    pub fill_filled_to_copy: f64,
    /// Filling what is stored, by a deep copy.
    pub fill_stored_to_copy: f64,
    /// Filling when nothing is missing, by serde_json's parse.
    pub fill_filled_to_parse: f64,
    /// Go's `Default` by ours when nothing is missing: at least 5 is wanted.
    pub go_default_filled_to_fill: f64,
    /// Go's `Default` by ours on what is stored: at least 5 is wanted.
    pub go_default_stored_to_fill: f64,
    /// Go's `Default` by Go's deep copy, when nothing is missing.
    pub go_default_filled_to_go_copy: f64,
    /// Deciding by a deep copy.
    pub decide_to_copy: f64,
}

/// What is wanted of every measurement: filling at most this part of a deep copy, and Go's `Default` at least
/// that many times as long, whether something is missing or not.
pub const WANTED: Worst = Worst { fill_to_copy: 0.5, go_default_to_fill: 5.0 };

/// The least favourable ratios of a report.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Worst {
    /// The most that filling takes of a deep copy.
    pub fill_to_copy: f64,
    /// The least that Go's `Default` takes of ours.
    pub go_default_to_fill: f64,
}

impl Worst {
    /// The least favourable ratios of these measurements.
    pub fn of(measurements: &[Measurement]) -> Self {
        let start = Self { fill_to_copy: 0.0, go_default_to_fill: f64::INFINITY };
        measurements.iter().fold(start, |worst, Measurement { ratios, .. }| Self {
            fill_to_copy: worst.fill_to_copy.max(ratios.fill_filled_to_copy).max(ratios.fill_stored_to_copy),
            go_default_to_fill: worst
                .go_default_to_fill
                .min(ratios.go_default_filled_to_fill)
                .min(ratios.go_default_stored_to_fill),
        })
    }

    /// Whether nothing is worse than what is wanted.
    pub fn is_good(&self) -> bool {
        self.fill_to_copy <= WANTED.fill_to_copy && self.go_default_to_fill >= WANTED.go_default_to_fill
    }
}

/// Measures every input.
///
/// # Errors
/// The Go benchmarks cannot be built or run, or an input is not what it should be.
pub fn measure(inputs: &[Input]) -> anyhow::Result<Vec<Measurement>> {
    let go = go::measure(inputs)?;
    inputs.iter().map(|input| one(input, &go)).collect()
}

fn one(input: &Input, go: &go::Results) -> anyhow::Result<Measurement> {
    let schema = Schema::parse(&input.schema)?;
    let compiled = Compiled::new(&schema);
    let stored: &Value = &input.object;
    let mut filled = input.object.clone();
    compiled.fill(&mut filled);
    let text = filled.to_vec();

    let crd = Crd::read(&crd_of(&input.schema))?;
    let owned = Object::from(inputs::owned(&filled));
    let (terms, record) = (Terms::default(), Record::default());

    let fill_stored = fresh(|| stored.clone(), |object| compiled.fill(object));
    let mut full = filled.clone();
    let fill_filled = each(|| compiled.fill(&mut full));
    let decide = each(|| decide(&owned, &crd, &terms, &record));
    let copied = each(|| filled.clone());
    let parse = each(|| serde_json::from_slice::<Value>(&text));
    let name = input.name.clone();
    let go_default_stored = go.of("Default", &name, "stored")?;
    let go_default_filled = go.of("Default", &name, "filled")?;
    let go_copy = go.of("DeepCopyJSONValue", &name, "filled")?;
    let by = |a: Nanoseconds, b: Nanoseconds| rounded(a / b, 3);
    Ok(Measurement {
        name,
        bytes: text.len(),
        fill_stored,
        fill_filled,
        decide,
        copy: copied,
        parse,
        go_default_stored,
        go_default_filled,
        go_copy,
        ratios: Ratios {
            fill_filled_to_copy: by(fill_filled, copied),
            fill_stored_to_copy: by(fill_stored, copied),
            fill_filled_to_parse: by(fill_filled, parse),
            go_default_filled_to_fill: by(go_default_filled, fill_filled),
            go_default_stored_to_fill: by(go_default_stored, fill_stored),
            go_default_filled_to_go_copy: by(go_default_filled, go_copy),
            decide_to_copy: by(decide, copied),
        },
    })
}

/// The inputs of a report: upstream's pruning benchmark, the same shape with defaults, and real CRDs.
///
/// # Errors
/// The project's vectors cannot be read.
pub fn inputs() -> anyhow::Result<Vec<Input>> {
    let mut inputs = inputs::pruning_shapes();
    inputs.extend(inputs::real_crds()?);
    Ok(inputs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_as_good_as_its_worst_ratio() {
        let measurement = |filled: f64, stored: f64, go_filled: f64, go_stored: f64| {
            let measured = serde_json::json!({
                "fill_filled_to_copy": filled, "fill_stored_to_copy": stored,
                "go_default_filled_to_fill": go_filled, "go_default_stored_to_fill": go_stored,
            });
            Measurement {
                ratios: serde_json::from_value(measured).expect("ratios"),
                ..Measurement::default()
            }
        };
        let worst = |all: &[Measurement]| {
            let worst = Worst::of(all);
            (worst.fill_to_copy, worst.go_default_to_fill, worst.is_good())
        };
        let good = measurement(0.1, 0.5, 5.0, 70.0);
        assert_eq!(worst(std::slice::from_ref(&good)), (0.5, 5.0, true));
        assert_eq!(worst(&[good.clone(), measurement(0.6, 0.2, 9.0, 9.0)]), (0.6, 5.0, false));
        assert_eq!(worst(&[measurement(0.2, 0.3, 9.0, 4.5), good]), (0.5, 4.5, false));
    }

    #[test]
    fn every_input_can_be_measured() {
        for input in inputs().expect("the project has the vectors") {
            let schema = Schema::parse(&input.schema).expect("a schema");
            let compiled = Compiled::new(&schema);
            let mut filled = input.object.clone();
            compiled.fill(&mut filled);
            assert_eq!(filled == input.object, !compiled.has_defaults(), "{}", input.name);
        }
    }
}
