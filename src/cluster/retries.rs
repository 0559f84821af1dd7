//! When a read is sent again for a user who waits at a terminal. The operator has back-offs of its own, which
//! it paces and reports.

use std::time::Duration;

use http::Method;
use hyper_util::client::legacy;

use super::{Backoff, CallError, Cluster};

/// How often a read is retried after `Retry-After`…
const REFUSALS: u32 = 5;
/// …and the longest wait each time; client-go has no limit.
const LONGEST: Duration = Duration::from_secs(30);

/// The remaining retries of one read.
#[derive(Debug)]
pub(super) struct Retries {
    refusals: u32,
    losses: u32,
    backoff: Backoff,
}

impl Retries {
    fn new(refusals: u32, losses: u32) -> Self {
        Self { refusals, losses, backoff: Backoff::new(Duration::from_millis(500), Duration::from_secs(5)) }
    }

    /// Waits until the request may be sent again.
    ///
    /// # Errors
    /// The error itself, if the request is not to be sent again.
    pub(super) async fn wait_after(&mut self, error: CallError) -> Result<(), CallError> {
        match self.wait(&error) {
            Some(wait) => tokio::time::sleep(wait).await,
            None => return Err(error),
        }
        Ok(())
    }

    /// How long to wait before the request is sent again; `None` if it is not.
    fn wait(&mut self, error: &CallError) -> Option<Duration> {
        let left = match error {
            CallError::Refused(refusal) if matches!(refusal.code, 429 | 503) => {
                refusal.retry_after.filter(|wait| *wait <= LONGEST)?;
                &mut self.refusals
            }
            CallError::TimedOut(..) | CallError::BrokenOff(..) => &mut self.losses,
            _ => return None,
        };
        *left = left.checked_sub(1)?;
        Some(self.backoff.failed(error.retry_after()))
    }
}

impl Cluster {
    /// This connection, for a command: it sends a read again where client-go does.
    #[must_use]
    pub fn retrying_reads(self) -> Self {
        Self { is_retrying: true, ..self }
    }

    /// This connection, for an operator that has back-offs of its own.
    #[must_use]
    pub fn without_retries(self) -> Self {
        Self { is_retrying: false, ..self }
    }

    /// The retries of a request.
    pub(super) fn retries(&self, method: &Method) -> Retries {
        match self.is_retrying && method == Method::GET {
            true => Retries::new(REFUSALS, 1),
            false => Retries::new(0, 0),
        }
    }
}

/// Whether a connection that was there broke off before the answer began. A server that cannot be connected
/// to is another matter.
pub(super) fn is_broken_off(error: &(dyn std::error::Error + 'static)) -> bool {
    let links = std::iter::successors(Some(error), |error| error.source());
    links.filter_map(|link| link.downcast_ref::<legacy::Error>()).any(|error| !error.is_connect())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::thread;

    use super::*;
    use etch_core::call_error::Server;
    use etch_core::refusal::Refusal;

    fn refused(code: u16, retry_after: Option<u64>) -> CallError {
        let retry_after = retry_after.map(Duration::from_secs);
        CallError::Refused(Box::new(Refusal::read(code, retry_after, b"{}")))
    }

    #[test]
    fn a_read_is_put_off_five_times_and_for_as_long_as_the_server_asks() {
        let mut retries = Retries::new(REFUSALS, 1);
        for code in [429, 503, 429, 503, 429] {
            let wait = retries.wait(&refused(code, Some(7))).expect("the server asks for it");
            assert!(wait >= Duration::from_secs(7) && wait < LONGEST, "{wait:?}");
        }
        assert_eq!(retries.wait(&refused(429, Some(7))), None);
    }

    #[test]
    fn what_does_not_pass_by_itself_ends_a_read_at_once() {
        let mut retries = Retries::new(REFUSALS, 1);
        let unreachable = CallError::Connection(Server::default(), "connection refused".to_owned());
        for error in [refused(429, None), refused(503, Some(600)), refused(500, Some(1)), unreachable] {
            assert_eq!(retries.wait(&error), None, "{error}");
        }
    }

    #[tokio::test]
    async fn a_connection_that_broke_off_before_the_answer_is_told_apart() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let server = thread::spawn(move || {
            let missing = r#"{"details":{"name":"things.example.com"}}"#;
            let length = missing.len();
            let missing = format!("HTTP/1.1 404 Not Found\r\nContent-Length: {length}\r\n\r\n{missing}");
            for answer in ["", &missing] {
                let (mut connection, _) = listener.accept().expect("a connection");
                let _ = connection.read(&mut [0; 4096]);
                let _ = connection.write_all(answer.as_bytes());
            }
        });
        let cluster = Cluster::with_config(kube::Config::new(url.parse().expect("a URL"))).expect("a client");
        let found = cluster.clone().retrying_reads().crd("things.example.com").await;
        assert!(found.expect("the second answer").is_none());
        server.join().expect("it ends");
        // The server is gone.
        let error = cluster.retrying_reads().crd("things.example.com").await.expect_err("no answer");
        assert!(matches!(error, CallError::Connection(..)), "{error}");
    }

    #[test]
    fn a_lost_answer_is_asked_for_once_more() {
        let mut retries = Retries::new(REFUSALS, 1);
        let lost = CallError::BrokenOff(Server::default(), "connection reset by peer".to_owned());
        assert!(retries.wait(&lost).is_some() && retries.wait(&lost).is_none());
    }
}
