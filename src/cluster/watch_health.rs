//! Whether a watch of CRDs or policies works, as the watcher and the code that reports about it share it.
//! The watcher opens and ends watches.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use etch_core::engine::watch_health;

/// The state of one watch; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct WatchHealth(Arc<Mutex<watch_health::WatchHealth>>);

impl WatchHealth {
    /// For how long the watch has failed, and why; `None` while it works.
    pub fn failing(&self) -> Option<(Duration, String)> {
        self.0.lock().failing(now())
    }

    /// Notes that a watch was opened. It works if it stays open.
    pub(super) fn opened(&self) {
        self.0.lock().opened(now());
    }

    /// Notes an event.
    pub(super) fn works(&self) {
        self.0.lock().works();
    }

    /// Notes that there is no watch, and why.
    pub(super) fn failed(&self, why: &str) {
        self.0.lock().failed(why, now());
    }
}

fn now() -> std::time::Instant {
    Instant::now().into_std()
}
