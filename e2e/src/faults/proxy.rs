//! The proxy: it passes requests on with the operator's credentials, unless a rule sets a fault for them, and
//! records them. It changes no request.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{io, mem};

use anyhow::{Context, Result};
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use http::{HeaderMap, HeaderName, Request, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::Client;
use kube::client::Body;
use parking_lot::{Mutex, MutexGuard};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Notify, oneshot};
use tokio::task::{JoinHandle, JoinSet};

use super::rule::{Fault, Rule, Target, Verb};
use super::stream::{Pieces, spoilt, watched};
use crate::control_plane::read_kubeconfig;

/// What an answer needs of what a request had.
const PASSED: [HeaderName; 2] = [header::ACCEPT, header::CONTENT_TYPE];

/// A request that came by.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Where it went.
    pub target: Target,
    /// The id of the rule that matched it, and the outcome.
    pub fault: Option<(usize, Fault)>,
    /// How far it came.
    pub progress: Progress,
    /// What the server has sent, where it is a watch.
    events: Arc<AtomicUsize>,
}

/// How far a request came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The server has not received it.
    Withheld,
    /// The server may have done it, and the client does not know.
    Sent,
    /// The client got the server's answer.
    Answered,
}

/// A request that waits until the test releases it; released when dropped.
#[derive(Debug)]
pub struct Held {
    /// The id of the rule that holds it.
    pub rule: usize,
    /// Where it goes.
    pub target: Target,
    /// Its end is what releases the request.
    _released: oneshot::Sender<Infallible>,
}

impl Seen {
    /// How many events the server has sent, where it is a watch.
    pub fn events(&self) -> usize {
        self.events.load(Ordering::Relaxed)
    }
}

/// A proxy in front of one API server; gone when dropped.
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    serving: JoinHandle<()>,
}

struct Shared {
    client: Client,
    state: Mutex<State>,
    /// The test is to kill the operator.
    kill: Notify,
    holding: UnboundedSender<Held>,
    held: tokio::sync::Mutex<UnboundedReceiver<Held>>,
}

#[derive(Default)]
struct State {
    /// With the number of requests that fitted so far.
    rules: Vec<(Rule, usize)>,
    seen: Vec<Seen>,
}

type Answer = Response<StreamBody<futures::stream::BoxStream<'static, io::Result<Frame<Bytes>>>>>;

impl Proxy {
    /// Starts a proxy to the server of a kubeconfig, with its credentials.
    ///
    /// # Errors
    /// The kubeconfig cannot be used, or there is no free port.
    pub async fn start(kubeconfig: &Path) -> Result<Self> {
        let mut config = read_kubeconfig(kubeconfig).await?;
        config.read_timeout = None;
        let (holding, held) = unbounded_channel();
        let shared = Arc::new(Shared {
            client: Client::try_from(config)?,
            state: Mutex::default(),
            kill: Notify::new(),
            holding,
            held: tokio::sync::Mutex::new(held),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let serving = tokio::spawn(serve(listener, Arc::clone(&shared)));
        Ok(Self { address, shared, serving })
    }

    /// Writes a kubeconfig for a client that is to go through the proxy.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write_kubeconfig(&self, path: &Path) -> Result<()> {
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "faults",
            "clusters": [{ "name": "faults", "cluster": { "server": format!("http://{}", self.address) } }],
            "users": [{ "name": "faults", "user": {} }],
            "contexts": [{ "name": "faults", "context": { "cluster": "faults", "user": "faults" } }],
        });
        std::fs::write(path, config.to_string()).with_context(|| path.display().to_string())
    }

    /// Adds rules to those in force; of those that fit a request the first one counts.
    pub fn add(&self, rules: impl IntoIterator<Item = Rule>) {
        self.shared.lock().rules.extend(rules.into_iter().map(|rule| (rule, 0)));
    }

    /// Ends all faults.
    pub fn heal(&self) {
        self.shared.lock().rules.clear();
    }

    /// What came by, in order.
    pub fn seen(&self) -> Vec<Seen> {
        self.shared.lock().seen.clone()
    }

    /// Looks at what came by, in order.
    pub fn look<T>(&self, look: impl FnOnce(&[Seen]) -> T) -> T {
        look(&self.shared.lock().seen)
    }

    /// Forgets what came by.
    pub fn forget(&self) {
        self.shared.lock().seen.clear();
    }

    /// Waits until a rule holds a request.
    pub async fn held(&self) -> Held {
        match self.shared.held.lock().await.recv().await {
            Some(held) => held,
            // The sender lives as long as the proxy.
            None => std::future::pending().await,
        }
    }

    /// Waits until a rule wants the operator to be killed.
    pub async fn kill_wanted(&self) {
        self.shared.kill.notified().await;
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Records a request; its number, and what happens to it.
    fn enter(&self, target: &Target) -> Entered {
        let mut state = self.lock();
        let mut fault = None;
        for (rule, count) in state.rules.iter_mut().filter(|(rule, _)| rule.fits(target)) {
            let befalls = rule.nth.contains(count);
            *count += 1;
            if befalls && fault.is_none() {
                fault = Some((rule.id, rule.fault));
            }
        }
        let events = Arc::default();
        let progress = Progress::Withheld;
        state.seen.push(Seen { target: target.clone(), fault, progress, events: Arc::clone(&events) });
        Entered { number: state.seen.len() - 1, fault, events }
    }

    /// Notes how far a request came; nothing where it was forgotten meanwhile.
    fn note(&self, entered: Option<&Entered>, progress: Progress) {
        let Some(entered) = entered else { return };
        // Forgotten meanwhile, its number may be another's.
        if let Some(seen) =
            self.lock().seen.get_mut(entered.number).filter(|seen| Arc::ptr_eq(&seen.events, &entered.events))
        {
            seen.progress = progress;
        }
    }

    /// Waits until the test has released a request.
    async fn hold(&self, rule: usize, target: Option<&Target>) {
        let (Some(target), (released, release)) = (target.cloned(), oneshot::channel()) else { return };
        if self.holding.send(Held { rule, target, _released: released }).is_ok() {
            // Nothing is ever sent: the sender's end is the sign.
            let _ = release.await;
        }
    }
}

/// A request on its way.
struct Entered {
    number: usize,
    fault: Option<(usize, Fault)>,
    events: Arc<AtomicUsize>,
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    // Ends with this task, and all connections with it.
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(converse(stream, Arc::clone(&shared)));
        while connections.try_join_next().is_some() {}
    }
}

async fn converse(stream: TcpStream, shared: Arc<Shared>) {
    let service = service_fn(|request| {
        let shared = Arc::clone(&shared);
        async move { pass(request, &shared).await.map_err(io::Error::other) }
    });
    // A client that was killed, and an answer that was to be lost, are what this is for.
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

/// Passes a request on; an error closes the connection.
async fn pass(request: Request<Incoming>, shared: &Shared) -> Result<Answer> {
    let target = Target::of(request.method(), request.uri());
    let entered = target.as_ref().map(|target| shared.enter(target));
    let entered = entered.as_ref();
    let (rule, fault) = entered.and_then(|entered| entered.fault).unzip();
    let is_watch = target.as_ref().is_some_and(|target| target.verb == Verb::Watch);
    match fault {
        Some(Fault::Refuse) => anyhow::bail!("refused"),
        Some(Fault::Answer { code, reason, retry_after }) => return refusal(code, reason, retry_after),
        Some(Fault::DelayRequest(time)) => tokio::time::sleep(time).await,
        Some(Fault::Hold) => shared.hold(rule.unwrap_or_default(), target.as_ref()).await,
        Some(Fault::Stall) => return std::future::pending().await,
        Some(Fault::KillBefore) => {
            shared.kill.notify_one();
            return std::future::pending().await;
        }
        _ => {}
    }
    let (mut head, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let given = mem::take(&mut head.headers);
    head.headers =
        PASSED.into_iter().filter_map(|name| Some((name.clone(), given.get(name)?.clone()))).collect();
    let request = Request::from_parts(head, Body::from(body));
    shared.note(entered, Progress::Sent);
    let response = shared.client.send(request).await?;
    let (head, body) = response.into_parts();
    let is_open = is_watch && head.status == StatusCode::OK;
    let pieces: Pieces = if is_open {
        let body = TryStreamExt::map_err(body.into_data_stream(), io::Error::other).boxed();
        let events = entered.map(|entered| Arc::clone(&entered.events)).unwrap_or_default();
        watched(fault, body, events)
    } else {
        // What is done is done when the answer is there.
        spoilt(fault, body.collect().await?.to_bytes())
    };
    match fault {
        Some(Fault::LoseAnswer) => anyhow::bail!("the answer is lost"),
        Some(Fault::DelayAnswer(time)) => tokio::time::sleep(time).await,
        Some(Fault::HoldAnswer) => shared.hold(rule.unwrap_or_default(), target.as_ref()).await,
        Some(Fault::StallAnswer) => return std::future::pending().await,
        Some(Fault::KillAfter) => {
            shared.kill.notify_one();
            return std::future::pending().await;
        }
        _ => {}
    }
    if !matches!(fault, Some(Fault::CutAnswer | Fault::GarbleAnswer)) {
        shared.note(entered, Progress::Answered);
    }
    let mut answer = Response::new(StreamBody::new(pieces.map_ok(Frame::data).boxed()));
    *answer.status_mut() = head.status;
    *answer.headers_mut() = kept(&head.headers);
    Ok(answer)
}

/// The headers of an answer that hold for whatever its body becomes.
fn kept(headers: &HeaderMap) -> HeaderMap {
    let names = [header::CONTENT_TYPE, header::RETRY_AFTER, header::WARNING];
    names.into_iter().filter_map(|name| Some((name.clone(), headers.get(name)?.clone()))).collect()
}

fn refusal(code: u16, reason: &str, retry_after: Option<u32>) -> Result<Answer> {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "code": code, "reason": reason, "message": "a fault",
    });
    let pieces = spoilt(None, Bytes::from(status.to_string()));
    let mut answer = Response::builder().status(code).header(header::CONTENT_TYPE, "application/json");
    if let Some(seconds) = retry_after {
        answer = answer.header(header::RETRY_AFTER, seconds);
    }
    Ok(answer.body(StreamBody::new(pieces.map_ok(Frame::data).boxed()))?)
}
