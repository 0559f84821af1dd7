//! The status of each policy. Which one governs a CRD is decided in `api`.
//! It must not know what becomes of objects.

mod status;
mod writer;

pub(super) use status::{Policy, Scope, UNKNOWN_PATHS, readable, statuses};
pub(super) use writer::{PolicyStatus, write_statuses};
