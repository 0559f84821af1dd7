//! Credentials that the server refuses are renewed, as client-go does it: the plugin runs again, and
//! certificates and tokens are read from their files again. The refusal goes to the caller.

use std::io;
use std::iter::successors;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response, StatusCode};
use kube::client::{AuthError, Body};
use kube::config::AuthInfo;
use parking_lot::Mutex;
use rustls::AlertDescription;
use tokio::time::Instant;
use tracing::{info, warn};

use super::Backoff;
use super::credentials::of_client;

/// Between two renewals while the server refuses what they bring: each may run a program.
const FIRST_WAIT: Duration = Duration::from_secs(10);
const LAST_WAIT: Duration = Duration::from_secs(300);

/// Makes a client of the credentials as they are now. It may block.
type Make = Box<dyn Fn() -> Result<kube::Client, kube::Error> + Send + Sync>;

/// A client that can be rebuilt.
struct Renewal {
    make: Make,
    current: Mutex<Current>,
}

struct Current {
    client: kube::Client,
    /// How many there were before.
    number: u64,
    /// When the next one may be made; `None` while it is made.
    next: Option<Instant>,
    backoff: Backoff,
}

/// A client that `make` rebuilds when its credentials are refused.
///
/// # Errors
/// Those of `make`.
pub(super) fn renewing(
    make: impl Fn() -> Result<kube::Client, kube::Error> + Send + Sync + 'static,
) -> Result<kube::Client, kube::Error> {
    let client = make()?;
    let namespace = client.default_namespace().to_owned();
    let backoff = Backoff::new(FIRST_WAIT, LAST_WAIT);
    let current = Mutex::new(Current { client, number: 0, next: Some(Instant::now()), backoff });
    let renewal = Arc::new(Renewal { make: Box::new(make), current });
    Ok(kube::Client::new(tower::service_fn(move |request| renewal.clone().send(request)), namespace))
}

impl Renewal {
    /// Sends a request. Where its credentials are refused, it ends when they are renewed.
    async fn send(self: Arc<Self>, request: Request<Body>) -> Result<Response<Body>, kube::Error> {
        let (client, number) = {
            let current = self.current.lock();
            (current.client.clone(), current.number)
        };
        let answer = client.send(request).await;
        if answer.as_ref().is_ok_and(|response| response.status().is_success()) {
            self.current.lock().backoff.succeeded();
        } else if are_refused(&answer) && self.current.lock().begin(number) {
            // It continues if the request is dropped: a plugin may wait for its user.
            let _ = tokio::task::spawn_blocking(move || self.renew()).await;
        }
        answer
    }

    fn renew(&self) {
        let made = (self.make)();
        let mut current = self.current.lock();
        let wait = current.backoff.failed(None);
        current.next = Some(Instant::now() + wait);
        match made {
            Ok(client) => {
                (current.client, current.number) = (client, current.number + 1);
                info!("renewed the credentials that the API server refused");
            }
            Err(error) => {
                let error = of_client(&error);
                warn!(error, retry_in_seconds = wait.as_secs_f64(), "cannot renew the credentials");
            }
        }
    }
}

impl Current {
    /// Whether those of this number are to be renewed now, by the caller.
    fn begin(&mut self, refused: u64) -> bool {
        let is_due = self.number == refused && self.next.is_some_and(|next| next <= Instant::now());
        self.next = self.next.filter(|_| !is_due);
        is_due
    }
}

/// Whether a plugin or a file may bring others.
pub(super) fn are_renewable(credentials: &AuthInfo) -> bool {
    let AuthInfo { exec, auth_provider, token_file, client_certificate, client_key, .. } = credentials;
    let files = [token_file, client_certificate, client_key];
    exec.is_some() || auth_provider.is_some() || files.into_iter().any(Option::is_some)
}

/// kube-apiserver answers 401 also to a certificate that has expired; a proxy may refuse it in TLS.
fn are_refused(answer: &Result<Response<Body>, kube::Error>) -> bool {
    match answer {
        Ok(response) => response.status() == StatusCode::UNAUTHORIZED,
        Err(error) => {
            let first: &(dyn std::error::Error + 'static) = error;
            successors(Some(first), |link| link.source()).any(is_of_credentials)
        }
    }
}

fn is_of_credentials(link: &(dyn std::error::Error + 'static)) -> bool {
    // kube does not take a token without an expiry from a plugin that has printed one with an expiry before.
    if let Some(error) = link.downcast_ref::<AuthError>() {
        return matches!(error, AuthError::UnrefreshableTokenResponse);
    }
    let inner = link.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    matches!(
        inner.and_then(|inner| inner.downcast_ref::<rustls::Error>()),
        Some(rustls::Error::AlertReceived(
            AlertDescription::AccessDenied
                | AlertDescription::BadCertificate
                | AlertDescription::CertificateExpired
                | AlertDescription::CertificateRequired
                | AlertDescription::CertificateRevoked
                | AlertDescription::CertificateUnknown
                | AlertDescription::UnknownCA
        ))
    )
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use tower::BoxError;

    use super::*;

    fn answering(status: StatusCode) -> kube::Client {
        let answer = move |_| async move {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = status;
            Ok::<_, BoxError>(response)
        };
        kube::Client::new(tower::service_fn(answer), "default")
    }

    /// A client that is refused with all credentials before these, and how many of them were made.
    fn refused_before(valid: u64) -> (kube::Client, Arc<AtomicU64>) {
        let made = Arc::new(AtomicU64::new(0));
        let count = made.clone();
        let client = renewing(move || {
            let is_valid = count.fetch_add(1, Ordering::Relaxed) >= valid;
            Ok(answering(if is_valid { StatusCode::OK } else { StatusCode::UNAUTHORIZED }))
        });
        (client.expect("it is made"), made)
    }

    async fn send(client: &kube::Client) -> u16 {
        client.send(Request::new(Body::empty())).await.expect("an answer").status().as_u16()
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_refused_is_renewed_at_once_and_then_ever_more_rarely() {
        let (client, made) = refused_before(u64::MAX);
        let begun = Instant::now();
        let mut renewed = Vec::new();
        while renewed.len() < 8 {
            let before = made.load(Ordering::Relaxed);
            assert_eq!(futures::future::join_all((0..5).map(|_| send(&client))).await, [401; 5]);
            match made.load(Ordering::Relaxed) - before {
                0 => {}
                1 => renewed.push(begun.elapsed()),
                more => panic!("{more} at once"),
            }
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        assert_eq!(renewed[0], Duration::ZERO);
        let waits: Vec<u64> = renewed.windows(2).map(|two| (two[1] - two[0]).as_secs()).collect();
        for (wait, expected) in waits.iter().zip([10, 20, 40, 80, 160, 300, 300]) {
            assert!((expected..=expected * 5 / 4 + 1).contains(wait), "{waits:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_accepted_stays_and_its_next_refusal_counts_as_the_first() {
        let (client, made) = refused_before(2);
        assert_eq!([send(&client).await, send(&client).await], [401, 401]);
        tokio::time::advance(FIRST_WAIT * 2).await;
        assert_eq!([send(&client).await, send(&client).await, send(&client).await], [401, 200, 200]);
        assert_eq!(made.load(Ordering::Relaxed), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn what_cannot_be_made_anew_leaves_what_there_is_until_it_can() {
        let made = AtomicU64::new(0);
        let client = renewing(move || match made.fetch_add(1, Ordering::Relaxed) {
            0 => Ok(answering(StatusCode::UNAUTHORIZED)),
            1 => Err(kube::Error::Auth(AuthError::MissingCommand)),
            _ => Ok(answering(StatusCode::OK)),
        });
        let client = client.expect("the first is made");
        assert_eq!([send(&client).await, send(&client).await], [401, 401]);
        tokio::time::advance(FIRST_WAIT * 2).await;
        assert_eq!([send(&client).await, send(&client).await], [401, 200]);
    }

    #[test]
    fn a_refusal_is_told_from_other_failures() {
        let refused = |error: BoxError| are_refused(&Err(kube::Error::Service(error)));
        let of_tls = |error| BoxError::from(io::Error::other(rustls::Error::AlertReceived(error)));
        assert!(refused(AuthError::UnrefreshableTokenResponse.into()));
        assert!(refused(of_tls(AlertDescription::CertificateExpired)));
        assert!(!refused(of_tls(AlertDescription::HandshakeFailure)));
        assert!(!refused(AuthError::MissingCommand.into()));
        assert!(!refused(io::Error::from(io::ErrorKind::ConnectionRefused).into()));
    }

    #[test]
    fn only_a_plugin_or_a_file_brings_other_credentials() {
        let file = Some("file".to_owned());
        assert!(are_renewable(&AuthInfo { token_file: file.clone(), ..AuthInfo::default() }));
        assert!(are_renewable(&AuthInfo { client_certificate: file, ..AuthInfo::default() }));
        let inline = AuthInfo { client_certificate_data: Some(String::new()), ..AuthInfo::default() };
        assert!(!are_renewable(&inline));
    }
}
