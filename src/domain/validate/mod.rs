//! What the API server says of default values and of whole objects, and what it does not say and should.
//! It must not change what it looks at, nor be stricter or laxer than the server without saying so.
//!
//! Findings' fields hold places and names; their details may quote values.

pub mod cel;
mod defaults;
mod field;
mod format;
mod lists;
mod metadata;
mod number;
mod patterns;
mod value;
mod violation;

use serde_json::Value;

use crate::domain::finding::Finding;
use crate::domain::schema::Schema;
use field::Field;
use patterns::Patterns;
use value::Form;

pub use defaults::{DefaultFindings, defaults};

/// A schema with what validating many objects with it needs only once.
#[derive(Debug)]
pub struct Validator<'s> {
    schema: &'s Schema,
    patterns: Patterns<'s>,
}

impl<'s> Validator<'s> {
    /// Prepares a schema. Patterns are compiled when an object first needs them.
    pub fn new(schema: &'s Schema) -> Self {
        Self { schema, patterns: Patterns::of(schema) }
    }

    /// What creating the object would be refused for.
    pub fn object(&self, object: &Value) -> Vec<Finding> {
        let violations = value::check(Form::Props, &self.patterns, self.schema, object);
        let mut found: Vec<_> = violations.iter().map(|violation| violation.finding("")).collect();
        metadata::check(self.schema, object, false, &mut Field::default(), &mut found);
        lists::check(self.schema, object, &mut Field::default(), &mut found);
        found
    }
}

#[cfg(test)]
mod vecs;
