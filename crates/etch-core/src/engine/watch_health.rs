//! Whether a watch of CRDs or policies works, and since when it does not.

use std::time::{Duration, Instant};

/// The state of one watch.
#[derive(Debug, Default)]
pub struct WatchHealth {
    /// Since when it fails, and the first reason.
    failing: Option<(Instant, String)>,
    /// When the present watch was opened; `None` while there is none.
    opened: Option<Instant>,
}

/// A watch that ends sooner than this was closed at once, and has shown nothing.
pub const AT_ONCE: Duration = Duration::from_secs(1);

impl WatchHealth {
    /// For how long the watch has failed, and why; `None` while it works.
    pub fn failing(&mut self, now: Instant) -> Option<(Duration, String)> {
        self.judge(now);
        self.failing.as_ref().map(|(since, why)| (now.saturating_duration_since(*since), why.clone()))
    }

    /// Notes that a watch was opened. It works if it stays open.
    pub fn opened(&mut self, now: Instant) {
        self.judge(now);
        self.opened = Some(now);
    }

    /// Notes an event.
    pub fn works(&mut self) {
        self.failing = None;
    }

    /// Notes that there is no watch, and why.
    pub fn failed(&mut self, why: &str, now: Instant) {
        self.judge(now);
        self.opened = None;
        self.failing.get_or_insert_with(|| (now, why.to_owned()));
    }

    /// Records that the present watch has stayed open.
    fn judge(&mut self, now: Instant) {
        if self.opened.is_some_and(|at| now.saturating_duration_since(at) >= AT_ONCE) {
            self.failing = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::tests::start;

    #[test]
    fn a_watch_fails_until_one_stays_open_or_brings_an_event() {
        let (mut health, mut now) = (WatchHealth::default(), start());
        assert_eq!(health.failing(now), None);
        for _ in 0..10 {
            health.opened(now);
            health.failed("closed at once", now);
            now += Duration::from_secs(6);
        }
        let (long, why) = health.failing(now).expect("it fails");
        assert_eq!((long.as_secs(), why.as_str()), (60, "closed at once"));
        health.opened(now);
        assert!(health.failing(now).is_some(), "nothing is known of it yet");
        now += Duration::from_secs(2);
        assert_eq!(health.failing(now), None);
        health.failed("no", now);
        assert!(health.failing(now).is_some());
        health.works();
        assert_eq!(health.failing(now), None);
    }

    #[test]
    fn the_time_counts_from_the_end_of_the_last_watch_that_worked() {
        let (mut health, mut now) = (WatchHealth::default(), start());
        health.failed("one", now);
        health.opened(now);
        now += Duration::from_secs(100);
        health.failed("two", now);
        now += Duration::from_secs(3);
        let (long, why) = health.failing(now).expect("it fails");
        assert_eq!((long.as_secs(), why.as_str()), (3, "two"));
    }
}
