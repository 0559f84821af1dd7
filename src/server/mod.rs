//! Health and metrics over HTTP, and admission over HTTPS.
//! Health and metrics must not show anything about objects but counts.

pub mod admission;
mod connection_slots;
mod connections;
mod readiness;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tracing::debug;

use crate::metrics::Metrics;

pub use readiness::Readiness;

use connection_slots::{ConnectionSlot, Limits};
use connections::{BUFFER, HEADERS, accept};

/// The health port does not authenticate. A connection serves one request: a scrape of a large cluster takes
/// far less time than this.
const LIMITS: Limits = Limits { unauthenticated: 64, timeout: Duration::from_secs(10), known: 0 };

/// Serves `/livez`, `/readyz` and `/metrics` for as long as it is polled.
///
/// `/livez` answers as long as any request is answered; `/readyz` is as [`Readiness`] has it.
pub async fn serve(listener: TcpListener, metrics: Arc<Metrics>, ready: Arc<Readiness>) {
    let router = Router::new()
        .route("/livez", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz).with_state(ready))
        .route("/metrics", get(scrape).with_state(metrics));
    let serve_connection =
        |stream: TcpStream, _: Arc<ConnectionSlot>| serve_connection(stream, router.clone());
    drop(accept(listener, LIMITS, std::future::pending(), serve_connection).await);
}

async fn serve_connection(stream: TcpStream, router: Router) {
    let mut builder = Builder::new(TokioExecutor::new()).http1_only();
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(LIMITS.timeout)
        .keep_alive(false)
        .max_headers(HEADERS)
        .max_buf_size(BUFFER);
    let connection = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    if let Err(error) = connection.await {
        debug!(error, "a connection to the health port failed");
    }
}

async fn readyz(State(ready): State<Arc<Readiness>>) -> (StatusCode, &'static str) {
    match ready.lacks() {
        None => (StatusCode::OK, "ok\n"),
        // 500 like kube-apiserver: clients do not print the body of a 503.
        Some(what) => (StatusCode::INTERNAL_SERVER_ERROR, what),
    }
}

async fn scrape(State(metrics): State<Arc<Metrics>>) -> impl IntoResponse {
    let media_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, media_type)], metrics.text())
}
