//! Rules about EmbeddedSchemas: what cannot be served, what is never applied, and what is wrong in the schema
//! of an extension.
//!
//! The schema of an extension is one of a CRD, so the rules about CRDs hold for it as well.

mod at;
mod cost;
mod declaration;
mod defaults;
mod paths;
mod schema;
mod targets;

use super::refusal::Part;
use super::rule::{Finding, Rule};
use at::OfCrd;
use etch_admission::{Compiled, Declaration};
use kube_structural_schema::json::Json;

/// All rules about EmbeddedSchemas, in the order of their codes. A code is never given to another rule.
pub const EMBEDDED_RULES: [&Rule; 8] = [
    &declaration::MALFORMED,
    &declaration::EXPRESSION,
    &targets::UNKNOWN,
    &targets::TWICE,
    &paths::RULE,
    &defaults::RULE,
    &schema::COST,
    &cost::RULE,
];

/// Applies every rule to an EmbeddedSchema, in view of the CRDs that are known: a target of another resource
/// is taken as it is. Findings are in the order of their places in the document.
pub(super) fn check(document: &Json, crds: &[Json], of_crd: OfCrd<'_>) -> Vec<Finding> {
    let spec = &document["spec"];
    let mut found = Vec::new();
    match Declaration::read(spec) {
        Err(problems) => declaration::unreadable(&problems, &mut found),
        Ok(declared) => {
            let compiled = Compiled::new(&declared);
            declaration::check(spec, &declared, compiled.as_ref().err(), &mut found);
            targets::check(&declared, crds, &mut found);
            paths::check(&declared, &mut found);
            defaults::check(&declared, &mut found);
            if let Ok(compiled) = &compiled {
                cost::check(compiled, &mut found);
            }
            schema::check(&declared, of_crd, &mut found);
        }
    }
    let key = |finding: &Finding| (place_of(finding), finding.rule.code, finding.message.clone());
    found.sort_by_cached_key(|finding| {
        let (place, code, message) = key(finding);
        (sortable(&place), code, message)
    });
    found.dedup_by(|a, b| key(a) == key(b));
    found
}

fn place_of(finding: &Finding) -> Vec<Part> {
    finding.refusal.as_ref().map(|refusal| refusal.place.clone()).unwrap_or_default()
}

/// Items by their numbers, fields by their names.
fn sortable(place: &[Part]) -> Vec<(usize, String)> {
    let part = |part: &Part| match part {
        Part::Field(name) => (0, name.clone()),
        Part::Item(index) => (*index + 1, String::new()),
    };
    place.iter().map(part).collect()
}

#[cfg(test)]
mod tests;
