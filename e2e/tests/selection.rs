//! Policies that select objects, on a real control plane. What is stored is read from etcd.

use anyhow::{Context, Result, ensure};
use e2e::cluster::{Cluster, GUARD, Patch, eventually};
use e2e::scene::{Scene, apply};
use e2e::sized_widgets::{define, names, stored};
use serde_json::{Value, json};

const GROUP: &str = "scoped.example.com";
const CRD: &str = "widgets.scoped.example.com";
const NAMESPACES: [&str; 3] = ["team-a", "team-b", "other"];
const POLICY: &str = "/apis/etch-operator.io/v1alpha1/defaultspolicies/scoped";

#[tokio::test(flavor = "multi_thread")]
async fn objects_are_stored_as_soon_as_they_are_selected() -> Result<()> {
    let scene = scene().await?;
    let cluster = &scene.cluster;
    let gold = json!([{ "key": "tier", "operator": "In", "values": ["gold"] }]);
    select(&scene, json!({ "namespaces": ["team-*"], "matchExpressions": gold })).await?;
    let operator = scene.replica("one", &[])?;
    define(cluster, GROUP, true).await?;
    let wording = cluster.persisted(CRD, "AllPersisted", GUARD).await?;
    let expected = "all 2 selected objects store their defaults; 4 not selected by DefaultsPolicy scoped";
    ensure!(wording.message == expected, "{wording:?}");
    ensure!(
        stored(cluster, GROUP).await? == names(&["team-a/gold", "team-b/gold"]),
        "{:?}",
        stored(cluster, GROUP).await?
    );
    let status = scene.report(CRD).await?["status"].clone();
    ensure!(status["counts"]["notSelected"] == 4 && status["counts"]["objects"] == 6, "{status}");
    let why = explained(&scene, "team-a", "iron")?;
    ensure!(
        why.contains("the policy selects only objects with namespaces team-*; labels tier in (gold)"),
        "{why}"
    );
    operator.stop().await?;

    // While no operator runs, the policy begins to select one more label, and one namespace less.
    let tiers = json!([{ "key": "tier", "operator": "In", "values": ["gold", "iron"] }]);
    select(&scene, json!({ "namespaces": ["team-a", "other"], "matchExpressions": tiers })).await?;
    let operator = scene.replica("two", &[])?;
    let all_but = names(&["team-a/gold", "team-b/gold", "team-a/iron", "other/gold", "other/iron"]);
    eventually(GUARD, "what is selected by now is stored", async || {
        Ok((stored(cluster, GROUP).await? == all_but).then_some(()))
    })
    .await?;
    let expected = "all 4 selected objects store their defaults; 2 not selected by DefaultsPolicy scoped";
    message(cluster, expected).await?;
    ensure!(stored(cluster, GROUP).await? == all_but, "{:?}", stored(cluster, GROUP).await?);

    // And while it runs: by the policy, and by a label that a user sets.
    select(
        &scene,
        json!({ "matchExpressions": [{ "key": "tier", "operator": "NotIn", "values": ["iron"] }] }),
    )
    .await?;
    message(cluster, "all 3 selected objects store their defaults; 3 not selected by DefaultsPolicy scoped")
        .await?;
    ensure!(stored(cluster, GROUP).await? == all_but, "{:?}", stored(cluster, GROUP).await?);
    let label = json!({ "metadata": { "labels": { "tier": "gold" } } });
    cluster.patch(&path("team-b", "iron"), Patch::Merge, "user", &label).await?.ok()?;
    message(cluster, "all 4 selected objects store their defaults; 2 not selected by DefaultsPolicy scoped")
        .await?;
    ensure!(stored(cluster, GROUP).await?.len() == 6, "{:?}", stored(cluster, GROUP).await?);
    what_the_policy_does_not_select_is_recorded_by_a_pass_over_all(&scene).await?;
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_server_refuses_a_selector_that_cannot_be_meant() -> Result<()> {
    let scene = Scene::start(&[GROUP]).await?;
    for (objects, why) in [
        (json!({ "namespaces": ["Team"] }), "names of namespaces in lower case"),
        (json!({ "excludeNamespaces": ["a_b"] }), "names of namespaces in lower case"),
        (json!({ "namespaces": ["a"], "excludeNamespaces": ["a"] }), "cannot be both"),
        (
            json!({ "matchExpressions": [{ "key": "a", "operator": "Like", "values": ["b"] }] }),
            "Unsupported value",
        ),
        (json!({ "matchExpressions": [{ "key": "a", "operator": "In" }] }), "values must be set"),
        (
            json!({ "matchExpressions": [{ "key": "a", "operator": "Exists", "values": ["b"] }] }),
            "values must be set",
        ),
        (json!({ "matchExpressions": [{ "operator": "Exists" }] }), "Required value"),
    ] {
        let policy = json!({
            "apiVersion": "etch-operator.io/v1alpha1", "kind": "DefaultsPolicy",
            "metadata": { "name": "scoped" }, "spec": { "objects": objects },
        });
        let answer = scene.cluster.patch(POLICY, Patch::Apply, "admin", &policy).await?;
        let refused = answer.ok().err().with_context(|| format!("{objects} was accepted"))?.to_string();
        ensure!(refused.contains(why), "{objects}: {refused}");
    }
    select(&scene, json!({ "matchExpressions": [{ "key": "a", "operator": "NotIn", "values": ["b"] }] }))
        .await
}

/// The operator's report does not prove these objects, and `etch persist` leaves on the CRD that it does.
async fn what_the_policy_does_not_select_is_recorded_by_a_pass_over_all(scene: &Scene) -> Result<()> {
    let unknown =
        async || Ok::<_, anyhow::Error>(scene.etch_json(&["audit", CRD])?.1["crds"][0]["unknown"].take());
    ensure!(unknown().await?.as_u64() >= Some(2), "{}", unknown().await?);
    scene.etch_json(&["persist", CRD])?;
    ensure!(unknown().await? == 0, "{}", unknown().await?);
    Ok(())
}

/// Objects without a default in three namespaces, two in each.
async fn scene() -> Result<Scene> {
    let scene = Scene::start(&[GROUP]).await?;
    define(&scene.cluster, GROUP, false).await?;
    for namespace in NAMESPACES {
        let object = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } });
        apply(&scene.cluster, &object).await?;
        for tier in ["gold", "iron"] {
            let object = json!({
                "apiVersion": format!("{GROUP}/v1"), "kind": "Widget",
                "metadata": { "name": tier, "labels": { "tier": tier } }, "spec": { "name": "n" },
            });
            let collection = format!("/apis/{GROUP}/v1/namespaces/{namespace}/widgets");
            scene.cluster.create(&collection, "creator", &object).await?;
        }
    }
    Ok(scene)
}

async fn select(scene: &Scene, objects: Value) -> Result<()> {
    scene.policy("scoped", json!({ "selector": { "groups": [GROUP] }, "objects": objects })).await
}

fn path(namespace: &str, name: &str) -> String {
    format!("/apis/{GROUP}/v1/namespaces/{namespace}/widgets/{name}")
}

async fn message(cluster: &Cluster, expected: &str) -> Result<()> {
    eventually(GUARD, expected, async || {
        let wording = cluster.persisted(CRD, "AllPersisted", GUARD).await?;
        Ok((wording.message == expected).then_some(()))
    })
    .await
}

/// What `etch explain` shows of an object, as the administrator.
fn explained(scene: &Scene, namespace: &str, name: &str) -> Result<String> {
    let (_, document) = scene.etch_json(&["explain", "--namespace", namespace, CRD, name])?;
    ensure!(document["notSelected"] == true, "{document}");
    Ok(document["defaults"][0]["reason"].as_str().context("a reason")?.to_owned())
}
