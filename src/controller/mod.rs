//! The operator: one task per CRD that a policy gives to Etch, each read → decide → perform → record.
//! It must not talk to an API server but through `cluster`, nor decide about objects but through `domain::plan`.

mod announce;
mod attend;
mod brake;
mod changes;
mod charge;
mod drops;
mod govern;
mod halt;
mod judge;
mod keep;
mod ledger;
mod listed;
mod memory;
mod once;
mod pass;
mod proclaim;
mod pursuit;
mod record;
mod retries;
mod rounds;
mod skipped;
mod spans;
mod supervisor;
mod tally;
mod tend;
mod trouble;
mod verdict;

use std::time::Duration;

pub use memory::on_record;
pub use once::{Pass, Passed, Progress, Stopped, is_left_out, persist};
pub use spans::TRACED;
pub use supervisor::run;

/// What the operator is started with.
#[derive(Clone, Debug)]
pub struct Options {
    /// How long a changed schema must stand before objects are written, where the policy does not say.
    pub settle: Duration,
    /// Writes under way at once, at most.
    pub max_in_flight: usize,
    /// Writes begun per second, at most; none for no limit.
    pub max_writes_per_second: Option<u32>,
    /// The name of this process in its events.
    pub instance: String,
}
