//! Replicas behind a stand-in for a Service: a rolling upgrade, in which each of them ends while requests
//! come all the time.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::cluster::{GUARD, eventually};
use e2e::operator::Operator;
use e2e::ports::free_port;
use e2e::probe;
use parking_lot::Mutex;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::load::Load;
use crate::stage::{Stage, apply_schema, condition};
use crate::{denied_soon, strict};

/// How often the test asks which replicas are ready; kubelets ask every five seconds, and a replica that ends
/// serves for as long.
const LOOK: Duration = Duration::from_millis(500);
/// How long a replica may take to report that it is ready.
const PATIENCE: Duration = Duration::from_secs(5);

#[tokio::test(flavor = "multi_thread")]
async fn replicas_are_replaced_one_by_one_and_no_request_fails() -> Result<()> {
    let stage = Stage::start().await?;
    let cluster = &stage.scene.cluster;
    let mut service = Service::start(&stage).await?;
    let mut replicas = vec![service.replica(&stage, "0").await?, service.replica(&stage, "1").await?];
    apply_schema(cluster, "aws", strict).await?;
    condition(cluster, "aws", "Serving", "Served").await?;
    denied_soon(cluster).await?;
    let load = Load::start(cluster, stage.serving.address);
    for next in ["2", "3"] {
        load.goes_on().await?;
        replicas.push(service.replica(&stage, next).await?);
        replicas.remove(0).stop().await?;
        load.goes_on().await?;
    }
    ensure!(service.has_served_by().len() == 4, "by {:?} only", service.has_served_by());
    load.end().await
}

/// Takes connections at the stage's address, and passes each to a replica that is ready.
struct Service {
    replicas: Arc<Mutex<Vec<Endpoint>>>,
    _tasks: JoinSet<()>,
}

#[derive(Clone)]
struct Endpoint {
    name: String,
    health: u16,
    address: SocketAddr,
    is_ready: bool,
    connections: usize,
}

impl Service {
    async fn start(stage: &Stage) -> Result<Self> {
        let replicas: Arc<Mutex<Vec<Endpoint>>> = Arc::default();
        let listener = TcpListener::bind(stage.serving.address).await?;
        let (looked_at, used) = (replicas.clone(), replicas.clone());
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            loop {
                for endpoint in all(&looked_at) {
                    let ready = timeout(PATIENCE, probe::is_ok(endpoint.health, "/readyz"));
                    let is_ready = ready.await.unwrap_or(false);
                    change(&looked_at, &endpoint.name, |endpoint| endpoint.is_ready = is_ready);
                }
                tokio::time::sleep(LOOK).await;
            }
        });
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((mut client, _)) = listener.accept().await {
                let ready = all(&used).into_iter().filter(|endpoint| endpoint.is_ready);
                let Some(endpoint) = ready.min_by_key(|endpoint| endpoint.connections) else { continue };
                change(&used, &endpoint.name, |endpoint| endpoint.connections += 1);
                connections.spawn(async move {
                    if let Ok(mut replica) = TcpStream::connect(endpoint.address).await {
                        // Client and replica check how a connection ends; this only forwards.
                        drop(copy_bidirectional(&mut client, &mut replica).await);
                    }
                });
            }
        });
        Ok(Self { replicas, _tasks: tasks })
    }

    /// Starts a replica, and waits until connections may be handed to it.
    async fn replica(&mut self, stage: &Stage, name: &str) -> Result<Operator> {
        let local = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
        let (health, address) = (free_port()?, local(free_port()?));
        let operator = stage.scene.replica(
            name,
            &[
                &format!("--listen=127.0.0.1:{health}"),
                &format!("--admission-listen={address}"),
                &format!("--admission-url={}", stage.serving.url()),
                &stage.serving.mounted(),
            ],
        )?;
        let endpoint = Endpoint { name: name.to_owned(), health, address, is_ready: false, connections: 0 };
        self.replicas.lock().push(endpoint);
        eventually(GUARD, "the replica is ready", async || {
            let endpoints = all(&self.replicas);
            Ok(endpoints.iter().any(|endpoint| endpoint.name == name && endpoint.is_ready).then_some(()))
        })
        .await?;
        Ok(operator)
    }

    /// The replicas that have got a connection.
    fn has_served_by(&self) -> Vec<String> {
        let used = all(&self.replicas).into_iter().filter(|endpoint| endpoint.connections > 0);
        used.map(|endpoint| endpoint.name).collect()
    }
}

fn all(replicas: &Mutex<Vec<Endpoint>>) -> Vec<Endpoint> {
    replicas.lock().clone()
}

fn change(replicas: &Mutex<Vec<Endpoint>>, name: &str, change: impl FnOnce(&mut Endpoint)) {
    if let Some(endpoint) = replicas.lock().iter_mut().find(|endpoint| endpoint.name == name) {
        change(endpoint);
    }
}
