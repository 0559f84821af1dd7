//! Connections of the admission server: TLS 1.3, HTTP/1.1 and 2, each with a limit, and their end. A request
//! counts only if its path begins with a key; until then the connection is unauthenticated.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderValue, Request, Response, StatusCode, Uri, Version, header};
use futures::FutureExt;
use futures::future::BoxFuture;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tower::{BoxError, Service, ServiceExt};
use tracing::{debug, warn};

use super::keys::AcceptedKeys;
use crate::server::connection_slots::{ConnectionSlot, Limits};
use crate::server::connections::{BUFFER, HEADERS, accept};

/// An API server times out after three seconds, so a client without a request by then is not one, or is too
/// late.
const LIMITS: Limits = Limits { unauthenticated: 128, timeout: Duration::from_secs(3), known: 512 };
/// How long a connection may wait for its next request. API servers close idle ones after 90 s, so they are
/// first.
const IDLE: Duration = Duration::from_secs(120);
/// How often an HTTP/2 client is asked whether it is there, and how long that may take.
const PING: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(20));
/// How many requests of one HTTP/2 connection are taken at once.
const STREAMS: u32 = 250;
/// How many of them may be reset before they are looked at, and how many may be broken.
const RESETS: usize = 20;
/// How much of a body an HTTP/2 client may send that is not read yet.
const WINDOW: u32 = 256 << 10;
/// How long requests under way are waited for at the end.
const DRAIN: Duration = Duration::from_secs(5);

/// Serves until `over` is ready; then takes no connection any more, and answers what is under way.
///
/// A request whose path does not begin with one of `keys` gets 404, whatever it asks for.
pub async fn serve(
    listener: TcpListener,
    tls: Arc<ServerConfig>,
    router: Router,
    keys: AcceptedKeys,
    over: impl Future<Output = ()>,
) {
    let acceptor = TlsAcceptor::from(tls);
    let graceful = GracefulShutdown::new();
    let serve_connection = |stream: TcpStream, place: Arc<ConnectionSlot>| {
        let gate = Gate { router: router.clone(), keys: keys.clone(), place };
        serve_connection(stream, acceptor.clone(), gate, graceful.watcher())
    };
    let connections = accept(listener, LIMITS, over, serve_connection).await;
    if timeout(DRAIN, graceful.shutdown()).await.is_err() {
        warn!("shutdown left admission requests unanswered");
    }
    drop(connections);
}

/// What a request has to pass.
#[derive(Clone)]
struct Gate {
    router: Router,
    keys: AcceptedKeys,
    place: Arc<ConnectionSlot>,
}

impl<B> Service<Request<B>> for Gate
where
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    /// Answers a request that brings a key; any other one at once, and without reading more of it.
    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let path = request.uri().path().trim_start_matches('/');
        let (key, rest) = path.split_once('/').unwrap_or((path, ""));
        let refused = |code| std::future::ready(Ok(refused(code, request.version()))).boxed();
        if !self.keys.accepts(key) {
            return refused(StatusCode::NOT_FOUND);
        }
        if !self.place.admit() {
            return refused(StatusCode::SERVICE_UNAVAILABLE);
        }
        let Ok(uri) = format!("/{rest}").parse::<Uri>() else { return refused(StatusCode::NOT_FOUND) };
        *request.uri_mut() = uri;
        self.router.clone().oneshot(request.map(Body::new)).boxed()
    }
}

/// An answer without a body. Over HTTP/1.1 it ends the connection.
fn refused(code: StatusCode, version: Version) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = code;
    if version < Version::HTTP_2 {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

async fn serve_connection(stream: TcpStream, acceptor: TlsAcceptor, gate: Gate, watcher: Watcher) {
    let stream = match acceptor.accept(stream).await {
        Ok(stream) => stream,
        Err(error) => return debug!(%error, "a TLS handshake failed"),
    };
    let builder = Builder::new(TokioExecutor::new());
    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    // Without this the choice would wait for the first bytes forever.
    let mut builder = if is_http2 { builder.http2_only() } else { builder.http1_only() };
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE)
        .max_headers(HEADERS)
        .max_buf_size(BUFFER);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING.0)
        .keep_alive_timeout(PING.1)
        .max_concurrent_streams(STREAMS)
        .max_pending_accept_reset_streams(RESETS)
        .max_local_error_reset_streams(RESETS)
        .max_header_list_size(u32::try_from(BUFFER).unwrap_or(u32::MAX))
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW);
    let connection = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(gate));
    if let Err(error) = watcher.watch(connection).await {
        debug!(error, "an admission connection failed");
    }
}
