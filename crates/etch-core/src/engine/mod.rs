//! The state machines of a CRD and its objects, without I/O, clock or task: the operator passes in events and
//! the time, and performs the commands that they return.
//!
//! ```text
//! pages, room          ─┐            ┌─> List, Admit  the next page, room for the next object
//! ends of objects      ─┼─> Pass     ┼─> Reconcile    one object's machine, to be driven to its end
//!                       │            └─> CheckServer, End
//!                       │                     │ what is known of the objects
//! changes of the watch ─┤            ┌─> Reconcile  <──┘
//! ends of objects      ─┼─> Watching ┼─> Read         one object again, because its time has come
//! the time             ─┘            └─> Publish, End
//! ```
//!
//! [`CrdMachine`](crd::machine::CrdMachine) holds both for one CRD, and decides when which of them continues;
//! what is to be written about the CRD is the work of its [`Status`](status::Status).
//!
//! A [`Pass`](pass::Pass) is a sweep over all objects that writes, and further ones that verify it for as
//! long as they find something to write. What is known then is kept up to date by
//! [`Watching`](watching::Watching) until it ends, and the next pass continues from what that leaves.
//!
//! A moment is an [`Instant`] that the caller hands in, so a test or a simulation sets
//! it; [`Watching::timeout`](watching::Watching::timeout) is when to come back though nothing has happened.

pub mod backoff;
pub mod by_hand;
pub mod canary;
pub mod counted;
pub mod crd;
pub mod leader;
pub mod lease;
pub mod outage;
pub mod pass;
pub mod pass_state;
pub mod policy_writes;
mod queue;
pub mod reapply_backoff;
pub mod restore_check;
pub mod retries;
pub mod stage;
pub mod status;
pub mod stop_reason;
pub mod sweep;
#[cfg(test)]
mod tests;
pub mod updates;
pub mod watch_health;
pub mod watching;

use std::time::Instant;

use jiff::Timestamp;

use crate::engine::stop_reason::StopReason;
use crate::object::{Identity, Object};
use crate::object_machine::{ObjectMachine, Reconciled, Step};
use crate::report::ledger::Found;

/// A moment, by both clocks: the one of this process measures how long something takes; the time of day dates
/// events, and may be set while this runs.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// By the clock of this process.
    pub at: Instant,
    /// The time of day to the second, as Kubernetes stores it.
    pub date: Timestamp,
}

/// An object as it came, with what its sender wants to know held until it is processed: the room that it
/// takes in memory, for the operator.
#[derive(Clone, Debug)]
pub struct Received<H> {
    /// The object.
    pub object: Object,
    /// Dropped when the object is done.
    pub hold: H,
}

/// An object on its way: the caller drives the machine to its end, and hands in the result.
#[derive(Clone, Debug)]
pub struct Work<H> {
    /// Its place in the page that it came with; zero where it came alone.
    pub index: usize,
    /// Which object.
    pub identity: Identity,
    /// The object's machine.
    pub machine: ObjectMachine,
    /// Its first step.
    pub step: Step,
    /// When the object was read, at the latest.
    pub read: Instant,
    /// Dropped when the object is done.
    pub hold: H,
}

/// How one object has ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// The result, or why no further object may be processed.
    pub result: Result<Reconciled, StopReason>,
    /// What its machine found on the way.
    pub found: Found,
}

impl From<Result<Reconciled, StopReason>> for Ended {
    fn from(result: Result<Reconciled, StopReason>) -> Self {
        Self { result, found: Found::default() }
    }
}
