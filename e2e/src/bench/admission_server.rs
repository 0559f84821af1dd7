//! How many reviews the admission server answers over HTTPS, how soon, and in how much memory; beside an
//! empty handler that is asked the same by the same client.
//!
//! The server is a process of its own, so that its memory is not the client's; both share the machine.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use axum::Router;
use axum::routing::post;
use bytes::Bytes;
use etch::metrics::Metrics;
use etch::server::admission::{
    AcceptedKeys, AdmissionHandler, Certificates, References, Served, ServedSchemas, serve,
};
use etch::source;
use etch_admission::{KEY_BYTES, PathKey};
use futures::FutureExt;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{Instant, sleep};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::admission::{facts, machine};
use super::figures::{median, percentile, rounded};
use super::steady;
use crate::usage::peak_memory;

/// Connections, and requests that are under way on each of them: API servers multiplex over few.
const CONNECTIONS: usize = 4;
const STREAMS: usize = 8;
/// How long each of the two is asked as much as it can answer, how often in turn, and how long before that
/// counts.
const ROUND: Duration = Duration::from_secs(4);
const ROUNDS: usize = 3;
const WARM_UP: Duration = Duration::from_secs(1);
/// How many requests begin in a second, while it is measured how long each takes, and for how long.
const STEADY: u32 = 500;
const STEADILY: Duration = Duration::from_secs(20);

/// What is wanted.
pub const WANTED: Wanted = Wanted { per_second: 5_000, p99: Duration::from_millis(2), peak_rss: 64 << 20 };

/// What would be good.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Reviews in a second, at least.
    pub per_second: u64,
    /// How long 99 of 100 take at most, at 500 in a second.
    pub p99: Duration,
    /// Bytes at most.
    pub peak_rss: u64,
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// Which schema and object.
    pub name: &'static str,
    /// The size of the AdmissionReview.
    pub bytes: usize,
    /// Reviews in a second, the median of the rounds.
    pub per_second: u64,
    /// The same of an empty handler.
    pub empty_per_second: u64,
    /// The first by the second.
    pub ratio: f64,
    /// Milliseconds from when a request was due to its answer, at 500 in a second.
    pub p50_ms: f64,
    /// The same of 99 in 100.
    pub p99_ms: f64,
    /// The same of the empty handler.
    pub empty_p99_ms: f64,
    /// The most memory that the server ever had, in bytes.
    pub peak_rss: u64,
}

/// Who answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Side {
    /// The admission server.
    Etch,
    /// A handler that takes the body and does nothing.
    Empty,
}

/// How a server is reached, in the first line that it prints.
#[derive(Serialize, Deserialize)]
struct Address {
    address: SocketAddr,
    authority: String,
}

type Client = SendRequest<Full<Bytes>>;

impl Measured {
    /// Whether it is as wanted.
    pub fn is_good(&self) -> bool {
        self.per_second >= WANTED.per_second
            && self.p99_ms <= WANTED.p99.as_secs_f64() * 1e3
            && self.peak_rss <= WANTED.peak_rss
    }
}

/// Serves until standard input ends.
///
/// # Errors
/// The schema cannot be read, or no port be had.
pub async fn serve_side(side: Side) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(vec!["localhost".to_owned()])?;
    std::fs::write(folder.path().join("tls.crt"), cert.pem())?;
    std::fs::write(folder.path().join("tls.key"), signing_key.serialize_pem())?;
    let metrics = Arc::new(Metrics::default());
    let certificates = Certificates::new(metrics.clone());
    let tls = certificates.tls()?;
    let router = match side {
        Side::Etch => handler(metrics)?.router(),
        Side::Empty => Router::new().fallback(post(|_: Bytes| async {})),
    };
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = Address { address: listener.local_addr()?, authority: cert.pem() };
    let print = || {
        let mut output = io::stdout().lock();
        // If it cannot be written, the reader is gone: then standard input ends too.
        let _ = serde_json::to_writer(&mut output, &address);
        let _ = writeln!(output);
    };
    let printed = std::sync::Once::new();
    let keys = AcceptedKeys::default();
    keys.set(&[key()]);
    let over = async {
        drop(spawn_blocking(|| io::stdin().lock().read_to_end(&mut Vec::new())).await);
    };
    tokio::select! {
        () = serve(listener, tls, router, keys, over) => Ok(()),
        never = certificates.follow_folder(folder.path().to_owned(), || printed.call_once(print)) => match never {},
    }
}

/// What both paths begin with.
fn key() -> PathKey {
    PathKey::new([7; KEY_BYTES])
}

/// The admission server with the schema for AWS.
fn handler(metrics: Arc<Metrics>) -> Result<AdmissionHandler> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../yaml/machine-api/aws.yaml");
    let mut schemas = source::embedded_schemas(&[path], &mut io::empty())?;
    let schema = Arc::new(schemas.pop().context("a schema")?.schema);
    let serving = ServedSchemas::default();
    serving.set([("aws".to_owned(), Served { schema, facts: facts(), missing: Vec::new() })].into());
    Ok(AdmissionHandler::new(serving, References::new(|_| async { Some(Some(true)) }.boxed()), metrics))
}

/// Measures both, in turn.
///
/// # Errors
/// A server cannot be started, or a request has no good answer.
pub async fn measure() -> Result<Measured> {
    let body = Bytes::from(serde_json::to_vec(&admission_review())?);
    let (mut etch, mut empty) = (Server::start(Side::Etch).await?, Server::start(Side::Empty).await?);
    etch.warm_up(&body).await?;
    empty.warm_up(&body).await?;
    let (mut reviews, mut nothing) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        reviews.push(etch.as_many_as_it_can(&body, ROUND).await?);
        nothing.push(empty.as_many_as_it_can(&body, ROUND).await?);
    }
    let times = etch.steadily(&body).await?;
    let empty_times = empty.steadily(&body).await?;
    let (per_second, empty_per_second) = (median(&reviews), median(&nothing));
    Ok(Measured {
        name: "aws-machine",
        bytes: body.len(),
        per_second: per_second as u64,
        empty_per_second: empty_per_second as u64,
        ratio: rounded(per_second / empty_per_second, 2),
        p50_ms: rounded(percentile(&times, 50), 3),
        p99_ms: rounded(percentile(&times, 99), 3),
        empty_p99_ms: rounded(percentile(&empty_times, 99), 3),
        peak_rss: etch.peak_rss().context("its memory was never seen: this needs /proc")?,
    })
}

fn admission_review() -> Value {
    let resource = json!({ "group": "machine.openshift.io", "version": "v1beta1", "resource": "machines" });
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "705ab4f5-6393-11e8-b7cc-42010a800002", "operation": "CREATE", "name": "worker",
            "namespace": "openshift-machine-api", "resource": resource,
            "kind": { "group": "machine.openshift.io", "version": "v1beta1", "kind": "Machine" },
            "object": machine(),
        },
    })
}

/// A server in a process of its own, and connections to it.
struct Server {
    child: Child,
    clients: Vec<Client>,
}

impl Server {
    async fn start(side: Side) -> Result<Self> {
        let name = if side == Side::Etch { "etch" } else { "empty" };
        let mut child = Command::new(std::env::current_exe()?)
            .args(["admission-server", "--serve", name])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let mut line = String::new();
        let output = child.stdout.as_mut().context("its output is piped")?;
        BufReader::new(output).read_line(&mut line).await?;
        let address: Address = serde_json::from_str(&line).context("the address of a server")?;
        let mut clients = Vec::new();
        for _ in 0..CONNECTIONS {
            clients.push(connect(&address).await?);
        }
        Ok(Self { child, clients })
    }

    async fn warm_up(&mut self, body: &Bytes) -> Result<()> {
        self.as_many_as_it_can(body, WARM_UP).await.map(drop)
    }

    /// How many answers come in a second.
    async fn as_many_as_it_can(&mut self, body: &Bytes, long: Duration) -> Result<f64> {
        let begun = Instant::now();
        let mut asking = JoinSet::new();
        for stream in 0..CONNECTIONS * STREAMS {
            let (mut client, body) = (self.clients[stream % CONNECTIONS].clone(), body.clone());
            asking.spawn(async move {
                let mut count = 0_u64;
                while begun.elapsed() < long {
                    ask(&mut client, &body, count).await?;
                    count += 1;
                }
                anyhow::Ok(count)
            });
        }
        let mut sum = 0;
        while let Some(count) = asking.join_next().await {
            sum += count??;
        }
        Ok(sum as f64 / begun.elapsed().as_secs_f64())
    }

    /// How long each request takes, from when it was due, in milliseconds, the shortest first.
    async fn steadily(&mut self, body: &Bytes) -> Result<Vec<f64>> {
        sleep(WARM_UP).await;
        steady::times(STEADY, sleep(STEADILY), |number| {
            let (mut client, body) = (self.clients[number as usize % CONNECTIONS].clone(), body.clone());
            async move { ask(&mut client, &body, number).await }
        })
        .await
    }

    fn peak_rss(&self) -> Option<u64> {
        peak_memory(self.child.id()?).ok()
    }
}

async fn connect(address: &Address) -> Result<Client> {
    let mut roots = RootCertStore::empty();
    roots.add(PemObject::from_pem_slice(address.authority.as_bytes()).ok().context("an authority")?)?;
    let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let stream = TcpStream::connect(address.address).await?;
    stream.set_nodelay(true)?;
    let name = ServerName::try_from("localhost")?;
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
    let (client, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// Asks for defaults and for a verdict, in turn, as an API server does for each object.
async fn ask(client: &mut Client, body: &Bytes, number: u64) -> Result<()> {
    let path = if number.is_multiple_of(2) { "mutate" } else { "validate" };
    let key = key();
    let request = http::Request::post(format!("https://localhost/{}/{path}/aws", key.as_str()))
        .header("content-type", "application/json")
        .header("content-length", body.len())
        .body(Full::new(body.clone()))?;
    client.ready().await?;
    let answer = client.send_request(request).await?;
    ensure!(answer.status().is_success(), "{}", answer.status());
    answer.into_body().collect().await?;
    Ok(())
}
