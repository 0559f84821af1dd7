//! etcd that goes back to an earlier state under a running operator.
//!
//! The values are put back as they were, at revisions that rise again, as
//! `etcdutl snapshot restore --bump-revision` has it: no watch shows what they hold.

use anyhow::{Result, ensure};
use e2e::cluster::{GUARD, eventually};
use e2e::scene::Scene;
use e2e::widgets::Widgets;
use serde_json::json;

const GROUP: &str = "restored.example.com";
const LEASE: &str = "/registry/leases/etch-system/etch";

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_to_before_the_pass_is_found_by_the_lease_and_mended() -> Result<()> {
    let scene = Scene::start(&[GROUP]).await?;
    let cluster = &scene.cluster;
    let mut widgets = Widgets::create(cluster, GROUP, "Widget", 5).await?;
    scene.policy("default", json!({ "paused": true })).await?;
    let operator = scene.operator(&[])?;
    widgets.add_default().await?;
    cluster.persisted(&widgets.crd(), "Paused", GUARD).await?;
    let mut before = Vec::new();
    for prefix in [
        &format!("/registry/{GROUP}/"),
        "/registry/apiextensions.k8s.io/customresourcedefinitions/widgets.",
        "/registry/etch-operator.io/defaultsreports/",
        LEASE,
    ] {
        let found = cluster.etcd().list(prefix).await?;
        ensure!(!found.is_empty(), "nothing below {prefix}");
        before.extend(found.into_iter().map(|raw| (raw.key, raw.bytes)));
    }
    scene.policy("default", json!({ "paused": false })).await?;
    widgets.stored().await?;
    // The Lease shows the restore if it has been renewed since.
    let renewed = async || {
        let found = cluster.etcd().list(LEASE).await?;
        Ok(found.iter().all(|raw| !before.contains(&(raw.key.clone(), raw.bytes.clone()))).then_some(()))
    };
    eventually(GUARD, "the Lease is renewed", renewed).await?;
    cluster.etcd().put_all(before).await?;
    ensure!(widgets.missing().await? == 5, "the pass is undone");
    widgets.stored().await?;
    operator.stop().await
}
