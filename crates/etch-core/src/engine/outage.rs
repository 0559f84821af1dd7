//! Whether the watch of the objects works, and since when it fails.

use std::time::{Duration, Instant};

use jiff::Timestamp;

/// How long the watch may fail before the results count as unknown.
const FAILING_AFTER: Duration = Duration::from_secs(60);

/// A watch that may be failing.
#[derive(Clone, Debug, Default)]
pub struct WatchOutage {
    /// When it began to fail, by both clocks, and why.
    since: Option<(Instant, Timestamp, String)>,
    is_reported: bool,
}

impl WatchOutage {
    /// Records that the watch fails, at this time of day.
    pub fn fails(&mut self, now: Instant, date: Timestamp, why: String) {
        self.since.get_or_insert((now, date, why));
    }

    /// Records that the watch works.
    pub fn works(&mut self) {
        self.since = None;
    }

    /// Whether changes are missed.
    pub fn goes_on(&self) -> bool {
        self.since.is_some()
    }

    /// Whether changes are noticed again, after it was reported that they are not.
    pub fn is_over(&self) -> bool {
        self.is_reported && self.since.is_none()
    }

    /// When the failure is to be reported, if there is one that is not.
    pub fn due(&self) -> Option<Instant> {
        self.since.as_ref().filter(|_| !self.is_reported).map(|(since, ..)| *since + FAILING_AFTER)
    }

    /// The failure, which counts as reported from now on.
    pub fn report(&mut self) -> Option<String> {
        self.is_reported = true;
        self.reported()
    }

    /// The failure that was reported and is not over.
    pub fn reported(&self) -> Option<String> {
        self.since.as_ref().filter(|_| self.is_reported).map(|(_, since, why)| {
            format!("the watch of the objects has failed since {since:.0}, so Etch misses changes: {why}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::tests::start;

    #[test]
    fn a_short_failure_is_not_reported_and_a_long_one_is_until_the_watch_works() {
        let (mut outage, now) = (WatchOutage::default(), start());
        outage.fails(now, Timestamp::UNIX_EPOCH, "refused".to_owned());
        outage.fails(now + FAILING_AFTER, Timestamp::MAX, "again".to_owned());
        assert_eq!(outage.due(), Some(now + FAILING_AFTER), "it counts from the first failure");
        outage.works();
        assert!(!outage.is_over() && outage.due().is_none(), "it was not reported");
        outage.fails(now, Timestamp::UNIX_EPOCH, "refused".to_owned());
        assert!(outage.report().is_some_and(|report| report.contains("1970-01-01T00:00:00Z")));
        assert!(outage.due().is_none() && !outage.is_over());
        outage.works();
        assert!(outage.is_over() && outage.reported().is_none());
    }
}
