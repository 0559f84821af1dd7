//! Growing waits between attempts that fail.
//! It must not be reset by an attempt that merely begins well: that is how a watcher comes to list 50 times a minute (K1).

use std::time::Duration;

use tokio::time::Instant;

/// How long something must have held before it counts as healthy again.
const HEALTHY: Duration = Duration::from_secs(10);

/// Waits that double from `first` to `last`, spread by a quarter so that many do not come at once.
#[derive(Debug)]
pub struct Backoff {
    first: Duration,
    last: Duration,
    next: Duration,
    since: Instant,
    spread: u32,
}

impl Backoff {
    /// Waits from `first` to `last`.
    pub fn new(first: Duration, last: Duration) -> Self {
        Self { first, last, next: first, since: Instant::now(), spread: 0 }
    }

    /// Says that an attempt begins now.
    pub fn begin(&mut self) {
        self.since = Instant::now();
    }

    /// The wait after an attempt that failed now; the server's own wish counts if it is longer.
    pub fn failed(&mut self, asked: Option<Duration>) -> Duration {
        if self.since.elapsed() >= HEALTHY {
            self.next = self.first;
        }
        let wait = self.next;
        self.next = (self.next * 2).min(self.last);
        // A fixed sequence, different from step to step, is spread enough between tasks that fail at different times.
        self.spread = (self.spread + 7) % 16;
        (wait + wait * self.spread / 64).max(asked.unwrap_or_default())
    }

    /// Says that the work is done: the next failure is the first again.
    pub fn succeeded(&mut self) {
        self.next = self.first;
    }
}
