//! When a read is sent again for a user who waits at a terminal. The operator has back-offs of its own, which
//! it paces and reports.

use std::time::{Duration, Instant};

use crate::call_error::CallError;
use crate::engine::backoff::Backoff;

/// How often a read is retried after `Retry-After`…
const REFUSALS: u32 = 5;
/// …and the longest wait each time; client-go has no limit.
const LONGEST: Duration = Duration::from_secs(30);

/// The remaining retries of one read.
#[derive(Debug)]
pub struct Retries {
    refusals: u32,
    losses: u32,
    backoff: Backoff,
}

impl Retries {
    /// Those of a read. `seed` differs from read to read.
    pub fn of_read(seed: u64) -> Self {
        Self::new(REFUSALS, 1, seed)
    }

    /// None.
    pub fn none() -> Self {
        Self::new(0, 0, 0)
    }

    fn new(refusals: u32, losses: u32, seed: u64) -> Self {
        let backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(5), seed);
        Self { refusals, losses, backoff }
    }

    /// How long to wait before the request is sent again; `None` if it is not.
    pub fn wait(&mut self, error: &CallError, now: Instant) -> Option<Duration> {
        let left = match error {
            CallError::Refused(refusal) if matches!(refusal.code, 429 | 503) => {
                refusal.retry_after.filter(|wait| *wait <= LONGEST)?;
                &mut self.refusals
            }
            CallError::TimedOut(..) | CallError::BrokenOff(..) => &mut self.losses,
            _ => return None,
        };
        *left = left.checked_sub(1)?;
        Some(self.backoff.failed(now, error.retry_after()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call_error::Server;
    use crate::refusal::Refusal;

    #[expect(clippy::disallowed_methods, reason = "there is no other way to make one")]
    fn start() -> Instant {
        Instant::now()
    }

    fn refused(code: u16, retry_after: Option<u64>) -> CallError {
        let retry_after = retry_after.map(Duration::from_secs);
        CallError::Refused(Box::new(Refusal::read(code, retry_after, b"{}")))
    }

    #[test]
    fn a_read_is_put_off_five_times_and_for_as_long_as_the_server_asks() {
        let mut retries = Retries::of_read(1);
        for code in [429, 503, 429, 503, 429] {
            let wait = retries.wait(&refused(code, Some(7)), start()).expect("the server asks for it");
            assert!(wait >= Duration::from_secs(7) && wait < LONGEST, "{wait:?}");
        }
        assert_eq!(retries.wait(&refused(429, Some(7)), start()), None);
    }

    #[test]
    fn what_does_not_pass_by_itself_ends_a_read_at_once() {
        let mut retries = Retries::of_read(1);
        let unreachable = CallError::Connection(Server::default(), "connection refused".to_owned());
        for error in [refused(429, None), refused(503, Some(600)), refused(500, Some(1)), unreachable] {
            assert_eq!(retries.wait(&error, start()), None, "{error}");
        }
    }

    #[test]
    fn a_lost_answer_is_asked_for_once_more() {
        let mut retries = Retries::of_read(1);
        let lost = CallError::BrokenOff(Server::default(), "connection reset by peer".to_owned());
        assert!(retries.wait(&lost, start()).is_some() && retries.wait(&lost, start()).is_none());
    }
}
