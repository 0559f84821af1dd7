//! The waits of [`etch_core::engine::backoff`], by the clock of this process.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use etch_core::engine::backoff;
use tokio::time::Instant;

/// Waits that double from the first to the last, spread by up to a quarter so that many do not come at once.
#[derive(Debug)]
pub struct Backoff(backoff::Backoff);

/// A number that differs from process to process, and from call to call.
pub fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

impl Backoff {
    /// Waits from `first` to `last`.
    pub fn new(first: Duration, last: Duration) -> Self {
        Self(backoff::Backoff::new(first, last, random()))
    }

    /// Records that the work succeeds now: a watch is open, a list is complete.
    pub fn works(&mut self) {
        self.0.works(Instant::now().into_std());
    }

    /// The wait after a failure now; a longer `Retry-After` wins.
    pub fn failed(&mut self, asked: Option<Duration>) -> Duration {
        self.0.failed(Instant::now().into_std(), asked)
    }

    /// Records that the work is done: the next failure counts as the first again.
    pub fn succeeded(&mut self) {
        self.0.succeeded();
    }
}
