//! What there is at a time, what may still happen, and what can happen next.
//! It must not do any of it.

use crate::laws::Law;
use crate::parts::Pending;
use crate::server::{Revision, Tag, Uid};
use crate::tables::Id;
use crate::task::{Report, Task};

/// The object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Live {
    pub(crate) content: Id,
    pub(crate) tag: Tag,
    /// Whether a server stored these bytes that lagged behind.
    pub(crate) is_late: bool,
}

/// What a backup of etcd holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Backup {
    pub(crate) live: Option<Live>,
    pub(crate) report: Option<Report>,
}

/// Everything there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) world: u8,
    /// The release that the CRD is at.
    pub(crate) crd: u8,
    /// The one that the second server serves.
    pub(crate) behind: u8,
    pub(crate) revision: Revision,
    pub(crate) uids: Uid,
    pub(crate) live: Option<Live>,
    pub(crate) report: Option<Report>,
    pub(crate) task: Option<Task>,
    /// A request of Etch's that may arrive at any time.
    pub(crate) stray: Option<Pending>,
    pub(crate) backup: Option<Backup>,
    /// Whether etcd was restored, and Etch has not noticed.
    pub(crate) restored: bool,
    /// Whether a request has come in when Etch was at work for a later release already.
    pub(crate) is_outrun: bool,
    pub(crate) left: Left,
    pub(crate) broken: Option<Law>,
}

/// What may still happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Left {
    pub(crate) users: u8,
    pub(crate) crashes: u8,
    pub(crate) faults: u8,
    pub(crate) upgrades: u8,
    pub(crate) behind: u8,
    pub(crate) restores: u8,
}

/// Which server handles a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Server {
    First,
    Behind,
}

/// One step of a user, a server or Etch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Action {
    User(u8, Server),
    Upgrade,
    CatchUp,
    Backup,
    Restore,
    /// The operator starts.
    Start,
    Crash,
    /// It learns of a change of the CRD.
    Learn,
    /// It notices that etcd was restored.
    Notice,
    List(Server),
    Event(Server),
    Retry(Server),
    /// It is time to verify what was written while servers lagged behind.
    Verify,
    /// The request arrives, and so does its answer.
    Answer(Server),
    /// The request arrives, and its answer is lost.
    LoseAnswer(Server),
    /// The request is given up, and may still arrive.
    GiveUp,
    Read(Server),
    /// A request that was given up arrives.
    Arrive(Server),
}
