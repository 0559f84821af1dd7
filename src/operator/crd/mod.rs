//! One CRD: reconciling it, and the task that performs what its machine asks for.

mod log;
pub(super) mod reconcile;
pub(super) mod slot;
pub(super) mod task;

use std::time::Duration;

/// How long the read of a CRD may take before others are read beside it.
pub(super) const READ_PATIENCE: Duration = Duration::from_secs(5);
