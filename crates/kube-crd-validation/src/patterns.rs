//! The compiled patterns of one schema. Each is compiled when it is first needed: most objects use few of a
//! schema's patterns.

use std::collections::HashMap;
use std::sync::OnceLock;

use go_text::regexp::{Pattern, PatternError};
use kube_structural_schema::schema::Schema;

/// Every pattern of a schema by its text, compiled when it is first used.
#[derive(Debug, Default)]
pub(super) struct Patterns(HashMap<Box<str>, OnceLock<Result<Pattern, PatternError>>>);

impl Patterns {
    pub(super) fn of(schema: &Schema) -> Self {
        let mut patterns = Self::default();
        patterns.collect(schema);
        patterns
    }

    fn collect(&mut self, schema: &Schema) {
        for (_, property) in schema.properties.iter() {
            self.collect(property);
        }
        for part in schema.items.as_deref().into_iter().chain(schema.additional_schema()) {
            self.collect(part);
        }
        let Some(constraints) = &schema.constraints else { return };
        if !constraints.pattern.is_empty() {
            self.0.entry(constraints.pattern.clone()).or_default();
        }
        let clauses = [&constraints.all_of, &constraints.any_of, &constraints.one_of];
        for clause in clauses.into_iter().flatten().chain(constraints.not.as_deref()) {
            self.collect(clause);
        }
    }

    /// Whether a text matches one of the schema's patterns.
    ///
    /// # Errors
    /// The pattern cannot be used; in Go's words where Go refuses it as well.
    pub(super) fn matches(&self, pattern: &str, text: &str) -> Result<bool, &PatternError> {
        let Some(compiled) = self.0.get(pattern) else { return Ok(true) };
        compiled.get_or_init(|| Pattern::new(pattern)).as_ref().map(|pattern| pattern.matches(text))
    }
}
