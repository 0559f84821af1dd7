//! The status of a CRD: messages, events, conditions and the report.

pub(super) mod events;
pub(super) mod message;
pub(super) mod reapply_backoff;
pub(super) mod writer;
