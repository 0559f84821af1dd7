//! A default is stored, and then its field goes: the value has no owner, and no read shows it. A rollback
//! costs it nothing, on a real control plane.
//!
//! What is claimed is read from etcd.

use anyhow::{Result, ensure};
use e2e::cluster::{Cluster, GUARD, Patch, crd, eventually, with_spec};
use e2e::scene::Scene;
use serde_json::{Value, json};

const GROUP: &str = "rollback.example.com";
const WIDGETS: &str = "widgets.rollback.example.com";
const NAMES: [&str; 2] = ["one", "two"];

/// The CRD with these integers of `spec`, each with its default.
fn widgets(defaults: &[(&str, i64)]) -> Value {
    let mut spec = json!({ "note": { "type": "string" } });
    for (name, default) in defaults {
        spec[*name] = json!({ "type": "integer", "default": default });
    }
    crd(GROUP, "Widget", &[("v1", true, with_spec(&spec))])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollback_writes_nothing_and_the_next_upgrade_holds_what_it_would_destroy() -> Result<()> {
    let scene = Scene::start(&[GROUP]).await?;
    let cluster = &scene.cluster;
    cluster.apply_crd(&widgets(&[("b", 1)])).await?;
    for name in NAMES {
        apply(cluster, name).await?;
    }
    scene.policy("widgets", json!({ "selector": { "names": [WIDGETS] } })).await?;
    let operator = scene.operator(&[])?;
    cluster.persisted(WIDGETS, "AllPersisted", GUARD).await?;
    operator.stop().await?;
    // As if all of this had been long ago: every server serves this schema.
    let report = format!("/apis/etch-operator.io/v1alpha1/defaultsreports/{WIDGETS}/status");
    let verified = json!({ "status": { "verifyAt": null } });
    cluster.patch(&report, Patch::Merge, "e2e", &verified).await?.ok()?;
    let operator = scene.operator(&[])?;
    let both = widgets(&[("a", 2), ("b", 1)]);
    upgrade(&scene, &both).await?;
    let stored = raws(cluster).await?;
    ensure!(stored.iter().all(|raw| raw["spec"]["a"] == 2), "{stored:?}");
    // This was verified as well: else it proves nothing once another schema has come.
    operator.stop().await?;
    cluster.patch(&report, Patch::Merge, "e2e", &verified).await?.ok()?;
    let operator = scene.operator(&[])?;

    // The rollback of the first upgrade. Once every server serves the schema, it is verified.
    let back = scene.file("back.yaml", &widgets(&[("b", 1)]).to_string())?;
    let etcd = format!("--etcd-endpoints={}", scene.control_plane.etcd_url());
    for source in ["--live", &etcd] {
        let (_, reported) = scene.etch_json(&["impact", "-f", &back, source])?;
        let counts = &reported["crds"][0]["objects"];
        ensure!(
            counts["hidden"] == 2 && counts["held"] == 0 && counts["dropped"] == 0,
            "{source:?}: {counts}"
        );
    }
    upgrade(&scene, &widgets(&[("b", 1)])).await?;
    operator.stop().await?;
    scene.verify_now(WIDGETS).await?;
    let operator = scene.operator(&[])?;
    let state = eventually(GUARD, "the verification has ended", async || {
        let status = scene.report(WIDGETS).await?["status"].clone();
        let is_over = status["formerDefaults"][0]["until"].is_string();
        Ok(is_over.then_some(status["state"].clone()))
    })
    .await?;
    ensure!(state == "AllPersisted", "{state}");
    ensure!(raws(cluster).await? == stored, "a rollback was written");
    // A user's write after that takes the value with it.
    let edit = json!({ "spec": { "note": "later" } });
    cluster.patch(&path("two"), Patch::Merge, "user", &edit).await?.ok()?;
    scene.barrier().await?;
    let after = raws(cluster).await?;
    ensure!(after[0] == stored[0] && after[1]["spec"]["a"].is_null(), "{after:?}");

    // Another upgrade: a write would destroy what is hidden in the one, and nothing in the other.
    let other = widgets(&[("b", 1), ("c", 3)]);
    let file = scene.file("other.yaml", &other.to_string())?;
    let reported = scene.etch(&["impact", "--live", "-f", &file, "-o", "json"])?;
    ensure!(reported.out.contains("HiddenFields"), "{reported:?}");
    cluster.apply_crd(&other).await?;
    let condition = cluster.persisted(WIDGETS, "HiddenFields", GUARD).await?;
    ensure!(condition.message.contains(".spec.a (default/one)"), "{condition:?}");
    let held = raws(cluster).await?;
    ensure!(held[0] == stored[0] && held[1]["spec"]["c"] == 3, "{held:?}");

    // The field is back, and its value with it. In the other object it would now cost that of the last
    // upgrade.
    cluster.apply_crd(&both).await?;
    eventually(GUARD, "the other object is held", async || {
        let condition = cluster.condition(WIDGETS, "DefaultsPersisted").await?;
        Ok(condition.filter(|condition| condition.message.contains(".spec.c (default/two)")).map(drop))
    })
    .await?;
    ensure!(raws(cluster).await? == held, "something was written");
    let shown = cluster.get(&path("one")).await?;
    ensure!(shown["spec"]["a"] == 2 && raws(cluster).await?[0] == stored[0], "{shown}");

    // A policy lets it go.
    let drop = json!({ "selector": { "names": [WIDGETS] }, "hiddenFields": "Drop" });
    scene.policy("widgets", drop).await?;
    upgrade(&scene, &other).await?;
    let dropped = &raws(cluster).await?[0];
    ensure!(dropped["spec"]["a"].is_null() && dropped["spec"]["c"] == 3, "{dropped}");
    let report = scene.report(WIDGETS).await?;
    ensure!(report["status"]["dropped"][0]["path"] == ".spec.a", "{report:#}");
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn persist_remembers_what_it_has_stored() -> Result<()> {
    let scene = Scene::start(&[]).await?;
    let cluster = &scene.cluster;
    cluster.apply_crd(&widgets(&[("b", 1)])).await?;
    for name in NAMES {
        apply(cluster, name).await?;
    }
    cluster.apply_crd(&widgets(&[("a", 2), ("b", 1)])).await?;
    let reported = scene.etch(&["persist", "widgets"])?;
    ensure!(reported.code == Some(0), "{reported:?}");
    let stored = raws(cluster).await?;
    ensure!(stored.iter().all(|raw| raw["spec"]["a"] == 2), "{stored:?}");
    cluster.apply_crd(&widgets(&[("b", 1), ("c", 3)])).await?;
    for arguments in [&["persist", "widgets"][..], &["persist", "widgets", "--every-object"]] {
        let reported = scene.etch(arguments)?;
        ensure!(
            reported.code == Some(1)
                && reported.out.contains("HiddenFields")
                && reported.out.contains(".spec.a"),
            "{reported:?}"
        );
        ensure!(raws(cluster).await? == stored, "something was written");
    }
    let drop = ["persist", "widgets", "--hidden-fields", "drop", "--dry-run"];
    let text = scene.etch(&drop)?.out;
    ensure!(text.contains(" drop ") && text.contains("(drops .spec.a)"), "{text}");
    ensure!(raws(cluster).await? == stored, "something was written");
    let reported = scene.etch(&drop[..4])?;
    ensure!(reported.code == Some(0), "{reported:?}");
    ensure!(reported.out.contains("DROPPED") && reported.out.contains(".spec.a"), "{reported:?}");
    let dropped = raws(cluster).await?;
    ensure!(dropped.iter().all(|raw| raw["spec"]["a"].is_null() && raw["spec"]["c"] == 3), "{dropped:?}");
    Ok(())
}

/// Has the CRD be this, and waits until the operator is done with it.
async fn upgrade(scene: &Scene, crd: &Value) -> Result<()> {
    let generation = scene.cluster.apply_crd(crd).await?["metadata"]["generation"].clone();
    eventually(GUARD, "the pass has ended", async || {
        let report = scene.report(WIDGETS).await?;
        let status = &report["status"];
        let is_over = status["generation"] == generation && status["finished"].is_string();
        Ok((is_over && status["state"] == "AllPersisted").then_some(()))
    })
    .await
}

async fn apply(cluster: &Cluster, name: &str) -> Result<Value> {
    let widget = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "Widget", "metadata": { "name": name },
        "spec": { "note": "mine" },
    });
    cluster.patch(&path(name), Patch::Apply, "user", &widget).await?.ok()
}

fn path(name: &str) -> String {
    format!("/apis/{GROUP}/v1/namespaces/default/widgets/{name}")
}

/// What etcd holds of each object.
async fn raws(cluster: &Cluster) -> Result<Vec<Value>> {
    let mut raws = Vec::new();
    for name in NAMES {
        raws.push(cluster.raw(GROUP, "widgets", Some("default"), name).await?);
    }
    Ok(raws)
}
