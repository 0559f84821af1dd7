//! Real upgrades of well-known projects, with objects made up from their schemas: what `etch plan` has to be done
//! before is done, all is stored, and nothing else changes; nor is anything lost where the upgrade is taken
//! back, or old versions go.

#![expect(clippy::print_stdout, reason = "how each upgrade ended is worth a line")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::cluster::{CRDS, Cluster, Condition, GUARD, Patch, eventually};
use e2e::corpus::{Made, load, make, pairs, storage_version, text};
use e2e::operator::binary;
use e2e::scene::Scene;
use etch_core::crd::Crd;
use kube_structural_schema::json::Json;
use serde_json::{Value, json};

/// Reasons with which a pass may end.
const FINAL: [&str; 5] = ["AllPersisted", "HiddenFields", "InvalidDefaults", "Misfit", "ObjectsRejected"];

#[tokio::test(flavor = "multi_thread")]
async fn real_upgrades_are_stored_and_nothing_else_changes() -> Result<()> {
    let pairs = pairs()?;
    let mut groups = Vec::new();
    for pair in &pairs {
        groups.push(text(&load(pair, "new.yaml")?, &["spec", "group"])?);
    }
    groups.dedup();
    let scene = Scene::start(&groups.iter().map(String::as_str).collect::<Vec<_>>()).await?;
    scene.policy("default", json!({ "mode": "Audit" })).await?;
    let operator = scene.operator(&[])?;
    let (mut ends, mut told) = (BTreeMap::<String, usize>::new(), Vec::new());
    for pair in &pairs {
        let name = pair.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let end = upgrade(&scene, pair).await.unwrap_or_else(|error| format!("failed: {error:#}"));
        println!("{name}: {end}");
        *ends.entry(end.split(':').next().unwrap_or_default().to_owned()).or_default() += 1;
        told.push(end);
    }
    ensure!(!ends.contains_key("failed"), "upgrades failed: {ends:?}");
    println!("{ends:?}");
    let trips = |what: &str| told.iter().filter(|end| end.contains(what)).count();
    ensure!(trips("back and again") >= 15, "too few upgrades could be taken back: {ends:?}");
    ensure!(trips("trimmed") >= 3, "too few old versions were taken out: {ends:?}");
    let stored = ends.get("AllPersisted").copied().unwrap_or_default();
    ensure!(stored * 10 >= pairs.len() * 6, "too few upgrades could be carried through: {ends:?}");
    operator.stop().await
}

/// Carries one upgrade out; how it ended.
async fn upgrade(scene: &Scene, pair: &Path) -> Result<String> {
    let cluster = &scene.cluster;
    let (old, new) = (load(pair, "old.yaml")?, load(pair, "new.yaml")?);
    let name = text(&new, &["metadata", "name"])?;
    let compiled = Crd::read(&Json::from(new.clone()))?;
    if !compiled.compiled().has_defaults() {
        return Ok("NoDefaults".to_owned());
    }
    if let Err(error) = cluster.apply_crd(&old).await {
        return Ok(format!("old refused: {error:#}"));
    }
    if Crd::read(&Json::from(old.clone()))?.compiled().has_defaults() {
        // Etch has to know the old defaults, to distinguish them from the new ones.
        audited(scene, &name).await?;
    }
    let objects = make(cluster, &old, &name).await?;
    if objects.is_empty() {
        cluster.delete(&format!("{CRDS}/{name}")).await?;
        return Ok("no object was accepted".to_owned());
    }
    let plan = planned(scene, &pair.join("new.yaml"))?;
    let is_persisted = persisted(scene, &plan)?;
    let before = read(cluster, &objects, &old).await?;
    let outcome = match carry(scene, &new, &name, &objects, &before, &plan).await {
        Ok(end) if end.starts_with("AllPersisted") => {
            let trip = Trip { scene, old: &old, new: &new, name: &name, objects: &objects };
            let first = if is_persisted { "persisted, " } else { "" };
            trip.there_and_back(&before).await.map(|trip| format!("{end}, {first}{trip}"))
        }
        other => other,
    };
    scene.policy("default", json!({ "mode": "Audit" })).await?;
    cluster.delete(&format!("{CRDS}/{name}")).await?;
    eventually(Duration::from_secs(30), "the CRD is gone", async || {
        Ok(cluster.get(&format!("{CRDS}/{name}")).await.is_err().then_some(()))
    })
    .await?;
    outcome
}

/// What is planned for a new release.
fn planned(scene: &Scene, new: &Path) -> Result<Value> {
    let new = new.to_str().context("a path")?;
    let told = etch(scene, &["plan", "--live", "-f", new, "-o", "json"])?;
    let plan: Value = serde_json::from_slice(&told.stdout)
        .with_context(|| String::from_utf8_lossy(&told.stderr).into_owned())?;
    Ok(plan["crds"][0].clone())
}

/// Stores the values that objects show before the upgrade, by the command of the plan; whether it has one.
fn persisted(scene: &Scene, plan: &Value) -> Result<bool> {
    let mut steps = plan["steps"].as_array().into_iter().flatten();
    let Some(step) = steps.find(|step| step["step"] == "persist" && step["phase"] == "before") else {
        return Ok(false);
    };
    let command = step["command"].as_str().context("a command")?;
    let arguments: Vec<&str> = command.split_whitespace().skip_while(|word| *word != "persist").collect();
    let told = etch(scene, &arguments)?;
    // With 1 it names objects that it has not written.
    ensure!(matches!(told.status.code(), Some(0 | 1)), "{command}: {told:?}");
    Ok(true)
}

/// Runs a command as the administrator.
fn etch(scene: &Scene, arguments: &[&str]) -> Result<Output> {
    let mut command = Command::new(binary()?);
    Ok(command.args(arguments).env("KUBECONFIG", scene.control_plane.kubeconfig(0)).output()?)
}

async fn carry(
    scene: &Scene,
    new: &Value,
    name: &str,
    objects: &[Made],
    before: &[Value],
    plan: &Value,
) -> Result<String> {
    let cluster = &scene.cluster;
    let written = writes(scene, new)?;
    let applied = cluster.apply_crd(new).await;
    ensure!(applied.is_err() == (plan["dryRun"]["answer"] == "refused"), "{applied:?}: {plan:#}");
    if let Err(error) = applied {
        return Ok(format!("new refused: {error:#}"));
    }
    let audit = audited(scene, name).await?;
    ensure!(writes(scene, new)? == written, "an audit has written objects");
    scene.policy("default", json!({ "mode": "Persist" })).await?;
    let condition = eventually(Duration::from_secs(60), "a pass ends", async || {
        // The audit may have given the same reason, but only an audit leaves objects due.
        let is_due = scene.report(name).await?["status"]["counts"]["due"] != 0;
        let condition = cluster.condition(name, "DefaultsPersisted").await?;
        let is_final =
            |condition: &Condition| condition.current && FINAL.contains(&condition.reason.as_str());
        Ok(condition.filter(|condition| is_final(condition) && !is_due))
    })
    .await?;

    let report = scene.report(name).await?;
    let troubled = |object: &Made| {
        ["held", "rejected"].iter().any(|list| {
            let all = report["status"][*list].as_array().into_iter().flatten();
            all.into_iter().any(|problem| problem["name"] == object.name)
        })
    };
    expected(&audit["counts"], &report["status"]["counts"]).context(audit.to_string())?;
    ensure!(
        report["status"]["counts"]["written"] == 0 || writes(scene, new)? > written,
        "no write is in the audit log"
    );
    let version = storage_version(new)?;
    for (object, before) in objects.iter().zip(before) {
        let path = path_at(object, &version);
        let now = cluster.get(&path).await?;
        if troubled(object) {
            let unchanged = now["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"];
            ensure!(unchanged, "{} is in trouble and was written all the same", object.name);
            continue;
        }
        nothing_changed(before, &now).with_context(|| object.name.clone())?;
        let answer = cluster.patch(&path, Patch::Merge, "test", &json!({})).await?;
        if answer.code == 422 {
            // The upgrade made the object invalid for reasons that have nothing to do with defaults.
            continue;
        }
        let (was, is) =
            (now["metadata"]["resourceVersion"].clone(), answer.ok()?["metadata"]["resourceVersion"].clone());
        ensure!(was == is, "{}: a write that changes nothing still stored something", object.name);
    }
    let counted = report["status"]["counts"]["objects"].as_u64();
    ensure!(counted == Some(objects.len() as u64), "{counted:?} objects instead of {}", objects.len());
    Ok(format!("{}: {} objects", condition.reason, objects.len()))
}

/// The objects as they are read at the storage version of this CRD, which is served.
async fn read(cluster: &Cluster, objects: &[Made], crd: &Value) -> Result<Vec<Value>> {
    let version = storage_version(crd)?;
    let mut all = Vec::new();
    for object in objects {
        all.push(cluster.get(&path_at(object, &version)).await?);
    }
    Ok(all)
}

/// Where an object is at a version.
fn path_at(object: &Made, version: &str) -> String {
    object.path.replace(&format!("/{}/", object.version), &format!("/{version}/"))
}

/// An upgrade whose defaults are stored.
struct Trip<'t> {
    scene: &'t Scene,
    old: &'t Value,
    new: &'t Value,
    name: &'t str,
    objects: &'t [Made],
}

impl Trip<'_> {
    /// Takes the upgrade back, makes it again, and has old versions taken out, each as far as the API server
    /// allows it; returns what was done. `before` has the objects before the upgrade.
    async fn there_and_back(&self, before: &[Value]) -> Result<String> {
        let Self { scene, old, new, objects, .. } = self;
        let cluster = &scene.cluster;
        let after = read(cluster, objects, new).await?;
        let mut done = Vec::new();
        match cluster.apply_crd(old).await {
            // It has no version at which they are stored.
            Err(_) => done.push("not to be taken back"),
            Ok(_) => {
                self.settled().await.context("the old release")?;
                all_kept(before, &read(cluster, objects, old).await?).context("taken back")?;
                cluster.apply_crd(new).await?;
                self.settled().await.context("the new release again")?;
                all_kept(&after, &read(cluster, objects, new).await?).context("made again")?;
                done.push("back and again");
            }
        }
        if self.listed().await?.len() > 1 {
            self.trim().await.context("old versions")?;
            all_kept(&after, &read(cluster, objects, new).await?).context("trimmed")?;
            done.push("trimmed");
        }
        Ok(done.join(", "))
    }

    /// Waits until nothing more is to be done about the CRD as it is now.
    async fn settled(&self) -> Result<()> {
        eventually(GUARD, "a pass ends", async || {
            let condition = self.scene.cluster.condition(self.name, "DefaultsPersisted").await?;
            let is_final = |condition: &Condition| {
                condition.current
                    && (FINAL.contains(&condition.reason.as_str()) || condition.reason == "NoDefaults")
            };
            Ok(condition.filter(is_final).map(drop))
        })
        .await
    }

    /// The versions at which objects may be stored, as the CRD lists them.
    async fn listed(&self) -> Result<Vec<Value>> {
        let crd = self.scene.cluster.get(&format!("{CRDS}/{}", self.name)).await?;
        Ok(crd["status"]["storedVersions"].as_array().cloned().unwrap_or_default())
    }

    /// Has a policy take old versions out, some minutes sooner than it would.
    async fn trim(&self) -> Result<()> {
        let Self { scene, new, name, objects, .. } = self;
        let version = storage_version(new)?;
        scene.policy("default", json!({ "mode": "Audit" })).await?;
        audited(scene, name).await?;
        scene.verify_now(name).await?;
        scene.policy("default", json!({ "mode": "Persist", "storedVersions": "Trim" })).await?;
        eventually(GUARD, "old versions are taken out", async || {
            Ok((self.listed().await? == [json!(version)]).then_some(()))
        })
        .await?;
        let (group, plural) = (text(new, &["spec", "group"])?, text(new, &["spec", "names", "plural"])?);
        let namespace = (new["spec"]["scope"] == "Namespaced").then_some("default");
        for object in *objects {
            let stored = scene.cluster.raw(&group, &plural, namespace, &object.name).await?;
            ensure!(stored["apiVersion"] == format!("{group}/{version}"), "{}", object.name);
        }
        Ok(())
    }
}

/// Every value that objects had is there still; defaults that were stored stay where the upgrade is taken
/// back.
fn all_kept(before: &[Value], now: &[Value]) -> Result<()> {
    for (before, now) in before.iter().zip(now) {
        for part in ["spec", "status"] {
            kept(&before[part], &now[part], part).with_context(|| before["metadata"]["name"].to_string())?;
        }
    }
    Ok(())
}

fn kept(before: &Value, now: &Value, path: &str) -> Result<()> {
    match (before, now) {
        (Value::Object(before), Value::Object(now)) => before.iter().try_for_each(|(name, value)| {
            kept(value, now.get(name).unwrap_or(&Value::Null), &format!("{path}.{name}"))
        }),
        (Value::Array(before), Value::Array(now)) if before.len() == now.len() => {
            before.iter().zip(now).try_for_each(|(before, now)| kept(before, now, &format!("{path}[]")))
        }
        _ => {
            ensure!(before == now || before.is_null(), "{path} was {before} and is {now}");
            Ok(())
        }
    }
}

/// The report of an audit, once it is finished.
async fn audited(scene: &Scene, name: &str) -> Result<Value> {
    eventually(Duration::from_secs(60), "an audit ends", async || {
        let crd = scene.cluster.get(&format!("{CRDS}/{name}")).await?;
        let status = scene.report(name).await?["status"].clone();
        let current = status["generation"] == crd["metadata"]["generation"] && status["finished"].is_string();
        Ok((current && status["state"] != "InProgress").then_some(status))
    })
    .await
}

/// Whether an audit has counted what persisting then did: what is due is written, or refused.
fn expected(audit: &Value, persisted: &Value) -> Result<()> {
    let count = |counts: &Value, kind: &str| counts[kind].as_u64().unwrap_or_default();
    for kind in ["objects", "held", "ignored", "terminating"] {
        let (audited, is) = (count(audit, kind), count(persisted, kind));
        ensure!(audited == is, "{kind}: {audited} in the audit, and then {persisted}");
    }
    let (known, stored) = (count(audit, "alreadyStored"), count(persisted, "alreadyStored"));
    let presumed = known + count(audit, "unproved");
    ensure!(presumed == stored, "{presumed} stored or unproved in the audit, and then {persisted}");
    let done = count(persisted, "written") + count(persisted, "rejected");
    ensure!(count(audit, "due") == done, "due: {} in the audit, and then {persisted}", count(audit, "due"));
    Ok(())
}

/// How many of the operator's requests could have written an object of a CRD.
fn writes(scene: &Scene, crd: &Value) -> Result<usize> {
    let names = &crd["spec"]["names"];
    let found = scene.requests(|event| {
        let reference = &event["objectRef"];
        reference["apiGroup"] == crd["spec"]["group"]
            && reference["resource"] == names["plural"]
            && ["patch", "update", "create", "delete"].iter().any(|verb| event["verb"] == *verb)
    })?;
    Ok(found.len())
}

/// Every value that was there and still has a place has not changed; every owner owns what it owned.
fn nothing_changed(before: &Value, now: &Value) -> Result<()> {
    for part in ["spec", "status"] {
        same_values(&before[part], &now[part], part)?;
    }
    let owners = |object: &Value| -> Vec<(Value, Value, Value)> {
        let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
        entries
            .map(|entry| (entry["manager"].clone(), entry["operation"].clone(), entry["fieldsV1"].clone()))
            .collect()
    };
    ensure!(owners(before) == owners(now), "owners changed:\n{:?}\n{:?}", owners(before), owners(now));
    Ok(())
}

fn same_values(before: &Value, now: &Value, path: &str) -> Result<()> {
    match (before, now) {
        (Value::Object(before), Value::Object(now)) => {
            // What the new schema does not know is pruned by every read.
            for (name, value) in before.iter().filter(|(name, _)| now.contains_key(*name)) {
                same_values(value, &now[name], &format!("{path}.{name}"))?;
            }
            Ok(())
        }
        (Value::Array(before), Value::Array(now)) => {
            ensure!(before.len() == now.len(), "{path} has another length");
            before
                .iter()
                .zip(now)
                .try_for_each(|(before, now)| same_values(before, now, &format!("{path}[]")))
        }
        _ => {
            ensure!(before == now || before.is_null(), "{path} changed");
            Ok(())
        }
    }
}
