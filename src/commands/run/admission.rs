//! The flags of the admission server, and its start and end.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use etch::cluster::Cluster;
use etch::operator::{Admission, Clock, PolicyLookup, SelfManaged, UpgradeGuard};
use etch::server::Readiness;
use etch::server::admission::{
    AcceptedKeys, AdmissionHandler, Certificates, Found, Reference, References, ServedSchemas, Upgrades,
    serve,
};
use etch_admission::renewal::Lifetimes;
use etch_admission::{Endpoint, Injection, Lookup, SERVICE};
use etch_core::call_error::CallError;
use futures::FutureExt;
use http::Uri;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::info;

use super::bind;
use crate::commands::values::duration;

/// How long the server still takes requests after the process is to end: until all clients know that it is
/// not ready.
const SHUTDOWN_DELAY: Duration = Duration::from_secs(5);

#[derive(Args, Debug)]
pub(super) struct AdmissionFlags {
    /// The address to serve admission on over HTTPS, for EmbeddedSchemas and CRD upgrades [default: none]
    #[arg(long, env = "ETCH_ADMISSION_LISTEN", value_name = "ADDRESS")]
    admission_listen: Option<SocketAddr>,
    /// The folder with the admission certificate: tls.crt, tls.key, and optionally ca.crt
    #[arg(
        long,
        env = "ETCH_ADMISSION_CERTIFICATES",
        value_name = "FOLDER",
        default_value = "/etc/etch/admission"
    )]
    admission_certificates: PathBuf,
    /// The Secret in Etch's own namespace in which Etch issues and renews certificates itself
    #[arg(
        long,
        env = "ETCH_ADMISSION_CERTIFICATES_SECRET",
        value_name = "NAME",
        conflicts_with = "admission_certificates"
    )]
    admission_certificates_secret: Option<String>,
    /// The lifetime of certificates that Etch issues itself; Etch renews them after two thirds of it
    #[arg(
        long,
        env = "ETCH_ADMISSION_CERTIFICATE_LIFETIME",
        value_name = "TIME",
        default_value = "90d",
        value_parser = lifetime
    )]
    admission_certificate_lifetime: Duration,
    /// Who writes the CA of the certificate into the webhooks
    #[arg(long, env = "ETCH_ADMISSION_INJECT", value_enum, default_value_t)]
    admission_inject: Inject,
    /// The URL at which API servers reach the admission server, instead of its Service
    #[arg(long, env = "ETCH_ADMISSION_URL", value_name = "URL")]
    admission_url: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Inject {
    /// Etch itself, from ca.crt
    #[default]
    None,
    /// cert-manager, from the Certificate etch-admission
    CertManager,
    /// The service-ca operator of OpenShift
    ServiceCa,
}

/// An admission server that runs.
pub(super) struct Running {
    admission: Admission,
    server: JoinHandle<()>,
    certificates: JoinHandle<()>,
}

impl AdmissionFlags {
    /// Starts the server, if it is to run: it ends some time after `ended`. Upgrades of CRDs are judged by
    /// the policies that `policies` knows.
    pub(super) async fn start(
        &self,
        cluster: &Cluster,
        namespace: &str,
        ready: &Arc<Readiness>,
        ended: &CancellationToken,
        policies: PolicyLookup,
        max_writes_per_second: Option<u32>,
    ) -> anyhow::Result<Option<Running>> {
        let Some(address) = self.admission_listen else { return Ok(None) };
        if let Some(url) = &self.admission_url
            && !url.starts_with("https://")
        {
            bail!("--admission-url {url:?}: must be a URL that begins with https://");
        }
        let self_managed = self.self_managed(namespace)?;
        ready.serves_admission();
        let metrics = cluster.metrics().clone();
        let certificates = Certificates::new(metrics.clone());
        let tls = certificates.tls()?;
        let listener = bind(address).await.with_context(|| format!("--admission-listen {address}"))?;
        info!(listening = %listener.local_addr()?, "serving admission");
        let serving = ServedSchemas::default();
        let endpoint = Endpoint {
            namespace: namespace.to_owned(),
            url: self.admission_url.clone(),
            inject: match self.admission_inject {
                Inject::None => Injection::None,
                Inject::CertManager => Injection::CertManager,
                Inject::ServiceCa => Injection::ServiceCa,
            },
        };
        let (authority, keys) = (certificates.authority(), AcceptedKeys::default());
        let (schemas, accepted) = (serving.clone(), keys.clone());
        let admission =
            Admission::start(cluster.clone(), schemas, accepted, ready.clone(), endpoint, authority)
                .serving_until(certificates.until())
                .guarding_upgrades(policies.clone())
                .writing_at_most(max_writes_per_second);
        let (admission, presented) = match self_managed {
            Some(options) => {
                let secret = options.secret.clone();
                let (admission, presented) = admission.issuing(options, Clock::default());
                (admission, Some((secret, presented)))
            }
            None => (admission, None),
        };
        let handler = AdmissionHandler::new(serving, references(cluster.clone()), metrics)
            .guarded_by(upgrades(UpgradeGuard::new(cluster.clone(), policies)));
        let over = {
            let (ended, ready) = (ended.clone(), ready.clone());
            async move {
                ended.cancelled().await;
                ready.ends();
                tokio::time::sleep(SHUTDOWN_DELAY).await;
            }
        };
        let tasks = ready.tasks().clone();
        let server = serve(listener, tls, handler.router(), keys, over);
        let server = tasks.spawn("serves admission", server);
        let (ready, folder) = (ready.clone(), self.admission_certificates.clone());
        let certificates = tasks.spawn("watches certificates", async move {
            let ready = || ready.has_a_certificate();
            match presented {
                Some((secret, presented)) => certificates.follow_secret(&secret, presented, ready).await,
                None => certificates.follow_folder(folder, ready).await,
            };
        });
        Ok(Some(Running { admission, server, certificates }))
    }

    /// What Etch needs to know to make certificates, if it is to make them.
    fn self_managed(&self, namespace: &str) -> anyhow::Result<Option<SelfManaged>> {
        let Some(secret) = self.admission_certificates_secret.clone() else { return Ok(None) };
        if secret.is_empty() {
            bail!("--admission-certificates-secret: must be the name of a Secret");
        }
        if !matches!(self.admission_inject, Inject::None) {
            bail!(
                "--admission-inject: with --admission-certificates-secret only Etch itself may inject the CA"
            );
        }
        let host = match &self.admission_url {
            None => format!("{SERVICE}.{namespace}.svc"),
            Some(url) => host(url).with_context(|| format!("--admission-url {url:?}: has no host"))?,
        };
        let lifetimes = Lifetimes::of(self.admission_certificate_lifetime);
        Ok(Some(SelfManaged { namespace: namespace.to_owned(), secret, host, lifetimes }))
    }
}

/// The name or the address in a URL.
fn host(url: &str) -> Option<String> {
    let url: Uri = url.parse().ok()?;
    // A URL has an IPv6 address in brackets.
    Some(url.host()?.trim_matches(['[', ']']).to_owned())
}

/// The lifetime of a certificate: no shorter than its renewal takes, and no longer than clients like it.
fn lifetime(text: &str) -> Result<Duration, String> {
    let lifetime = duration(text)?;
    let bounds = Duration::from_secs(10)..=Duration::from_secs(3_650 * 86_400);
    bounds
        .contains(&lifetime)
        .then_some(lifetime)
        .ok_or_else(|| "expected a time from 10s to 3650d".to_owned())
}

impl Running {
    /// What only the leader does, for as long as it is polled.
    pub(super) async fn lead(&self) -> std::convert::Infallible {
        self.admission.lead().await
    }

    /// Waits until the requests under way are answered.
    pub(super) async fn end(self) {
        // It was awaited to its end, or has panicked, which was logged.
        let _ = self.server.await;
        self.certificates.abort();
    }
}

fn upgrades(guard: UpgradeGuard) -> Upgrades {
    Upgrades::new(move |update, until| {
        let guard = guard.clone();
        async move { guard.judge(update, until).await }.boxed()
    })
}

fn references(cluster: Cluster) -> References {
    References::new(move |reference: Reference| {
        let cluster = cluster.clone();
        async move {
            let Reference { group, version, resource, namespace, name } = &reference;
            let lookup = Lookup { group, version, resource, namespace, name };
            found(cluster.exists(&lookup).await)
        }
        .boxed()
    })
}

/// What an answer shows; `None` where it shows nothing, and the client is warned. A 404 that names no object
/// is about the resource: it is not served, or not in a namespace.
fn found(answer: Result<bool, CallError>) -> Option<Found> {
    match answer {
        Ok(found) => Some(Some(found)),
        Err(error) if error.code() == Some(403) => Some(None),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use etch_core::refusal::Refusal;

    use super::*;

    #[test]
    fn what_may_not_be_looked_up_is_not_warned_about() {
        let refused = |code| Err(CallError::Refused(Box::new(Refusal::read(code, None, b"{}"))));
        assert_eq!([Ok(true), Ok(false)].map(found), [Some(Some(true)), Some(Some(false))]);
        assert_eq!(found(refused(403)), Some(None));
        assert_eq!([404, 429, 500, 503].map(|code| found(refused(code))), [None; 4]);
    }
}
