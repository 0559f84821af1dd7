//! The flags of the admission server, and its start and end.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use etch::cluster::Cluster;
use etch::controller::{Admission, Governing, UpgradeGuard};
use etch::domain::admission::{Endpoint, Injection, Lookup};
use etch::server::Readiness;
use etch::server::admission::{Certificates, Desk, Reference, References, Serving, Upgrades, serve};
use futures::FutureExt;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::info;

/// How long requests are still taken after the process is to end: until everybody has heard that it is not ready.
const LINGER: Duration = Duration::from_secs(5);

#[derive(Args, Debug)]
pub(super) struct AdmissionFlags {
    /// Where admission requests are answered, by EmbeddedSchemas and about upgrades of CRDs, over HTTPS [default: nowhere]
    #[arg(long, env = "ETCH_ADMISSION_LISTEN", value_name = "ADDRESS")]
    admission_listen: Option<SocketAddr>,
    /// The folder with the certificate for admission: tls.crt, tls.key, and maybe ca.crt
    #[arg(
        long,
        env = "ETCH_ADMISSION_CERTIFICATES",
        value_name = "FOLDER",
        default_value = "/etc/etch/admission"
    )]
    admission_certificates: PathBuf,
    /// Who tells the API server which authority has signed the certificate
    #[arg(long, env = "ETCH_ADMISSION_INJECT", value_enum, default_value_t)]
    admission_inject: Inject,
    /// Where API servers reach the admission server, if not through its Service
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
    /// Starts the server, if it is to run: it ends some time after `ended`. Upgrades of CRDs are judged by the policies that
    /// `governing` knows.
    pub(super) async fn start(
        &self,
        cluster: &Cluster,
        namespace: &str,
        ready: &Arc<Readiness>,
        ended: &CancellationToken,
        governing: Governing,
        max_writes_per_second: Option<u32>,
    ) -> anyhow::Result<Option<Running>> {
        let Some(address) = self.admission_listen else { return Ok(None) };
        if let Some(url) = &self.admission_url
            && !url.starts_with("https://")
        {
            bail!("--admission-url {url:?}: is no URL that begins with https://");
        }
        ready.serves_admission();
        let metrics = cluster.metrics().clone();
        let certificates = Certificates::new(self.admission_certificates.clone(), metrics.clone());
        let tls = certificates.tls()?;
        let listener =
            TcpListener::bind(address).await.with_context(|| format!("--admission-listen {address}"))?;
        info!(listening = %listener.local_addr()?, "admission is served");
        let serving = Serving::default();
        let endpoint = Endpoint {
            namespace: namespace.to_owned(),
            url: self.admission_url.clone(),
            inject: match self.admission_inject {
                Inject::None => Injection::None,
                Inject::CertManager => Injection::CertManager,
                Inject::ServiceCa => Injection::ServiceCa,
            },
        };
        let authority = certificates.authority();
        let admission =
            Admission::start(cluster.clone(), serving.clone(), ready.clone(), endpoint, authority)
                .guarding_upgrades(governing.clone())
                .writing_at_most(max_writes_per_second);
        let desk = Desk::new(serving, references(cluster.clone()), metrics)
            .guarded_by(upgrades(UpgradeGuard::new(cluster.clone(), governing)));
        let over = {
            let (ended, ready) = (ended.clone(), ready.clone());
            async move {
                ended.cancelled().await;
                ready.ends();
                tokio::time::sleep(LINGER).await;
            }
        };
        let server = tokio::spawn(serve(listener, tls, desk, over));
        let ready = ready.clone();
        let certificates =
            tokio::spawn(async move { match certificates.follow(|| ready.has_a_certificate()).await {} });
        Ok(Some(Running { admission, server, certificates }))
    }
}

impl Running {
    /// What only the leader does, for as long as it is polled.
    pub(super) async fn lead(&self) -> std::convert::Infallible {
        self.admission.lead().await
    }

    /// Waits until what was asked is answered.
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
            cluster.exists(&lookup).await.ok()
        }
        .boxed()
    })
}
