//! A control plane with objects in ten states, and the commands that look at them.
//! The tests read the right answers from etcd.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::cluster::{Cluster, Patch, eventually};
use e2e::control_plane::{ControlPlane, Options, object_key};
use e2e::process::{self, Ended, Printed};
use futures::stream::{self, StreamExt, TryStreamExt};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::objects::{Deed, GROUP, Made, collection, objects, pair_schema, pairs, tab_schema, tabs};

/// Requests that are sent at once while the stage is set.
const AT_ONCE: usize = 16;

/// A running control plane, and the states of its objects.
pub(crate) struct Stage {
    pub(crate) cluster: Cluster,
    pub(crate) endpoint: String,
    dir: TempDir,
    _control_plane: ControlPlane,
}

impl Stage {
    pub(crate) async fn start() -> Result<Self> {
        let dir = tempfile::tempdir()?;
        let control_plane = ControlPlane::start(Options::new(dir.path().join("cluster"))).await?;
        let cluster = Cluster::of(&control_plane).await?;
        let endpoint = control_plane.etcd_url().to_owned();
        let stage = Self { cluster, endpoint, dir, _control_plane: control_plane };
        stage.set().await?;
        Ok(stage)
    }

    /// Objects from before there were defaults, the upgrade that brings them, and what is done to some
    /// objects after it.
    async fn set(&self) -> Result<()> {
        let Self { cluster, .. } = self;
        cluster.apply_crd(&tabs(&tab_schema(false))).await?;
        cluster.apply_crd(&pairs(&[("v1beta1", true, pair_schema(&[]))])).await?;
        let objects = objects();
        at_once(&objects, async |made| {
            let document = made.document();
            let version = document["apiVersion"].as_str().and_then(|text| text.rsplit('/').next());
            let version = version.context("a version")?;
            match made.form.applied {
                true => cluster.patch(&made.path(version), Patch::Apply, "owner", &document).await?.ok(),
                false => cluster.create(&collection(version, made.plural()), "creator", &document).await,
            }
        })
        .await?;
        cluster.apply_crd(&tabs(&tab_schema(true))).await?;
        let (b, color) = (("b", json!(2)), ("color", json!("red")));
        let old = pair_schema(std::slice::from_ref(&b));
        let both = [("v1beta1", false, old), ("v1", true, pair_schema(&[b, color]))];
        cluster.apply_crd(&pairs(&both)).await?;
        self.shows(&format!("{}/phantom-0", collection("v1", "tabs")), "/spec/a").await?;
        self.shows(&format!("{}/gap-0", collection("v1", "pairs")), "/spec/b").await?;
        at_once(&objects, async |made| {
            for deed in made.form.then {
                self.does(made, *deed).await.with_context(|| format!("{deed:?}"))?;
            }
            Ok(Value::Null)
        })
        .await
    }

    async fn does(&self, made: &Made, deed: Deed) -> Result<()> {
        let (now, old) = (made.path("v1"), made.path("v1beta1"));
        let answer = match deed {
            Deed::Merge => self.cluster.patch(&now, Patch::Merge, "x", &json!({})).await?,
            Deed::MergeOld => self.cluster.patch(&old, Patch::Merge, "x", &json!({})).await?,
            Deed::Json => self.cluster.patch(&now, Patch::Json, "x", &json!([])).await?,
            Deed::ApplyNote => {
                let mut document = made.document();
                document["spec"] = json!({ "note": "n" });
                self.cluster.patch(&now, Patch::Apply, "x", &document).await?
            }
            Deed::Write(a, color) => {
                let written = json!({ "spec": { "a": a, "color": color } });
                self.cluster.patch(&now, Patch::Merge, "x", &written).await?
            }
            Deed::ClearOwners => return self.clear_owners(made).await,
        };
        answer.ok().map(drop)
    }

    /// Waits until a reader sees a value: a changed schema is served some milliseconds after the change.
    pub(crate) async fn shows(&self, path: &str, place: &str) -> Result<()> {
        eventually(Duration::from_secs(20), &format!("{path} shows {place}"), async || {
            let object = self.cluster.get(path).await?;
            Ok(object.pointer(place).is_some().then_some(()))
        })
        .await
    }

    /// Takes the owners off an object without storing anything else.
    async fn clear_owners(&self, made: &Made) -> Result<()> {
        let key = object_key(GROUP, made.plural(), Some("default"), &made.name);
        let (bytes, _) = self.cluster.etcd().get(&key).await?.context("the object")?;
        let mut object: Value = serde_json::from_slice(&bytes)?;
        object["metadata"].as_object_mut().context("metadata")?.remove("managedFields");
        self.cluster.etcd().put_json(&key, &object).await
    }

    /// What etcd holds of all objects of a type, by their names.
    pub(crate) async fn raw(&self, plural: &str) -> Result<BTreeMap<String, Value>> {
        let values = self.cluster.etcd().list(&format!("/registry/{GROUP}/{plural}/")).await?;
        let name = |key: &str| key.rsplit('/').next().unwrap_or_default().to_owned();
        values.iter().map(|value| Ok((name(&value.key), serde_json::from_slice(&value.bytes)?))).collect()
    }

    /// What readers see of all objects of a type at a version, by their names.
    pub(crate) async fn read(&self, version: &str, plural: &str) -> Result<BTreeMap<String, Value>> {
        let list = self.cluster.get(&format!("/apis/{GROUP}/{version}/{plural}")).await?;
        let items = list["items"].as_array().context("items")?;
        Ok(items
            .iter()
            .map(|item| (item["metadata"]["name"].as_str().unwrap_or_default().to_owned(), item.clone()))
            .collect())
    }

    /// Runs a command as the administrator, with its output in JSON.
    pub(crate) fn etch(&self, arguments: &[&str]) -> Result<Printed> {
        let ended = etch(&self.dir.path().join("cluster/kubeconfig"), arguments)?;
        ensure!(matches!(ended.code, Some(0 | 1)), "{arguments:?}: {ended:?}");
        ended.try_into()
    }

    /// A file in the directory of the stage.
    pub(crate) fn file(&self, name: &str, content: &[u8]) -> Result<PathBuf> {
        let path = self.dir.path().join(name);
        std::fs::write(&path, content)?;
        Ok(path)
    }

    /// A snapshot in a file.
    pub(crate) async fn snapshot(&self) -> Result<PathBuf> {
        self.file("snapshot.db", &self.cluster.etcd().snapshot().await?)
    }
}

/// Runs a command as the holder of a kubeconfig, with its output in JSON.
pub(crate) fn etch(kubeconfig: &Path, arguments: &[&str]) -> Result<Ended> {
    process::etch(kubeconfig, &[arguments, &["-o", "json"]].concat())
}

/// Does something with each object, with several at a time.
pub(crate) async fn at_once(objects: &[Made], act: impl AsyncFn(&Made) -> Result<Value>) -> Result<()> {
    let acts = stream::iter(objects).map(|made| {
        let act = &act;
        async move { act(made).await.with_context(|| made.name.clone()) }
    });
    acts.buffer_unordered(AT_ONCE).try_for_each(async |_| Ok(())).await
}
