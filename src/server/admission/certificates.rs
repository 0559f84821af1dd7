//! The certificate of the admission server, from a folder as kubelets mount Secrets, read again when it changes.
//! It must not log what is in a file.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use tracing::{info, warn};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::metrics::Metrics;

/// How often the files are read. Kubelets need a minute or more to show a new Secret.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";
const AUTHORITY: &str = "ca.crt";

/// A certificate that is served, and kept current by [`Certificates::follow`].
pub struct Certificates {
    folder: PathBuf,
    provider: Arc<CryptoProvider>,
    current: Arc<Current>,
    authority: watch::Sender<Authority>,
    metrics: Arc<Metrics>,
}

/// Who has signed the certificate, as far as the folder says so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Authority {
    /// There is no certificate yet.
    #[default]
    Unknown,
    /// There is no `ca.crt` beside the certificate.
    Unnamed,
    /// What `ca.crt` holds, in PEM.
    Named(Vec<u8>),
}

/// The last certificate that could be used.
#[derive(Default)]
struct Current(RwLock<Option<Arc<CertifiedKey>>>);

/// What was found in the folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Files {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

/// Why files give no certificate.
#[derive(Debug, thiserror::Error)]
enum Unusable {
    #[error("{0} cannot be read: {1}")]
    Read(&'static str, #[source] io::Error),
    #[error("{0} holds no {1} in PEM")]
    Pem(&'static str, &'static str),
    #[error("{CERTIFICATE} and {KEY} cannot be used: {0}")]
    Pair(#[source] rustls::Error),
    #[error("{CERTIFICATE} is not an X.509 certificate")]
    NotX509,
}

impl Certificates {
    /// The certificate in this folder: `tls.crt`, `tls.key`, and the authority in `ca.crt` where there is one. Nothing is read yet.
    pub fn new(folder: PathBuf, metrics: Arc<Metrics>) -> Self {
        Self {
            folder,
            provider: Arc::new(default_provider()),
            current: Arc::default(),
            authority: watch::Sender::new(Authority::Unknown),
            metrics,
        }
    }

    /// How connections are served: by TLS 1.3, with whatever the certificate is when one begins.
    ///
    /// # Errors
    /// The provider does not know TLS 1.3.
    pub fn tls(&self) -> Result<Arc<ServerConfig>, rustls::Error> {
        let mut config = ServerConfig::builder_with_provider(self.provider.clone())
            .with_protocol_versions(&[&TLS13])?
            .with_no_client_auth()
            .with_cert_resolver(self.current.clone());
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    /// Who has signed the certificate that is served, as it changes.
    pub fn authority(&self) -> watch::Receiver<Authority> {
        self.authority.subscribe()
    }

    /// Reads the files again and again. `ready` is called as soon as there is a certificate.
    pub async fn follow(&self, ready: impl Fn()) -> std::convert::Infallible {
        let (mut last, mut failed) = (Files::default(), None);
        loop {
            let folder = self.folder.clone();
            let read = spawn_blocking(move || (files(&folder), fs::read(folder.join(AUTHORITY)).ok())).await;
            // Only a runtime that ends does not finish reading.
            if let Ok((files, authority)) = read {
                match files.and_then(|files| self.take(files, &mut last)) {
                    Ok(()) => {
                        failed = None;
                        self.name_authority(authority);
                        ready();
                    }
                    Err(error) => self.warn_once(&error, &mut failed),
                }
            }
            sleep(LOOK_AGAIN).await;
        }
    }

    /// Serves these, where they are not what is served already.
    fn take(&self, files: Files, last: &mut Files) -> Result<(), Unusable> {
        if files == *last {
            return Ok(());
        }
        let (certified, expires) = certified(&files, &self.provider)?;
        *self.current.0.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(certified));
        *last = files;
        self.metrics.certificate_expiry.set(expires);
        let expires =
            jiff::Timestamp::from_second(expires).map_or_else(|_| String::new(), |at| at.to_string());
        info!(%expires, "a certificate for admission is served");
        Ok(())
    }

    /// A file that is missing for a moment takes nothing back.
    fn name_authority(&self, found: Option<Vec<u8>>) {
        self.authority.send_if_modified(|authority| {
            let new = match (found, &*authority) {
                (Some(found), _) => Authority::Named(found),
                (None, Authority::Unknown) => Authority::Unnamed,
                (None, _) => return false,
            };
            let is_new = *authority != new;
            *authority = new;
            is_new
        });
    }

    fn warn_once(&self, error: &Unusable, failed: &mut Option<String>) {
        self.metrics.certificate_failures.inc();
        let text = error.to_string();
        if failed.as_ref() != Some(&text) {
            let folder = self.folder.display();
            warn!(%folder, error = text, "the certificate for admission cannot be used; the last one stays");
            *failed = Some(text);
        }
    }
}

fn files(folder: &Path) -> Result<Files, Unusable> {
    let read = |name: &'static str| fs::read(folder.join(name)).map_err(|error| Unusable::Read(name, error));
    Ok(Files { certificate: read(CERTIFICATE)?, key: read(KEY)? })
}

/// A certificate with its key, and when it expires, in seconds since 1970.
fn certified(files: &Files, provider: &CryptoProvider) -> Result<(CertifiedKey, i64), Unusable> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&files.certificate).collect();
    let chain = chain.ok().filter(|chain| !chain.is_empty());
    let chain = chain.ok_or(Unusable::Pem(CERTIFICATE, "certificate"))?;
    let key = PrivateKeyDer::from_pem_slice(&files.key).map_err(|_| Unusable::Pem(KEY, "private key"))?;
    let (_, leaf) = X509Certificate::from_der(&chain[0]).map_err(|_| Unusable::NotX509)?;
    let expires = leaf.validity().not_after.timestamp();
    let certified = CertifiedKey::from_der(chain, key, provider).map_err(Unusable::Pair)?;
    Ok((certified, expires))
}

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl fmt::Debug for Current {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Current")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_broken_is_named_without_its_content() {
        let folder = tempfile::tempdir().expect("a folder");
        let provider = default_provider();
        let failure = || match files(folder.path()).and_then(|files| certified(&files, &provider)) {
            Ok(_) => panic!("it cannot be used"),
            Err(error) => error.to_string(),
        };
        assert!(failure().starts_with("tls.crt cannot be read: "), "{}", failure());
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("written");
        write(CERTIFICATE, "canary");
        assert!(failure().starts_with("tls.key cannot be read: "), "{}", failure());
        write(KEY, "canary");
        assert_eq!(failure(), "tls.crt holds no certificate in PEM");
        let block = |label: &str| format!("-----BEGIN {label}-----\nY2FuYXJ5\n-----END {label}-----\n");
        write(CERTIFICATE, &block("CERTIFICATE"));
        assert_eq!(failure(), "tls.key holds no private key in PEM");
        write(KEY, &block("PRIVATE KEY"));
        assert_eq!(failure(), "tls.crt is not an X.509 certificate");
    }

    #[tokio::test(start_paused = true)]
    async fn what_cannot_be_used_is_counted_and_nothing_is_ready() {
        let folder = tempfile::tempdir().expect("a folder");
        let metrics = Arc::new(Metrics::default());
        let certificates = Certificates::new(folder.path().to_owned(), metrics.clone());
        let is_ready = std::sync::atomic::AtomicBool::default();
        let follow = certificates.follow(|| is_ready.store(true, std::sync::atomic::Ordering::Relaxed));
        tokio::select! {
            never = follow => match never {},
            () = async { while metrics.certificate_failures.get() < 3 { sleep(LOOK_AGAIN).await } } => {}
        }
        assert!(!is_ready.into_inner());
        assert_eq!(*certificates.authority().borrow(), Authority::Unknown);
    }
}
