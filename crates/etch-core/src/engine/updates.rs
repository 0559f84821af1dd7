//! When conditions and report are updated while a CRD is watched: soon after their content has changed, some
//! minutes after their totals alone have, or after a write that changes neither, and all at a bounded rate.

use std::time::{Duration, Instant};

use crate::api::Counts;

/// The least time between two updates of conditions and report while objects change.
pub const EVERY: Duration = Duration::from_secs(3);
/// The time between two reports of how far a pass has come, after the first one: each is an update of the
/// CRD, which costs the API server and all that watch CRDs more than an object's write.
pub const PROGRESS: Duration = Duration::from_secs(10);
/// Changes of the status are gathered for this long.
const DEBOUNCE: Duration = Duration::from_millis(500);
/// A restore of etcd is noticed within less.
const FRESH: Duration = Duration::from_secs(60);
/// Changes of the totals alone, by objects that are created or deleted with their defaults stored, are
/// gathered for this long. So are writes of objects that were written before: they change nothing but the
/// time of the report, which shows a restore of etcd to before them.
const TOTALS: Duration = Duration::from_secs(240);

/// When the next update is due.
#[derive(Clone, Debug)]
pub struct Updates {
    at: Option<Instant>,
    last: Option<Instant>,
    /// Whether more than the totals has changed.
    is_news: bool,
    /// Whether an object was written.
    has_written: bool,
    /// The totals as they were last published.
    published: Counts,
}

impl Updates {
    /// After these totals were published.
    pub fn after(published: Counts) -> Self {
        Self { at: None, last: None, is_news: false, has_written: false, published }
    }

    /// Requests an update.
    pub fn want(&mut self, now: Instant) {
        let soon = now + DEBOUNCE;
        let soon = self.last.map_or(soon, |last| soon.max(last + EVERY));
        self.is_news = true;
        self.at = Some(self.at.map_or(soon, |at| at.min(soon)));
    }

    /// Requests an update if these totals differ from the published ones.
    pub fn want_totals(&mut self, now: Instant, counts: Counts) {
        if counts != self.published {
            self.at.get_or_insert(now + TOTALS);
        }
    }

    /// Requests an update after an object was written.
    pub fn want_write(&mut self, now: Instant) {
        self.has_written = true;
        self.at.get_or_insert(now + TOTALS);
    }

    /// Whether one was made a moment ago.
    pub fn are_fresh(&self, now: Instant) -> bool {
        self.last.is_some_and(|last| now < last + FRESH)
    }

    /// When the next one is due, if one is wanted.
    pub fn due(&self) -> Option<Instant> {
        self.at
    }

    /// Whether there is something to publish: objects may have come and gone, and left the totals unchanged.
    pub fn take(&mut self, counts: Counts) -> bool {
        let is_needed = self.is_news || self.has_written || counts != self.published;
        (self.at, self.is_news, self.has_written, self.published) = (None, false, false, counts);
        is_needed
    }

    /// Records that these totals are published: they may differ by now from those that requested the update.
    pub fn publishes(&mut self, counts: Counts) {
        self.published = counts;
    }

    /// Records that an update was made: the next one has to wait.
    pub fn made(&mut self, now: Instant) {
        self.last = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::tests::start;

    #[test]
    fn news_come_soon_and_at_a_bounded_rate_and_totals_alone_late() {
        let (now, none) = (start(), Counts::default());
        let one = Counts { objects: 1, ..none };
        let mut updates = Updates::after(none);
        updates.want_totals(now, none);
        assert_eq!(updates.due(), None);
        updates.want_totals(now, one);
        assert_eq!(updates.due(), Some(now + TOTALS));
        updates.want(now);
        assert_eq!(updates.due(), Some(now + DEBOUNCE));
        assert!(updates.take(none));
        updates.made(now + DEBOUNCE);
        updates.want(now + DEBOUNCE);
        assert_eq!(updates.due(), Some(now + DEBOUNCE + EVERY));
        updates = Updates::after(none);
        updates.want_totals(now, one);
        assert!(!updates.take(none), "one came and went");
        updates.want_totals(now, one);
        assert!(updates.take(one));
        updates.publishes(none);
        updates.want_totals(now, one);
        assert!(
            updates.due().is_some() && updates.take(one),
            "what was published is less than what was wanted"
        );
        updates.want_write(now);
        assert_eq!(updates.due(), Some(now + TOTALS));
        assert!(updates.take(one), "the report lacks the write");
        assert!(!updates.take(one));
    }
}
