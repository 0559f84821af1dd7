//! How far a pass has come, in one line on a terminal, and what it waits for.

use std::io::{self, IsTerminal, Write};

use etch_answers::{counted, plain};
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
            let text = text(&progress);
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

fn text(progress: &Progress) -> String {
    let Progress { counts, left_out, expected, verifies, migration: _ } = progress;
    let objects = match expected {
        Some(expected) => {
            format!("{} of {}", counts.objects, counted(expected.saturating_sub(*left_out), "object"))
        }
        None => counted(counts.objects, "object"),
    };
    let doing = if *verifies { "verified" } else { "processed" };
    format!("{objects} {doing}, {} written", counts.written)
}

#[cfg(test)]
mod tests {
    use etch_core::api::Counts;

    use super::*;

    #[test]
    fn a_total_is_shown_where_it_is_known() {
        let counts = Counts { objects: 70, written: 60, ..Counts::default() };
        let mut progress = Progress { counts, left_out: 20, expected: Some(120), ..Progress::default() };
        assert_eq!(text(&progress), "70 of 100 objects processed, 60 written");
        (progress.expected, progress.verifies) = (None, true);
        assert_eq!(text(&progress), "70 objects verified, 60 written");
        progress = Progress { expected: Some(1), ..Progress::default() };
        assert_eq!(text(&progress), "0 of 1 object processed, 0 written");
    }
}
