//! Etch's answers: which function of the library each op of a vector asks.
//! It must not contain a rule of its own.

use super::{Case, Op, Outcome};

/// What Etch answers.
pub fn answer(case: &Case) -> Outcome {
    match case.op {
        Op::Read | Op::Structural | Op::Defaults | Op::Validate => Outcome::Refused(String::new()),
    }
}
