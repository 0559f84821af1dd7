//! Finding the schema of a place, and how deep places are.

use super::Schema;
use crate::path::Step;

/// How deep a schema may be where each of its places is named: they grow with the square of the depth. Real
/// ones reach 40.
pub const DEEPEST: usize = 300;

impl Schema {
    /// Whether the schema describes this place, rather than keep or drop whatever is there.
    pub fn describes(&self, path: &[Step]) -> bool {
        path.iter().try_fold(self, Self::below).is_some()
    }

    /// The schema of what is one step below; `None` if there is none.
    pub fn below(&self, step: &Step) -> Option<&Self> {
        match step {
            Step::Field(name) | Step::Key(name) => self.child(name),
            Step::Items | Step::Index(_) => self.items.as_deref(),
            Step::Values => self.additional_schema(),
        }
    }

    /// How many levels of values it describes.
    pub fn depth(&self) -> usize {
        let properties = self.properties.iter().map(|(_, property)| property.depth());
        let others = self.items.as_deref().into_iter().chain(self.additional_schema()).map(Self::depth);
        1 + properties.chain(others).max().unwrap_or_default()
    }
}
