//! A collector of traces on loopback that takes them, refuses them, or never answers.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use anyhow::Result;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use super::protobuf::Message;

/// A span as it was exported. Attributes are as text, whatever their type.
#[derive(Clone, Debug, Default)]
pub(crate) struct Span {
    pub(crate) trace: Vec<u8>,
    pub(crate) id: Vec<u8>,
    /// Empty where it has none.
    pub(crate) parent: Vec<u8>,
    pub(crate) name: String,
    pub(crate) attributes: BTreeMap<String, String>,
    /// What was logged meanwhile.
    pub(crate) events: Vec<String>,
    /// Whether its status is an error.
    pub(crate) failed: bool,
    /// The attributes of the process.
    pub(crate) resource: BTreeMap<String, String>,
}

/// What is done with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    Take,
    Refuse,
    /// No answer, ever.
    Hang,
}

/// A collector that serves for as long as the test's runtime.
pub(crate) struct Collector {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

struct State {
    manner: Manner,
    /// Requests so far.
    asked: usize,
    /// All that was sent, whether it was taken or not.
    sent: Vec<u8>,
    spans: Vec<Span>,
    /// What cannot be decoded.
    odd: Vec<String>,
}

impl Collector {
    pub(crate) async fn start(manner: Manner) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let state = State { manner, asked: 0, sent: Vec::new(), spans: Vec::new(), odd: Vec::new() };
        let state = Arc::new(Mutex::new(state));
        tokio::spawn(serve(listener, state.clone()));
        Ok(Self { address, state })
    }

    /// What `OTEL_EXPORTER_OTLP_ENDPOINT` is to be.
    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn behave(&self, manner: Manner) {
        lock(&self.state).manner = manner;
    }

    pub(crate) fn asked(&self) -> usize {
        lock(&self.state).asked
    }

    /// The spans that were taken. Everything that came must have been understood.
    pub(crate) fn spans(&self) -> Vec<Span> {
        let state = lock(&self.state);
        assert!(state.odd.is_empty(), "{:?}", state.odd);
        state.spans.clone()
    }

    /// Whether this text is anywhere in what was sent.
    pub(crate) fn was_sent(&self, text: &str) -> bool {
        lock(&self.state).sent.windows(text.len()).any(|window| window == text.as_bytes())
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().expect("no test panics here")
}

async fn serve(listener: TcpListener, state: Arc<Mutex<State>>) {
    while let Ok((stream, _)) = listener.accept().await {
        let state = state.clone();
        tokio::spawn(async move {
            let service = service_fn(|request| answer(request, &state));
            // A client that hangs up needs no more of the answer.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    state: &Mutex<State>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let manner = {
        let mut state = lock(state);
        state.asked += 1;
        state.sent.extend_from_slice(&body);
        if parts.uri.path() != "/v1/traces" || parts.headers["content-type"] != "application/x-protobuf" {
            state.odd.push(format!("{parts:?}"));
        }
        match (state.manner, spans(&body)) {
            (Manner::Take, Ok(spans)) => state.spans.extend(spans),
            (_, Ok(_)) => {}
            (_, Err(error)) => state.odd.push(format!("{error:#}")),
        }
        state.manner
    };
    let mut response = Response::new(Full::default());
    match manner {
        Manner::Take => {}
        Manner::Refuse => *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE,
        Manner::Hang => std::future::pending().await,
    }
    Ok(response)
}

/// The spans of an `ExportTraceServiceRequest`. The numbers of fields are those of opentelemetry-proto 1.
fn spans(body: &[u8]) -> Result<Vec<Span>> {
    let mut spans = Vec::new();
    for of_resource in Message::read(body)?.messages(1)? {
        let resource = of_resource.messages(1)?;
        let resource =
            resource.first().map(|resource| attributes(resource, 1)).transpose()?.unwrap_or_default();
        for of_scope in of_resource.messages(2)? {
            for span in of_scope.messages(2)? {
                spans.push(Span { resource: resource.clone(), ..read(&span)? });
            }
        }
    }
    Ok(spans)
}

fn read(span: &Message<'_>) -> Result<Span> {
    let bytes = |number| span.bytes(number).unwrap_or_default().to_vec();
    let status = span.messages(15)?;
    Ok(Span {
        trace: bytes(1),
        id: bytes(2),
        parent: bytes(4),
        name: span.text(5)?,
        attributes: attributes(span, 9)?,
        events: span.messages(11)?.iter().map(|event| event.text(2)).collect::<Result<_>>()?,
        failed: status.first().is_some_and(|status| status.number(3) == Some(2)),
        resource: BTreeMap::new(),
    })
}

fn attributes(message: &Message<'_>, number: u64) -> Result<BTreeMap<String, String>> {
    let mut attributes = BTreeMap::new();
    for pair in message.messages(number)? {
        let value = pair.messages(2)?;
        let value = value.first().map(value_as_text).transpose()?.unwrap_or_default();
        attributes.insert(pair.text(1)?, value);
    }
    Ok(attributes)
}

/// An `AnyValue`: text, boolean or whole number. There is no other kind here.
fn value_as_text(value: &Message<'_>) -> Result<String> {
    match (value.bytes(1), value.number(2), value.number(3)) {
        (Some(_), ..) => value.text(1),
        (_, Some(boolean), _) => Ok((boolean == 1).to_string()),
        (.., Some(number)) => Ok(number.cast_signed().to_string()),
        _ => Ok(String::new()),
    }
}
