//! The least that any client does that looks at all objects: it lists them by the page, and parses each page.
//! It does not read ahead, and of what it has parsed it looks only at the number of items and the next page.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use etch::cluster::PAGE_SIZE;
use http::Request;
use kube::client::Body;
use kube::{Client, Config};
use serde_json::Value;

use super::objects::COLLECTION;

/// What a loop came to.
pub(super) struct Listed {
    pub(super) time: Duration,
    pub(super) objects: u64,
    pub(super) bytes: u64,
}

/// Lists all objects, with a connection of its own.
pub(super) async fn list(mut config: Config) -> anyhow::Result<Listed> {
    config.default_retry = false;
    let begun = Instant::now();
    let client = Client::try_from(config)?;
    let mut listed = Listed { time: Duration::ZERO, objects: 0, bytes: 0 };
    let mut next = String::new();
    loop {
        // A token is base64 for URLs.
        let request =
            Request::get(format!("{COLLECTION}?limit={PAGE_SIZE}&continue={next}")).body(Body::empty())?;
        let response = client.send(request).await?;
        ensure!(response.status().is_success(), "the list was answered {}", response.status());
        let page = response.into_body().collect_bytes().await?;
        let parsed: Value = serde_json::from_slice(&page)?;
        listed.bytes += page.len() as u64;
        listed.objects += parsed["items"].as_array().context("items")?.len() as u64;
        match parsed["metadata"]["continue"].as_str().filter(|token| !token.is_empty()) {
            Some(token) => token.clone_into(&mut next),
            None => break,
        }
    }
    listed.time = begun.elapsed();
    Ok(listed)
}
