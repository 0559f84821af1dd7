//! Watches that begin with what exists, and watches from a resource version that etcd has forgotten (R9,
//! R10).
//!
//! What a change of the CRD does to a watch is in `crds`.

use anyhow::{Context, Result, ensure};
use e2e::cluster::GUARD;
use futures::{AsyncBufReadExt, TryStreamExt};
use http::{Request, header::ACCEPT};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::{
    cluster::Cluster,
    rows,
    tabs::{Tabs, text, v1},
};

rows! {
    r9: "a watch of metadata with sendInitialEvents begins with every object and a bookmark, with and \
        without watch cache",
    r10: "a version that etcd has compacted is answered 410; a watch from the bookmark goes on",
}

const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const INITIAL: &str =
    "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";

/// The events of a watch up to the one that `is_last`.
async fn events(tabs: &Tabs<'_>, query: &str, is_last: fn(&Value) -> bool) -> Result<Vec<Value>> {
    let path = format!("{}?{query}&timeoutSeconds=120", tabs.path("v1", ""));
    let request = Request::get(&path).header(ACCEPT, METADATA).body(Vec::new())?;
    let read = async {
        let mut lines = tabs.cluster.admin().request_stream(request).await?.lines();
        let mut events = Vec::new();
        while let Some(line) = lines.try_next().await? {
            events.push(serde_json::from_str(&line)?);
            if events.last().is_some_and(is_last) {
                return Ok(events);
            }
        }
        anyhow::bail!("the watch ended after {events:?}")
    };
    timeout(GUARD, read).await.with_context(|| format!("{path}: the events do not come"))?
}

fn version(object: &Value) -> Result<i64> {
    object["metadata"]["resourceVersion"].as_str().context("no resource version")?.parse().map_err(Into::into)
}

/// Three objects, one of which changes and one of which goes; then what a watch begins with, and the version
/// of the bookmark.
async fn begin(tabs: &Tabs<'_>) -> Result<i64> {
    tabs.define(v1(json!({"a": text()}))).await?;
    for name in ["a", "b", "c"] {
        tabs.apply("v1", name, "owner", json!({"spec": {"a": "x"}})).await?.ok()?;
    }
    tabs.merge("v1", "a", "owner", json!({"spec": {"a": "y"}})).await?.ok()?;
    tabs.cluster.delete(&tabs.path("v1", "c")).await?.ok()?;
    let mut seen = events(tabs, INITIAL, |event| event["type"] == "BOOKMARK").await?;
    let bookmark = seen.pop().context("no event")?;
    assert_eq!(bookmark["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    seen.sort_by_key(|event| event["object"]["metadata"]["name"].to_string());
    let mut newest = 0;
    for (event, name) in seen.iter().zip(["a", "b"]) {
        let (object, whole) = (&event["object"], tabs.read("v1", name).await?);
        assert_eq!((&event["type"], &object["kind"]), (&json!("ADDED"), &json!("PartialObjectMetadata")));
        assert_eq!(object["metadata"]["name"], name);
        assert_eq!(version(object)?, version(&whole)?);
        newest = newest.max(version(object)?);
    }
    assert_eq!(seen.len(), 2, "{seen:?}");
    let end = version(&bookmark["object"])?;
    ensure!(end >= newest, "the bookmark {end} is older than the object {newest}");
    Ok(end)
}

async fn r9(cluster: &Cluster) -> Result<()> {
    begin(&Tabs::new(cluster, "r9")).await?;
    let without_cache = Cluster::with_flags(&["--watch-cache=false"]).await?;
    begin(&Tabs::new(&without_cache, "r9")).await?;
    Ok(())
}

async fn r10(_: &Cluster) -> Result<()> {
    let cluster = Cluster::with_flags(&["--watch-cache=false"]).await?;
    let tabs = Tabs::new(&cluster, "r10");
    let end = begin(&tabs).await?;
    let b = tabs.read("v1", "b").await?;
    cluster.etcd().compact(end).await?;
    let query = |version: i64| format!("watch=true&allowWatchBookmarks=true&resourceVersion={version}");
    let refused = events(&tabs, &query(version(&b)?), |_| true).await?;
    assert_eq!((&refused[0]["type"], &refused[0]["object"]["code"]), (&json!("ERROR"), &json!(410)));

    tabs.apply("v1", "d", "owner", json!({"spec": {"a": "x"}})).await?.ok()?;
    let news = events(&tabs, &query(end), |_| true).await?;
    assert_eq!((&news[0]["type"], &news[0]["object"]["metadata"]["name"]), (&json!("ADDED"), &json!("d")));
    Ok(())
}
