//! One request by all schemas that are for it, in the order of the API server: first all defaults, then all
//! verdicts.

use serde_json::Value;

use super::answer::{Answer, FieldError};
use super::compile::Compiled;
use super::judge::Found;
use super::request::Request;
use kube_structural_schema::json::Json;

/// The outcome of a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Review {
    /// The object with its defaults; `None` if the request is refused because an extension is missing or of
    /// the wrong types.
    pub object: Option<Json>,
    /// The verdict.
    pub answer: Answer,
}

/// Asks for the defaults of so many schemas as the API server does: of each in order, and once more of those
/// before the last one that has changed the object (`reinvocationPolicy: IfNeeded`). `set` sets the defaults
/// of one, and returns whether that has changed the object.
pub(super) fn invoke(schemas: usize, mut set: impl FnMut(usize) -> bool) {
    let last = (0..schemas).fold(0, |last, index| if set(index) { index } else { last });
    (0..last).for_each(|index| {
        set(index);
    });
}

/// Reviews a request by schemas with their facts, in this order.
pub fn review(schemas: &[(&Compiled, &Value)], request: &Request<'_>) -> Review {
    let mut object = Json::from(request.object.clone());
    let mut answer = Answer::default();
    invoke(schemas.len(), |index| {
        let (schema, facts) = schemas[index];
        let defaulted = schema.set_defaults(&Request { facts, ..*request }, &object);
        for warning in defaulted.warnings {
            if !answer.warnings.contains(&warning) {
                answer.warnings.push(warning);
            }
        }
        let Some(set) = defaulted.object else { return false };
        object = set;
        true
    });
    let (mut missing, mut bare): (Vec<FieldError>, Vec<FieldError>) = Default::default();
    for (schema, facts) in schemas {
        let found = schema.found(&Request { object: &object, facts, ..*request });
        let errors = |is: fn(&Found) -> bool| {
            found.iter().filter(move |found| is(found)).map(|found| found.error.clone())
        };
        bare.extend(errors(Found::prevents_defaults));
        if schema.default_on.contains(&request.operation) {
            missing.extend(errors(Found::is_missing));
        }
        let Answer { errors, warnings } = schema.answer(found);
        answer.errors.extend(errors);
        answer.warnings.extend(warnings);
    }
    let is_refused = |error: &FieldError| answer.errors.contains(error);
    let object = (!bare.iter().any(is_refused)).then_some(object);
    missing.retain(is_refused);
    if !missing.is_empty() {
        // The API server sends the request for defaults first, and after a refusal no other.
        answer.errors = missing;
    }
    Review { object, answer }
}
