//! Whether the server can be reached. While it cannot, requests go one after the other: each CRD has a
//! back-off of its own, and hundreds of them together would flood the server. A server that answers gets
//! requests without delay.

use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Duration, Instant, sleep_until};

/// Between two requests while the server cannot be reached.
const SPACING: Duration = Duration::from_millis(100);

/// What the last request found.
#[derive(Debug)]
pub(super) struct OutageThrottle {
    is_lost: watch::Sender<bool>,
    /// When the next request may be sent.
    next: Mutex<Instant>,
    waiting: AtomicU32,
    looks: AtomicU32,
}

impl OutageThrottle {
    pub(super) fn new() -> Self {
        let next = Mutex::new(Instant::now());
        Self {
            is_lost: watch::Sender::new(false),
            next,
            waiting: AtomicU32::new(0),
            looks: AtomicU32::new(0),
        }
    }

    /// Waits until a request may be sent. This future may be dropped at any time, and need not be polled: no
    /// request waits for another caller.
    pub(super) async fn admit(&self) {
        let mut is_lost = self.is_lost.subscribe();
        let _waiting = Waiting::new(&self.waiting);
        while *is_lost.borrow_and_update() {
            let Some(wait) = self.turn() else { return };
            tokio::select! {
                () = sleep_until(wait) => {},
                _ = is_lost.wait_for(|is_lost| !is_lost) => {},
            }
        }
    }

    /// Takes the next turn if one is free; otherwise returns when to try again.
    fn turn(&self) -> Option<Instant> {
        let now = Instant::now();
        let mut next = self.next.lock();
        if *next <= now {
            *next = now + SPACING;
            return None;
        }
        let others = self.waiting.load(Ordering::Relaxed).max(1);
        Some(*next + SPACING * (self.looks.fetch_add(1, Ordering::Relaxed) % others))
    }

    /// Records whether a request has reached the server.
    pub(super) fn record(&self, reached: bool) {
        self.is_lost.send_if_modified(|is_lost| std::mem::replace(is_lost, !reached) == reached);
    }
}

/// Counts who waits.
struct Waiting<'a>(&'a AtomicU32);

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicU32) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn requests_take_turns_until_one_is_answered() {
        let outage = OutageThrottle::new();
        let begun = Instant::now();
        let admit = || async {
            outage.admit().await;
            begun.elapsed()
        };
        assert_eq!([admit().await, admit().await], [Duration::ZERO; 2]);
        outage.record(false);
        let mut waits: Vec<_> = futures::future::join_all((0..20).map(|_| admit())).await;
        waits.sort();
        assert!(waits.windows(2).all(|two| two[1] - two[0] >= SPACING), "{waits:?}");
        assert!(waits[19] < 40 * SPACING, "{waits:?}");
        // A future that is not polled does not block the others.
        let (mut idle, before) = (Box::pin(admit()), begun.elapsed());
        assert!(futures::poll!(&mut idle).is_pending());
        assert!(admit().await <= before + 3 * SPACING);

        let answered = async {
            tokio::time::sleep(SPACING / 4).await;
            outage.record(true);
        };
        let before = begun.elapsed();
        let (_, one, other) = tokio::join!(answered, admit(), admit());
        assert_eq!((one, other), (before + SPACING / 4, before + SPACING / 4));
        assert_eq!(admit().await, before + SPACING / 4);
    }
}
