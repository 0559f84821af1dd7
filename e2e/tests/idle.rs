//! What an operator costs that has nothing to do: memory, processor time, and requests.

use std::collections::HashSet;
use std::fs;
use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::cluster::{Cluster, crd, eventually};
use e2e::scene::Scene;
use e2e::usage::{memory, peak_memory, processor_time};
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};

const GROUP: &str = "idle.example.com";

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_operator_asks_for_nothing() -> Result<()> {
    const CRDS: usize = 40;
    let cost = idle(CRDS, 2, Duration::from_secs(6)).await?;
    assert_eq!(cost.others, Vec::<String>::new(), "requests other than watches and those of the Lease");
    // Each of them is watched.
    assert!(cost.connections < CRDS, "{} connections", cost.connections);
    Ok(())
}

/// What is promised for a big cluster: at most 128 MiB, 2 % of a core, and 40 connections. `IDLE_CRDS` and `IDLE_OBJECTS` are other
/// numbers of CRDs, and of objects of each.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes, and measures only on an otherwise idle machine: `just idle`"]
async fn five_hundred_crds_of_twenty_objects() -> Result<()> {
    let number = |name, usual| std::env::var(name).ok().map_or(Ok(usual), |number| number.parse());
    let (crds, each) = (number("IDLE_CRDS", 500)?, number("IDLE_OBJECTS", 20)?);
    let cost = idle(crds, each, Duration::from_secs(30)).await?;
    let line = json!({
        "crds": crds, "objects": crds * each, "rssMiB": cost.rss >> 20, "peakMiB": cost.peak >> 20,
        "cpuPercent": cost.cpu * 100.0, "requests": cost.others.len(), "connections": cost.connections,
    });
    fs::write(concat!(env!("CARGO_TARGET_TMPDIR"), "/idle.json"), format!("{line}\n"))?;
    assert_eq!(cost.others, Vec::<String>::new(), "requests other than watches and those of the Lease");
    ensure!(cost.rss <= 128 << 20, "too much memory: {line}");
    ensure!(cost.cpu <= 0.02, "too much processor time: {line}");
    ensure!(cost.connections <= 40, "too many connections: {line}");
    Ok(())
}

/// What was measured.
struct Cost {
    /// Bytes of memory in use.
    rss: u64,
    /// Bytes of memory in use at most since it was started.
    peak: u64,
    /// Processor time by time.
    cpu: f64,
    /// TCP connections that are open.
    connections: usize,
    /// Requests that are neither watches nor about the Lease.
    others: Vec<String>,
}

/// Lets an operator finish its work, and watches it doing nothing for a while.
async fn idle(crds: usize, objects: usize, time: Duration) -> Result<Cost> {
    let scene = Scene::start(&[GROUP]).await?;
    let cluster = &scene.cluster;
    let made = stream::iter(0..crds).map(|index| make(cluster, index, objects)).buffer_unordered(8);
    made.try_collect::<()>().await?;
    let operator = scene.operator(&[])?;
    let reports = "/apis/etch-operator.io/v1alpha1/defaultsreports";
    eventually(Duration::from_secs(400), "every CRD is finished", async || {
        let all = cluster.get(reports).await?;
        let all = all["items"].as_array().cloned().unwrap_or_default();
        let finished = all.iter().filter(|report| report["status"]["state"] == "AllPersisted").count();
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok((finished == crds).then_some(()))
    })
    .await?;
    // The last conditions come back as news and are looked at once more, events that wait go out, some each second, and
    // permissions are looked at until half a minute after the last work.
    tokio::time::sleep(Duration::from_secs(45 + crds as u64 / 5)).await;
    let seen = scene.requests(|_| true)?.len();
    let before = processor_time(operator.id()?)?;
    tokio::time::sleep(time).await;
    let spent = processor_time(operator.id()?)? - before;
    let others = scene.requests(|_| true)?.split_off(seen);
    let others = others
        .iter()
        .filter(|event| event["verb"] != "watch" && event["objectRef"]["resource"] != "leases")
        .map(|event| format!("{} {}", event["verb"], event["requestURI"]))
        .collect();
    let cost = Cost {
        rss: memory(operator.id()?)?,
        peak: peak_memory(operator.id()?)?,
        cpu: spent / time.as_secs_f64(),
        connections: connections(operator.id()?)?,
        others,
    };
    operator.stop().await?;
    Ok(cost)
}

async fn make(cluster: &Cluster, number: usize, objects: usize) -> Result<()> {
    let kind = format!("Widget{number:03}x");
    let schema = json!({ "type": "object", "properties": { "spec": { "type": "object", "properties": {
        "size": { "type": "integer" },
        "color": { "type": "string", "default": "green" },
        "limits": { "type": "object", "default": {}, "properties": {
            "cpu": { "type": "string", "default": "1" }, "memory": { "type": "string", "default": "1Gi" } } },
    }}}});
    cluster.apply_crd(&crd(GROUP, &kind, &[("v1", true, schema)])).await?;
    let collection = format!("/apis/{GROUP}/v1/namespaces/default/{}s", kind.to_lowercase());
    for index in 0..objects {
        let object: Value = json!({
            "apiVersion": format!("{GROUP}/v1"), "kind": kind,
            "metadata": { "name": format!("object-{index}") }, "spec": { "size": index },
        });
        cluster.create(&collection, "user", &object).await?;
    }
    Ok(())
}

/// TCP connections of a process that are established.
fn connections(process: u32) -> Result<usize> {
    let mut sockets = HashSet::new();
    for file in fs::read_dir(format!("/proc/{process}/fd"))? {
        // A file may be closed meanwhile.
        let Ok(target) = fs::read_link(file?.path()) else { continue };
        let inode = target.to_str().and_then(|target| target.strip_prefix("socket:[")?.strip_suffix(']'));
        sockets.extend(inode.map(str::to_owned));
    }
    let tables = ["tcp", "tcp6"].map(|table| fs::read_to_string(format!("/proc/{process}/net/{table}")));
    let tables = tables.into_iter().collect::<Result<Vec<_>, _>>()?;
    // The fourth field is the state, where 01 is established, and the tenth the inode of the socket.
    let is_open = |line: &&str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        fields.get(3) == Some(&"01") && fields.get(9).is_some_and(|inode| sockets.contains(*inode))
    };
    Ok(tables.iter().flat_map(|table| table.lines()).filter(is_open).count())
}
