//! When the conditions and the report of a CRD are checked again.

use std::time::{Duration, Instant};

use crate::engine::backoff::Backoff;
use crate::engine::reapply_backoff::ReapplyBackoff;

/// The first and the longest wait before a failed write is repeated.
const WRITE_AGAIN: [Duration; 2] = [Duration::from_secs(10), Duration::from_secs(300)];

/// The next check, and the waits before it.
#[derive(Clone, Debug)]
pub(super) struct Recheck {
    due: Option<Instant>,
    /// When it is due because another client seems to have changed our conditions.
    of_change: Option<Instant>,
    /// How long to wait after nothing could be written.
    write_backoff: Backoff,
    /// How long to wait after another client has changed our conditions.
    reapply_backoff: ReapplyBackoff,
}

impl Recheck {
    /// No check is due. `seed` is the jitter of the waits.
    pub(super) fn new(seed: u64) -> Self {
        let [first, last] = WRITE_AGAIN;
        let write_backoff = Backoff::new(first, last, seed);
        Self { due: None, of_change: None, write_backoff, reapply_backoff: ReapplyBackoff::default() }
    }

    /// When the next check is due; `None` if none is.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due.into_iter().chain(self.of_change).min()
    }

    /// A check begins.
    pub(super) fn begin(&mut self) {
        (self.due, self.of_change) = (None, None);
    }

    /// Another client seems to have changed our conditions.
    pub(super) fn conditions_changed(&mut self, now: Instant) {
        self.of_change.get_or_insert(now + self.reapply_backoff.wait(now));
    }

    /// Our conditions are as they are known.
    pub(super) fn conditions_stand(&mut self) {
        self.of_change = None;
    }

    /// Another client changed our conditions. They are not set again immediately: that client may be the new
    /// leader. A late watch event about that change does not count as our conditions being there again.
    pub(super) fn conditions_lost(&mut self, now: Instant) {
        let at = now + self.reapply_backoff.wait(now);
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }

    /// Another client has changed them.
    pub(super) fn overwritten(&mut self, now: Instant) {
        self.reapply_backoff.overwritten(now);
    }

    /// Something was written.
    pub(super) fn write_succeeded(&mut self) {
        self.write_backoff.succeeded();
    }

    /// Something could not be written, or read.
    pub(super) fn write_failed(&mut self, now: Instant) {
        if self.due.is_none() {
            self.due = Some(now + self.write_backoff.failed(now, None));
        }
    }
}
