//! The client of one API server: where it speaks HTTP/2, many watches share a connection, and nothing else
//! goes over it, for a large answer would hold them all up.
//!
//! kube's own client speaks HTTP/1.1, where each watch has a connection to itself: thousands of sockets, each
//! with buffers for TLS and HTTP, at both ends. It also runs a credential plugin once for each thing that it
//! may have printed.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use http::header::AUTHORIZATION;
use http::{Request, Response, Uri};
use http_body_util::BodyExt;
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use kube::Config;
use kube::client::{Body, ConfigExt as _};
use kube::config::AuthInfo;
use parking_lot::Mutex;
use rustls::ClientConfig;
use tokio::net::TcpStream;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Layer as _, ServiceBuilder, ServiceExt as _};

use super::cause::cause;
use super::credential_renewal::{are_renewable, renewing};
use super::proxy::{Protocol, Proxy};
use super::token_file::TokenFile;
use etch_core::request::counted::{RequestVerb, verb};

/// How many watches share a connection. kube-apiserver takes 100 streams on one, and makes further ones wait.
///
/// Source: apiserver `pkg/server/secure_serving.go`.
const SHARED_BY: usize = 90;
/// How much of each watch is sent before it is read: all of them together fill the connection's window, so
/// that one that is not read holds up no other.
const WINDOW: u32 = 64 << 10;
/// How often a ping checks whether the server is still there, and how long its answer may take.
const PING: Duration = Duration::from_secs(30);
/// How long a connection without a request stays open: of those that a pass needs at once, few are needed
/// afterwards.
const IDLE: Duration = Duration::from_secs(15);

/// What carries bytes to the server, or to a proxy and through it.
type Stream = MaybeHttpsStream<TokioIo<TcpStream>>;
type Route = BoxCloneSyncService<Uri, Stream, BoxError>;
type Connector = BoxCloneSyncService<Uri, MaybeHttpsStream<Stream>, BoxError>;

/// Connections with one request at a time, or one that watches share where the server speaks HTTP/2.
type Client = legacy::Client<Connector, Body>;

/// The client of a connection for watches.
struct Connection {
    client: Client,
    /// Whether a watch on it has got no answer: the server may take fewer, and makes further ones wait.
    is_full: AtomicBool,
}

/// A pending watch on a connection. If this is dropped before the response begins, the connection counts as
/// full.
struct Asked(Option<Arc<Connection>>);

/// The connections for watches that are open.
#[derive(Clone)]
struct Connections {
    connector: Connector,
    open: Arc<Mutex<Vec<Arc<Connection>>>>,
}

/// A connection that could not be made through a proxy: what happened, and which proxy it was.
#[derive(Debug, thiserror::Error)]
#[error("{cause} (through {proxy})")]
struct ThroughProxy {
    cause: String,
    proxy: String,
}

/// A client that connects with these credentials, and renews them when they are refused. Each answer to a
/// watch keeps its place on a connection until it is dropped. It does not retry: kube's own retries hide 429
/// and 503 for minutes (fact K4), those of its callers are counted, paced and reported.
///
/// # Errors
/// The credentials or certificates cannot be used.
pub(super) fn client(config: Config, proxy: Option<Proxy>) -> Result<kube::Client, kube::Error> {
    match are_renewable(&config.auth_info) {
        true => renewing(move || made(config.clone(), proxy.as_ref())),
        false => made(config, proxy.as_ref()),
    }
}

/// A client with the credentials as they are now.
fn made(mut config: Config, proxy: Option<&Proxy>) -> Result<kube::Client, kube::Error> {
    let AuthInfo { token_file, token, exec, .. } = &mut config.auth_info;
    let token_file = match token_file.take() {
        Some(path) => {
            *exec = None;
            Some(TokenFile::open(&path, token.take().as_ref()).map_err(kube::Error::Auth)?)
        }
        None => None,
    };
    let auth = config.auth_layer()?;
    if auth.is_some() {
        // A plugin that has printed a token has printed no certificate: it need not be run again for one.
        config.auth_info.exec = None;
    }
    let tls = config.rustls_client_config()?;
    let plain = legacy::Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .build(connector(&config, &tls, proxy, Versions::Http1)?);
    let watching =
        Connections { connector: connector(&config, &tls, proxy, Versions::All)?, open: Arc::default() };
    let token_file = token_file.map(Arc::new);
    // What kube puts around a client is here around nothing: its answer is the request with the credentials.
    let authorize = auth.map(|auth| {
        auth.layer(tower::service_fn(async |request: Request<Body>| {
            Ok::<_, BoxError>(Response::new(request))
        }))
    });
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service_fn(move |mut request: Request<Body>| {
            if let Some(file) = &token_file {
                request.headers_mut().insert(AUTHORIZATION, file.header());
            }
            let (authorize, watching, plain) = (authorize.clone(), watching.clone(), plain.clone());
            async move {
                if let Some(authorize) = authorize {
                    // If its request is dropped, a plugin still finishes, and the next request uses its
                    // token.
                    request = tokio::spawn(authorize.oneshot(request)).await??.into_body();
                }
                let shared = match verb(request.method(), request.uri()) {
                    RequestVerb::Watch => Some(watching.with_room()),
                    _ => None,
                };
                let sent = shared.as_ref().map_or(&plain, |shared| &shared.client).request(request);
                let asked = Asked(shared);
                let response = sent.await.map_err(BoxError::from)?;
                let shared = asked.answered();
                Ok::<_, BoxError>(response.map(|body| {
                    body.map_frame(move |frame| {
                        let _held = &shared;
                        frame
                    })
                }))
            }
        });
    Ok(kube::Client::new(service, config.default_namespace.clone()))
}

impl Asked {
    fn answered(mut self) -> Option<Arc<Connection>> {
        self.0.take()
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        if let Some(connection) = &self.0 {
            connection.is_full.store(true, Ordering::Relaxed);
        }
    }
}

impl Connections {
    /// A connection for one more watch. Each watch holds one reference, and this holds one.
    fn with_room(&self) -> Arc<Connection> {
        let mut open = self.open.lock();
        open.retain(|connection| Arc::strong_count(connection) > 1);
        let has_room = |connection: &&Arc<Connection>| {
            Arc::strong_count(connection) <= SHARED_BY && !connection.is_full.load(Ordering::Relaxed)
        };
        if let Some(connection) = open.iter().find(has_room) {
            return connection.clone();
        }
        let client = connect(self.connector.clone());
        let connection = Arc::new(Connection { client, is_full: AtomicBool::new(false) });
        open.push(connection.clone());
        connection
    }
}

fn connect(connector: Connector) -> Client {
    let mut builder = legacy::Client::builder(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .http2_initial_stream_window_size(WINDOW)
        .http2_initial_connection_window_size(WINDOW * SHARED_BY as u32)
        .http2_keep_alive_interval(PING)
        .http2_keep_alive_timeout(PING);
    builder.build(connector)
}

/// Which versions of HTTP a connection may have.
enum Versions {
    Http1,
    All,
}

fn connector(
    config: &Config,
    tls: &ClientConfig,
    proxy: Option<&Proxy>,
    versions: Versions,
) -> Result<Connector, kube::Error> {
    let mut builder = HttpsConnectorBuilder::new().with_tls_config(tls.clone()).https_or_http();
    if let Some(name) = &config.tls_server_name {
        let name = name.clone().try_into().map_err(|error| kube::Error::Service(Box::new(error)))?;
        builder = builder.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    let route = route(tls, proxy);
    let https: HttpsConnector<Route> = match versions {
        Versions::Http1 => builder.enable_http1().wrap_connector(route),
        Versions::All => builder.enable_all_versions().wrap_connector(route),
    };
    let limit = config.connect_timeout.unwrap_or(Duration::MAX);
    let connected = move |server| {
        let connecting: BoxFuture<'static, _> = Box::pin(https.clone().oneshot(server));
        async move {
            match tokio::time::timeout(limit, connecting).await {
                Ok(connected) => connected,
                Err(_) => {
                    let late = format!("no connection within {} s", limit.as_secs());
                    Err(BoxError::from(io::Error::new(io::ErrorKind::TimedOut, late)))
                }
            }
        }
    };
    Ok(BoxCloneSyncService::new(tower::service_fn(connected)))
}

/// How the server is reached, below TLS.
fn route(tls: &ClientConfig, proxy: Option<&Proxy>) -> Route {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    let Some(proxy) = proxy else {
        return BoxCloneSyncService::new(tcp.map_response(MaybeHttpsStream::Http).map_err(BoxError::from));
    };
    let text = proxy.to_string();
    let failed = move |error: BoxError| ThroughProxy { cause: cause(&*error), proxy: text.clone() };
    let route = match proxy.protocol() {
        Protocol::Http => {
            let tunnel = authorized(Tunnel::new(proxy.uri().clone(), tcp), proxy);
            BoxCloneSyncService::new(tunnel.map_response(MaybeHttpsStream::Http).map_err(BoxError::from))
        }
        Protocol::Https => {
            let builder = HttpsConnectorBuilder::new().with_tls_config(tls.clone()).https_only();
            let tunnel = Tunnel::new(proxy.uri().clone(), builder.enable_http1().wrap_connector(tcp));
            BoxCloneSyncService::new(authorized(tunnel, proxy).map_err(BoxError::from))
        }
        Protocol::Socks5 => {
            let socks = SocksV5::new(proxy.uri().clone(), tcp);
            let socks = match proxy.user() {
                Some((user, password)) => socks.with_auth(user.to_owned(), password.to_owned()),
                None => socks,
            };
            BoxCloneSyncService::new(socks.map_response(MaybeHttpsStream::Http).map_err(BoxError::from))
        }
    };
    BoxCloneSyncService::new(route.map_err(move |error| BoxError::from(failed(error))))
}

fn authorized<C>(tunnel: Tunnel<C>, proxy: &Proxy) -> Tunnel<C> {
    match proxy.header() {
        Some(header) => tunnel.with_auth(header.clone()),
        None => tunnel,
    }
}

#[cfg(test)]
mod tests;
