//! An API server made of a script: each request is logged, and answered as the script has it. What it knows
//! about Kubernetes is in the scripts.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use etch::cluster::Cluster;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream, StreamExt};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::Instant;

/// A request as the server saw it.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: BTreeMap<String, String>,
    pub(crate) media_type: String,
    /// What the answer may be.
    pub(crate) accepts: String,
    /// The body as JSON; null where there is none.
    pub(crate) body: Value,
    pub(crate) at: Instant,
}

/// What a server may do with a request.
pub(crate) enum Answer {
    /// An answer with its whole body.
    Reply { code: u16, headers: Vec<(&'static str, String)>, body: Vec<u8> },
    /// An answer of success whose body comes as it comes; an error breaks it off.
    Stream(BoxStream<'static, io::Result<Bytes>>),
    /// No answer, ever.
    Hang,
    /// No connection.
    Refuse,
    /// An answer that takes its time.
    After(Duration, Box<Answer>),
}

/// Everything that was asked of a server, in order.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<Request>>>);

/// A client that asks more often than this is in a loop, and gets no more answers: so that the clock goes on
/// and the test can report it.
const PATIENCE: usize = 40_000;

type Script = Arc<dyn Fn(&Request) -> Answer + Send + Sync>;
type Reply = http::Response<StreamBody<BoxStream<'static, io::Result<Frame<Bytes>>>>>;

#[derive(Clone)]
struct Scripted {
    script: Script,
    log: Log,
}

/// A cluster whose API server is `script`, and the log of what it is asked.
pub(crate) fn serve(script: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> (Cluster, Log) {
    let log = Log::default();
    let service = Scripted { script: Arc::new(script), log: log.clone() };
    (Cluster::new(kube::Client::new(service, "default"), Arc::default()), log)
}

impl Request {
    pub(crate) fn is_watch(&self) -> bool {
        self.query.contains_key("watch")
    }

    pub(crate) fn is_list(&self) -> bool {
        self.query.contains_key("limit")
    }

    /// Whether it asks for metadata alone.
    pub(crate) fn is_for_metadata(&self) -> bool {
        self.accepts.contains("as=PartialObjectMetadata")
    }

    /// `PATCH apply`, `PATCH merge`, `PATCH json`, or the method alone.
    pub(crate) fn verb(&self) -> String {
        match self.media_type.as_str() {
            "application/apply-patch+yaml" => "PATCH apply".to_owned(),
            "application/merge-patch+json" => "PATCH merge".to_owned(),
            "application/json-patch+json" => "PATCH json".to_owned(),
            _ => self.method.clone(),
        }
    }

    /// The value that a JSON patch puts at a place; null where it puts none.
    pub(crate) fn put(&self, path: &str) -> Value {
        let mut operations = self.body.as_array().into_iter().flatten();
        let put = operations.find(|operation| operation["op"] == "replace" && operation["path"] == path);
        put.map_or(Value::Null, |operation| operation["value"].clone())
    }

    pub(crate) fn asked(&self, parameter: &str) -> &str {
        self.query.get(parameter).map_or("", String::as_str)
    }
}

impl Log {
    /// The requests that `which` picks.
    pub(crate) fn of(&self, which: impl Fn(&Request) -> bool) -> Vec<Request> {
        self.all().into_iter().filter(which).collect()
    }

    pub(crate) fn all(&self) -> Vec<Request> {
        self.0.lock().expect("no test panics here").clone()
    }

    pub(crate) fn count(&self, which: impl Fn(&Request) -> bool) -> usize {
        self.of(which).len()
    }
}

/// The waits between requests.
pub(crate) fn gaps(requests: &[Request]) -> Vec<Duration> {
    requests.windows(2).map(|pair| pair[1].at - pair[0].at).collect()
}

impl Answer {
    pub(crate) fn json(body: Value) -> Self {
        Self::text(200, body.to_string())
    }

    pub(crate) fn text(code: u16, body: impl Into<Vec<u8>>) -> Self {
        Self::Reply { code, headers: Vec::new(), body: body.into() }
    }

    /// A `Status` with this code, reason and message.
    pub(crate) fn status(code: u16, reason: &str, message: &str) -> Self {
        Self::text(code, status(code, reason, message).to_string())
    }

    /// The answer of a server that is not ready.
    pub(crate) fn unavailable() -> Self {
        Self::status(503, "ServiceUnavailable", "no")
    }

    /// The refusal of an object that is not valid at one field.
    pub(crate) fn invalid(message: &str) -> Self {
        let mut status = status(422, "Invalid", message);
        status["details"] = json!({ "causes": [{ "reason": "FieldValueInvalid", "field": "spec.size" }] });
        Self::text(422, status.to_string())
    }

    pub(crate) fn with_header(self, name: &'static str, value: &str) -> Self {
        match self {
            Self::Reply { code, mut headers, body } => {
                headers.push((name, value.to_owned()));
                Self::Reply { code, headers, body }
            }
            other => other,
        }
    }

    pub(crate) fn after(self, wait: Duration) -> Self {
        Self::After(wait, Box::new(self))
    }

    /// A watch that sends these events and is then closed in good order.
    pub(crate) fn events(events: impl IntoIterator<Item = Value>) -> Self {
        Self::Stream(lines(events).boxed())
    }

    /// A watch that sends these events and is then silent for ever.
    pub(crate) fn open_watch(events: impl IntoIterator<Item = Value>) -> Self {
        Self::Stream(lines(events).chain(stream::pending()).boxed())
    }

    /// These pieces, and then the connection breaks.
    pub(crate) fn broken(pieces: impl IntoIterator<Item = &'static str>) -> Self {
        let pieces: Vec<io::Result<Bytes>> =
            pieces.into_iter().map(|piece| Ok(Bytes::from_static(piece.as_bytes()))).collect();
        let cut = Err(io::Error::from(io::ErrorKind::ConnectionReset));
        Self::Stream(stream::iter(pieces.into_iter().chain([cut])).boxed())
    }
}

/// A `Status` object.
pub(crate) fn status(code: u16, reason: &str, message: &str) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "reason": reason, "message": message, "code": code,
    })
}

/// An event of a watch.
pub(crate) fn event(kind: &str, object: Value) -> Value {
    json!({ "type": kind, "object": object })
}

/// An event as Go writes it: first the type.
pub(crate) fn line(event: &Value) -> Bytes {
    Bytes::from(format!("{{\"type\":{},\"object\":{}}}\n", event["type"], event["object"]))
}

fn lines(
    events: impl IntoIterator<Item = Value>,
) -> impl stream::Stream<Item = io::Result<Bytes>> + Send + 'static {
    let lines: Vec<_> = events.into_iter().map(|event| Ok(line(&event))).collect();
    stream::iter(lines)
}

impl tower::Service<http::Request<Body>> for Scripted {
    type Response = Reply;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Reply>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let Self { script, log } = self.clone();
        Box::pin(async move {
            let request = read(request).await;
            let asked = {
                let mut log = log.0.lock().expect("no test panics here");
                log.push(request.clone());
                log.len()
            };
            let mut answer = if asked < PATIENCE { script(&request) } else { Answer::Hang };
            loop {
                let body = match answer {
                    Answer::Reply { code, headers, body } => {
                        let body = stream::iter([Ok(Frame::data(Bytes::from(body)))]).boxed();
                        let mut reply = http::Response::builder().status(code);
                        for (name, value) in headers {
                            reply = reply.header(name, value);
                        }
                        return Ok(reply.body(StreamBody::new(body)).expect("a response"));
                    }
                    Answer::Stream(pieces) => pieces.map(|piece| piece.map(Frame::data)).boxed(),
                    Answer::Hang => std::future::pending().await,
                    Answer::Refuse => return Err(io::Error::from(io::ErrorKind::ConnectionRefused)),
                    Answer::After(wait, later) => {
                        tokio::time::sleep(wait).await;
                        answer = *later;
                        continue;
                    }
                };
                return Ok(http::Response::new(StreamBody::new(body)));
            }
        })
    }
}

async fn read(request: http::Request<Body>) -> Request {
    let (parts, body) = request.into_parts();
    let bytes = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let pairs = parts.uri.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
    let header = |name| parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    Request {
        method: parts.method.to_string(),
        path: parts.uri.path().to_owned(),
        query: pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        media_type: header("content-type").to_owned(),
        accepts: header("accept").to_owned(),
        body: serde_json::from_slice(&bytes).unwrap_or_default(),
        at: Instant::now(),
    }
}
