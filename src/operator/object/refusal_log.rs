//! Which refusals of single objects are worth a line of the log: the first few in a while, for there may be
//! thousands. Conditions, reports and metrics count them.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use tracing::warn;

/// So many are logged…
const FIRST: u32 = 10;
/// …in such a time.
const WHILE: Duration = Duration::from_secs(600);

/// How many refusals of objects of one CRD were logged recently.
#[derive(Debug, Default)]
pub(crate) struct RefusalLog(Mutex<Option<(Instant, u32)>>);

impl RefusalLog {
    /// Whether one more is logged as a warning.
    pub(crate) fn has_room(&self) -> bool {
        let mut logged = self.0.lock();
        let (since, count) =
            logged.filter(|(since, _)| since.elapsed() < WHILE).unwrap_or((Instant::now(), 0));
        *logged = Some((since, count + 1));
        if count == FIRST {
            warn!(
                "more objects were refused; the DefaultsReport names them, and the log does at level debug"
            );
        }
        count < FIRST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_first_few_are_logged_and_after_a_while_the_first_few_again() {
        let log = RefusalLog::default();
        let logged = || (0..100).filter(|_| log.has_room()).count();
        assert_eq!((logged(), logged()), (10, 0));
        tokio::time::sleep(WHILE).await;
        assert_eq!(logged(), 10);
    }
}
