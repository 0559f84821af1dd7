//! A control plane with a few hundred objects in two namespaces, and the commands that work on them by hand.
//! The tests read the right results from etcd.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::cluster::{Cluster, crd, eventually};
use e2e::control_plane::{ControlPlane, Options};
use e2e::process::{self, Ended};
use futures::stream::{self, StreamExt, TryStreamExt};
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) const GROUP: &str = "hand.example.com";

/// A running control plane, and a CRD whose objects lack its default in etcd.
pub(crate) struct Hand {
    pub(crate) cluster: Cluster,
    pub(crate) control_plane: ControlPlane,
    pub(crate) dir: TempDir,
}

impl Hand {
    /// A control plane with nothing in it.
    pub(crate) async fn empty() -> Result<Self> {
        let dir = tempfile::tempdir()?;
        let control_plane = ControlPlane::start(Options::new(dir.path().join("cluster"))).await?;
        let cluster = Cluster::of(&control_plane).await?;
        Ok(Self { cluster, control_plane, dir })
    }

    /// Objects in these namespaces, `t0000` and so on, from before `spec.size` had its default 1; all lack it
    /// in etcd.
    pub(crate) async fn with(objects: &[(&str, usize)]) -> Result<Self> {
        let hand = Self::empty().await?;
        hand.cluster.apply_crd(&things(None)).await?;
        for (namespace, count) in objects {
            if *namespace != "default" {
                let document =
                    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } });
                hand.cluster.create("/api/v1/namespaces", "admin", &document).await?;
            }
            hand.make(namespace, *count).await?;
        }
        hand.cluster.apply_crd(&things(Some(1))).await?;
        if let Some((namespace, _)) = objects.first() {
            hand.shows(&format!("{}/t0000", collection(namespace)), 1).await?;
        }
        Ok(hand)
    }

    async fn make(&self, namespace: &str, count: usize) -> Result<()> {
        let path = collection(namespace);
        let made = stream::iter(0..count).map(|index| {
            let path = &path;
            async move { self.cluster.create(path, "creator", &thing(index)).await.map(drop) }
        });
        made.buffer_unordered(16).try_collect().await
    }

    /// Waits until a reader sees a size: a changed schema is served some milliseconds after the change.
    pub(crate) async fn shows(&self, path: &str, size: i64) -> Result<()> {
        eventually(Duration::from_secs(60), &format!("{path} shows {size}"), async || {
            Ok((self.cluster.get(path).await?["spec"]["size"] == size).then_some(()))
        })
        .await
    }

    /// What etcd holds of all objects, by namespace and name, as the bytes of it.
    pub(crate) async fn raw(&self) -> Result<BTreeMap<String, Vec<u8>>> {
        let prefix = format!("/registry/{GROUP}/things/");
        let values = self.cluster.etcd().list(&prefix).await?;
        Ok(values
            .into_iter()
            .map(|value| (value.key.trim_start_matches(&prefix).to_owned(), value.bytes))
            .collect())
    }

    /// The objects whose default etcd holds, in order.
    pub(crate) async fn stored(&self) -> Result<Vec<String>> {
        let mut stored = Vec::new();
        for (name, bytes) in self.raw().await? {
            let object: Value = serde_json::from_slice(&bytes)?;
            if !object["spec"]["size"].is_null() {
                stored.push(name);
            }
        }
        Ok(stored)
    }

    /// A command, as the administrator.
    pub(crate) fn command(&self, arguments: &[&str]) -> Result<Command> {
        process::command(&self.kubeconfig(), arguments)
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.control_plane.kubeconfig(0)
    }

    /// Runs a command to its end, as the administrator.
    pub(crate) fn etch(&self, arguments: &[&str]) -> Result<Ended> {
        process::etch(&self.kubeconfig(), arguments)
    }

    /// Runs a command that is to fail without output; returns its error.
    pub(crate) fn refused(&self, arguments: &[&str]) -> Result<String> {
        let ended = self.etch(arguments)?;
        ensure!(ended.code == Some(2) && ended.out.is_empty(), "{arguments:?}: {ended:?}");
        ensure!(ended.err.lines().count() == 1, "{arguments:?}: one line: {}", ended.err);
        Ok(ended.err)
    }
}

/// The CRD, with this default for `spec.size`, or none.
pub(crate) fn things(default: Option<i64>) -> Value {
    let mut size = json!({ "type": "integer" });
    if let Some(default) = default {
        size["default"] = default.into();
    }
    let schema = json!({ "type": "object", "properties": {
        "spec": { "type": "object", "properties": { "size": size, "note": { "type": "string" } } },
    }});
    crd(GROUP, "Thing", &[("v1", true, schema)])
}

fn thing(index: usize) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "Thing",
        "metadata": { "name": format!("t{index:04}") }, "spec": { "note": "n" },
    })
}

/// Where the objects of a namespace are.
pub(crate) fn collection(namespace: &str) -> String {
    format!("/apis/{GROUP}/v1/namespaces/{namespace}/things")
}
