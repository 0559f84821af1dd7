//! What an operator serves about itself: its health and its metrics.
//! It neither waits nor asks twice.

use anyhow::Result;
use kube::{Client, Config};

/// What the operator answers at `--listen=127.0.0.1:PORT`.
///
/// # Errors
/// No process listens, or the answer is not success.
pub async fn ask(port: u16, path: &str) -> Result<String> {
    let mut config = Config::new(format!("http://127.0.0.1:{port}").parse()?);
    config.default_retry = false;
    let request = http::Request::get(path).body(Vec::new())?;
    Ok(Client::try_from(config)?.request_text(request).await?)
}

/// Whether it answers with success.
pub async fn is_ok(port: u16, path: &str) -> bool {
    ask(port, path).await.is_ok()
}
