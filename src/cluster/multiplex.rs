//! The clients of one API server: where it speaks HTTP/2, many watches share a connection, and nothing else
//! goes over it, for a large answer would hold them all up.
//!
//! kube's own client speaks HTTP/1.1, where each watch has a connection to itself: thousands of sockets, each
//! with buffers for TLS and HTTP, at both ends.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{Request, Response};
use http_body_util::BodyExt;
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::Config;
use kube::client::{Body, ConfigExt as _};
use tower::{BoxError, ServiceBuilder};

use super::call::verb;
use crate::metrics::RequestVerb;

/// How many watches share a connection. kube-apiserver takes 100 streams on one, and makes further ones wait.
///
/// Source: apiserver `pkg/server/secure_serving.go`.
const SHARED_BY: usize = 90;
/// How much of each watch is sent before it is read: all of them together fill the connection's window, so
/// that one that is not read holds up no other.
const WINDOW: u32 = 64 << 10;
/// How often a ping checks whether the server is still there, and how long its answer may take.
const PING: Duration = Duration::from_secs(30);

/// The clients of one API server.
#[derive(Clone)]
pub(super) struct Clients {
    plain: kube::Client,
    watching: kube::Client,
}

impl Clients {
    /// Clients that connect with these credentials.
    ///
    /// # Errors
    /// The credentials or certificates cannot be used.
    pub(super) fn connecting(config: Config) -> Result<Self, kube::Error> {
        let watching = watching(&config)?;
        Ok(Self { plain: kube::Client::try_from(config)?, watching })
    }

    /// One client for everything.
    pub(super) fn of(client: kube::Client) -> Self {
        Self { watching: client.clone(), plain: client }
    }

    /// Sends a request, and returns the head of its answer.
    ///
    /// # Errors
    /// There was no answer.
    pub(super) async fn send(&self, request: Request<Body>) -> Result<Response<Body>, kube::Error> {
        let client = match verb(request.method(), request.uri()) {
            RequestVerb::Watch => &self.watching,
            _ => &self.plain,
        };
        client.send(request).await
    }

    /// The namespace that the credentials name.
    pub(super) fn default_namespace(&self) -> &str {
        self.plain.default_namespace()
    }
}

type Connector = HttpsConnector<HttpConnector>;

/// A connection that watches share; several connections where the server does not speak HTTP/2.
type Connection = legacy::Client<Connector, Body>;

/// The connections that are open.
#[derive(Clone)]
struct Connections {
    connector: Connector,
    open: Arc<Mutex<Vec<Arc<Connection>>>>,
}

/// A client for watches. Each answer keeps its place on a connection until it is dropped.
fn watching(config: &Config) -> Result<kube::Client, kube::Error> {
    let connections = Connections { connector: connector(config)?, open: Arc::default() };
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service_fn(move |request: Request<Body>| {
            let connection = connections.with_room();
            async move {
                let response = connection.request(request).await.map_err(BoxError::from)?;
                Ok::<_, BoxError>(response.map(|body| {
                    body.map_frame(move |frame| {
                        let _held = &connection;
                        frame
                    })
                }))
            }
        });
    Ok(kube::Client::new(service, config.default_namespace.clone()))
}

impl Connections {
    /// A connection for one more watch. Each watch holds one reference, and this holds one.
    fn with_room(&self) -> Arc<Connection> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|connection| Arc::strong_count(connection) > 1);
        if let Some(connection) = open.iter().find(|connection| Arc::strong_count(connection) <= SHARED_BY) {
            return connection.clone();
        }
        let connection = Arc::new(connect(self.connector.clone()));
        open.push(connection.clone());
        connection
    }
}

fn connect(connector: Connector) -> Connection {
    let mut builder = legacy::Client::builder(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .http2_initial_stream_window_size(WINDOW)
        .http2_initial_connection_window_size(WINDOW * SHARED_BY as u32)
        .http2_keep_alive_interval(PING)
        .http2_keep_alive_timeout(PING);
    builder.build(connector)
}

fn connector(config: &Config) -> Result<Connector, kube::Error> {
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_connect_timeout(config.connect_timeout);
    let mut builder =
        HttpsConnectorBuilder::new().with_tls_config(config.rustls_client_config()?).https_or_http();
    if let Some(name) = &config.tls_server_name {
        let name = name.clone().try_into().map_err(|error| kube::Error::Service(Box::new(error)))?;
        builder = builder.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    Ok(builder.enable_all_versions().wrap_connector(http))
}
