//! When a read is sent again for a user who waits at a terminal. The operator has back-offs of its own, which
//! it paces and reports.

use http::Method;
use hyper_util::client::legacy;
use tokio::time::Instant;

use super::{CallError, Cluster, random};
use etch_core::read_retries::Retries;

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
            true => Retries::of_read(random()),
            false => Retries::none(),
        }
    }
}

/// Waits until a read may be sent again.
///
/// # Errors
/// The error itself, if the read is not to be sent again.
pub(super) async fn wait_after(retries: &mut Retries, error: CallError) -> Result<(), CallError> {
    match retries.wait(&error, Instant::now().into_std()) {
        Some(wait) => tokio::time::sleep(wait).await,
        None => return Err(error),
    }
    Ok(())
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
}
