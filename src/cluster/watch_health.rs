//! Whether a watch of CRDs or policies works, and since when it does not.
//! The watcher opens and ends watches.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// The state of one watch, shared by the watcher and the code that reports about it.
#[derive(Clone, Debug, Default)]
pub struct WatchHealth(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// Since when it fails, and the first reason.
    failing: Option<(Instant, String)>,
    /// When the present watch was opened; `None` while there is none.
    opened: Option<Instant>,
}

/// A watch that ends sooner than this was closed at once, and has shown nothing.
pub(super) const AT_ONCE: Duration = Duration::from_secs(1);

impl WatchHealth {
    /// For how long the watch has failed, and why; `None` while it works.
    pub fn failing(&self) -> Option<(Duration, String)> {
        let mut state = self.0.lock();
        state.judge();
        state.failing.as_ref().map(|(since, why)| (since.elapsed(), why.clone()))
    }

    /// Notes that a watch was opened. It works if it stays open.
    pub(super) fn opened(&self) {
        let mut state = self.0.lock();
        state.judge();
        state.opened = Some(Instant::now());
    }

    /// Notes an event.
    pub(super) fn works(&self) {
        self.0.lock().failing = None;
    }

    /// Notes that there is no watch, and why.
    pub(super) fn failed(&self, why: &str) {
        let mut state = self.0.lock();
        state.judge();
        state.opened = None;
        state.failing.get_or_insert_with(|| (Instant::now(), why.to_owned()));
    }
}

impl State {
    /// Records that the present watch has stayed open.
    fn judge(&mut self) {
        if self.opened.is_some_and(|at| at.elapsed() >= AT_ONCE) {
            self.failing = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn wait(seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_fails_until_one_stays_open_or_brings_an_event() {
        let health = WatchHealth::default();
        assert_eq!(health.failing(), None);
        for _ in 0..10 {
            health.opened();
            health.failed("closed at once");
            wait(6).await;
        }
        let (long, why) = health.failing().expect("it fails");
        assert_eq!((long.as_secs(), why.as_str()), (60, "closed at once"));
        health.opened();
        assert!(health.failing().is_some(), "nothing is known of it yet");
        wait(2).await;
        assert_eq!(health.failing(), None);
        health.failed("no");
        assert!(health.failing().is_some());
        health.works();
        assert_eq!(health.failing(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_counts_from_the_end_of_the_last_watch_that_worked() {
        let health = WatchHealth::default();
        health.failed("one");
        health.opened();
        wait(100).await;
        health.failed("two");
        wait(3).await;
        let (long, why) = health.failing().expect("it fails");
        assert_eq!((long.as_secs(), why.as_str()), (3, "two"));
    }
}
