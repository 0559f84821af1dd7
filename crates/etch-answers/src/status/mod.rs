//! `etch status`: the state of Etch in a cluster, on one screen.

mod facts;
mod overview;
mod print;
#[cfg(test)]
mod tests;

use jiff::Timestamp;

pub use self::facts::{CrdFacts, LeaderView, Read};
pub use self::overview::Overview;
pub use self::print::table;

/// Sums up what was read. `flags` lead etch and kubectl to the cluster, with a space before each.
pub fn overview(read: Read, flags: String, now: Timestamp) -> Overview {
    overview::overview(read.facts(flags, now))
}
