//! The files that were read already, so that each is read once even if it is named by several paths.

use std::collections::BTreeSet;
use std::fs;
use std::path::{self, Path, PathBuf};

/// Files that are read one path after the other, each of them once.
#[derive(Debug, Default)]
pub struct DistinctFiles {
    read: BTreeSet<PathBuf>,
    pub(super) has_repeated: bool,
}

impl DistinctFiles {
    /// Whether the last path led to a file that was read before, and that was passed over.
    pub fn has_repeated(&self) -> bool {
        self.has_repeated
    }

    /// Whether a file was not read before; now it is.
    pub(super) fn is_new(&mut self, path: &Path) -> bool {
        // A pipe, or what a revision has and the disk has not, is known by its name alone.
        let place = fs::canonicalize(path).or_else(|_| path::absolute(path));
        let is_new = place.map_or(true, |place| self.read.insert(place));
        self.has_repeated |= !is_new;
        is_new
    }
}
