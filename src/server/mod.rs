//! Health and metrics over HTTP, and admission over HTTPS.
//! Health and metrics must not show anything about objects but counts.

pub mod admission;
mod readiness;

use std::io;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;

use crate::metrics::Metrics;

pub use readiness::Readiness;

/// Serves `/livez`, `/readyz` and `/metrics` for as long as it is polled.
///
/// `/livez` answers as long as any request is answered; `/readyz` is as [`Readiness`] has it.
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
    match ready.lacks() {
        None => (StatusCode::OK, "ok\n"),
        Some(what) => (StatusCode::SERVICE_UNAVAILABLE, what),
    }
}

async fn scrape(State(metrics): State<Arc<Metrics>>) -> impl IntoResponse {
    let media_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, media_type)], metrics.text())
}
