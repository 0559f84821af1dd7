//! Vectors of the API server's answers, and how Etch's answers are compared with them. Nothing here may
//! contain a rule of the schema engine: it asks, compares and counts.

pub mod admission;
mod agreement;
mod run;
mod subject;
mod vector;

pub use agreement::{compare, compare_words, settle, without_quotes};
pub use run::{Tally, run};
pub use subject::{answer, answer_on};
pub use vector::{Case, Issue, Op, Outcome, Vector};
