//! How a command ended, as its exit status.
//! The reason is printed.

use std::process::ExitCode;

/// How a command ended, where it did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// No findings.
    Clean,
    /// There are findings.
    Findings,
}

/// Exit status where the command itself failed.
pub(crate) const FAILURE: u8 = 2;

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Clean => Self::SUCCESS,
            Outcome::Findings => Self::from(1),
        }
    }
}
