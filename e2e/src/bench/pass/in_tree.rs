//! The migration that Kubernetes brings: a StorageVersionMigration, done by kube-controller-manager.

use std::time::Duration;

use anyhow::{Result, bail};
use serde_json::{Value, json};

use crate::bench::objects::{GROUP, PLURAL};
use crate::cluster::{Cluster, eventually};

const COLLECTION: &str = "/apis/storagemigration.k8s.io/v1/storageversionmigrations";

/// Has all objects stored.
pub(super) async fn store(cluster: &Cluster, name: &str, limit: Duration) -> Result<()> {
    let migration = json!({
        "apiVersion": "storagemigration.k8s.io/v1", "kind": "StorageVersionMigration",
        "metadata": { "name": name },
        "spec": { "resource": { "group": GROUP, "resource": PLURAL } },
    });
    cluster.create(COLLECTION, "bench", &migration).await?;
    let path = format!("{COLLECTION}/{name}");
    eventually(limit, "the migration has ended", async || has_succeeded(&cluster.get(&path).await?)).await
}

/// Whether a migration has succeeded; `None` while it continues.
pub(super) fn has_succeeded(migration: &Value) -> Result<Option<()>> {
    let is = |condition: &str| {
        let conditions = migration["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        conditions.any(|other| other["type"] == condition && other["status"] == "True")
    };
    if is("Failed") {
        bail!("the migration failed");
    }
    Ok(is("Succeeded").then_some(()))
}
