//! A real control plane on loopback: etcd and any number of API servers, for tests, the demo and people.
//!
//! It knows nothing of Etch, and leaves nothing running, however the process that started it ends.

mod binaries;
mod etcd;
mod flags;
mod kubeconfig;
mod pki;
mod process;

use std::{
    fs::{self, File},
    net::TcpListener,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use futures::future::try_join_all;
use k8s_openapi::api::{
    authentication::v1::TokenRequest,
    core::v1::{Namespace, ServiceAccount},
};
use kube::{Api, Client, Config, api::PostParams};
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

pub use binaries::{Binaries, Kubernetes};
pub use etcd::{EtcdRaw, RawValue, object_key};
pub use kubeconfig::read as read_kubeconfig;
use pki::Pki;
use process::Supervised;

/// How long a component may take until it serves; far more than it needs on an idle machine.
const START_LIMIT: Duration = Duration::from_secs(120);
/// How long an API server that is asked to stop may take to finish its requests.
const STOP_GRACE: Duration = Duration::from_secs(10);
/// Between two looks at a component that is starting.
const POLL: Duration = Duration::from_millis(50);
/// Another process may take a free port before it is used.
const PORT_TRIES: usize = 3;
/// Lines of a log that an error shows.
const TAIL: usize = 20;

/// What to start.
#[derive(Clone, Debug)]
pub struct Options {
    /// Holds the data, logs and kubeconfigs. Made if missing; the data of an earlier run are used again.
    pub dir: PathBuf,
    /// The number of API servers on the one etcd; at least 1.
    pub apiservers: usize,
    /// The release; `None` is the newest supported one.
    pub kubernetes: Option<Kubernetes>,
    /// Further flags for every API server, which win over the built-in ones.
    pub apiserver_flags: Vec<String>,
}

impl Options {
    /// One API server of the newest supported release.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into(), apiservers: 1, kubernetes: None, apiserver_flags: Vec::new() }
    }
}

/// A running control plane. Dropping it stops it.
///
/// There is no controller manager: nothing collects garbage, and a deleted namespace stays `Terminating`.
pub struct ControlPlane {
    // The order is the order in which they are stopped.
    servers: Vec<ApiServer>,
    etcd: Component,
    raw: EtcdRaw,
    etcd_url: String,
    dir: PathBuf,
    binaries: Binaries,
    pki: Pki,
    flags: Vec<String>,
    _lock: File,
}

/// A process with its log.
struct Component {
    name: String,
    log: PathBuf,
    /// `None` while it is stopped on purpose.
    process: Option<Supervised>,
}

struct ApiServer {
    component: Component,
    port: u16,
    kubeconfig: PathBuf,
    audit_log: PathBuf,
}

impl ControlPlane {
    /// Builds what is missing, starts everything, and returns once every API server is ready for any request.
    ///
    /// # Errors
    /// A directory that is in use or holds something else; a failing build; a component that ends before it is ready,
    /// with the end of its log.
    pub async fn start(options: Options) -> Result<Self> {
        let Options { dir, apiservers, kubernetes, apiserver_flags: flags } = options;
        ensure!(apiservers > 0, "at least one API server is needed");
        let kubernetes = kubernetes.map_or_else(Kubernetes::newest, Ok)?;
        let (dir, lock) = claim(&dir, &kubernetes)?;
        let binaries = Binaries::ensure(&kubernetes).await?;
        let pki = Pki::at(&dir.join("pki"))?;
        fs::write(dir.join("audit-policy.json"), format!("{:#}\n", flags::audit_policy()))?;

        let (etcd, port) = start_etcd(&binaries, &dir).await?;
        let etcd_url = format!("http://127.0.0.1:{port}");
        let raw = EtcdRaw::new(&etcd_url)?;
        let mut this =
            Self { servers: Vec::new(), etcd, raw, etcd_url, dir, binaries, pki, flags, _lock: lock };
        this.servers = try_join_all((0..apiservers).map(|index| this.new_server(index))).await?;
        let endpoints = json!({
            "etcd": [this.etcd_url],
            "apiservers": this.servers.iter().map(ApiServer::url).collect::<Vec<_>>(),
        });
        fs::write(this.dir.join("endpoints.json"), format!("{endpoints:#}\n"))?;
        Ok(this)
    }

    /// The directory, as an absolute path.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Raw keys and values of etcd.
    pub fn etcd(&self) -> &EtcdRaw {
        &self.raw
    }

    /// Where etcd listens: `http://127.0.0.1:PORT`.
    pub fn etcd_url(&self) -> &str {
        &self.etcd_url
    }

    /// Where the API server `index` listens: `https://127.0.0.1:PORT`, the same after a restart of that server.
    pub fn url(&self, index: usize) -> String {
        self.servers[index].url()
    }

    /// The admin's kubeconfig for the API server `index`: `DIR/kubeconfig`, `DIR/kubeconfig-1`, …
    pub fn kubeconfig(&self, index: usize) -> &Path {
        &self.servers[index].kubeconfig
    }

    /// What the API server `index` was asked, a JSON event per line: `DIR/audit.log`, `DIR/audit-1.log`, …
    ///
    /// An event is there before its request has been answered; the events of watches are there when they start and
    /// when they end.
    pub fn audit_log(&self, index: usize) -> &Path {
        &self.servers[index].audit_log
    }

    /// The admin's configuration for the API server `index`, without retries.
    pub async fn config(&self, index: usize) -> Result<Config> {
        kubeconfig::read(self.kubeconfig(index)).await
    }

    /// The admin's client of the API server `index`, without retries.
    pub async fn client(&self, index: usize) -> Result<Client> {
        Ok(Client::try_from(self.config(index).await?)?)
    }

    /// Writes a kubeconfig for the API server `index` and an existing service account, with a token for a day.
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
        let path = self.dir.join(format!("service-account-{namespace}-{name}-{index}.kubeconfig"));
        kubeconfig::write(&path, &self.url(index), &self.pki.ca, &kubeconfig::token_user(&token))?;
        Ok(path)
    }

    /// Ends the API server `index` as a rolling update would: it finishes its requests. Its port stays reserved to it
    /// by nothing but luck until [`Self::start_apiserver`].
    pub async fn stop_apiserver(&mut self, index: usize) -> Result<()> {
        match self.servers[index].component.process.take() {
            Some(process) => process.terminate(STOP_GRACE).await,
            None => Ok(()),
        }
    }

    /// Ends the API server `index` as a crash would.
    pub fn kill_apiserver(&mut self, index: usize) {
        self.servers[index].component.process = None;
    }

    /// Starts a stopped API server again, at the same address, and waits until it is ready.
    pub async fn start_apiserver(&mut self, index: usize) -> Result<()> {
        ensure!(self.servers[index].component.process.is_none(), "API server {index} has not been stopped");
        let mut server = self.describe_server(index, self.servers[index].port);
        self.launch_server(&mut server).await?;
        self.servers[index] = server;
        Ok(())
    }

    /// Stops the API server `index` in its tracks: connections stay open and nothing is answered.
    pub fn pause_apiserver(&mut self, index: usize) {
        self.signal(index, "STOP");
    }

    /// Lets a paused API server go on.
    pub fn resume_apiserver(&mut self, index: usize) {
        self.signal(index, "CONT");
    }

    /// Fails, with the end of its log, if a component has ended that nobody stopped.
    pub fn check(&mut self) -> Result<()> {
        let servers = self.servers.iter_mut().map(|server| &mut server.component);
        servers.chain([&mut self.etcd]).try_for_each(Component::check)
    }

    fn signal(&mut self, index: usize, signal: &str) {
        if let Some(process) = &mut self.servers[index].component.process {
            process.signal(signal);
        }
    }

    /// Starts a server on a free port.
    async fn new_server(&self, index: usize) -> Result<ApiServer> {
        let mut tries = 1;
        loop {
            let mut server = self.describe_server(index, free_port()?);
            match self.launch_server(&mut server).await {
                Err(_) if tries < PORT_TRIES && server.component.lost_its_port() => tries += 1,
                result => return result.map(|()| server),
            }
        }
    }

    fn describe_server(&self, index: usize, port: u16) -> ApiServer {
        let suffix = if index == 0 { String::new() } else { format!("-{index}") };
        ApiServer {
            component: Component::new(&format!("kube-apiserver{suffix}"), &self.dir),
            port,
            kubeconfig: self.dir.join(format!("kubeconfig{suffix}")),
            audit_log: self.dir.join(format!("audit{suffix}.log")),
        }
    }

    async fn launch_server(&self, server: &mut ApiServer) -> Result<()> {
        let user = kubeconfig::certificate_user(&self.pki.admin)?;
        kubeconfig::write(&server.kubeconfig, &server.url(), &self.pki.ca, &user)?;
        let command = flags::ApiServer {
            program: &self.binaries.kube_apiserver,
            pki: &self.pki,
            etcd: &self.etcd_url,
            port: server.port,
            audit_policy: &self.dir.join("audit-policy.json"),
            audit_log: &server.audit_log,
            extra: &self.flags,
        }
        .command();
        let client = Client::try_from(kubeconfig::read(&server.kubeconfig).await?)?;
        server.component.process = Some(Supervised::spawn_logged(&command, &server.component.log)?);
        server.component.until(|| serves(client.clone())).await
    }
}

impl ApiServer {
    fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }
}

impl Component {
    fn new(name: &str, dir: &Path) -> Self {
        Self { name: name.to_owned(), log: dir.join(format!("{name}.log")), process: None }
    }

    fn check(&mut self) -> Result<()> {
        let Some(process) = &mut self.process else { return Ok(()) };
        let Some(status) = process.ended()? else { return Ok(()) };
        bail!("{} ended with {status}; the end of {}:\n{}", self.name, self.log.display(), self.tail())
    }

    /// Waits until `ready` says so, or the process ends.
    async fn until<F: Future<Output = bool>>(&mut self, ready: impl Fn() -> F) -> Result<()> {
        let start = Instant::now();
        loop {
            self.check()?;
            if timeout(Duration::from_secs(5), ready()).await.unwrap_or(false) {
                return Ok(());
            }
            if start.elapsed() > START_LIMIT {
                let limit = START_LIMIT.as_secs();
                bail!(
                    "{} was not ready after {limit} s; the end of {}:\n{}",
                    self.name,
                    self.log.display(),
                    self.tail()
                );
            }
            sleep(POLL).await;
        }
    }

    fn tail(&self) -> String {
        let log = fs::read(&self.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<_> = log.lines().collect();
        lines[lines.len().saturating_sub(TAIL)..].join("\n")
    }

    fn lost_its_port(&self) -> bool {
        self.tail().contains("address already in use")
    }
}

/// Makes the directory ours: absolute, locked, and marked with the release whose data it holds.
fn claim(dir: &Path, kubernetes: &Kubernetes) -> Result<(PathBuf, File)> {
    fs::create_dir_all(dir).with_context(|| format!("create {}", dir.display()))?;
    let dir = dir.canonicalize().with_context(|| format!("find {}", dir.display()))?;
    let shown = dir.display();
    let marker = dir.join("kubernetes-release");
    if marker.exists() {
        let release = fs::read_to_string(&marker).with_context(|| format!("read {}", marker.display()))?;
        let held = Kubernetes::parse(release.trim())
            .with_context(|| format!("{} holds no release", marker.display()))?;
        ensure!(
            held <= *kubernetes,
            "{shown} holds the data of Kubernetes {held}, which {kubernetes} may not understand"
        );
    } else {
        let empty = fs::read_dir(&dir).with_context(|| format!("read {shown}"))?.next().is_none();
        ensure!(empty, "{shown} is not empty and not the directory of a control plane; choose another");
    }
    let lock = File::create(dir.join("lock")).with_context(|| format!("lock {shown}"))?;
    lock.try_lock().with_context(|| format!("{shown} is in use by another control plane"))?;
    fs::write(&marker, format!("{kubernetes}\n")).with_context(|| format!("write {}", marker.display()))?;
    Ok((dir, lock))
}

async fn start_etcd(binaries: &Binaries, dir: &Path) -> Result<(Component, u16)> {
    let mut tries = 1;
    loop {
        let port = free_port()?;
        let raw = EtcdRaw::new(&format!("http://127.0.0.1:{port}"))?;
        let mut etcd = Component::new("etcd", dir);
        let command = flags::etcd(&binaries.etcd, &dir.join("etcd"), port);
        etcd.process = Some(Supervised::spawn_logged(&command, &etcd.log)?);
        match etcd.until(|| async { raw.get("/").await.is_ok() }).await {
            Err(_) if tries < PORT_TRIES && etcd.lost_its_port() => tries += 1,
            result => return result.map(|()| (etcd, port)),
        }
    }
}

/// Whether an API server has finished all its start-up work, the namespace `default` included.
async fn serves(client: Client) -> bool {
    let readyz = http::Request::get("/readyz").body(Vec::new());
    let Ok(readyz) = readyz else { return false };
    client.request_text(readyz).await.is_ok() && Api::<Namespace>::all(client).get("default").await.is_ok()
}

fn free_port() -> Result<u16> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).context("find a free port")?;
    Ok(listener.local_addr()?.port())
}
