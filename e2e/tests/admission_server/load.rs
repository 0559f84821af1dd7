//! Requests that come all the time, each of which must be answered by the schema; and connections of a client
//! that trusts the CA in the webhooks.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::cluster::{Answer, Cluster, GUARD, eventually};
use k8s_openapi::ByteString;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::{WEBHOOKS, bad, dry, good, machine};

/// How many ask at once.
const CLIENTS: usize = 3;
/// Between two connections, so that they are not all that the machine does.
const PAUSE: Duration = Duration::from_millis(50);

/// Clients that ask until they are ended.
pub(crate) struct Load {
    clients: JoinSet<Result<()>>,
    over: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
}

impl Load {
    /// Begins to ask, where webhooks have `failurePolicy: Fail`. Connections are made to `address`, by a
    /// client that trusts the CA in the webhooks.
    pub(crate) fn start(cluster: &Cluster, address: SocketAddr) -> Self {
        let mut load = Self { clients: JoinSet::new(), over: Arc::default(), answered: Arc::default() };
        for _ in 0..CLIENTS {
            let (cluster, over, answered) = (cluster.clone(), load.over.clone(), load.answered.clone());
            load.clients.spawn(async move {
                while !over.load(Ordering::Relaxed) {
                    let answer = dry(&cluster, &machine("load", good())).await?;
                    ensure!(answer.code == 201 || is_late(&answer), "{}: {}", answer.code, answer.body);
                    let answer = dry(&cluster, &machine("load", bad())).await?;
                    let is_judged = answer.code == 422 && answer.body["reason"] == "Invalid";
                    ensure!(is_judged || is_late(&answer), "{}: {}", answer.code, answer.body);
                    answered.fetch_add(usize::from(is_judged), Ordering::Relaxed);
                }
                Ok(())
            });
        }
        let (cluster, over) = (cluster.clone(), load.over.clone());
        load.clients.spawn(async move {
            while !over.load(Ordering::Relaxed) {
                connect(&cluster, address).await?;
                sleep(PAUSE).await;
            }
            Ok(())
        });
        load
    }

    /// Waits until some more requests have been answered, since now.
    pub(crate) async fn goes_on(&self) -> Result<()> {
        let before = self.answered.load(Ordering::Relaxed);
        eventually(GUARD, "requests are answered", async || {
            Ok((self.answered.load(Ordering::Relaxed) > before + 2 * CLIENTS).then_some(()))
        })
        .await
    }

    /// Ends, and fails if a request has failed.
    pub(crate) async fn end(mut self) -> Result<()> {
        self.over.store(true, Ordering::Relaxed);
        while let Some(ended) = self.clients.join_next().await {
            ended??;
        }
        Ok(())
    }
}

/// Whether a request took longer than a webhook may: the machine may be as slow as that.
fn is_late(answer: &Answer) -> bool {
    let message = answer.body["message"].as_str().unwrap_or_default();
    // The last is an API server's text for 504.
    let late = ["context deadline exceeded", "handshake timeout", "unable to return a response in the time"];
    late.iter().any(|words| message.contains(words))
}

/// Sends an empty object to a path over HTTP/1.1; everything that comes back.
pub(crate) async fn post(cluster: &Cluster, address: SocketAddr, path: &str) -> Result<String> {
    let mut stream = connect(cluster, address).await?;
    let head = "Host: etch\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: 2";
    stream.write_all(format!("POST {path} HTTP/1.1\r\n{head}\r\n\r\n{{}}").as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

/// Connects as an API server does that knows the present webhooks.
async fn connect(cluster: &Cluster, address: SocketAddr) -> Result<TlsStream<TcpStream>> {
    let webhooks = cluster.get(WEBHOOKS[1]).await?["webhooks"].take();
    let bundle: ByteString = serde_json::from_value(webhooks[0]["clientConfig"]["caBundle"].clone())?;
    let mut roots = RootCertStore::empty();
    for authority in CertificateDer::pem_slice_iter(&bundle.0) {
        roots.add(authority.ok().context("an authority")?)?;
    }
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let stream = TcpStream::connect(address).await?;
    let connector = TlsConnector::from(Arc::new(config));
    let name = ServerName::IpAddress(address.ip().into());
    connector.connect(name, stream).await.context("a connection by who trusts the webhooks")
}

/// What a Secret holds under a key.
pub(crate) fn held(secret: &Value, key: &str) -> Result<Vec<u8>> {
    let value: ByteString = serde_json::from_value(secret["data"][key].clone()).context("base64")?;
    Ok(value.0)
}
