//! The certificate of the admission server, from a folder as kubelets mount Secrets, or from the Secret as
//! read through the API; a new one counts at once. It must not log what is in a file.

use std::convert::Infallible;
use std::fmt;
use std::fs;
use std::future::pending;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::RwLock;
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;
use rustls::{RootCertStore, ServerConfig};
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use tracing::{info, warn};
use x509_parser::prelude::{ASN1Time, FromDer, X509Certificate};

use crate::metrics::Metrics;
use etch_admission::renewal::Validity;

/// How often the files are read. Kubelets need a minute or more to show a new Secret.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";
const AUTHORITY: &str = "ca.crt";

/// A certificate that is served, and kept current by [`Certificates::follow_folder`] or
/// [`Certificates::follow_secret`].
pub struct Certificates {
    provider: Arc<CryptoProvider>,
    current: Arc<Current>,
    authority: watch::Sender<Authority>,
    /// Until when it is valid.
    until: watch::Sender<Option<Timestamp>>,
    metrics: Arc<Metrics>,
}

/// The authority that signed the certificate, as far as the folder shows it.
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

/// What a server presents, all of it in PEM.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Presented {
    /// `tls.crt`: the certificate, and maybe those between it and the authority.
    pub certificate: Vec<u8>,
    /// `tls.key`.
    pub key: Vec<u8>,
    /// `ca.crt`, if there is one.
    pub authority: Option<Vec<u8>>,
}

/// The last certificate that could be used.
#[derive(Default)]
struct Current(RwLock<Option<Arc<CertifiedKey>>>);

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
    #[error("{CERTIFICATE} expired at {0}")]
    Expired(Timestamp),
}

impl Certificates {
    /// No certificate yet.
    pub fn new(metrics: Arc<Metrics>) -> Self {
        Self {
            provider: Arc::new(default_provider()),
            current: Arc::default(),
            authority: watch::Sender::new(Authority::Unknown),
            until: watch::Sender::new(None),
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

    /// The authority of the certificate that is served, as it changes.
    pub fn authority(&self) -> watch::Receiver<Authority> {
        self.authority.subscribe()
    }

    /// Until when the certificate that is served is valid, as that changes; `None` while there is none.
    pub fn until(&self) -> watch::Receiver<Option<Timestamp>> {
        self.until.subscribe()
    }

    /// Reads `tls.crt`, `tls.key` and, where it is there, `ca.crt` again and again. `ready` is called as soon
    /// as there is a certificate.
    pub async fn follow_folder(&self, folder: PathBuf, ready: impl Fn()) -> Infallible {
        let (mut last, mut failed) = (None, None);
        loop {
            let found = folder.clone();
            // Reading is cancelled only when the runtime shuts down.
            if let Ok(files) = spawn_blocking(move || files(&found)).await {
                let taken = files.and_then(|files| self.take(files, &mut last));
                self.report(taken, &folder.display(), &mut failed, &ready);
            }
            sleep(LOOK_AGAIN).await;
        }
    }

    /// Serves what a Secret of this name holds, whenever that changes. `ready` is called as soon as there is
    /// a certificate.
    pub async fn follow_secret(
        &self,
        name: &str,
        mut found: watch::Receiver<Option<Presented>>,
        ready: impl Fn(),
    ) -> Infallible {
        let (mut last, mut failed) = (None, None);
        loop {
            let files = found.borrow_and_update().clone();
            if let Some(files) = files {
                let taken = self.take(files, &mut last);
                self.report(taken, &name, &mut failed, &ready);
            }
            if found.changed().await.is_err() {
                return pending().await;
            }
        }
    }

    /// Serves these, where they are not what is served already.
    fn take(&self, files: Presented, last: &mut Option<Presented>) -> Result<(), Unusable> {
        if last.as_ref() == Some(&files) {
            return Ok(());
        }
        let (certified, validity) = certified(&files, &self.provider)?;
        let now = Timestamp::now();
        let is_expired = validity.until <= now;
        if is_expired && self.until.borrow().is_some_and(|until| now < until) {
            return Err(Unusable::Expired(validity.until));
        }
        // Issuers that name no authority, such as those of ACME, leave the file empty.
        let authority = files.authority.clone().filter(|authority| !authority.is_empty());
        if authority.as_ref().is_some_and(|authority| !has_certificates(authority)) {
            return Err(Unusable::Pem(AUTHORITY, "certificate"));
        }
        let is_same = |last: &Presented| (&files.certificate, &files.key) == (&last.certificate, &last.key);
        if !last.as_ref().is_some_and(is_same) {
            *self.current.0.write() = Some(Arc::new(certified));
            self.metrics.certificate_expiry.set(validity.until.as_second());
            self.until.send_replace(Some(validity.until));
            match is_expired {
                true => {
                    warn!(expired = %validity.until, "the admission certificate has expired: API servers \
                        refuse it")
                }
                false => info!(expires = %validity.until, "loaded the admission certificate"),
            }
        }
        self.name_authority(authority);
        *last = Some(files);
        Ok(())
    }

    /// A file that is missing for a moment does not replace what is served.
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

    fn report(
        &self,
        taken: Result<(), Unusable>,
        place: &dyn fmt::Display,
        failed: &mut Option<String>,
        ready: impl Fn(),
    ) {
        let Err(error) = taken else {
            *failed = None;
            return ready();
        };
        self.metrics.certificate_failures.inc();
        let text = error.to_string();
        if failed.as_ref() != Some(&text) {
            let keeps = if self.until.borrow().is_some() { "the previous one" } else { "none" };
            warn!(%place, error = text, keeps, "cannot use the new admission certificate");
            *failed = Some(text);
        }
    }
}

/// From when until when a certificate is valid, if a client that trusts these authorities accepts it from a
/// server of this name while it is valid.
pub fn trusted(presented: &Presented, host: &str, authorities: &[CertificateDer<'_>]) -> Option<Validity> {
    let provider = default_provider();
    let (certified, validity) = certified(presented, &provider).ok()?;
    let (leaf, between) = certified.cert.split_first()?;
    let leaf = ParsedCertificate::try_from(leaf).ok()?;
    verify_server_name(&leaf, &ServerName::try_from(host).ok()?).ok()?;
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(authorities.iter().cloned());
    let then = Duration::from_secs(validity.from.as_second().try_into().ok()?);
    let algorithms = provider.signature_verification_algorithms.all;
    let then = UnixTime::since_unix_epoch(then);
    verify_server_cert_signed_by_trust_anchor(&leaf, &roots, between, then, algorithms).ok()?;
    Some(validity)
}

fn files(folder: &Path) -> Result<Presented, Unusable> {
    let read = |name: &'static str| fs::read(folder.join(name)).map_err(|error| Unusable::Read(name, error));
    let authority = fs::read(folder.join(AUTHORITY)).ok();
    Ok(Presented { certificate: read(CERTIFICATE)?, key: read(KEY)?, authority })
}

/// Whether this is a bundle of certificates in PEM: API servers refuse or distrust any other.
fn has_certificates(bundle: &[u8]) -> bool {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(bundle).collect();
    let is_x509 = |certificate: &CertificateDer<'_>| X509Certificate::from_der(certificate).is_ok();
    certificates.is_ok_and(|all| !all.is_empty() && all.iter().all(is_x509))
}

/// A certificate with its key, and from when until when it is valid.
fn certified(files: &Presented, provider: &CryptoProvider) -> Result<(CertifiedKey, Validity), Unusable> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&files.certificate).collect();
    let chain = chain.ok().filter(|chain| !chain.is_empty());
    let chain = chain.ok_or(Unusable::Pem(CERTIFICATE, "certificate"))?;
    let key = PrivateKeyDer::from_pem_slice(&files.key).map_err(|_| Unusable::Pem(KEY, "private key"))?;
    let (_, leaf) = X509Certificate::from_der(&chain[0]).map_err(|_| Unusable::NotX509)?;
    let validity = validity(&leaf).ok_or(Unusable::NotX509)?;
    let certified = CertifiedKey::from_der(chain, key, provider).map_err(Unusable::Pair)?;
    Ok((certified, validity))
}

/// From when until when a certificate is valid; `None` if a time is outside the calendar.
pub fn validity(certificate: &X509Certificate<'_>) -> Option<Validity> {
    let at = |time: ASN1Time| Timestamp::from_second(time.timestamp()).ok();
    let validity = certificate.validity();
    Some(Validity { from: at(validity.not_before)?, until: at(validity.not_after)? })
}

impl fmt::Debug for Presented {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the key.
        f.write_str("Presented")
    }
}

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.read().clone()
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
        let certificates = Certificates::new(metrics.clone());
        let is_ready = std::sync::atomic::AtomicBool::default();
        let ready = || is_ready.store(true, std::sync::atomic::Ordering::Relaxed);
        let follow = certificates.follow_folder(folder.path().to_owned(), ready);
        tokio::select! {
            never = follow => match never {},
            () = async { while metrics.certificate_failures.get() < 3 { sleep(LOOK_AGAIN).await } } => {}
        }
        assert!(!is_ready.into_inner());
        assert_eq!(*certificates.authority().borrow(), Authority::Unknown);
    }

    #[test]
    fn empty_files_are_no_certificate() {
        let certificates = Certificates::new(Arc::default());
        assert!(certificates.take(Presented::default(), &mut None).is_err());
    }

    #[test]
    fn one_that_has_expired_takes_no_place_of_one_that_is_valid() {
        let presented = |until: i32| {
            let key = rcgen::KeyPair::generate().expect("a key");
            let mut parameters = rcgen::CertificateParams::new(["localhost".to_owned()]).expect("parameters");
            parameters.not_after = rcgen::date_time_ymd(until, 1, 1);
            let certificate = parameters.self_signed(&key).expect("a certificate").pem().into_bytes();
            Presented { certificate, key: key.serialize_pem().into_bytes(), authority: None }
        };
        let certificates = Certificates::new(Arc::default());
        let until = || certificates.until().borrow().map(|until| until.to_string());
        let mut last = None;
        certificates.take(presented(2020), &mut last).expect("there is no other");
        assert_eq!(until().as_deref(), Some("2020-01-01T00:00:00Z"));
        certificates.take(presented(4000), &mut last).expect("it is valid");
        let error = certificates.take(presented(2021), &mut last).expect_err("it has expired");
        assert_eq!(error.to_string(), "tls.crt expired at 2021-01-01T00:00:00Z");
        assert_eq!(until().as_deref(), Some("4000-01-01T00:00:00Z"));
    }

    #[test]
    fn only_certificates_become_the_authority() {
        let rcgen::CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        let (certificate, key) = (cert.pem().into_bytes(), signing_key.serialize_pem().into_bytes());
        let of = |authority: &[u8]| Presented {
            certificate: certificate.clone(),
            key: key.clone(),
            authority: Some(authority.to_vec()),
        };
        let certificates = Certificates::new(Arc::default());
        let mut last = None;
        certificates.take(of(b""), &mut last).expect("a certificate");
        assert_eq!(*certificates.authority().borrow(), Authority::Unnamed);
        certificates.take(of(&certificate), &mut last).expect("a certificate");
        let cut = &certificate[..certificate.len() / 2];
        let not_x509 = b"-----BEGIN CERTIFICATE-----\nY2FuYXJ5\n-----END CERTIFICATE-----\n";
        for broken in [&b"canary"[..], cut, not_x509] {
            let error = certificates.take(of(broken), &mut last).expect_err("it is broken");
            assert_eq!(error.to_string(), "ca.crt holds no certificate in PEM");
        }
        certificates.take(of(b""), &mut last).expect("a certificate");
        assert_eq!(*certificates.authority().borrow(), Authority::Named(certificate.clone()));
    }
}
