//! What the operator remembers between two requests, and what it does next: the smallest form of
//! `etch_core::engine` that has its laws.
//!
//! Real, and run here: the machine of an object, from its read to its result, and that of each write.
//! Modelled, since timers, counts and whole reports would be in every state: the sweeps of a pass and those
//! that verify it (`engine/pass.rs`), the watch, and what a report keeps for the next run
//! (`etch_core::report`). `tests/machines` explores those as they are, within smaller bounds. Left out: how
//! far an interrupted pass had come, policies that change, pauses, and fields that were dropped.

use crate::parts::{Known, Past, Seen};
use crate::server::{Revision, Tag, Uid};
use crate::tables::Id;

/// How often a sweep that wrote something is verified by another: as in `engine/pass.rs`.
pub(crate) const VERIFICATIONS: u8 = 3;

/// What is left of an earlier release in the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PastReport {
    pub(crate) release: u8,
    pub(crate) through: Option<Revision>,
    pub(crate) excepted: Option<Uid>,
    /// Whether what was written since was still to be verified.
    pub(crate) verify: bool,
}

/// What outlives a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Report {
    /// The release whose defaults it is about.
    pub(crate) release: u8,
    /// The newest release that it was confirmed for.
    pub(crate) generation: u8,
    pub(crate) through: Option<Revision>,
    pub(crate) excepted: Option<Uid>,
    /// Whether what was written since is still to be verified.
    pub(crate) verify: bool,
    pub(crate) previous: [Option<PastReport>; 3],
}

/// The task of the CRD.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Task {
    /// The release that it was made for.
    pub(crate) release: u8,
    pub(crate) phase: Phase,
    /// Which sweep of the pass it is.
    pub(crate) sweep: u8,
    pub(crate) wrote: bool,
    pub(crate) asked: bool,
    /// The revision at which the sweep began.
    pub(crate) listed: Revision,
    pub(crate) known: Known,
    /// What was on record before the pass.
    pub(crate) covered: Option<Revision>,
    pub(crate) proved: Option<Tag>,
    pub(crate) problem: Option<(Tag, Problem)>,
    /// Whether every object was processed since defaults changed.
    pub(crate) processed: bool,
    /// The object that showed an old default.
    pub(crate) suspect: Option<Tag>,
    /// Whether what was written since the schema changed is still to be verified.
    pub(crate) verify: bool,
    /// Whether this pass does so.
    pub(crate) verifies: bool,
    pub(crate) past: [Past; 3],
    /// What the watch has brought last.
    pub(crate) heard: Option<Tag>,
}

impl Task {
    /// Begins a sweep of the pass.
    pub(crate) fn sweep_again(&mut self, sweep: u8) {
        (self.sweep, self.wrote, self.asked, self.phase) = (sweep, false, false, Phase::List);
    }
}

/// What it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    /// Nothing is to be done for this CRD.
    Idle,
    /// It is about to list the objects.
    List,
    /// It is about the object.
    Work(Work),
    /// It waits for events.
    Watch,
}

/// Why the object is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Problem {
    Held,
    Rejected,
    Unknown,
}

/// The object, being reconciled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Work {
    /// Its machine.
    pub(crate) machine: Id,
    pub(crate) seen: Seen,
    pub(crate) step: WorkStep,
    /// Whether it is part of a sweep.
    pub(crate) sweeps: bool,
}

/// What it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum WorkStep {
    /// The answer to a write.
    Sent(Id),
    /// A fresh read.
    Read,
}

/// The outcome for the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Conclusion {
    Stored,
    AlreadyStored,
    Written(Revision),
    Gone,
    Problem(Problem),
}
