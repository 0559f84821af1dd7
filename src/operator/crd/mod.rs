//! One CRD: reconciling it, the pass over its objects, and the watch that follows.

pub(super) mod check;
pub(super) mod pass;
pub(super) mod reconcile;
pub(super) mod run;
pub(super) mod slot;
pub(super) mod sweeps;
pub(super) mod task;
pub(super) mod watch;
