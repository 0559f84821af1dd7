//! One request by all schemas that are for it, as the API server asks: first all defaults, then all verdicts.
//! It must not know where schemas come from.

use serde_json::Value;

use super::answer::{Answer, FieldError};
use super::compile::Compiled;
use super::request::Request;
use crate::domain::json::{Json, copy};

/// What becomes of a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Review {
    /// The object with its defaults; none where an extension is missing or of the wrong types, so that it can have none.
    pub object: Option<Json>,
    /// The verdict.
    pub answer: Answer,
}

/// Reviews a request by schemas with their facts, in this order.
pub fn review(schemas: &[(&Compiled, &Value)], request: &Request<'_>) -> Review {
    let mut object = Json::from(copy(request.object));
    let mut answer = Answer::default();
    for (schema, facts) in schemas {
        let defaulted = schema.set_defaults(&Request { object: &object, facts, ..*request });
        answer.warnings.extend(defaulted.warnings);
        if let Some(set) = defaulted.object {
            object = set;
        }
    }
    let mut blocked: Vec<FieldError> = Vec::new();
    for (schema, facts) in schemas {
        let found = schema.found(&Request { object: &object, facts, ..*request });
        if schema.default_on.contains(&request.operation) {
            blocked.extend(found.iter().filter(|found| found.blocks).map(|found| found.error.clone()));
        }
        let Answer { errors, warnings } = schema.answer(found);
        answer.errors.extend(errors);
        answer.warnings.extend(warnings);
    }
    let refused: Vec<FieldError> =
        blocked.into_iter().filter(|error| answer.errors.contains(error)).collect();
    if refused.is_empty() {
        return Review { object: Some(object), answer };
    }
    Review { object: None, answer: Answer { errors: refused, ..answer } }
}
