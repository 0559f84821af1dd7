//! Passes that stop, on a real control plane: after a canary of as many objects as the policy sets, until a
//! user resumes them, and after as many rejected objects. What is stored is read from etcd.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::admission::deny_updates;
use e2e::cluster::{CRDS, Cluster, Patch, crd, eventually, with_spec};
use e2e::operator::Operator;
use e2e::scene::Scene;
use serde_json::{Value, json};

const GROUP: &str = "widgets.example.com";
const CRD: &str = "widgets.widgets.example.com";
const COLLECTION: &str = "/apis/widgets.example.com/v1/namespaces/default/widgets";
const OBJECTS: usize = 20;
const CANARY: usize = 5;
const SOON: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn only_the_canary_is_stored_until_its_generation_is_resumed() -> Result<()> {
    let scene = scene(json!({ "canary": { "objects": CANARY } })).await?;
    let cluster = &scene.cluster;
    let first = scene.replica("first", &[])?;
    define(cluster, 1).await?;
    let waiting = cluster.persisted(CRD, "CanaryWaiting", SOON).await?;
    ensure!(stored(cluster, "first").await? == names(0..CANARY), "{:?}", stored(cluster, "first").await?);
    ensure!(waiting.status == "False", "{waiting:?}");
    let wording = format!(
        "the canary wrote {CANARY} objects; to write the others, run: etch resume {CRD}; {CANARY} of \
         {OBJECTS} objects are known to store their defaults; {} would be written: default/widget-05",
        OBJECTS - CANARY
    );
    ensure!(waiting.message.starts_with(&wording), "{waiting:?}");
    let report = scene.report(CRD).await?["status"].clone();
    ensure!(
        report["canary"] == json!({ "generation": 2, "state": "Waiting", "written": CANARY }),
        "{report}"
    );
    ensure!(report["counts"]["written"] == CANARY, "{report}");

    held_by_the_canary(&scene, &name(OBJECTS - 1), &format!("the canary wrote {CANARY} objects; "))?;
    what_is_due_and_what_is_unproved(&scene)?;

    // Neither another replica, nor what a user writes, nor an older generation lets it go on.
    first.stop().await?;
    let second = scene.replica("second", &[])?;
    annotate(cluster, "1").await?;
    let touched = format!("{COLLECTION}/{}", name(OBJECTS - 1));
    let label = json!({ "metadata": { "labels": { "touched": "by-a-user" } } });
    cluster.patch(&touched, Patch::Merge, "user", &label).await?.ok()?;
    scene.barrier().await?;
    // A user's own write stores what it shows.
    let and_touched: BTreeSet<String> = names(0..CANARY).into_iter().chain([name(OBJECTS - 1)]).collect();
    ensure!(stored(cluster, "first").await? == and_touched, "{:?}", stored(cluster, "first").await?);
    cluster.persisted(CRD, "CanaryWaiting", SOON).await?;

    // A pause goes on, and so `etch resume` names it.
    let policy = |paused: bool| {
        json!({
            "selector": { "groups": [GROUP] }, "canary": { "objects": CANARY }, "paused": paused,
        })
    };
    scene.policy("canary", policy(true)).await?;
    resume(
        &scene,
        "; DefaultsPolicy canary (paused) still pauses writes: set paused to false in DefaultsPolicy canary",
    )?;
    scene.policy("canary", policy(false)).await?;
    let persisted = cluster.persisted(CRD, "AllPersisted", SOON).await?;
    ensure!(persisted.message.starts_with(&format!("all {OBJECTS} objects")), "{persisted:?}");
    ensure!(stored(cluster, "first").await? == names(0..OBJECTS));

    // The next schema begins with a canary of its own, whatever was resumed before.
    define(cluster, 2).await?;
    eventually(SOON, "the next canary waits", async || {
        let report = scene.report(CRD).await?["status"]["canary"].clone();
        Ok((report == json!({ "generation": 3, "state": "Waiting", "written": CANARY })).then_some(()))
    })
    .await?;
    ensure!(stored(cluster, "second").await? == names(0..CANARY), "{:?}", stored(cluster, "second").await?);
    second.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_canary_that_is_refused_stops_the_pass_and_is_named() -> Result<()> {
    let scene = scene(json!({ "canary": { "objects": CANARY, "then": "Continue" } })).await?;
    let cluster = &scene.cluster;
    let refused = [name(1), name(3)];
    refuse(cluster, &refused).await?;
    let operator: Operator = scene.operator(&[])?;
    define(cluster, 1).await?;
    let stopped = cluster.persisted(CRD, "CanaryRejected", SOON).await?;
    let report = scene.report(CRD).await?["status"].clone();
    let rejected = report["rejected"].as_array().context("rejected objects")?;
    ensure!(!rejected.is_empty(), "{report}");
    // What is under way when the first one is refused goes on to its end; nothing else begins.
    for problem in rejected {
        let object = problem["name"].as_str().context("a name")?.to_owned();
        ensure!(refused.contains(&object), "{report}");
        ensure!(stopped.message.contains(&format!("default/{object}")), "{stopped:?}");
        ensure!(problem["message"] == "ValidatingAdmissionPolicy refuse refused it", "{problem}");
    }
    ensure!(stopped.message.contains("ValidatingAdmissionPolicy refuse refused it"), "{stopped:?}");
    let stored_then = stored(cluster, "first").await?;
    ensure!(report["canary"]["written"] == stored_then.len(), "{report}: {stored_then:?}");
    ensure!(stored_then.iter().all(|object| !refused.contains(object)), "{stored_then:?}");
    ensure!(stored_then.len() + rejected.len() <= CANARY, "{stored_then:?}: {report}");
    let tried = |event: &Value| event["verb"] == "patch" && event["objectRef"]["apiGroup"] == GROUP;
    let tried: BTreeSet<String> = scene
        .requests(tried)?
        .iter()
        .filter_map(|event| Some(event["objectRef"]["name"].as_str()?.to_owned()))
        .collect();
    ensure!(tried.len() == stored_then.len() + rejected.len(), "{tried:?}");

    held_by_the_canary(&scene, &refused[0], "and stopped, because a write was rejected; ")?;
    // A user who resumes the pass in spite of a rejection resumes it for all objects.
    resume(&scene, "")?;
    let left = cluster.persisted(CRD, "ObjectsRejected", SOON).await?;
    ensure!(refused.iter().all(|object| left.message.contains(&format!("default/{object}"))), "{left:?}");
    ensure!(stored(cluster, "first").await?.len() == OBJECTS - refused.len());
    let reason = explained(&scene, &refused[0])?;
    let why =
        "Etch does not write: the last write was rejected (ValidatingAdmissionPolicy refuse refused it)";
    ensure!(reason.contains(why), "{reason}");
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pass_that_is_refused_too_often_stops_and_goes_on_with_another_policy() -> Result<()> {
    const LIMIT: usize = 3;
    let scene = scene(json!({ "stopAfterRejected": LIMIT })).await?;
    let cluster = &scene.cluster;
    // All but a few at the end.
    let refused: Vec<String> = (0..OBJECTS - 2).map(name).collect();
    refuse(cluster, &refused).await?;
    let operator = scene.operator(&[])?;
    define(cluster, 1).await?;
    let stopped = cluster.persisted(CRD, "ObjectsRejected", SOON).await?;
    ensure!(stopped.message.contains(" rejected objects (stopAfterRejected)"), "{stopped:?}");
    scene.barrier().await?;
    ensure!(stored(cluster, "first").await?.is_empty(), "{:?}", stored(cluster, "first").await?);
    // What is under way when the limit is reached goes on to its end; nothing else begins.
    let written = |event: &Value| event["verb"] == "patch" && event["objectRef"]["apiGroup"] == GROUP;
    let tried = scene.requests(written)?.len();
    ensure!((LIMIT..OBJECTS - 2).contains(&tried), "{tried} writes");

    let policy = json!({ "selector": { "groups": [GROUP] } });
    scene.policy("canary", policy).await?;
    let left = eventually(SOON, "the other objects are written", async || {
        let condition = cluster.condition(CRD, "DefaultsPersisted").await?;
        Ok(condition.filter(|condition| condition.message.starts_with("2 of 20 objects are known")))
    })
    .await?;
    ensure!(refused.iter().take(5).all(|object| left.message.contains(object)), "{left:?}");
    ensure!(stored(cluster, "first").await? == names(OBJECTS - 2..OBJECTS));
    operator.stop().await
}

/// Objects without a default, under a policy with these settings.
async fn scene(mut policy: Value) -> Result<Scene> {
    let scene = Scene::start(&[GROUP]).await?;
    policy["selector"] = json!({ "groups": [GROUP] });
    scene.policy("canary", policy).await?;
    define(&scene.cluster, 0).await?;
    for index in 0..OBJECTS {
        let object = json!({
            "apiVersion": format!("{GROUP}/v1"), "kind": "Widget",
            "metadata": { "name": name(index) }, "spec": { "name": "n" },
        });
        scene.cluster.create(COLLECTION, "creator", &object).await?;
    }
    Ok(scene)
}

fn name(index: usize) -> String {
    format!("widget-{index:02}")
}

fn names(range: std::ops::Range<usize>) -> BTreeSet<String> {
    range.map(name).collect()
}

/// The CRD with so many defaults.
async fn define(cluster: &Cluster, defaults: usize) -> Result<()> {
    let mut properties = json!({ "name": { "type": "string" } });
    for default in ["first", "second"].iter().take(defaults) {
        properties[default] = json!({ "type": "string", "default": "given" });
    }
    cluster.apply_crd(&crd(GROUP, "Widget", &[("v1", true, with_spec(properties))])).await.map(drop)
}

/// The objects that hold a default in etcd.
async fn stored(cluster: &Cluster, default: &str) -> Result<BTreeSet<String>> {
    let mut stored = BTreeSet::new();
    for value in cluster.etcd().list(&format!("/registry/{GROUP}/widgets/")).await? {
        let object: Value = serde_json::from_slice(&value.bytes)?;
        if object["spec"][default].is_string() {
            stored.insert(object["metadata"]["name"].as_str().context("a name")?.to_owned());
        }
    }
    Ok(stored)
}

async fn annotate(cluster: &Cluster, generation: &str) -> Result<()> {
    let body = json!({ "metadata": { "annotations": { "etch-operator.io/resume": generation } } });
    cluster.patch(&format!("{CRDS}/{CRD}"), Patch::Merge, "user", &body).await?.ok().map(drop)
}

/// Resumes the pass, and expects this at the end of what the command prints.
fn resume(scene: &Scene, more: &str) -> Result<()> {
    let ended = scene.etch(&["resume", CRD])?;
    ensure!(ended.out == format!("crd/{CRD}: resumed at generation 2{more}\n"), "{ended:?}");
    Ok(())
}

/// What `etch explain` has on the first default of an object.
fn explained(scene: &Scene, object: &str) -> Result<String> {
    let (_, explained) = scene.etch_json(&["explain", CRD, object])?;
    Ok(explained["defaults"][0]["reason"].as_str().context("a reason")?.to_owned())
}

/// `etch explain` names the canary that keeps an object from being written, and how to go on.
fn held_by_the_canary(scene: &Scene, object: &str, result: &str) -> Result<()> {
    let reason = explained(scene, object)?;
    let (_, held) = reason.split_once("Etch does not write: the canary wrote ").context(reason.clone())?;
    let result = result.trim_start_matches("the canary wrote ");
    ensure!(held.ends_with(&format!("{result}to write the others, run: etch resume {CRD}")), "{reason}");
    Ok(())
}

/// A dry run does not claim that what the canary has written lacks a default.
fn what_is_due_and_what_is_unproved(scene: &Scene) -> Result<()> {
    let (_, planned) = scene.etch_json(&["persist", CRD, "--dry-run"])?;
    let planned = &planned["crds"][0];
    ensure!(planned["due"] == OBJECTS - CANARY && planned["unproved"] == CANARY, "{planned:#}");
    for plan in planned["plans"].as_array().context("plans")? {
        let is_stored = names(0..CANARY).contains(plan["name"].as_str().context("a name")?);
        let reason = if is_stored { json!("unproved") } else { Value::Null };
        ensure!(plan["action"] == "apply" && plan["reason"] == reason, "{plan}");
    }
    let ended = scene.etch(&["persist", CRD, "--dry-run"])?;
    let summary =
        format!("{OBJECTS} objects of 1 CRD: {} to be written, {CANARY} unproved.\n", OBJECTS - CANARY);
    ensure!(ended.out.contains(&summary), "{ended:?}");
    Ok(())
}

/// From here on, admission refuses every update of these objects.
async fn refuse(cluster: &Cluster, objects: &[String]) -> Result<()> {
    let validation = json!({ "expression": format!("!(object.metadata.name in {})", json!(objects)) });
    deny_updates(cluster, "refuse", GROUP, "*", validation).await?;
    let path = format!("{COLLECTION}/{}?dryRun=All", objects.first().context("an object")?);
    eventually(SOON, "admission refuses", async || {
        let body = br#"{"metadata":{"labels":{"probe":"x"}}}"#.to_vec();
        let answer = cluster.send("PATCH", &path, "application/merge-patch+json", body).await?;
        Ok((answer.code == 422).then_some(()))
    })
    .await
}
