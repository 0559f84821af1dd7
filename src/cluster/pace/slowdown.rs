//! How much slower writes are than they would be alone: what other clients of the server notice of them too.
//! It must not decide how many there may be.
//!
//! The idea is that of TCP Vegas and BBR: the least time of late is how long a write takes on a server that
//! has nothing else to do, and whatever comes on top of it is spent in queues.

use std::time::Duration;

use tokio::time::Instant;

/// For how long the least time counts, at least; twice this at most. What a write costs changes with the
/// objects and the server.
const WINDOW: Duration = Duration::from_secs(10);
/// One write that takes this many times the least counts for no more: it may have waited for something else.
const MOST: f64 = 4.0;
/// The share of each write in the mean.
const SHARE: f64 = 0.1;

/// How much slower writes are than alone, by how long they take.
#[derive(Debug, Default)]
pub(super) struct Slowdown {
    /// The least seconds of this window and of the one before it.
    least: [Option<f64>; 2],
    since: Option<Instant>,
    mean: Option<f64>,
}

impl Slowdown {
    /// Takes in how long a write has taken; returns by how many times that is more than the least.
    pub(super) fn note(&mut self, seconds: f64, now: Instant) -> f64 {
        if self.since.is_none_or(|since| now - since >= WINDOW) {
            self.least = [None, self.least[0]];
            self.since = Some(now);
        }
        let least = self.least[0].map_or(seconds, |least| least.min(seconds));
        self.least[0] = Some(least);
        let least = self.least[1].map_or(least, |before| least.min(before));
        // A clock may be too coarse for a write.
        let slowdown = if least > 0.0 { (seconds / least).min(MOST) } else { 1.0 };
        self.weigh(slowdown);
        slowdown
    }

    /// Takes in a slowdown that was found elsewhere.
    pub(super) fn weigh(&mut self, slowdown: f64) {
        let mean = self.mean.unwrap_or(slowdown);
        self.mean = Some(mean + (slowdown - mean) * SHARE);
    }

    /// The mean slowdown of late; 1 where there is none.
    pub(super) fn mean(&self) -> f64 {
        self.mean.unwrap_or(1.0)
    }

    /// Whether the least time has to be found anew.
    pub(super) fn is_stale(&self, now: Instant) -> bool {
        self.since.is_some_and(|since| now - since >= WINDOW)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn strain_is_measured_by_the_least_time_of_late() {
        let mut slowdown = Slowdown::default();
        let now = Instant::now();
        assert_eq!((slowdown.mean(), slowdown.is_stale(now)), (1.0, false));
        assert_eq!(slowdown.note(0.010, now), 1.0);
        assert_eq!(slowdown.note(0.015, now), 1.5);
        assert_eq!(slowdown.note(1.0, now), MOST);
        assert_eq!(slowdown.note(0.005, now), 1.0);
        assert_eq!(slowdown.note(0.010, now), 2.0);
        // The window before still counts, the one before that does not.
        let next = now + WINDOW;
        assert!(slowdown.is_stale(next));
        assert_eq!(slowdown.note(0.010, next), 2.0);
        assert!(!slowdown.is_stale(next));
        assert_eq!(slowdown.note(0.010, next + WINDOW), 1.0);
    }

    #[test]
    fn the_mean_follows_what_lasts_and_no_single_write() {
        let mut slowdown = Slowdown::default();
        slowdown.weigh(1.0);
        slowdown.weigh(4.0);
        assert!(slowdown.mean() < 1.5, "{}", slowdown.mean());
        (0..20).for_each(|_| slowdown.weigh(4.0));
        assert!(slowdown.mean() > 3.0, "{}", slowdown.mean());
    }
}
