//! How long to wait before something that somebody else has changed is set again.
//! It must not write: two writers that overwrite each other would never stop.

use std::time::Duration;

use tokio::time::Instant;

/// The wait before it is set again for the first time, and the longest.
const FIRST: Duration = Duration::from_secs(10);
const LAST: Duration = Duration::from_secs(600);

/// What is set again each time that somebody else has changed it, ever more seldom.
///
/// Another release of Etch that runs beside this one, or a tool that replaces all conditions, never gives up
/// either.
#[derive(Debug, Default)]
pub(crate) struct ReapplyBackoff {
    times: u32,
    last: Option<Instant>,
}

impl ReapplyBackoff {
    /// How long to wait before it is set again.
    pub(crate) fn wait(&self) -> Duration {
        match self.last {
            Some(last) if last.elapsed() < 2 * LAST => (FIRST * 2_u32.saturating_pow(self.times)).min(LAST),
            _ => FIRST,
        }
    }

    /// Notes that somebody else has changed it.
    pub(crate) fn overwritten(&mut self) {
        let goes_on = self.last.is_some_and(|last| last.elapsed() < 2 * LAST);
        self.times = if goes_on { (self.times + 1).min(16) } else { 1 };
        self.last = Some(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waits_double_while_somebody_insists_and_begin_anew_when_nobody_does() {
        let mut reapply_backoff = ReapplyBackoff::default();
        let mut waits = Vec::new();
        for _ in 0..8 {
            waits.push(reapply_backoff.wait().as_secs());
            tokio::time::advance(reapply_backoff.wait()).await;
            reapply_backoff.overwritten();
        }
        assert_eq!(waits, [10, 20, 40, 80, 160, 320, 600, 600]);
        tokio::time::advance(2 * LAST).await;
        assert_eq!(reapply_backoff.wait(), FIRST);
    }
}
