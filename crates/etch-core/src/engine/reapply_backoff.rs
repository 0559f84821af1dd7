//! How long to wait before Etch sets again what another client has changed: two writers that overwrite each
//! other would never stop.

use std::time::{Duration, Instant};

/// The wait before it is set again for the first time, and the longest.
const FIRST: Duration = Duration::from_secs(10);
const LAST: Duration = Duration::from_secs(600);

/// What Etch sets again each time that another client has changed it, at growing intervals.
///
/// Another release of Etch that runs beside this one, or a tool that replaces all conditions, never gives up
/// either.
#[derive(Clone, Debug, Default)]
pub struct ReapplyBackoff {
    times: u32,
    last: Option<Instant>,
}

impl ReapplyBackoff {
    /// How long to wait before it is set again.
    pub fn wait(&self, now: Instant) -> Duration {
        match self.goes_on(now) {
            true => (FIRST * 2_u32.saturating_pow(self.times)).min(LAST),
            false => FIRST,
        }
    }

    /// Records that another client has changed it.
    pub fn overwritten(&mut self, now: Instant) {
        self.times = if self.goes_on(now) { (self.times + 1).min(16) } else { 1 };
        self.last = Some(now);
    }

    fn goes_on(&self, now: Instant) -> bool {
        self.last.is_some_and(|last| now.saturating_duration_since(last) < 2 * LAST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::tests::start;

    #[test]
    fn waits_double_while_somebody_insists_and_begin_anew_when_nobody_does() {
        let (mut reapply_backoff, mut now) = (ReapplyBackoff::default(), start());
        let mut waits = Vec::new();
        for _ in 0..8 {
            waits.push(reapply_backoff.wait(now).as_secs());
            now += reapply_backoff.wait(now);
            reapply_backoff.overwritten(now);
        }
        assert_eq!(waits, [10, 20, 40, 80, 160, 320, 600, 600]);
        assert_eq!(reapply_backoff.wait(now + 2 * LAST), FIRST);
    }
}
