//! Growing waits between attempts that fail. An attempt that only takes long, or begins well, does not reset
//! the wait: a watcher that reset it so came to list 50 times a minute (fact K1).

use std::time::{Duration, Instant};

/// After it has worked for this long, the back-off starts again at its first wait.
pub const HEALTHY: Duration = Duration::from_secs(10);

/// Waits that double from the first to the last, spread by up to a quarter so that many do not come at once.
#[derive(Clone, Debug)]
pub struct Backoff {
    first: Duration,
    last: Duration,
    next: Duration,
    works_since: Option<Instant>,
    spread: u64,
}

impl Backoff {
    /// Waits from `first` to `last`. When a server stops, many fail at the same moment: `seed` selects the
    /// jitter of each.
    pub fn new(first: Duration, last: Duration, seed: u64) -> Self {
        Self { first, last, next: first, works_since: None, spread: seed % 16 }
    }

    /// Records that it works now: a watch is open, a list is complete.
    pub fn works(&mut self, now: Instant) {
        self.works_since.get_or_insert(now);
    }

    /// The wait after a failure; a longer `Retry-After` wins.
    pub fn failed(&mut self, now: Instant, asked: Option<Duration>) -> Duration {
        let has_worked = |since| now.saturating_duration_since(since) >= HEALTHY;
        if self.works_since.take().is_some_and(has_worked) {
            self.next = self.first;
        }
        let wait = self.next;
        self.next = (self.next * 2).min(self.last);
        self.spread = (self.spread + 7) % 16;
        (wait + wait * self.spread as u32 / 64).max(asked.unwrap_or_default())
    }

    /// Records that the work is done: the next failure is the first again.
    pub fn succeeded(&mut self) {
        self.next = self.first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::tests::start;

    const FIRST: Duration = Duration::from_secs(1);
    const LAST: Duration = Duration::from_secs(30);

    fn is_about(wait: Duration, seconds: u64) -> bool {
        let nominal = Duration::from_secs(seconds);
        wait >= nominal && wait < nominal + nominal / 4
    }

    #[test]
    fn waits_double_up_to_the_last_and_are_spread_by_up_to_a_quarter() {
        let now = start();
        for seed in 0..50 {
            let mut backoff = Backoff::new(FIRST, LAST, seed);
            for expected in [1, 2, 4, 8, 16, 30, 30, 30] {
                let wait = backoff.failed(now, None);
                assert!(is_about(wait, expected), "{wait:?} is not about {expected} s");
            }
        }
        let firsts: std::collections::HashSet<_> =
            (0..50).map(|seed| Backoff::new(FIRST, LAST, seed).failed(now, None)).collect();
        assert!(firsts.len() > 4, "those who fail together do not come back together: {firsts:?}");
    }

    #[test]
    fn the_longer_of_both_waits_counts() {
        let mut backoff = Backoff::new(FIRST, LAST, 0);
        assert_eq!(backoff.failed(start(), Some(LAST)), LAST);
        assert!(is_about(backoff.failed(start(), Some(FIRST)), 2));
    }

    #[test]
    fn only_what_has_worked_for_a_while_begins_anew() {
        let (mut backoff, mut now) = (Backoff::new(FIRST, LAST, 3), start());
        let mut failed_after = |works: bool, time: Duration| {
            if works {
                backoff.works(now);
            }
            now += time;
            backoff.failed(now, None)
        };
        assert!(is_about(failed_after(false, Duration::ZERO), 1));
        assert!(is_about(failed_after(false, LAST * 10), 2), "taking long is no sign of health");
        assert!(is_about(failed_after(true, HEALTHY / 2), 4), "nor is beginning well");
        assert!(is_about(failed_after(false, LAST), 8), "and it is not counted twice");
        assert!(is_about(failed_after(true, HEALTHY), 1));
        assert!(is_about(failed_after(false, HEALTHY), 2));
        backoff.succeeded();
        assert!(is_about(backoff.failed(now, None), 1));
    }
}
