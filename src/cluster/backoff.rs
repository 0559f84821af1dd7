//! Growing waits between attempts that fail. It must not be reset by an attempt that merely takes long, or
//! begins well: that is how a watcher comes to list 50 times a minute (fact K1).

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use tokio::time::Instant;

/// How long something must have worked before its next failure is a first one again.
const HEALTHY: Duration = Duration::from_secs(10);

/// Waits that double from `first` to `last`, spread by up to a quarter so that many do not come at once.
#[derive(Debug)]
pub struct Backoff {
    first: Duration,
    last: Duration,
    next: Duration,
    works_since: Option<Instant>,
    spread: u32,
}

impl Backoff {
    /// Waits from `first` to `last`.
    pub fn new(first: Duration, last: Duration) -> Self {
        // Many fail in the same moment, when a server goes; where they begin in the sequence spreads them.
        let spread = (RandomState::new().build_hasher().finish() % 16) as u32;
        Self { first, last, next: first, works_since: None, spread }
    }

    /// Says that it works now: a watch is open, a list is complete.
    pub fn works(&mut self) {
        self.works_since.get_or_insert_with(Instant::now);
    }

    /// The wait after a failure now; the server's own wish counts if it is longer.
    pub fn failed(&mut self, asked: Option<Duration>) -> Duration {
        if self.works_since.take().is_some_and(|since| since.elapsed() >= HEALTHY) {
            self.next = self.first;
        }
        let wait = self.next;
        self.next = (self.next * 2).min(self.last);
        self.spread = (self.spread + 7) % 16;
        (wait + wait * self.spread / 64).max(asked.unwrap_or_default())
    }

    /// Says that the work is done: the next failure is the first again.
    pub fn succeeded(&mut self) {
        self.next = self.first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Duration = Duration::from_secs(1);
    const LAST: Duration = Duration::from_secs(30);

    fn is_about(wait: Duration, seconds: u64) -> bool {
        let nominal = Duration::from_secs(seconds);
        wait >= nominal && wait < nominal + nominal / 4
    }

    #[tokio::test(start_paused = true)]
    async fn waits_double_up_to_the_last_and_are_spread_by_up_to_a_quarter() {
        for _ in 0..50 {
            let mut backoff = Backoff::new(FIRST, LAST);
            for expected in [1, 2, 4, 8, 16, 30, 30, 30] {
                let wait = backoff.failed(None);
                assert!(is_about(wait, expected), "{wait:?} is not about {expected} s");
            }
        }
        let firsts: std::collections::HashSet<_> =
            (0..50).map(|_| Backoff::new(FIRST, LAST).failed(None)).collect();
        assert!(firsts.len() > 4, "those who fail together do not come back together: {firsts:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_longer_of_both_waits_counts() {
        let mut backoff = Backoff::new(FIRST, LAST);
        assert_eq!(backoff.failed(Some(LAST)), LAST);
        assert!(is_about(backoff.failed(Some(FIRST)), 2));
    }

    #[tokio::test(start_paused = true)]
    async fn only_what_has_worked_for_a_while_begins_anew() {
        let mut backoff = Backoff::new(FIRST, LAST);
        let mut failed_after = async |works: bool, time: Duration| {
            if works {
                backoff.works();
            }
            tokio::time::sleep(time).await;
            backoff.failed(None)
        };
        assert!(is_about(failed_after(false, Duration::ZERO).await, 1));
        assert!(is_about(failed_after(false, LAST * 10).await, 2), "taking long is no sign of health");
        assert!(is_about(failed_after(true, HEALTHY / 2).await, 4), "nor is beginning well");
        assert!(is_about(failed_after(false, LAST).await, 8), "and it is not counted twice");
        assert!(is_about(failed_after(true, HEALTHY).await, 1));
        assert!(is_about(failed_after(false, HEALTHY).await, 2));
        backoff.succeeded();
        assert!(is_about(backoff.failed(None), 1));
    }
}
