//! What the operator remembers between two requests, and what it does next: the smallest form of
//! `operator::{object, crd}` that has their laws.
//!
//! Real, and called here: the decision, what follows a changed default, the values that are pinned, the write
//! machine with its proofs and the meaning of every refusal, what an object that shows an old default is.
//! Modelled, since it lives in tasks, timers and the API server: the loop around a write (with the numbers of
//! `etch_core::object_machine`), the sweeps of a pass and those that verify it (`crd/{pass,verify}.rs`), the
//! watch, and what a report keeps for the next run (`etch_core::report`). Left out: how far an interrupted
//! pass had come, policies that change, pauses, and fields that were dropped.

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
    pub(crate) seen: Seen,
    pub(crate) known: Known,
    pub(crate) attempt: u8,
    /// Whether values of changed defaults are still to follow.
    pub(crate) follows: bool,
    pub(crate) has_moved: bool,
    pub(crate) refused: Option<Id>,
    pub(crate) unproved: bool,
    /// In which version a rewrite of the owners has left it: what follows comes after that.
    pub(crate) stored: Option<Revision>,
    pub(crate) altered: bool,
    pub(crate) stripped: u8,
    pub(crate) step: WorkStep,
    /// Whether it is part of a sweep.
    pub(crate) sweeps: bool,
}

/// What it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum WorkStep {
    /// The answer to a write.
    Sent(Id),
    /// A fresh read; whether the last answer lacked a default.
    Read { lacked: bool },
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
