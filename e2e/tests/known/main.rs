//! What is known about objects without access to etcd, compared with etcd.

mod random;

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::aged::{self, BEFORE, DEFINITIONS};
use e2e::cluster::{Patch, crd, eventually, plural, with_spec};
use e2e::process;
use e2e::scene::{self, Scene};
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(60);
const GROUP: &str = "known.example.com";
const WEBHOOKS: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
/// How many objects each type has, and how many of them a user writes after the upgrade.
const OBJECTS: usize = 40;
const WRITTEN: usize = 10;

/// A type, before its upgrade or after.
fn of_type(kind: &str, is_new: bool) -> Value {
    let mut properties = json!({ "a": { "type": "integer" }, "d": { "type": "integer" } });
    if is_new {
        properties["d"]["default"] = 5.into();
    }
    crd(GROUP, kind, &[("v1", true, with_spec(properties))])
}

fn collection(kind: &str) -> String {
    format!("/apis/{GROUP}/v1/namespaces/default/{}", plural(kind))
}

/// A type with objects, and an upgrade that was long ago, by the times of its owners.
async fn upgraded(scene: &Scene, kind: &str) -> Result<String> {
    let (cluster, name) = (&scene.cluster, format!("{}.{GROUP}", plural(kind)));
    cluster.apply_crd(&of_type(kind, false)).await?;
    for index in 0..OBJECTS {
        let object = json!({
            "apiVersion": format!("{GROUP}/v1"), "kind": kind, "metadata": { "name": format!("o{index}") },
            "spec": {
                "a": 1,
            },
        });
        cluster.create(&collection(kind), "user", &object).await?;
    }
    // All that there is is older than the upgrade.
    for under in [format!("{GROUP}/").as_str(), "etch-operator.io/", DEFINITIONS] {
        aged::values(cluster, under, BEFORE).await?;
    }
    cluster.apply_crd(&of_type(kind, true)).await?;
    aged::crd(cluster, &name).await?;
    // What is so old has been served for long.
    let path = format!("{}/o0", collection(kind));
    eventually(SOON, "the new schema is served", async || {
        Ok((cluster.get(&path).await?["spec"]["d"] == 5).then_some(()))
    })
    .await?;
    Ok(name)
}

/// A user writes this object.
async fn write(scene: &Scene, kind: &str, index: usize) -> Result<()> {
    let path = format!("{}/o{index}", collection(kind));
    scene.cluster.patch(&path, Patch::Merge, "user", &json!({ "spec": { "a": 2 } })).await?.ok()?;
    Ok(())
}

/// A cluster in which the account of Etch may patch objects and no CRD, and read what mutates objects. It may
/// not read Leases: their times are the real ones.
async fn scene(group: &str) -> Result<Scene> {
    let scene = Scene::start(&[group]).await?;
    let resources = ["mutatingwebhookconfigurations", "mutatingadmissionpolicies"];
    let group = "admissionregistration.k8s.io";
    let rules = json!([{ "apiGroups": [group], "resources": resources, "verbs": ["list", "watch"] }]);
    for object in [
        json!({ "kind": "ClusterRole", "metadata": { "name": "reads-admission" }, "rules": rules }),
        json!({
            "kind": "ClusterRoleBinding", "metadata": { "name": "reads-admission" },
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reads-admission",
            },
            "subjects": [{ "kind": "ServiceAccount", "namespace": "etch-system", "name": "etch" }],
        }),
    ] {
        let mut object = object;
        object["apiVersion"] = json!("rbac.authorization.k8s.io/v1");
        scene::apply(&scene.cluster, &object).await?;
    }
    scene.policy("default", json!({ "selector": { "groups": ["none.example.com"] } })).await?;
    Ok(scene)
}

/// What a command prints on standard output, and on standard error.
fn etch(scene: &Scene, arguments: &[&str]) -> Result<(Value, String)> {
    let ended = process::etch(scene.kubeconfig(), &[arguments, &["-o", "json"]].concat())?;
    Ok((ended.json()?, ended.err))
}

/// How many objects an audit calls stored, and how many phantom; no such claim is false.
async fn known(scene: &Scene, kind: &str, name: &str) -> Result<(u64, u64)> {
    let (reported, _) = etch(scene, &["audit", name, "--objects"])?;
    let reported = &reported["crds"][0];
    let of = |is_meant: &dyn Fn(&Value) -> bool| -> Vec<&Value> {
        let details = reported["details"].as_array().into_iter().flatten();
        details.filter(|detail| is_meant(&detail["state"])).map(|detail| &detail["name"]).collect()
    };
    let (open, phantom) = (of(&|_| true), of(&|state| state == "phantom"));
    let stored = reported["stored"].as_u64().context("stored")?;
    ensure!(open.len() as u64 + stored == OBJECTS as u64, "{reported:#}");
    for index in 0..OBJECTS {
        let object = format!("o{index}");
        let raw = scene.cluster.raw(GROUP, &plural(kind), Some("default"), &object).await?;
        let is_open = open.iter().any(|name| **name == json!(object));
        ensure!(is_open || raw["spec"]["d"] == 5, "{object} is called stored: {raw}");
        let is_phantom = phantom.iter().any(|name| **name == json!(object));
        ensure!(!is_phantom || raw["spec"]["d"].is_null(), "{object} is called phantom: {raw}");
    }
    Ok((stored, phantom.len() as u64))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_stored_is_known_without_etcd() -> Result<()> {
    let scene = scene(GROUP).await?;

    // A pass of `etch persist` by a user who may not leave a record: what was written before it shows the
    // time.
    let name = upgraded(&scene, "Hand").await?;
    let (stored, _) = known(&scene, "Hand", &name).await?;
    ensure!(stored == 0);
    write(&scene, "Hand", 0).await?;
    let (reported, wording) = etch(&scene, &["persist", &name])?;
    let reported = &reported["crds"][0];
    ensure!(wording.contains("not recorded") && reported["recorded"] == false, "{wording} {reported:#}");
    ensure!(reported["written"] == OBJECTS - 1, "{reported:#}");
    ensure!(known(&scene, "Hand", &name).await? == (OBJECTS as u64, 0));

    // An upgrade, and Etch was never there: what was written since is known, and so is what was not.
    let name = upgraded(&scene, "Never").await?;
    for index in 0..WRITTEN {
        write(&scene, "Never", index).await?;
    }
    ensure!(known(&scene, "Never", &name).await? == (WRITTEN as u64, (OBJECTS - WRITTEN) as u64));
    // A webhook may have set anything, and nothing shows what it did before it was deleted.
    let webhook = json!({ "metadata": { "name": "may-set" }, "webhooks": [{
        "name": "may-set.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "failurePolicy": "Ignore",
        "clientConfig": { "url": "https://127.0.0.1:1/" },
        "rules": [{
            "apiGroups": [GROUP], "apiVersions": ["*"], "resources": [plural("Never")], "operations": [
                "CREATE",
            ],
        }],
    }]});
    scene.cluster.create(WEBHOOKS, "admin", &webhook).await?;
    ensure!(known(&scene, "Never", &name).await? == (WRITTEN as u64, 0));
    scene.cluster.delete(&format!("{WEBHOOKS}/may-set")).await?;
    ensure!(known(&scene, "Never", &name).await? == (WRITTEN as u64, 0));

    // A pass of the operator whose report is gone.
    let name = upgraded(&scene, "Gone").await?;
    scene.policy("gone", json!({ "selector": { "names": [name] } })).await?;
    let operator = scene.operator(&[])?;
    let persisted = scene.cluster.persisted(&name, "AllPersisted", SOON).await;
    persisted.with_context(|| operator.log().unwrap_or_default())?;
    operator.stop().await?;
    scene.cluster.delete(&format!("/apis/etch-operator.io/v1alpha1/defaultsreports/{name}")).await?;
    ensure!(known(&scene, "Gone", &name).await? == (OBJECTS as u64, 0));
    // With `mode: Audit` the operator reports the same, and keeps reporting it.
    scene.policy("gone", json!({ "selector": { "names": [name] }, "mode": "Audit" })).await?;
    // The condition may be that of the operator before it, whose log goes on.
    let passes =
        || Ok::<_, anyhow::Error>(fs::read_to_string(scene.log_path())?.matches("pass ended").count());
    for _ in 0..2 {
        let before = passes()?;
        let operator = scene.operator(&[])?;
        eventually(SOON, "a pass", async || Ok((passes()? > before).then_some(()))).await?;
        let wording = scene.cluster.persisted(&name, "AuditOnly", SOON).await?;
        let log = operator.log()?;
        ensure!(
            wording.message.contains(&format!("all {OBJECTS} objects store their defaults")),
            "{wording:?}\n{log}"
        );
        operator.stop().await?;
    }
    Ok(())
}
