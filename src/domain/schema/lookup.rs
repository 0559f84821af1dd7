//! Finding the schema of a place.
//! It must not follow what the schema does not say.

use super::{Additional, Schema};
use crate::domain::path::Step;

impl Schema {
    /// Whether a value at this place would survive pruning.
    pub fn knows(&self, path: &[Step]) -> bool {
        let Some((step, rest)) = path.split_first() else { return true };
        match step {
            Step::Field(name) | Step::Key(name) => match (self.properties.get(name), &self.additional) {
                (Some(child), _) => child.knows(rest),
                (None, Some(Additional::Schema(child))) => child.knows(rest),
                (None, Some(Additional::Bool(_))) => true,
                (None, None) => self.preserve_unknown_fields,
            },
            Step::Values => match &self.additional {
                Some(Additional::Schema(child)) => child.knows(rest),
                Some(Additional::Bool(_)) => true,
                None => self.preserve_unknown_fields,
            },
            Step::Index(_) | Step::Items => match &self.items {
                Some(child) => child.knows(rest),
                None => self.preserve_unknown_fields,
            },
        }
    }
}
