//! What one pass by hand comes to.

use super::pass::{Pass, PassError};
use super::stop_reason::StopReason;
use super::sweep::{Sweep, SweepError};
use crate::api::{Counts, DefaultsReportStatus, DroppedField, ObjectProblem};
use crate::plan::{Persisted, Skip};
use crate::report::ledger::Ledger;
use crate::report::state::object_problem;

/// The result of a pass.
#[derive(Clone, Debug, Default)]
pub struct Passed {
    /// The states of the objects that were processed.
    pub counts: Counts,
    /// How many objects were left out, as was asked: nothing is known about them.
    pub left_out: u64,
    /// Whether nothing was left out, and a last sweep over what was written had nothing to do.
    pub verified: bool,
    /// What is proved of all objects of the CRD, for later readers; `None` if some were left out or not
    /// answered about.
    pub proved: Option<Persisted>,
    /// Objects that were held or rejected, were not answered about, or are ignored or being deleted; not more
    /// than are remembered.
    pub problems: Vec<ObjectProblem>,
    /// The fields that the schema no longer knows and that were dropped, as far as they are named.
    pub dropped: Vec<DroppedField>,
    /// Which of them were dropped although `hiddenFields` is `Hold`, as a sentence; `None` if none was.
    pub lost: Option<String>,
}

/// How far a pass has come.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// The states of the objects so far.
    pub counts: Counts,
    /// How many objects were left out so far.
    pub left_out: u64,
    /// How many objects the list has, as the server counts them, those included that are left out.
    pub expected: Option<u64>,
    /// Whether what was written is being verified.
    pub verifies: bool,
    /// The StorageVersionMigration whose end the pass waits for before it begins.
    pub migration: Option<String>,
}

/// A pass that was not completed. What was done until then is done.
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
pub struct Stopped {
    /// What was done.
    pub passed: Passed,
    /// The object, as `namespace/name`, up to which every one was processed; none if not even the first one
    /// was, or if only the verification is missing.
    pub upto: Option<String>,
    /// Why it was stopped.
    #[source]
    pub reason: PassError,
}

impl Stopped {
    /// Whether it was cancelled.
    pub fn is_ended(&self) -> bool {
        matches!(self.reason, PassError::Sweep(SweepError::Stop(StopReason::Ended)))
    }
}

impl Passed {
    /// What a sweep came to.
    pub fn of(sweep: &Sweep, ledger: &Ledger, verified: bool) -> Self {
        let tally = &sweep.tally;
        let problems = tally.problems().filter_map(|(identity, state)| Some((identity, state.problem()?)));
        let skipped = Skip::ALL.iter().flat_map(|why| tally.skipped().named(*why));
        let skipped = skipped.map(|(identity, skipped)| (identity, skipped.problem()));
        let problems =
            problems.chain(skipped).map(|(identity, problem)| object_problem(identity, problem)).collect();
        let mut status = DefaultsReportStatus { counts: tally.counts(), ..DefaultsReportStatus::default() };
        ledger.dropped.add_to_report(&mut status);
        let left_out = tally.left_out();
        Self {
            counts: status.counts,
            left_out,
            verified: verified && left_out == 0,
            problems,
            dropped: status.dropped,
            lost: ledger.dropped.lost(),
            proved: None,
        }
    }
}

impl Progress {
    /// How far a pass is now.
    pub fn of<H>(pass: &Pass<H>) -> Self {
        let tally = pass.tally();
        Self {
            counts: tally.counts(),
            left_out: tally.left_out(),
            expected: tally.expected(),
            verifies: pass.earlier().is_some(),
            migration: None,
        }
    }
}
