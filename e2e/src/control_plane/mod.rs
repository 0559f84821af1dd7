//! A real control plane on loopback: etcd, any number of API servers and, where asked for, controllers; for
//! tests, the demo and people.
//!
//! It knows nothing of Etch, and leaves nothing running, however the process that started it ends.

mod binaries;
mod component;
mod controller_manager;
mod directory;
mod etcd;
mod flags;
mod kubeconfig;
mod pki;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use k8s_openapi::api::{
    authentication::v1::TokenRequest,
    core::v1::{Namespace, ServiceAccount},
};
use kube::{Api, Client, Config, api::PostParams};
use serde_json::json;

pub use binaries::{Binaries, Kubernetes, kubectl};
use component::{Component, on_free_port};
use controller_manager::ControllerManager;
use directory::Directory;
pub use etcd::{EtcdRaw, RawValue, object_key};
pub use kubeconfig::read as read_kubeconfig;
use pki::Pki;
pub use pki::{EtcdPki, Identity};

/// What to start.
#[derive(Clone, Debug)]
pub struct Options {
    /// Holds the data, logs and kubeconfigs. Made if missing; the data of an earlier run are used again.
    pub dir: PathBuf,
    /// The number of API servers on the one etcd; at least 1.
    pub apiservers: usize,
    /// The release; `None` is [`Kubernetes::meant`].
    pub kubernetes: Option<Kubernetes>,
    /// Further flags for every API server, which win over the built-in ones.
    pub apiserver_flags: Vec<String>,
    /// The controllers of kube-controller-manager that run, by the names that its `--controllers` takes, such
    /// as `clusterrole-aggregation-controller`. Without any there is no controller manager, and none is
    /// built.
    pub controllers: Vec<String>,
    /// Whether etcd speaks TLS, with a certificate authority of its own, and wants a client certificate.
    pub etcd_tls: bool,
}

impl Options {
    /// One API server of the release that is meant where none is named, and no controllers.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            apiservers: 1,
            kubernetes: None,
            apiserver_flags: Vec::new(),
            controllers: Vec::new(),
            etcd_tls: false,
        }
    }
}

/// A running control plane. Dropping it stops it, within milliseconds and without grace.
///
/// API servers are numbered from 0; a number that does not exist is a mistake of the caller and panics. No
/// controller runs but those of [`Options::controllers`]: nothing collects garbage, and a deleted namespace
/// stays `Terminating`.
pub struct ControlPlane {
    // The order is the order in which they are stopped.
    controllers: Option<Component>,
    servers: Vec<ApiServer>,
    etcd: Component,
    setup: Setup,
    raw: EtcdRaw,
}

struct ApiServer {
    component: Component,
    port: u16,
}

/// What all API servers have in common.
struct Setup {
    directory: Directory,
    binaries: Binaries,
    pki: Pki,
    etcd_url: String,
    etcd_tls: Option<EtcdPki>,
    flags: Vec<String>,
}

impl ControlPlane {
    /// Builds what is missing, starts everything, and returns once every API server is ready for any request.
    ///
    /// # Errors
    /// A directory that is in use or holds something else; a failing build; a server that ends before it is
    /// ready, with the end of its log.
    pub async fn start(options: Options) -> Result<Self> {
        let Options { dir, apiservers, kubernetes, apiserver_flags: flags, controllers, etcd_tls } = options;
        ensure!(apiservers > 0, "at least one API server is needed");
        let directory = Directory::claim(&dir)?;
        let binaries = Binaries::ensure(&kubernetes.map_or_else(Kubernetes::meant, Ok)?).await?;
        directory.record(&binaries.kubernetes)?;
        let dir = &directory.path;
        let endpoints_file = dir.join("endpoints.json");
        if endpoints_file.exists() {
            // Another process may have its ports by now.
            fs::remove_file(&endpoints_file)?;
        }
        let pki = Pki::at(&dir.join("pki"))?;
        let etcd_tls = etcd_tls.then(|| EtcdPki::at(&dir.join("pki"))).transpose()?;
        fs::write(dir.join("audit-policy.json"), format!("{:#}\n", flags::audit_policy()))?;

        let tls = etcd_tls.as_ref();
        let (etcd, etcd_url) = on_free_port(async |port| start_etcd(&binaries, dir, port, tls).await).await?;
        let raw = EtcdRaw::new(&etcd_url, tls).await?;
        let setup = Setup { directory, binaries, pki, etcd_url, etcd_tls, flags };
        let servers = (0..apiservers).map(|index| {
            let setup = &setup;
            on_free_port(async move |port| setup.start_server(index, port).await)
        });
        let servers = try_join_all(servers).await?;
        let urls: Vec<_> = servers.iter().map(|server| server_url(server.port)).collect();
        let endpoints = json!({"etcd": [&setup.etcd_url], "apiservers": urls});
        fs::write(endpoints_file, format!("{endpoints:#}\n"))?;
        let controllers = match &controllers[..] {
            [] => None,
            controllers => Some(setup.start_controllers(controllers, &urls[0]).await?),
        };
        Ok(Self { controllers, servers, etcd, setup, raw })
    }

    /// The directory, as an absolute path.
    pub fn dir(&self) -> &Path {
        &self.setup.directory.path
    }

    /// The release that runs, which `KUBEBUILDER_ASSETS` may have decided.
    pub fn kubernetes(&self) -> &Kubernetes {
        &self.setup.binaries.kubernetes
    }

    /// Raw keys and values of etcd.
    pub fn etcd(&self) -> &EtcdRaw {
        &self.raw
    }

    /// Where etcd listens: `http://127.0.0.1:PORT`, or `https` over TLS.
    pub fn etcd_url(&self) -> &str {
        &self.setup.etcd_url
    }

    /// The files that etcd's clients need; `None` if it speaks no TLS.
    pub fn etcd_tls(&self) -> Option<&EtcdPki> {
        self.setup.etcd_tls.as_ref()
    }

    /// The certificate authority of the API servers.
    pub fn ca(&self) -> &Path {
        &self.setup.pki.ca
    }

    /// Where the API server `index` listens: `https://127.0.0.1:PORT`, the same after a restart of that
    /// server.
    pub fn url(&self, index: usize) -> String {
        server_url(self.servers[index].port)
    }

    /// The admin's kubeconfig for the API server `index`: `DIR/kubeconfig`, `DIR/kubeconfig-1`, …
    pub fn kubeconfig(&self, index: usize) -> PathBuf {
        self.setup.kubeconfig(index)
    }

    /// What the API server `index` was asked, a JSON event per line: `DIR/audit.log`, `DIR/audit-1.log`, …
    ///
    /// An event is there before its request has been answered; the events of watches are there when they
    /// start and when they end.
    pub fn audit_log(&self, index: usize) -> PathBuf {
        self.setup.audit_log(index)
    }

    /// The admin's configuration for the API server `index`: kube's default, which repeats what is answered
    /// with 429 or 503 (`default_retry`), as an API server does for a moment after a CRD has changed.
    pub async fn config(&self, index: usize) -> Result<Config> {
        kubeconfig::read(&self.kubeconfig(index)).await
    }

    /// The admin's client of the API server `index`, from [`Self::config`].
    pub async fn client(&self, index: usize) -> Result<Client> {
        Ok(Client::try_from(self.config(index).await?)?)
    }

    /// Writes a kubeconfig for the API server `index` and an existing service account, with a token for a
    /// day.
    pub async fn service_account_kubeconfig(
        &self,
        index: usize,
        namespace: &str,
        name: &str,
    ) -> Result<PathBuf> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client(index).await?, namespace);
        let request: TokenRequest = serde_json::from_value(
            json!({"metadata": {}, "spec": {"audiences": [], "expirationSeconds": 24 * 60 * 60}}),
        )?;
        let issued = accounts.create_token_request(name, &PostParams::default(), &request).await;
        let issued = issued.with_context(|| format!("a token for the service account {namespace}/{name}"))?;
        let token = issued.status.context("a TokenRequest was answered without a token")?.token;
        let path = self.setup.file(&format!("service-account-{namespace}-{name}"), index, ".kubeconfig");
        kubeconfig::write(&path, &self.url(index), &self.setup.pki.ca, &kubeconfig::token_user(&token))?;
        Ok(path)
    }

    /// Ends the API server `index` as a rolling update would: it may finish its requests.
    pub async fn stop_apiserver(&mut self, index: usize) -> Result<()> {
        self.servers[index].component.stop().await
    }

    /// Ends the API server `index` as a crash would.
    pub fn kill_apiserver(&mut self, index: usize) {
        self.servers[index].component.kill();
    }

    /// Starts a stopped API server again, at the same address, and waits until it is ready. An error if some
    /// other process has taken its port in the meantime.
    pub async fn start_apiserver(&mut self, index: usize) -> Result<()> {
        let server = &mut self.servers[index];
        ensure!(server.component.is_stopped(), "API server {index} has not been stopped");
        *server = self.setup.start_server(index, server.port).await?;
        Ok(())
    }

    /// Stops the API server `index` in its tracks: connections stay open and nothing is answered.
    pub async fn pause_apiserver(&mut self, index: usize) -> Result<()> {
        self.servers[index].component.pause().await
    }

    /// Lets a paused API server continue.
    pub fn resume_apiserver(&mut self, index: usize) {
        self.servers[index].component.resume();
    }

    /// The process id of the API server `index`; none while it is stopped.
    pub fn apiserver_process(&mut self, index: usize) -> Option<u32> {
        self.servers[index].component.process()
    }

    /// Stops the controllers in their tracks.
    pub async fn pause_controllers(&mut self) -> Result<()> {
        self.controllers.as_mut().context("no controllers")?.pause().await
    }

    /// Lets paused controllers continue.
    pub fn resume_controllers(&mut self) {
        if let Some(controllers) = &mut self.controllers {
            controllers.resume();
        }
    }

    /// The process id of the controller manager; `None` if there is none.
    pub fn controllers_process(&mut self) -> Option<u32> {
        self.controllers.as_mut()?.process()
    }

    /// Fails, with the end of its log, if a server has ended that the test did not stop.
    pub fn check(&mut self) -> Result<()> {
        let servers = self.servers.iter_mut().map(|server| &mut server.component);
        servers.chain([&mut self.etcd]).chain(&mut self.controllers).try_for_each(Component::check)
    }
}

impl Setup {
    /// `name` in the directory for the first server, `name-1` for the second, and so on, before the
    /// extension.
    fn file(&self, name: &str, index: usize, extension: &str) -> PathBuf {
        self.directory.path.join(format!("{}{extension}", numbered(name, index)))
    }

    fn kubeconfig(&self, index: usize) -> PathBuf {
        self.file("kubeconfig", index, "")
    }

    fn audit_log(&self, index: usize) -> PathBuf {
        self.file("audit", index, ".log")
    }

    async fn start_server(&self, index: usize, port: u16) -> Result<ApiServer> {
        let Self { directory, binaries, pki, etcd_url, etcd_tls, flags } = self;
        let kubeconfig = self.kubeconfig(index);
        kubeconfig::write(
            &kubeconfig,
            &server_url(port),
            &pki.ca,
            &kubeconfig::certificate_user(&pki.admin)?,
        )?;
        let mut config = kubeconfig::read(&kubeconfig).await?;
        config.default_retry = false;
        let client = Client::try_from(config)?;
        let command = flags::ApiServer {
            program: &binaries.kube_apiserver,
            pki,
            etcd: etcd_url,
            etcd_tls: etcd_tls.as_ref(),
            port,
            audit_policy: &directory.path.join("audit-policy.json"),
            audit_log: &self.audit_log(index),
            extra: flags,
        }
        .command();
        let name = numbered("kube-apiserver", index);
        let component = Component::start(name, &directory.path, &command, || serves(client.clone())).await?;
        Ok(ApiServer { component, port })
    }

    /// The controller manager, as a client of the first API server.
    async fn start_controllers(&self, controllers: &[String], server: &str) -> Result<Component> {
        let Self { directory, binaries, pki, .. } = self;
        let program = binaries.kube_controller_manager().await?;
        let (program, dir) = (&program, &directory.path);
        on_free_port(async |port| {
            ControllerManager { program, dir, pki, server, controllers, port }.start().await
        })
        .await
    }
}

async fn start_etcd(
    binaries: &Binaries,
    dir: &Path,
    port: u16,
    tls: Option<&EtcdPki>,
) -> Result<(Component, String)> {
    let scheme = if tls.is_some() { "https" } else { "http" };
    let url = format!("{scheme}://127.0.0.1:{port}");
    let raw = EtcdRaw::new(&url, tls).await?;
    let command = flags::etcd(&binaries.etcd, &dir.join("etcd"), &url, tls);
    let component =
        Component::start("etcd".into(), dir, &command, async || raw.get("/").await.is_ok()).await?;
    Ok((component, url))
}

/// Whether an API server has finished all its start-up work, the namespace `default` included.
async fn serves(client: Client) -> bool {
    let Ok(readyz) = http::Request::get("/readyz").body(Vec::new()) else { return false };
    client.request_text(readyz).await.is_ok() && Api::<Namespace>::all(client).get("default").await.is_ok()
}

fn server_url(port: u16) -> String {
    format!("https://127.0.0.1:{port}")
}

fn numbered(name: &str, index: usize) -> String {
    if index == 0 { name.to_owned() } else { format!("{name}-{index}") }
}
