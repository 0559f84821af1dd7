//! How many writes are to be under way, and how they follow each other. The caller holds the slots and waits.

pub mod limits;
pub mod strain;

use std::time::Duration;

/// How the server coped with a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pressure {
    /// It answered, and did the write.
    None,
    /// It answered something else, or something other than the server delayed the answer: that does not show
    /// how long writes take.
    Unknown,
    /// 429, 503 or no answer; with the wait that it asked for.
    Overload(Option<Duration>),
}
