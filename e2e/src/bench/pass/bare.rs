//! The least that any client does that has objects stored again: it lists them by the page, and sends the
//! patch that Etch sends. It neither decides, proves, counts nor reports.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use etch::cluster::PAGE_SIZE;
use http::Request;
use kube::client::Body;
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use crate::bench::objects::{COLLECTION, GROUP};

/// Has all objects stored, with as many writes under way at once; or one at a time, of which so many begin in
/// a second at most.
pub(super) async fn store(mut config: Config, at_once: usize, per_second: Option<u32>) -> Result<()> {
    config.default_retry = false;
    let client = Client::try_from(config)?;
    let places = Arc::new(Semaphore::new(if per_second.is_some() { 1 } else { at_once }));
    let mut turns = per_second.map(|rate| interval(Duration::from_secs(1) / rate.max(1)));
    if let Some(turns) = &mut turns {
        turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    }
    let mut writing = JoinSet::new();
    let mut next = String::new();
    loop {
        let request =
            Request::get(format!("{COLLECTION}?limit={PAGE_SIZE}&continue={next}")).body(Body::empty())?;
        let page: Value = serde_json::from_slice(&answer(&client, request).await?)?;
        for object in page["items"].as_array().context("items")? {
            let place = places.clone().acquire_owned().await?;
            if let Some(turns) = &mut turns {
                turns.tick().await;
            }
            let (client, patch) = (client.clone(), patch(object)?);
            writing.spawn(async move {
                let answered = answer(&client, patch).await;
                drop(place);
                answered.map(drop)
            });
            while let Some(written) = writing.try_join_next() {
                written??;
            }
        }
        match page["metadata"]["continue"].as_str().filter(|token| !token.is_empty()) {
            Some(token) => token.clone_into(&mut next),
            None => break,
        }
    }
    while let Some(written) = writing.join_next().await {
        written??;
    }
    Ok(())
}

/// A server-side apply of the object's identity.
fn patch(object: &Value) -> Result<Request<Body>> {
    let metadata = &object["metadata"];
    let body = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "Report",
        "metadata": { "name": metadata["name"], "namespace": metadata["namespace"], "uid": metadata["uid"],
                      "resourceVersion": metadata["resourceVersion"] },
    });
    let name = metadata["name"].as_str().context("a name")?;
    let path = format!("/apis/{GROUP}/v1/namespaces/default/reports/{name}?fieldManager=bare");
    let request = Request::patch(path).header("content-type", "application/apply-patch+yaml");
    Ok(request.body(Body::from(serde_json::to_vec(&body)?))?)
}

async fn answer(client: &Client, request: Request<Body>) -> Result<bytes::Bytes> {
    let response = client.send(request).await?;
    let status = response.status();
    let body = response.into_body().collect_bytes().await?;
    ensure!(status.is_success(), "the bare loop was answered {status}");
    Ok(body)
}
