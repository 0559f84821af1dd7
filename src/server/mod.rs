//! Health and metrics over HTTP.
//! It must not serve anything about objects but counts.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;

use crate::metrics::Metrics;

/// Whether the process knows its cluster and its place in it.
#[derive(Debug, Default)]
pub struct Readiness(AtomicBool);

impl Readiness {
    /// Says whether it does.
    pub fn set(&self, ready: bool) {
        self.0.store(ready, Ordering::Relaxed);
    }

    /// Whether it does.
    pub fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Serves `/livez`, `/readyz` and `/metrics` for as long as it is polled.
///
/// # Errors
/// The listener fails.
pub async fn serve(listener: TcpListener, metrics: Arc<Metrics>, ready: Arc<Readiness>) -> io::Result<()> {
    let router = Router::new()
        .route("/livez", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz).with_state(ready))
        .route("/metrics", get(scrape).with_state(metrics));
    axum::serve(listener, router).await
}

async fn readyz(State(ready): State<Arc<Readiness>>) -> (StatusCode, &'static str) {
    match ready.get() {
        true => (StatusCode::OK, "ok\n"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "the CRDs have not been listed yet\n"),
    }
}

async fn scrape(State(metrics): State<Arc<Metrics>>) -> impl IntoResponse {
    let media_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, media_type)], metrics.text())
}
