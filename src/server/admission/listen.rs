//! Connections: TLS 1.3, HTTP/1.1 and 2, each with a limit, and their end.
//! It must not know what is answered.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tracing::{debug, warn};

/// How many connections there may be; further ones wait to be accepted.
const MOST: usize = 512;
/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// How long a connection may wait for its next request. API servers close idle ones after 90 s, so they are first.
const IDLE: Duration = Duration::from_secs(120);
/// How often an HTTP/2 client is asked whether it is there, and how long that may take.
const PING: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(20));
/// How many requests of one HTTP/2 connection are taken at once.
const STREAMS: u32 = 250;
/// How long requests under way are waited for at the end.
const DRAIN: Duration = Duration::from_secs(5);
/// The wait after a connection could not be accepted, for want of files mostly.
const AFTER_FAILURE: Duration = Duration::from_millis(200);

/// Serves until `over` is ready; then takes no connection any more, and answers what is under way.
pub async fn serve(
    listener: TcpListener,
    tls: Arc<ServerConfig>,
    router: Router,
    over: impl Future<Output = ()>,
) {
    let acceptor = TlsAcceptor::from(tls);
    let (graceful, places) = (GracefulShutdown::new(), Arc::new(Semaphore::new(MOST)));
    let mut connections = JoinSet::new();
    let mut over = pin!(over);
    loop {
        let accepted = async {
            let place = places.clone().acquire_owned().await;
            (listener.accept().await, place)
        };
        let (accepted, place) = tokio::select! {
            () = &mut over => break,
            accepted = accepted => accepted,
        };
        while connections.try_join_next().is_some() {}
        match accepted {
            Ok((stream, _)) => {
                // An answer must not wait for the client's acknowledgement of the one before.
                if let Err(error) = stream.set_nodelay(true) {
                    debug!(%error, "cannot set TCP_NODELAY on an admission connection");
                }
                let (acceptor, router, watcher) = (acceptor.clone(), router.clone(), graceful.watcher());
                connections.spawn(async move {
                    converse(stream, &acceptor, router, watcher).await;
                    drop(place);
                });
            }
            Err(error) => {
                warn!(%error, "cannot accept an admission connection");
                sleep(AFTER_FAILURE).await;
            }
        }
    }
    drop(listener);
    if timeout(DRAIN, graceful.shutdown()).await.is_err() {
        warn!("shutdown left admission requests unanswered");
    }
}

async fn converse(stream: TcpStream, acceptor: &TlsAcceptor, router: Router, watcher: Watcher) {
    let stream = match timeout(HANDSHAKE, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return debug!(%error, "a TLS handshake failed"),
        Err(_) => return debug!("a TLS handshake took too long"),
    };
    let builder = Builder::new(TokioExecutor::new());
    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    // Without this the choice would wait for the first bytes, for ever.
    let mut builder = if is_http2 { builder.http2_only() } else { builder.http1_only() };
    builder.http1().timer(TokioTimer::new()).header_read_timeout(IDLE);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING.0)
        .keep_alive_timeout(PING.1)
        .max_concurrent_streams(STREAMS);
    let connection = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    if let Err(error) = watcher.watch(connection).await {
        debug!(error, "an admission connection failed");
    }
}
