//! The objects of one CRD: what is performed for them, and for each one.

pub(super) mod driver;
pub(super) mod pause;
pub(super) mod reconcile;
pub(super) mod refusal_log;
mod write;
