//! The migration from before Kubernetes had its own: kube-storage-version-migrator, which writes each object
//! as it has read it.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;
use tokio::process::{Child, Command};

use super::in_tree::has_succeeded;
use crate::bench::objects::{GROUP, PLURAL};
use crate::cluster::{Cluster, crd, eventually};
use crate::install::Tool;

const OWN_GROUP: &str = "migration.k8s.io";
const KIND: &str = "StorageVersionMigration";
/// What its own manifests set.
const FLAGS: [&str; 2] = ["--kube-api-qps=40", "--kube-api-burst=1000"];

/// A process of it; killed when dropped.
pub(super) struct Migrator {
    process: Child,
}

impl Migrator {
    /// Builds it, installs its CRD, and starts it as the administrator.
    pub(super) async fn start(cluster: &Cluster, kubeconfig: &Path) -> Result<Self> {
        let anything = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        let mut migrations = crd(OWN_GROUP, KIND, &[("v1alpha1", true, anything)]);
        migrations["spec"]["scope"] = json!("Cluster");
        migrations["metadata"]["annotations"] =
            json!({ "api-approved.kubernetes.io": "unapproved, only for a benchmark" });
        cluster.apply_crd(&migrations).await?;
        let log = tempfile::tempfile()?;
        let process = Command::new(Tool::Migrator.program()?)
            .arg(format!("--kubeconfig={}", kubeconfig.display()))
            .args(FLAGS)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .context("the migrator cannot be started")?;
        Ok(Self { process })
    }

    /// Its process id.
    pub(super) fn id(&self) -> Result<u32> {
        self.process.id().context("the migrator has ended")
    }

    /// Has all objects stored.
    pub(super) async fn store(&self, cluster: &Cluster, name: &str, limit: Duration) -> Result<()> {
        let migration = json!({
            "apiVersion": format!("{OWN_GROUP}/v1alpha1"), "kind": KIND, "metadata": { "name": name },
            "spec": { "resource": { "group": GROUP, "version": "v1", "resource": PLURAL } },
        });
        let collection = format!("/apis/{OWN_GROUP}/v1alpha1/storageversionmigrations");
        cluster.create(&collection, "bench", &migration).await?;
        let path = format!("{collection}/{name}");
        eventually(limit, "the migration has ended", async || has_succeeded(&cluster.get(&path).await?)).await
    }
}
