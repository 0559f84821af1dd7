//! The status of a CRD: its conditions, its report and events.

pub(super) mod writer;
