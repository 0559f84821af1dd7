//! Etch's answers: which function of the library each op of a vector asks.
//! It has no rule of its own.

use kube_crd_validation::{Validator, crd};
use kube_structural_schema::compile::Compiled;
use kube_structural_schema::defaults;
use kube_structural_schema::finding::Finding;
use kube_structural_schema::json::Json;
use kube_structural_schema::schema::Schema;
use kube_structural_schema::schema::rules::structural_errors;

use super::{Case, Issue, Op, Outcome};

/// What Etch answers, for the newest release.
pub fn answer(case: &Case) -> Outcome {
    answer_on(crd::Release::NEWEST, case)
}

/// What Etch answers. Questions about CRDs are answered as a release does; all others have one answer.
pub fn answer_on(release: crd::Release, case: &Case) -> Outcome {
    answered(release, case).unwrap_or_else(Outcome::Refused)
}

fn answered(release: crd::Release, case: &Case) -> Result<Outcome, String> {
    if case.op.is_about_crds() {
        return answered_crd(release, case).map_err(|malformed| malformed.to_string());
    }
    let schema = Schema::parse(&case.schema).map_err(|error| error.to_string())?;
    Ok(match case.op {
        Op::Structural => Outcome::Issues(issues(structural_errors(&schema))),
        Op::Defaults => {
            let found = kube_crd_validation::defaults(&schema);
            let either: Vec<_> = found.either.into_iter().map(issues).collect();
            // The first of each group is among the others.
            let mut certain = issues(found.by_server);
            certain.retain(|issue| !either.iter().any(|group| group.first() == Some(issue)));
            Outcome::Wavering { certain, either }
        }
        Op::Read => Outcome::Object(read(&case.object, &schema)?),
        Op::Validate => {
            let object = read(&case.object, &schema)?;
            let found = Validator::new(&schema).object(&object);
            // A vector asks for the rules only where the rest is clean, which is more than what keeps them
            // from running.
            Outcome::Issues(issues(if found.values.is_empty() { found.rules } else { found.values }))
        }
        Op::CrdCreate | Op::CrdUpdate => return Err("a CRD is no schema".to_owned()),
    })
}

fn answered_crd(release: crd::Release, case: &Case) -> Result<Outcome, crd::Malformed> {
    let found = match case.op {
        Op::CrdUpdate => crd::validate_update_on(release, &case.schema, &case.object)?,
        _ => crd::validate_create_on(release, &case.schema)?,
    };
    Ok(Outcome::Issues(issues(found)))
}

/// The object as a reader gets it, or why no reader gets it.
fn read(stored: &Json, schema: &Schema) -> Result<Json, String> {
    let mut object = stored.clone();
    let compiled = Compiled::new(schema);
    defaults::read(&mut object, schema, &compiled, &mut |_| {}).map_err(|error| error.to_string())?;
    Ok(object)
}

fn issues(findings: Vec<Finding>) -> Vec<Issue> {
    let issue = |Finding { field, kind, detail, .. }| Issue { kind: kind.to_string(), field, detail };
    findings.into_iter().map(issue).collect()
}
