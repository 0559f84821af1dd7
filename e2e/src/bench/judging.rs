//! What it costs to judge objects before their defaults are stored: nothing where no default can break
//! anything. Compare no numbers of different runs.

use etch_core::crd::Crd;
use etch_core::object::Object;
use etch_core::plan::{Record, Terms, decide};
use kube_structural_schema::json::Json;
use kube_structural_schema::schema::Schema;
use serde::Serialize;
use serde_json::Value;

use super::clock::{Nanoseconds, each};
use super::inputs::{Input, crd_of, owned};

/// Deciding about one filled object of which nothing is on record.
#[derive(Clone, Debug, Serialize)]
pub struct Judging {
    /// Which schema and object.
    pub name: String,
    /// In how many topmost places of the schema a default can break something.
    pub scopes: usize,
    /// With the schema as it is.
    pub decide: Nanoseconds,
    /// With the schema without all that a default can break.
    pub decide_unruled: Nanoseconds,
    /// The first by the second.
    pub ratio: f64,
}

/// Measures every input.
///
/// # Errors
/// An input is not what it should be.
pub fn measure(inputs: &[Input]) -> anyhow::Result<Vec<Judging>> {
    inputs.iter().map(one).collect()
}

fn one(input: &Input) -> anyhow::Result<Judging> {
    let crd = Crd::read(&crd_of(&input.schema))?;
    let unruled = Crd::read(&crd_of(&without_rules(&input.schema)))?;
    let mut filled = input.object.clone();
    crd.compiled().fill(&mut filled);
    let object = Object::from(owned(&filled));
    let (terms, record) = (Terms::default(), Record::default());
    let decided = each(|| decide(&object, &crd, &terms, &record));
    let decide_unruled = each(|| decide(&object, &unruled, &terms, &record));
    Ok(Judging {
        name: input.name.clone(),
        scopes: crd.breakable_scopes().scopes().len(),
        decide: decided,
        decide_unruled,
        ratio: (1000.0 * decided / decide_unruled).round() / 1000.0,
    })
}

/// The schema without rules, clauses, and restrictions of a value as a whole.
fn without_rules(schema: &Json) -> Json {
    let mut schema = schema.clone();
    strip(&mut schema);
    debug_assert!(Schema::parse(&schema).is_ok());
    schema
}

fn strip(schema: &mut Value) {
    let Value::Object(keywords) = schema else { return };
    for keyword in [
        "x-kubernetes-validations",
        "oneOf",
        "anyOf",
        "allOf",
        "not",
        "enum",
        "maxProperties",
        "uniqueItems",
        "x-kubernetes-list-type",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-embedded-resource",
    ] {
        keywords.remove(keyword);
    }
    if let Some(Value::Object(properties)) = keywords.get_mut("properties") {
        properties.values_mut().for_each(strip);
    }
    for keyword in ["items", "additionalProperties"] {
        if let Some(part) = keywords.get_mut(keyword) {
            strip(part);
        }
    }
}
