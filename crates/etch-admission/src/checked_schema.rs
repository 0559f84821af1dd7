//! What existing objects are judged by.

use std::sync::Arc;

use serde_json::Value;

use crate::Compiled;

/// A schema that existing objects can be judged by.
#[derive(Clone, Debug)]
pub struct CheckedSchema {
    /// The name of its `EmbeddedSchema`.
    pub name: String,
    /// What else an outcome depends on.
    pub inputs: Inputs,
    /// The schema.
    pub schema: Arc<Compiled>,
    /// Whether defaults of existing objects are to be stored.
    pub persist: bool,
    /// Whether API servers ask about some objects only.
    pub restricted: bool,
}

/// What the outcome of a check depends on, except the objects themselves.
#[derive(Clone, Debug, PartialEq)]
pub struct Inputs {
    /// The uid of the `EmbeddedSchema`.
    pub uid: String,
    /// The generation that is judged by.
    pub generation: i64,
    /// What its author asks for by an annotation.
    pub asked: Option<String>,
    /// The values of its facts.
    pub facts: Value,
}
