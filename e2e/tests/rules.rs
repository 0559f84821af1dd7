//! Defaults that would make objects invalid, on a real control plane: the objects are held and named, and
//! nothing is written.
//!
//! What is claimed is read from etcd; that the server would have let the harm happen is shown beside it.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::cluster::{Cluster, Patch, crd, eventually};
use e2e::control_plane::object_key;
use e2e::scene::Scene;
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(60);
const GROUP: &str = "rules.example.com";
const QUOTAS: &str = "quotas.rules.example.com";
const SHORT: usize = 12;
const MESSAGE: &str = "d must be less than 3";

/// A rule that a new default breaks: `d < 3` and a default of 5.
#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_a_default_would_make_invalid_is_held_until_the_crd_is_mended() -> Result<()> {
    let scene = Scene::start(&[GROUP]).await?;
    let cluster = &scene.cluster;
    cluster.apply_crd(&quotas(None, "true")).await?;
    let held = make(cluster).await?;
    cluster.apply_crd(&quotas(Some(5), "self.d < 3")).await?;
    eventually(SOON, "the default is served", async || {
        Ok((cluster.get(&path("short-00")).await?["spec"]["d"] == 5).then_some(()))
    })
    .await?;
    the_server_refuses_to_create_and_lets_a_patch_store(cluster).await?;
    let before = raws(cluster, &held).await?;

    commands_name_what_is_held(&scene, held.len())?;
    ensure!(raws(cluster, &held).await? == before, "a command has written");
    ensure!(raw(cluster, "own").await?["spec"] == json!({ "d": 1, "e": "x" }), "what is valid is stored");

    let operator = scene.operator(&[])?;
    let wording = cluster.persisted(QUOTAS, "InvalidDefaults", SOON).await?;
    // The object that a user has touched holds its default, and only a write can show that.
    let number = held.len() + 1;
    for part in [format!("{number} held"), ".spec.d".to_owned(), "default/bare".to_owned()] {
        ensure!(wording.message.contains(&part), "{wording:?}");
    }
    ensure!(wording.status == "False", "{wording:?}");
    let defaults = cluster.condition(QUOTAS, "InvalidDefaults").await?.context("the condition")?;
    ensure!(defaults.status == "True" && defaults.message.contains(".spec.d"), "{defaults:?}");
    let status = scene.report(QUOTAS).await?["status"].clone();
    ensure!(status["counts"]["held"] == number && status["counts"]["rejected"] == 0, "{status}");
    for problem in status["held"].as_array().context("held")? {
        ensure!(
            problem["reason"] == "InvalidDefaults" && problem["paths"] == json!([".spec.d"]),
            "{problem}"
        );
        let message = problem["message"].as_str().unwrap_or_default();
        ensure!(message.contains(&format!(".spec: {MESSAGE}")) && !message.contains('5'), "{problem}");
    }
    an_event_tells(&scene, "short-00").await?;
    ensure!(raws(cluster, &held).await? == before, "the operator has written");
    let asked = scene.requests(|event| {
        let name = event["objectRef"]["name"].as_str().unwrap_or_default();
        event["objectRef"]["apiGroup"] == GROUP && event["verb"] == "patch" && name != "own"
    })?;
    ensure!(asked.is_empty(), "no write was even tried: {asked:?}");

    cluster.apply_crd(&quotas(Some(2), "self.d < 3")).await?;
    cluster.persisted(QUOTAS, "AllPersisted", SOON).await?;
    let defaults = cluster.condition(QUOTAS, "InvalidDefaults").await?.context("the condition")?;
    ensure!(defaults.status == "False", "{defaults:?}");
    for name in &held {
        let raw = raw(cluster, name).await?;
        ensure!(raw["spec"]["d"] == 2 && raw["spec"]["e"] == "x", "{raw}");
        let changed = json!({ "spec": { "note": "later" } });
        cluster.patch(&path(name), Patch::Merge, "user", &changed).await?.ok()?;
    }
    // What the harm would have been: the one object that stores the old default can no longer be changed.
    let refused = cluster
        .patch(&path("touched"), Patch::Merge, "user", &json!({ "spec": { "note": "later" } }))
        .await?;
    ensure!(refused.code == 422, "{}", refused.body);
    following_is_held_as_well(&scene).await?;
    operator.stop().await
}

/// The server itself: what reads such a default cannot be created, and any patch of what is there stores it
/// (fact D7).
async fn the_server_refuses_to_create_and_lets_a_patch_store(cluster: &Cluster) -> Result<()> {
    for spec in [json!({ "note": "n" }), json!({ "d": 5 })] {
        let body = serde_json::to_vec(&object("anew", spec))?;
        let answer = cluster.send("POST", &objects(), "application/json", body).await?;
        ensure!(answer.code == 422, "{}", answer.body);
    }
    let labelled = json!({ "metadata": { "labels": { "a": "b" } } });
    cluster.patch(&path("touched"), Patch::Merge, "user", &labelled).await?.ok()?;
    ensure!(raw(cluster, "touched").await?["spec"]["d"] == 5, "a patch elsewhere stores the default");
    Ok(())
}

fn commands_name_what_is_held(scene: &Scene, held: usize) -> Result<()> {
    // A user who touched an object has stored the default, and the view does not show it.
    let held = held + 1;
    let (code, audit) = scene.etch_json(&["audit", QUOTAS, "--objects"])?;
    let crd = &audit["crds"][0];
    ensure!(code == Some(1) && crd["held"] == held, "{audit:#}");
    let details = crd["details"].as_array().context("details")?;
    let of = |name: &str| details.iter().find(|detail| detail["name"] == name).context("an object");
    for name in ["short-00", "bare"] {
        let found = &of(name)?["held"];
        let expected = json!({
            "reason": "InvalidDefaults", "paths": [".spec.d"], "broken": [format!(".spec: {MESSAGE}")],
        });
        ensure!(*found == expected, "{name}: {found}");
    }
    ensure!(of("own")?["held"].is_null(), "{:#}", of("own")?);

    let (code, explained) = scene.etch_json(&["explain", QUOTAS, "short-00"])?;
    let reason = explained["defaults"][0]["reason"].as_str().unwrap_or_default();
    ensure!(code == Some(1) && reason.contains(&format!(".spec: {MESSAGE}")), "{explained:#}");

    let (code, planned) = scene.etch_json(&["persist", QUOTAS, "--dry-run"])?;
    let plans = planned["crds"][0]["plans"].as_array().context("plans")?;
    let plan = plans.iter().find(|plan| plan["name"] == "short-00").context("a plan")?;
    ensure!(code == Some(1) && planned["crds"][0]["held"] == held, "{planned:#}");
    ensure!(plan["action"] == "hold" && plan["reason"] == "InvalidDefaults", "{plan}");
    ensure!(plan["broken"] == json!([format!(".spec: {MESSAGE}")]), "{plan}");

    let (code, persisted) = scene.etch_json(&["persist", QUOTAS])?;
    let crd = &persisted["crds"][0];
    ensure!(code == Some(1) && crd["held"] == held && crd["written"] == 1, "{persisted:#}");
    let problems = crd["problems"].as_array().context("problems")?;
    ensure!(problems.len() == held, "{persisted:#}");
    ensure!(problems.iter().all(|problem| problem["reason"] == "InvalidDefaults"), "{persisted:#}");
    Ok(())
}

/// A value that is to follow its default into a rule stays, until the rule lets it.
async fn following_is_held_as_well(scene: &Scene) -> Result<()> {
    let cluster = &scene.cluster;
    let on_change = json!([{ "path": ".spec.d", "action": "Follow" }]);
    scene.policy("quotas", json!({ "selector": { "names": [QUOTAS] }, "onChange": on_change })).await?;
    cluster.apply_crd(&quotas(Some(7), "self.d < 3")).await?;
    // The one that stores what the first default gave follows as well. It is invalid already, so only the
    // server can refuse it.
    let wording = cluster.persisted(QUOTAS, "ObjectsRejected", SOON).await?;
    for part in ["default/short-00", "1 rejected: default/touched"] {
        ensure!(wording.message.contains(part), "{wording:?}");
    }
    ensure!(raw(cluster, "short-00").await?["spec"]["d"] == 2, "it keeps what it has");
    cluster.apply_crd(&quotas(Some(7), "self.d < 9")).await?;
    eventually(SOON, "the value follows once the rule lets it", async || {
        Ok((raw(cluster, "short-00").await?["spec"]["d"] == 7).then_some(()))
    })
    .await
}

async fn an_event_tells(scene: &Scene, name: &str) -> Result<()> {
    eventually(SOON, "an event about the object", async || {
        let all = scene.cluster.get("/apis/events.k8s.io/v1/namespaces/default/events").await?;
        let mut ours = all["items"].as_array().context("events")?.iter().filter(|event| {
            event["regarding"]["name"] == name
                && event["reason"] == "InvalidDefaults"
                && event["note"]
                    .as_str()
                    .is_some_and(|note| note.contains(MESSAGE) && note.contains(".spec.d"))
        });
        Ok(ours.next().map(drop))
    })
    .await
}

/// Makes the objects from before the upgrade; the names of those that are to be held.
async fn make(cluster: &Cluster) -> Result<Vec<String>> {
    let mut held: Vec<String> = (0..SHORT).map(|index| format!("short-{index:02}")).collect();
    for (index, name) in held.iter().enumerate() {
        let made = object(name, json!({ "note": "n" }));
        match index % 2 {
            0 => cluster.patch(&path(name), Patch::Apply, "owner", &made).await?.ok()?,
            _ => cluster.create(&objects(), "owner", &made).await?,
        };
    }
    for (name, spec) in [("bare", json!({})), ("touched", json!({})), ("own", json!({ "d": 1 }))] {
        cluster.create(&objects(), "owner", &object(name, spec)).await?;
    }
    // An object without owners, which is written by a merge patch.
    let key = object_key(GROUP, "quotas", Some("default"), "bare");
    let (bytes, _) = cluster.etcd().get(&key).await?.context("the object")?;
    let mut bare: Value = serde_json::from_slice(&bytes)?;
    bare["metadata"].as_object_mut().context("metadata")?.remove("managedFields");
    cluster.etcd().put_json(&key, &bare).await?;
    held.push("bare".to_owned());
    Ok(held)
}

/// The CRD, with or without a default for `d` and one for `e`, and with a rule.
fn quotas(default: Option<i64>, rule: &str) -> Value {
    let mut spec = json!({
        "type": "object",
        "properties": { "note": { "type": "string" }, "d": { "type": "integer" }, "e": { "type": "string" } },
        "x-kubernetes-validations": [{ "rule": rule, "message": MESSAGE }],
    });
    if let Some(default) = default {
        spec["properties"]["d"]["default"] = default.into();
        spec["properties"]["e"]["default"] = "x".into();
    }
    crd(GROUP, "Quota", &[("v1", true, json!({ "type": "object", "properties": { "spec": spec } }))])
}

fn object(name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "Quota",
        "metadata": { "name": name, "namespace": "default" }, "spec": spec,
    })
}

fn objects() -> String {
    format!("/apis/{GROUP}/v1/namespaces/default/quotas")
}

fn path(name: &str) -> String {
    format!("{}/{name}", objects())
}

async fn raw(cluster: &Cluster, name: &str) -> Result<Value> {
    cluster.raw(GROUP, "quotas", Some("default"), name).await
}

async fn raws(cluster: &Cluster, names: &[String]) -> Result<BTreeMap<String, Value>> {
    let mut all = BTreeMap::new();
    for name in names {
        all.insert(name.clone(), raw(cluster, name).await?);
    }
    Ok(all)
}
