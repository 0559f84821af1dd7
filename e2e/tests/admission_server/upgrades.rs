//! Upgrades of CRDs on a real control plane: their authors learn what they do to objects, in the words and
//! numbers of `etch impact`.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use e2e::cluster::{Answer, CRDS, Cluster, GUARD, Patch, crd, eventually, with_spec};
use e2e::operator::Operator;
use serde_json::{Value, json};

use crate::stage::Stage;
use crate::{WEBHOOKS, webhooks};

const GROUP: &str = "upgrades.example.com";
const NAME: &str = "tabs.upgrades.example.com";
const TABS: &str = "/apis/upgrades.example.com/v1/namespaces/default/tabs";

#[tokio::test(flavor = "multi_thread")]
async fn authors_of_upgrades_learn_what_impact_finds() -> Result<()> {
    let stage = Stage::start().await?;
    let (scene, cluster) = (&stage.scene, &stage.scene.cluster);
    scene.grant(GROUP).await?;
    scene.policy("default", json!({ "mode": "Audit" })).await?;
    // Objects from before there was a default: they show it, and do not store it.
    cluster.apply_crd(&tabs(&json!({ "size": { "type": "integer" }, "gone": { "type": "string" } }))).await?;
    for (name, spec) in [("a", json!({})), ("b", json!({ "gone": "canary" })), ("c", json!({ "size": 9 }))] {
        let tab = json!({
            "apiVersion": format!("{GROUP}/v1"), "kind": "Tab", "metadata": { "name": name }, "spec": spec,
        });
        cluster.create(TABS, "author", &tab).await?;
    }
    cluster.apply_crd(&present()).await?;
    let operator = stage.operator()?;
    eventually(GUARD, "an upgrade is warned of", async || {
        Ok((!apply(cluster, &upgrade(), "&dryRun=All").await?.warnings.is_empty()).then_some(()))
    })
    .await
    .with_context(|| reported(&operator))?;
    what_impact_finds_is_warned_of(&stage).await?;
    what_takes_nothing_away_is_silent(cluster).await?;
    metadata_is_not_asked_about(cluster).await?;

    scene.policy("default", json!({ "mode": "Audit", "guard": "Deny" })).await?;
    denied_until_it_is_allowed(&stage).await?;

    deletion_is_denied_until_it_is_allowed(cluster).await?;
    a_version_that_objects_are_stored_at_is_not_removed(cluster).await?;

    scene.policy("default", json!({ "mode": "Audit", "guard": "Off" })).await?;
    eventually(GUARD, "nobody is asked", async || Ok((webhooks(cluster, 1).await? == 0).then_some(())))
        .await?;
    a_field_is_hidden(cluster).await?;
    scene.policy("default", json!({ "mode": "Audit", "guard": "Deny" })).await?;
    eventually(GUARD, "the guard is asked again", async || {
        Ok((webhooks(cluster, 1).await? == 2).then_some(()))
    })
    .await?;
    a_migration_that_destroys_it_is_denied_until_it_is_allowed(cluster).await?;
    scene.policy("default", json!({ "mode": "Audit" })).await?;
    // There is no answer, or none in time, and nothing fails.
    operator.pause().await?;
    apply(cluster, &present(), "").await?.ok()?;
    operator.resume().await?;
    let log = std::fs::read_to_string(scene.log_path())?;
    ensure!(!log.contains("canary"), "a value is in the log");
    operator.stop().await?;
    apply(cluster, &upgrade(), "").await?.ok()?;
    let webhook = cluster.get(WEBHOOKS[1]).await?["webhooks"][0].take();
    assert_eq!(
        (&webhook["name"], &webhook["failurePolicy"]),
        (&json!(etch_admission::GUARD), &json!("Ignore"))
    );
    Ok(())
}

/// What the operator has logged, without details.
fn reported(operator: &Operator) -> String {
    let log = operator.log().unwrap_or_default();
    log.lines().filter(|line| !line.contains(" DEBUG ")).collect::<Vec<_>>().join("\n")
}

fn tabs(fields: &Value) -> Value {
    crd(GROUP, "Tab", &[("v1", true, with_spec(fields))])
}

fn present() -> Value {
    tabs(&json!({ "size": { "type": "integer", "default": 1 }, "gone": { "type": "string" } }))
}

/// A default changes, a field goes, and what is large becomes invalid.
fn upgrade() -> Value {
    tabs(&json!({ "size": { "type": "integer", "default": 5, "maximum": 8 } }))
}

/// As `kubectl apply --server-side`.
async fn apply(cluster: &Cluster, crd: &Value, query: &str) -> Result<Answer> {
    let path = format!("{CRDS}/{NAME}?fieldManager=author&force=true{query}");
    cluster.send("PATCH", &path, "application/apply-patch+yaml", serde_json::to_vec(crd)?).await
}

/// Everything that `etch impact --live` counts, and nothing else.
async fn what_impact_finds_is_warned_of(stage: &Stage) -> Result<()> {
    let found = impact(stage, &upgrade())?;
    let total = &found["objects"]["total"];
    let mut expected = BTreeSet::new();
    for place in found["summary"].as_array().context("a summary")? {
        ensure!(place["effect"] != "appears", "{place}");
        let place = (&place["objects"], place["where"].as_str().context("a place")?);
        expected.insert(format!("etch: {} of {total} objects: {}", place.0, place.1));
    }
    assert_eq!(expected.len(), 3, "{expected:?}");
    ensure!(expected.iter().any(|line| line.contains(".spec.size: it must be at most 8; ")), "{expected:?}");
    let answer = apply(&stage.scene.cluster, &upgrade(), "&dryRun=All").await?;
    ensure!(answer.code == 200, "{}", answer.body);
    assert_eq!(answer.warnings.len(), expected.len(), "{:?}", answer.warnings);
    for line in &expected {
        ensure!(answer.warnings.iter().any(|warning| warning.starts_with(line)), "{line}: {answer:?}");
    }
    let warned = |text: &str| answer.warnings.iter().any(|warning| warning == text);
    ensure!(warned("etch: 2 of 3 objects: .spec.size may change: default/a, default/b"), "{answer:?}");
    ensure!(answer.warnings.iter().all(|warning| warning.len() <= 256 && !warning.contains("canary")));
    Ok(())
}

/// What `etch impact --live` finds about a CRD.
pub(crate) fn impact(stage: &Stage, upgrade: &Value) -> Result<Value> {
    let file = stage.scene.file("upgrade.json", &upgrade.to_string())?;
    Ok(stage.scene.etch_json(&["impact", "-f", &file, "--live"])?.1["crds"][0].take())
}

async fn what_takes_nothing_away_is_silent(cluster: &Cluster) -> Result<()> {
    let mut words = present();
    words["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = json!("words");
    let more = tabs(&json!({
        "size": { "type": "integer", "default": 1 }, "gone": { "type": "string" },
        "more": { "type": "string", "default": "x" },
    }));
    for crd in [words, more] {
        let answer = apply(cluster, &crd, "&dryRun=All").await?;
        ensure!(answer.code == 200 && answer.warnings.is_empty(), "{answer:?}");
    }
    Ok(())
}

/// The API server raises the generation before it asks, and so does not ask about labels, finalizers and
/// conditions (fact C9).
async fn metadata_is_not_asked_about(cluster: &Cluster) -> Result<()> {
    let before = asked(cluster).await?;
    let metadata =
        json!({ "labels": { "a": "b" }, "annotations": { "a": "b" }, "finalizers": ["example.com/hold"] });
    for metadata in [metadata, json!({ "finalizers": null })] {
        let path = format!("{CRDS}/{NAME}");
        cluster.patch(&path, Patch::Merge, "author", &json!({ "metadata": metadata })).await?.ok()?;
    }
    apply(cluster, &upgrade(), "&dryRun=All").await?.ok()?;
    assert_eq!(asked(cluster).await?, before + 1);
    Ok(())
}

/// How often the API server has asked about an upgrade.
async fn asked(cluster: &Cluster) -> Result<u64> {
    let metrics = cluster.get("/metrics").await?;
    let name = format!("name=\"{}\"", etch_admission::GUARD);
    let lines = metrics.as_str().context("text")?.lines();
    let counts = lines
        .filter(|line| line.starts_with("apiserver_admission_webhook_request_total{") && line.contains(&name))
        .map(|line| Ok(line.rsplit(' ').next().context("a number")?.parse::<u64>()?));
    counts.sum()
}

async fn denied_until_it_is_allowed(stage: &Stage) -> Result<()> {
    let cluster = &stage.scene.cluster;
    let before = cluster.get(&format!("{CRDS}/{NAME}")).await?;
    let refused = eventually(GUARD, "an upgrade is denied", async || {
        let answer = apply(cluster, &upgrade(), "&dryRun=All").await?;
        Ok((answer.code == 403).then_some(answer))
    })
    .await?;
    let message = refused.body["message"].as_str().context("a message")?;
    ensure!(message.contains("2 of 3 objects: .spec.size may change: default/a, default/b"), "{message}");
    // Without the dry run it is the same.
    assert_eq!(apply(cluster, &upgrade(), "").await?.body["message"], message);
    let now = cluster.get(&format!("{CRDS}/{NAME}")).await?;
    assert_eq!(now["metadata"]["generation"], before["metadata"]["generation"]);
    let digest = message.rsplit("etch-operator.io/allow-upgrade: ").next().context("a digest")?;
    the_plan_allows_exactly_this_upgrade(stage, digest)?;
    let mut allowed = upgrade();
    allowed["metadata"]["annotations"] = json!({ "etch-operator.io/allow-upgrade": digest });
    let mut another = allowed.clone();
    another["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["size"]
        ["default"] = json!(6);
    assert_eq!(apply(cluster, &another, "&dryRun=All").await?.code, 403, "that is another upgrade");
    let answer = apply(cluster, &allowed, "&dryRun=All").await?;
    ensure!(answer.code == 200 && answer.warnings.len() == 3, "{answer:?}");
    apply(cluster, &allowed, "").await?.ok().map(drop)
}

fn the_plan_allows_exactly_this_upgrade(stage: &Stage, digest: &str) -> Result<()> {
    let file = stage.scene.file("upgrade.json", &upgrade().to_string())?;
    let (_, plan) = stage.scene.etch_json(&["plan", "-f", &file, "--live"])?;
    let command = format!("kubectl annotate crd {NAME} --overwrite etch-operator.io/allow-upgrade={digest}");
    let steps = plan["crds"][0]["steps"].as_array().context("steps")?;
    ensure!(steps.iter().any(|step| step["step"] == "review" && step["command"] == command), "{plan:#}");
    ensure!(steps.iter().all(|step| step["step"] != "fix"), "{plan:#}");
    // `kubectl` does not own what `author` has applied.
    let apply = steps.iter().find(|step| step["step"] == "apply").context("a step")?;
    ensure!(apply["command"].to_string().contains("--force-conflicts"), "{plan:#}");
    Ok(())
}

/// The objects of a CRD that may not be deleted stay; with the annotation they go.
/// An object of which only etcd still holds a field, and one without.
async fn a_field_is_hidden(cluster: &Cluster) -> Result<()> {
    let crates = |fields: Value| {
        let spec = json!({ "type": "object", "properties": fields });
        let schema = json!({ "type": "object", "properties": { "spec": spec } });
        crd(GROUP, "Crate", &[("v1", true, schema)])
    };
    cluster.apply_crd(&crates(json!({ "old": { "type": "string" } }))).await?;
    for (name, spec) in [("a", json!({ "old": "canary" })), ("b", json!({}))] {
        let object = json!({ "apiVersion": format!("{GROUP}/v1"), "kind": "Crate",
            "metadata": { "name": name }, "spec": spec });
        cluster.create("/apis/upgrades.example.com/v1/namespaces/default/crates", "author", &object).await?;
    }
    cluster.apply_crd(&crates(json!({ "new": { "type": "string" } }))).await.map(drop)
}

/// Kubernetes' own migrator writes all objects, past every policy.
async fn a_migration_that_destroys_it_is_denied_until_it_is_allowed(cluster: &Cluster) -> Result<()> {
    const MIGRATIONS: &str = "/apis/storagemigration.k8s.io/v1/storageversionmigrations";
    if cluster.send("GET", MIGRATIONS, "application/json", Vec::new()).await?.code == 404 {
        return Ok(());
    }
    let create = async |annotations: Value| {
        let migration = json!({ "apiVersion": "storagemigration.k8s.io/v1", "kind": "StorageVersionMigration",
            "metadata": { "name": "crates", "annotations": annotations },
            "spec": { "resource": { "group": GROUP, "resource": "crates" } } });
        let path = format!("{MIGRATIONS}?dryRun=All");
        cluster.send("POST", &path, "application/json", serde_json::to_vec(&migration)?).await
    };
    let refused = eventually(GUARD, "the migration is denied", async || {
        let answer = create(json!({})).await?;
        Ok((answer.code == 403).then_some(answer))
    })
    .await?;
    let message = refused.body["message"].as_str().context("a message")?;
    ensure!(message.contains("1 of 2 objects: the migration destroys hidden fields: default/a"), "{message}");
    ensure!(!message.contains("canary"), "{message}");
    let uid = cluster.get(&format!("{CRDS}/crates.{GROUP}")).await?["metadata"]["uid"].clone();
    let allowed = create(json!({ "etch-operator.io/allow-migration": uid })).await?;
    ensure!(allowed.code == 201 && allowed.warnings.len() == 1, "{allowed:?}");
    let other = create(json!({ "etch-operator.io/allow-migration": "another" })).await?;
    ensure!(other.code == 403, "{other:?}");
    Ok(())
}

async fn deletion_is_denied_until_it_is_allowed(cluster: &Cluster) -> Result<()> {
    let bins = "bins.upgrades.example.com";
    let (path, objects) = (format!("{CRDS}/{bins}"), "/apis/upgrades.example.com/v1/namespaces/default/bins");
    let schema = json!({ "type": "object", "properties": { "spec": { "type": "object" } } });
    cluster.apply_crd(&crd(GROUP, "Bin", &[("v1", true, schema)])).await?;
    let bin = |name: &str| {
        json!({
            "apiVersion": format!("{GROUP}/v1"), "kind": "Bin", "metadata": { "name": name },
        })
    };
    for name in ["a", "b"] {
        cluster.create(objects, "author", &bin(name)).await?;
    }
    let delete = async |query: &str| {
        cluster.send("DELETE", &format!("{path}{query}"), "application/json", Vec::new()).await
    };
    let refused = delete("").await?;
    let message = refused.body["message"].as_str().context("a message")?;
    ensure!(refused.code == 403, "{refused:?}");
    ensure!(message.contains("2 objects are deleted with it: default/a, default/b"), "{message}");
    assert_eq!(delete("?dryRun=All").await?.body["message"], message);
    let found = cluster.get(&path).await?;
    ensure!(found["metadata"]["deletionTimestamp"].is_null(), "{found}");
    let uid = found["metadata"]["uid"].as_str().context("a uid")?;
    ensure!(
        message.ends_with(&format!("kubectl annotate crd {bins} etch-operator.io/allow-deletion={uid}")),
        "{message}"
    );
    let annotations = json!({ "metadata": { "annotations": { "etch-operator.io/allow-deletion": uid } } });
    cluster.patch(&path, Patch::Merge, "author", &annotations).await?.ok()?;
    let allowed = delete("").await?;
    ensure!(allowed.code == 200 && allowed.warnings.len() == 1, "{allowed:?}");
    eventually(GUARD, "the CRD goes with its objects", async || {
        Ok((cluster.send("GET", &path, "application/json", Vec::new()).await?.code == 404).then_some(()))
    })
    .await
}

/// The API server refuses to remove a version that `status.storedVersions` names, and takes it if a user has
/// shortened that list. The object is unreadable then, as the guard warned its author.
async fn a_version_that_objects_are_stored_at_is_not_removed(cluster: &Cluster) -> Result<()> {
    let jars = "jars.upgrades.example.com";
    let (path, object) = (format!("{CRDS}/{jars}"), "/apis/upgrades.example.com/v1/namespaces/default/jars");
    let schema = || json!({ "type": "object", "properties": { "spec": { "type": "object" } } });
    let with = |versions: &[(&str, bool)]| {
        let versions: Vec<_> = versions.iter().map(|(name, storage)| (*name, *storage, schema())).collect();
        crd(GROUP, "Jar", &versions)
    };
    let apply = async |crd: &Value, query: &str| {
        let path = format!("{path}?fieldManager=author&force=true{query}");
        cluster.send("PATCH", &path, "application/apply-patch+yaml", serde_json::to_vec(crd)?).await
    };
    cluster.apply_crd(&with(&[("v1beta1", true)])).await?;
    let jar = json!({
        "apiVersion": format!("{GROUP}/v1beta1"), "kind": "Jar", "metadata": { "name": "a" }, "spec": {},
    });
    cluster.create(&object.replace("v1", "v1beta1"), "author", &jar).await?;
    cluster.apply_crd(&with(&[("v1beta1", false), ("v1", true)])).await?;
    let removed = with(&[("v1", true)]);
    let refused = apply(&removed, "").await?;
    ensure!(
        refused.code == 422 && refused.body["message"].to_string().contains("storedVersions"),
        "{refused:?}"
    );
    let shortened = json!({ "status": { "storedVersions": ["v1"] } });
    cluster.patch(&format!("{path}/status"), Patch::Merge, "author", &shortened).await?.ok()?;

    let refused = apply(&removed, "").await?;
    let message = refused.body["message"].as_str().context("a message")?;
    ensure!(refused.code == 403, "{refused:?}");
    for line in [
        "1 of 1 object: managedFields name v1beta1, which is removed: every apply fails until each entry \
         names another version: default/a",
        "up to 1 of 1 object: not known to be stored at v1: at v1beta1 they become unreadable unless written \
         before, as by `etch persist --every-object`: default/a",
    ] {
        ensure!(message.contains(line), "{message}");
    }
    assert_eq!(
        cluster.raw(GROUP, "jars", Some("default"), "a").await?["apiVersion"],
        format!("{GROUP}/v1beta1")
    );
    let digest = message.rsplit("etch-operator.io/allow-upgrade: ").next().context("a digest")?;
    let mut allowed = removed;
    allowed["metadata"]["annotations"] = json!({ "etch-operator.io/allow-upgrade": digest });
    apply(&allowed, "").await?.ok()?;
    let get = async || cluster.send("GET", &format!("{object}/a"), "application/json", Vec::new()).await;
    eventually(GUARD, "the object is unreadable", async || Ok((get().await?.code == 500).then_some(()))).await
}
