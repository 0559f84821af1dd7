//! What an operator costs that has nothing to do: memory, processor time, and requests.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use e2e::cluster::{Cluster, GUARD, crd, documents, eventually, with_spec};
use e2e::corpus::{text, without_webhook};
use e2e::environment::number;
use e2e::operator::Operator;
use e2e::ports::free_port;
use e2e::probe;
use e2e::scene::Scene;
use e2e::usage::{memory, peak_memory, processor_time};
use etch_core::crd::Crd;
use futures::{StreamExt, TryStreamExt, stream};
use kube_structural_schema::json::Json;
use serde_json::{Value, json};

const GROUP: &str = "idle.example.com";
const CRD: &str = "CustomResourceDefinition";

/// How long `/readyz` may take from the start, in a cluster of any size.
const READY: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_operator_asks_for_nothing() -> Result<()> {
    const CRDS: usize = 40;
    let crds = Crds::Made(Made { crds: CRDS, each: 2, ..Made::default() });
    let operator = AtRest::of(&crds).await?;
    let cost = operator.idle(Duration::from_secs(6)).await?;
    operator.process.stop().await?;
    assert_eq!(cost.others, Vec::<String>::new(), "requests other than watches and those of the Lease");
    // Each of them is watched, and those of the pass are closed.
    assert!(cost.connections < CRDS / 2, "{} connections", cost.connections);
    Ok(())
}

/// What is promised for a big cluster: at most 96 MiB, even during the passes, 2 % of a core, and 40
/// connections. `IDLE_CRDS` and `IDLE_OBJECTS` are other numbers of CRDs, and of objects of each.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes, and measures only on an otherwise idle machine: `just idle`"]
async fn five_hundred_crds_of_twenty_objects() -> Result<()> {
    let (crds, each) = (number("IDLE_CRDS")?.unwrap_or(500), number("IDLE_OBJECTS")?.unwrap_or(20));
    measure(&Crds::Made(Made { crds, each, ..Made::default() }), "idle", 96 << 20).await
}

/// What is promised where objects are large: at most 96 MiB.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes, and measures only on an otherwise idle machine: `just idle`"]
async fn a_thousand_objects_of_100_kb() -> Result<()> {
    let crds = Made { crds: 2, each: 500, object_bytes: 100_000, ..Made::default() };
    measure(&Crds::Made(crds), "idle-large-objects", 96 << 20).await
}

/// What is promised where schemas are large: at most 96 MiB.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes, and measures only on an otherwise idle machine: `just idle`"]
async fn three_hundred_crds_of_700_kb() -> Result<()> {
    let crds = Made { crds: number("IDLE_CRDS")?.unwrap_or(300), schema_bytes: 700_000, ..Made::default() };
    measure(&Crds::Made(crds), "idle-large-crds", 96 << 20).await
}

/// What is promised for more CRDs than clusters have: at most 160 MiB, 2 % of a core, and 40 connections.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes many minutes, and measures only on an otherwise idle machine: `just idle`"]
async fn three_thousand_crds_without_objects() -> Result<()> {
    measure(&Crds::Made(Made { crds: 3000, ..Made::default() }), "idle-crds", 160 << 20).await
}

/// What is promised for some hundred real CRDs: at most 48 MiB. `IDLE_FOLDER` is another folder of CRDs.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures only on an otherwise idle machine: `just idle`"]
async fn real_crds_without_objects() -> Result<()> {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/corpus");
    let folder = std::env::var_os("IDLE_FOLDER").unwrap_or_else(|| corpus.into());
    measure(&Crds::read(Path::new(&folder))?, "idle-real", 48 << 20).await
}

/// Writes what an idle operator costs into a file of this name, and holds it against what is promised.
async fn measure(crds: &Crds, name: &str, memory: u64) -> Result<()> {
    let mut operator = AtRest::of(crds).await?;
    let cost = operator.idle(Duration::from_secs(30)).await?;
    let peak = operator.peak_after_a_restart().await?;
    operator.process.stop().await?;
    let line = json!({
        "crds": crds.count(), "objects": crds.objects(), "rssMiB": cost.rss >> 20, "peakMiB": cost.peak >> 20,
        "peakMiBAfterRestart": peak >> 20,
        "cpuPercent": cost.cpu * 100.0, "requests": cost.others.len(), "connections": cost.connections,
        "readySeconds": cost.ready.as_secs_f64(), "finishedSeconds": cost.finished.as_secs_f64(),
    });
    fs::write(Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.json")), format!("{line}\n"))?;
    assert_eq!(cost.others, Vec::<String>::new(), "requests other than watches and those of the Lease");
    ensure!(peak <= memory, "too much memory: {line}");
    ensure!(cost.cpu <= 0.02, "too much processor time: {line}");
    ensure!(cost.connections <= 40, "too many connections: {line}");
    ensure!(cost.ready <= READY, "ready too late: {line}");
    Ok(())
}

/// The CRDs of a cluster.
enum Crds {
    /// Those of one shape.
    Made(Made),
    /// Those of others, without objects.
    Real(Vec<Value>),
}

/// CRDs of one shape.
#[derive(Clone, Copy, Default)]
struct Made {
    crds: usize,
    /// Objects of each.
    each: usize,
    /// About how large an object is, in bytes, if more than need be.
    object_bytes: usize,
    /// About how large a schema is, in bytes, if more than need be.
    schema_bytes: usize,
}

impl Crds {
    /// Reads all CRDs below a folder, each once.
    fn read(folder: &Path) -> Result<Self> {
        let mut crds = BTreeMap::new();
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder)? {
                let path = entry?.path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|end| end == "yaml") {
                    for crd in documents(&path)?.iter().filter(|document| document["kind"] == CRD) {
                        let crd = without_webhook(crd.clone())?;
                        // No API server takes one that is not structural.
                        if Crd::read(&Json::from(crd.clone())).is_ok() {
                            crds.insert(text(&crd, &["metadata", "name"])?, crd);
                        }
                    }
                }
            }
        }
        Ok(Self::Real(crds.into_values().collect()))
    }

    fn count(&self) -> usize {
        match self {
            Self::Made(made) => made.crds,
            Self::Real(crds) => crds.len(),
        }
    }

    fn objects(&self) -> usize {
        match self {
            Self::Made(made) => made.crds * made.each,
            Self::Real(_) => 0,
        }
    }

    /// How many of them have defaults, and get a report.
    fn with_defaults(&self) -> Result<usize> {
        match self {
            Self::Made(made) => Ok(made.crds),
            Self::Real(crds) => crds.iter().try_fold(0, |count, crd| {
                let has_defaults = Crd::read(&Json::from(crd.clone()))?.compiled().has_defaults();
                Ok(count + usize::from(has_defaults))
            }),
        }
    }

    fn groups(&self) -> Result<BTreeSet<String>> {
        match self {
            Self::Made(_) => Ok([GROUP.to_owned()].into()),
            Self::Real(crds) => crds.iter().map(|crd| text(crd, &["spec", "group"])).collect(),
        }
    }

    async fn make(&self, cluster: &Cluster) -> Result<()> {
        match self {
            Self::Made(made) => {
                let made = stream::iter(0..made.crds).map(|index| made.make(cluster, index));
                made.buffer_unordered(8).try_collect().await
            }
            Self::Real(crds) => {
                let made = stream::iter(crds).map(async |crd| cluster.apply_crd(crd).await.map(drop));
                made.buffer_unordered(8).try_collect().await
            }
        }
    }
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
    /// From its start until it was ready.
    ready: Duration,
    /// From its start until the first pass over every CRD was reported.
    finished: Duration,
}

/// An operator that has finished its work.
struct AtRest {
    scene: Scene,
    groups: BTreeSet<String>,
    process: Operator,
    crds: u64,
    ready: Duration,
    finished: Duration,
}

impl AtRest {
    async fn of(crds: &Crds) -> Result<Self> {
        let groups = crds.groups()?;
        let scene = Scene::start(&groups.iter().map(String::as_str).collect::<Vec<_>>()).await?;
        let cluster = &scene.cluster;
        crds.make(cluster).await?;
        let (count, wanted) = (crds.count() as u64, crds.with_defaults()?);
        let port = free_port()?;
        let begun = Instant::now();
        let process = scene.replica("idle", &[&format!("--listen=127.0.0.1:{port}")])?;
        eventually(GUARD + READY, "it is ready", async || {
            Ok(probe::is_ok(port, "/readyz").await.then_some(()))
        })
        .await?;
        let ready = begun.elapsed();
        let reports = "/apis/etch-operator.io/v1alpha1/defaultsreports";
        eventually(Duration::from_secs(300 + count * 2), "every CRD is finished", async || {
            let all = cluster.get(reports).await?;
            let all = all["items"].as_array().cloned().unwrap_or_default();
            let has_ended = |report: &&Value| report["status"]["finished"].is_string();
            let finished = all.iter().filter(has_ended).count();
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok((finished == wanted).then_some(()))
        })
        .await?;
        let finished = begun.elapsed();
        Ok(Self { scene, groups, process, crds: count, ready, finished })
    }

    /// Watches it doing nothing for a while.
    async fn idle(&self, time: Duration) -> Result<Cost> {
        let (scene, process) = (&self.scene, self.process.id()?);
        // The last conditions come back as news and are looked at once more, events that wait go out, ten
        // each second and a thousand at most, and permissions are looked at until half a minute after the
        // last work.
        tokio::time::sleep(Duration::from_secs(45 + (self.crds / 5).min(150))).await;
        let seen = scene.requests(|_| true)?.len();
        let before = processor_time(process)?;
        tokio::time::sleep(time).await;
        let spent = processor_time(process)? - before;
        let others = scene.requests(|_| true)?.split_off(seen);
        let others = others
            .iter()
            .filter(|event| event["verb"] != "watch" && event["objectRef"]["resource"] != "leases")
            // They are asked for before each watch.
            .filter(|event| event["objectRef"]["resource"] != "apiservices")
            .map(|event| format!("{} {}", event["verb"], event["requestURI"]))
            .collect();
        Ok(Cost {
            rss: memory(process)?,
            peak: peak_memory(process)?,
            cpu: spent / time.as_secs_f64(),
            connections: connections(process)?,
            others,
            ready: self.ready,
            finished: self.finished,
        })
    }

    /// Restarts the API server, whose memory of what happened before is lost, so that each watch expires; the
    /// most bytes that the operator has had since it was started.
    async fn peak_after_a_restart(&mut self) -> Result<u64> {
        let before = self.watched_since(0)?;
        self.scene.control_plane.stop_apiserver(0).await?;
        let seen = self.scene.requests(|_| true)?.len();
        self.scene.control_plane.start_apiserver(0).await?;
        eventually(Duration::from_secs(300), "all is watched again", async || {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok((self.watched_since(seen)? == before).then_some(()))
        })
        .await?;
        // A watch that has begun may still get the error that it has expired.
        tokio::time::sleep(Duration::from_secs(30)).await;
        peak_memory(self.process.id()?)
    }

    /// Of which resources watches have begun since so many requests.
    fn watched_since(&self, seen: usize) -> Result<BTreeSet<String>> {
        let requests = self.scene.requests(|_| true)?;
        let of_crds = requests.iter().skip(seen).filter(|event| {
            let group = event["objectRef"]["apiGroup"].as_str();
            event["verb"] == "watch" && group.is_some_and(|group| self.groups.contains(group))
        });
        of_crds.map(|event| text(event, &["objectRef", "resource"])).collect()
    }
}

impl Made {
    async fn make(&self, cluster: &Cluster, number: usize) -> Result<()> {
        const DESCRIPTION: &str = "What this setting does, when to set it, what happens where nobody sets \
            it, which others it goes with, and since which release it has been there for whoever needs it.";
        const GROUP_SIZE: usize = 15;
        let kind = format!("Widget{number:03}x");
        let mut schema = with_spec(json!({
            "size": { "type": "integer" },
            "color": { "type": "string", "default": "green" },
            "limits": { "type": "object", "default": {}, "properties": {
                "cpu": { "type": "string", "default": "1" },
                "memory": { "type": "string", "default": "1Gi" } } },
            "text": { "type": "string" },
        }));
        // A quarter of the objects is this CRD's own; in real ones less than a tenth is.
        for group in 0..self.schema_bytes / (DESCRIPTION.len() + 50) / GROUP_SIZE {
            let owner = if group % 4 == 0 { number } else { 0 };
            let mut settings = json!({});
            for index in 0..GROUP_SIZE {
                settings[format!("setting{owner}x{group}x{index}")] =
                    json!({ "type": "string", "description": DESCRIPTION });
            }
            schema["properties"]["spec"]["properties"][format!("group{owner}x{group}")] =
                json!({ "type": "object", "properties": settings });
        }
        cluster.apply_crd(&crd(GROUP, &kind, &[("v1", true, schema)])).await?;
        let collection = format!("/apis/{GROUP}/v1/namespaces/default/{}s", kind.to_lowercase());
        for index in 0..self.each {
            let object: Value = json!({
                "apiVersion": format!("{GROUP}/v1"), "kind": kind,
                "metadata": { "name": format!("object-{index}") },
                "spec": { "size": index, "text": "x".repeat(self.object_bytes) },
            });
            cluster.create(&collection, "user", &object).await?;
        }
        Ok(())
    }
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
