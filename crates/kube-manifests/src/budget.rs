//! How much of a document may be held: an account in bytes of memory, and a limit to its depth.
//! It is not exact, but on the safe side.

use crate::malformed::{MEMORY, Malformed};

/// The memory that is left.
pub(super) struct Budget(usize);

impl Default for Budget {
    fn default() -> Self {
        Self(MEMORY)
    }
}

impl Budget {
    /// A scalar in an array or a field.
    pub(super) fn scalar(&mut self, bytes: usize) -> Result<(), Malformed> {
        self.take(32 + bytes)
    }

    /// An item of an array; vectors grow by doubling.
    pub(super) fn item(&mut self) -> Result<(), Malformed> {
        self.take(64)
    }

    /// A field of an object. The first one brings a node of the tree with room for eleven.
    pub(super) fn field(&mut self, name: usize, is_first: bool) -> Result<(), Malformed> {
        self.take(name + if is_first { 660 } else { 100 })
    }

    /// Bytes by the count.
    pub(super) fn take(&mut self, bytes: usize) -> Result<(), Malformed> {
        self.0 = self.0.checked_sub(bytes).ok_or(Malformed::TooLarge)?;
        Ok(())
    }

    /// What is left, to work out later what was taken in between.
    pub(super) fn left(&self) -> usize {
        self.0
    }

    /// Gives back what was taken since, for a document that was handed over.
    pub(super) fn restore(&mut self, left: usize) {
        self.0 = left;
    }
}
