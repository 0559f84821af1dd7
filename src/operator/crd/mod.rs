//! One CRD: reconciling it, and the task that performs what its machine asks for.

pub(super) mod check;
pub(super) mod reconcile;
pub(super) mod slot;
pub(super) mod task;
