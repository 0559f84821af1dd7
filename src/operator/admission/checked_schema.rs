//! What existing objects are judged by.
//! `existing` judges them.

use std::sync::Arc;

use serde_json::Value;

use etch_admission::Compiled;

/// A schema that existing objects can be judged by.
#[derive(Clone, Debug)]
pub(super) struct CheckedSchema {
    pub(super) name: String,
    pub(super) inputs: Inputs,
    pub(super) schema: Arc<Compiled>,
    /// Whether defaults of existing objects are to be stored.
    pub(super) persist: bool,
    /// Whether API servers ask about some objects only.
    pub(super) restricted: bool,
}

/// What the outcome of a check depends on, except the objects themselves.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Inputs {
    pub(super) uid: String,
    pub(super) generation: i64,
    /// What its author asks for by an annotation.
    pub(super) asked: Option<String>,
    pub(super) facts: Value,
}
