//! How much memory the operator takes while many large objects of several CRDs are stored, and change all at
//! once.

use std::time::Duration;

use anyhow::{Context, Result};
use futures::stream::{self, StreamExt, TryStreamExt};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::cluster::{Cluster, Patch, crd, plural, with_spec};
use crate::scene::Scene;
use crate::usage::peak_memory;

/// Mebibytes that are wanted at most.
pub const WANTED: u64 = 96;
const GROUP: &str = "large.example.com";
const KINDS: [&str; 3] = ["One", "Two", "Three"];
/// How long everything may take: a guard against hanging.
const GUARD: Duration = Duration::from_secs(1_800);
/// Requests at once.
const AT_ONCE: usize = 8;
/// How many bytes of JSON an entry of an object has.
const ENTRY: usize = 42;

/// What was measured, in MiB.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// How many objects each of three CRDs has.
    pub objects: usize,
    /// Their size in bytes.
    pub bytes: usize,
    /// How often all of them changed.
    pub rounds: usize,
    /// The most that the operator had until all defaults were stored.
    pub pass: u64,
    /// The most that it ever had.
    pub peak: u64,
}

impl Measured {
    /// Whether it is as wanted.
    pub fn is_good(&self) -> bool {
        self.peak <= WANTED
    }
}

/// Measures on a control plane of its own; progress goes to `say`.
///
/// # Errors
/// The control plane or the operator does not start, or does not store what it should.
pub async fn measure(objects: usize, bytes: usize, rounds: usize, say: &dyn Fn(&str)) -> Result<Measured> {
    let scene = Scene::start(&[GROUP]).await?;
    let cluster = &scene.cluster;
    say(&format!("writing {objects} objects of {bytes} bytes for each of {} CRDs", KINDS.len()));
    for kind in KINDS {
        cluster.apply_crd(&release(kind, json!({ "type": "string" }))).await?;
    }
    each(objects, async |kind, name| {
        cluster.create(&collection(kind, "v1"), "user", &object(kind, &name, bytes)).await.map(drop)
    })
    .await?;
    for kind in KINDS {
        cluster.apply_crd(&release(kind, json!({ "type": "string", "default": "red" }))).await?;
    }
    let operator = scene.measured(&[])?;
    let peak = || Ok::<_, anyhow::Error>(peak_memory(operator.id()?)?.div_ceil(1 << 20));
    stored(cluster).await?;
    let pass = peak()?;
    say(&format!("all defaults are stored: {pass} MiB"));
    for round in 1..=rounds {
        // The version has no default: of each write Etch has to find out what it stored.
        each(objects, async |kind, name| {
            let change = json!({ "metadata": { "annotations": { "round": round.to_string() } } });
            let path = format!("{}/{name}", collection(kind, "v1beta1"));
            cluster.patch(&path, Patch::Merge, "user", &change).await?.ok().map(drop)
        })
        .await?;
        scene.barrier().await?;
        stored(cluster).await?;
        say(&format!("round {round}: {} MiB", peak()?));
    }
    let measured = Measured { objects, bytes, rounds, pass, peak: peak()? };
    operator.stop().await?;
    Ok(measured)
}

/// Does this for each object.
async fn each(objects: usize, act: impl AsyncFn(&'static str, String) -> Result<()>) -> Result<()> {
    let all = (0..objects).flat_map(|index| KINDS.map(|kind| (kind, format!("object-{index:03}"))));
    let acts = all.map(|(kind, name)| act(kind, name));
    stream::iter(acts).buffer_unordered(AT_ONCE).try_collect().await
}

async fn stored(cluster: &Cluster) -> Result<()> {
    for kind in KINDS {
        let name = format!("{}.{GROUP}", plural(kind));
        cluster.persisted(&name, "AllPersisted", GUARD).await.context(name)?;
    }
    Ok(())
}

fn collection(kind: &str, version: &str) -> String {
    format!("/apis/{GROUP}/{version}/namespaces/default/{}", plural(kind))
}

/// The CRD whose storage version has this field.
fn release(kind: &str, color: Value) -> Value {
    let data = json!({ "type": "object", "additionalProperties": { "type": "string" } });
    let old = with_spec(json!({ "data": data }));
    let new = with_spec(json!({ "data": data, "color": color }));
    crd(GROUP, kind, &[("v1beta1", false, old), ("v1", true, new)])
}

/// An object of about this size, with as many small values as it has room for: parsed, those take the most.
fn object(kind: &str, name: &str, bytes: usize) -> Value {
    let entry = |number| (format!("key-{number:06}"), json!(format!("value-of-{number:06}-xxxxxxxx")));
    let data: Map<String, Value> = (0..bytes / ENTRY).map(entry).collect();
    json!({ "apiVersion": format!("{GROUP}/v1"), "kind": kind, "metadata": { "name": name },
        "spec": { "data": data } })
}
