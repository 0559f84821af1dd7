//! Etch's answers: which function of the library each op of a vector asks.
//! It must not contain a rule of its own.

use etch::domain::compile::Compiled;
use etch::domain::defaults;
use etch::domain::finding::Finding;
use etch::domain::json::Json;
use etch::domain::schema::Schema;
use etch::domain::schema::rules::structural_errors;

use super::{Case, Issue, Op, Outcome};

/// What Etch answers.
pub fn answer(case: &Case) -> Outcome {
    let schema = match Schema::parse(&case.schema) {
        Ok(schema) => schema,
        Err(error) => return Outcome::Refused(error.to_string()),
    };
    match case.op {
        Op::Structural => issues(structural_errors(&schema)),
        Op::Read => read(&case.object, &schema).map_or_else(Outcome::Refused, Outcome::Object),
        Op::Defaults | Op::Validate => Outcome::Refused("not yet".to_owned()),
    }
}

/// The object as a reader gets it, or why no reader gets it.
fn read(stored: &Json, schema: &Schema) -> Result<Json, String> {
    let mut object = stored.clone();
    let compiled = Compiled::new(schema);
    match defaults::read(&mut object, schema, &compiled, &mut |_| {}) {
        Ok(()) => Ok(object),
        Err(error) => Err(error.to_string()),
    }
}

fn issues(findings: Vec<Finding>) -> Outcome {
    let issues = findings.into_iter().map(|Finding { field, kind, detail }| Issue {
        kind: kind.to_string(),
        field,
        detail,
    });
    Outcome::Issues(issues.collect())
}
