//! One object: deciding about it, writing it, and following changed defaults.

pub(super) mod outcome;
pub(super) mod pause;
pub(super) mod reconcile;
pub(super) mod refusal_log;
mod write;
