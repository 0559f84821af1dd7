//! How far a pass has come, in one line on a terminal, and what it waits for.

use std::io::{self, IsTerminal, Write};

use etch_answers::persist::in_words;
use etch_answers::plain;
use etch_core::engine::by_hand::Progress;

use crate::commands::streams::note;

/// A progress line that is overwritten on a terminal. Without a terminal, only what the pass waits for.
pub(super) struct Line {
    crd: String,
    last: Progress,
    is_shown: bool,
}

impl Line {
    pub(super) fn new(crd: &str) -> Self {
        Self { crd: crd.to_owned(), last: Progress::default(), is_shown: false }
    }

    pub(super) fn show(&mut self, progress: Progress) {
        if let Some(migration) = &progress.migration {
            if progress.migration != self.last.migration {
                let _ = note(&format!(
                    "{}: waiting for the StorageVersionMigration {migration}, which writes the objects",
                    self.crd
                ));
            }
        } else if io::stderr().is_terminal() {
            self.is_shown = true;
            let text = in_words(&progress);
            // A write error does not stop the pass.
            let _ = write!(io::stderr(), "\r\u{1b}[K{}: {text}", plain(&self.crd));
        }
        self.last = progress;
    }

    /// Clears the line; returns what it showed last.
    pub(super) fn end(&mut self) -> Progress {
        if self.is_shown {
            let _ = write!(io::stderr(), "\r\u{1b}[K");
        }
        self.last.clone()
    }
}
