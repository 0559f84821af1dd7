//! One CRD: reconciling it, and the task that performs what its machine asks for.

pub(super) mod check;
mod log;
pub(super) mod reconcile;
pub(super) mod slot;
pub(super) mod task;
