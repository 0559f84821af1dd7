//! The status of a CRD: messages, events, conditions and the report.

pub(super) mod reapply_backoff;
pub(super) mod writer;
