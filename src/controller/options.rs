//! What the operator is started with.
//! It must not read the environment: the command does.

use std::time::Duration;

use crate::cluster::Haste;

/// What the operator is started with.
#[derive(Clone, Debug)]
pub struct Options {
    /// How long a changed schema must stand before objects are written, where the policy does not set it.
    pub settle: Duration,
    /// Writes under way at once, at most.
    pub max_in_flight: usize,
    /// Writes begun per second, at most; none for no limit.
    pub max_writes_per_second: Option<u32>,
    /// How much of the server writes may take.
    pub pace: Haste,
    /// The name of this process in its events.
    pub instance: String,
}
