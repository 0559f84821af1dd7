//! Defaults that change, on a real control plane: what no manager owns follows if the policy asks for it, and
//! everything else stays.
//!
//! What is claimed is read from etcd.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::cluster::{CRDS, Cluster, GUARD, Patch, crd, documents, eventually, with_spec};
use e2e::scene::Scene;
use etch::cluster::{Events, GenerationCheck};
use etch_core::crd::Crd;
use etch_core::event::{Event, Regarding};
use etch_core::object::Object;
use etch_core::ownership::MANAGER;
use etch_core::plan::{OldDefault, Outcome, Plan, Record, Terms, changes, follow};
use kube_structural_schema::json::Json;
use serde_json::{Value, json};
use tokio::time::Instant;

const SOON: Duration = GUARD;
const CERTIFICATES: &str = "certificates.cert-manager.io";
const GROUP: &str = "follow.example.com";
const WIDGETS: &str = "widgets.follow.example.com";

/// cert-manager v1.19.0 gave two defaults, and v1.19.1 took them back.
#[tokio::test(flavor = "multi_thread")]
async fn a_release_that_is_taken_back_leaves_nothing_where_its_defaults_are_followed() -> Result<()> {
    let scene = Scene::start(&["cert-manager.io"]).await?;
    let cluster = &scene.cluster;
    release(cluster, "crd-1-without-defaults.yaml").await?;
    let issuer = |kind: &str| json!({ "name": "ca", "kind": kind });
    let made = [
        ("applied", json!({ "name": "ca" })),
        ("created", json!({ "name": "ca" })),
        ("chosen", issuer("Issuer")),
        ("other", issuer("ClusterIssuer")),
    ];
    for (name, issuer) in &made {
        let certificate = certificate(name, issuer);
        if *name == "created" {
            cluster.create(&certificates(""), "owner", &certificate).await?;
        } else {
            cluster.patch(&certificates(name), Patch::Apply, "owner", &certificate).await?.ok()?;
        }
    }
    let at_first = raws(cluster, &made).await?;
    let on_change = json!([
        { "path": ".spec.issuerRef.kind", "action": "Follow" },
        { "path": ".spec.issuerRef.group", "action": "Follow" },
    ]);
    let selector = json!({ "names": [CERTIFICATES] });
    scene.policy("certificates", json!({ "selector": selector, "onChange": on_change })).await?;
    let operator = scene.operator(&[])?;

    release(cluster, "crd-2-defaults-added.yaml").await?;
    cluster.persisted(CERTIFICATES, "AllPersisted", SOON).await?;
    for raw in raws(cluster, &made).await? {
        assert_eq!(raw["spec"]["issuerRef"]["group"], "cert-manager.io", "{raw}");
    }
    release(cluster, "crd-3-defaults-removed.yaml").await?;
    let report = without_defaults(&scene).await?;
    assert_eq!(raws(cluster, &made).await?, at_first, "etcd is as it was");
    assert_eq!(
        (&report["counts"]["followed"], &report["counts"]["kept"]),
        (&json!(4), &json!(1)),
        "{report}"
    );
    let changed = json!([
        { "path": ".spec.issuerRef.group", "action": "Follow", "followed": 4, "kept": 0 },
        { "path": ".spec.issuerRef.kind", "action": "Follow", "followed": 2, "kept": 1 },
    ]);
    assert_eq!(report["changed"], changed, "{report}");

    // Once more, with the policy that every CRD has by default.
    scene.policy("certificates", json!({ "selector": selector })).await?;
    release(cluster, "crd-2-defaults-added.yaml").await?;
    cluster.persisted(CERTIFICATES, "AllPersisted", SOON).await?;
    let stored = raws(cluster, &made).await?;
    release(cluster, "crd-3-defaults-removed.yaml").await?;
    let report = without_defaults(&scene).await?;
    assert_eq!(raws(cluster, &made).await?, stored, "what was stored stays");
    assert_eq!(
        (&report["counts"]["followed"], &report["counts"]["kept"]),
        (&json!(0), &json!(4)),
        "{report}"
    );

    // The policy begins to follow, and what was kept goes.
    scene.policy("certificates", json!({ "selector": selector, "onChange": on_change })).await?;
    eventually(SOON, "what was kept is gone", async || {
        Ok((raws(cluster, &made).await? == at_first).then_some(()))
    })
    .await?;

    // Within the time to settle nothing is stored, so nothing is left.
    let before = raws(cluster, &made).await?;
    scene.policy("certificates", json!({ "selector": selector, "settle": "1h" })).await?;
    let widened = changed_kind("ClusterIssuer")?;
    cluster.apply_crd(&widened).await?;
    cluster.persisted(CERTIFICATES, "Settling", SOON).await?;
    release(cluster, "crd-3-defaults-removed.yaml").await?;
    let condition = cluster.persisted(CERTIFICATES, "NoDefaults", SOON).await?;
    assert_eq!(condition.status, "True");
    assert_eq!(raws(cluster, &made).await?, before);
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_default_moves_what_nobody_owns_over_a_crash_and_not_again() -> Result<()> {
    const MANY: usize = 40;
    let scene = Scene::start(&[GROUP]).await?;
    let cluster = &scene.cluster;
    cluster.apply_crd(&widgets(None)).await?;
    let many: Vec<String> = (0..MANY).map(|index| format!("many-{index:02}")).collect();
    let special = ["owned", "other-value", "cleared", "ignored", "late", "unreleased"];
    for name in many.iter().map(String::as_str).chain(special) {
        cluster.patch(&path(name), Patch::Apply, "owner", &widget(name)).await?.ok()?;
    }
    let ignored = json!({ "metadata": { "annotations": { "etch-operator.io/ignore": "true" } } });
    scene.policy("widgets", policy(&[])).await?;
    let operator = scene.operator(&[])?;
    cluster.apply_crd(&widgets(Some(3))).await?;
    cluster.persisted(WIDGETS, "AllPersisted", SOON).await?;
    assert_eq!(raw(cluster, "many-00").await?["spec"], spec(3));
    operator.stop().await?;
    let owned = json!({ "spec": { "size": 3, "parts": { "a": { "keep": 3 } } } });
    let mut applied = widget("owned");
    applied["spec"] = owned["spec"].clone();
    cluster.patch(&path("owned"), Patch::Apply, "user", &applied).await?.ok()?;
    cluster
        .patch(&path("other-value"), Patch::Merge, "user", &json!({ "spec": { "size": 7 } }))
        .await?
        .ok()?;
    let cleared = json!({ "metadata": { "managedFields": [{}] } });
    cluster.patch(&path("cleared"), Patch::Merge, "user", &cleared).await?.ok()?;
    cluster.patch(&path("ignored"), Patch::Merge, "user", &ignored).await?.ok()?;
    // What a crash leaves between storing and releasing.
    let mut entry = widget("unreleased");
    entry["spec"] = json!({ "size": 3 });
    cluster.patch(&path("unreleased"), Patch::Apply, MANAGER, &entry).await?.ok()?;
    let before = raw(cluster, "many-00").await?;
    assert_eq!(owners(&raw(cluster, "unreleased").await?).len(), owners(&before).len() + 1);

    // Slowly, so that it can be killed in the middle.
    scene.policy("widgets", policy(&[("maxWritesPerSecond", json!(10))])).await?;
    cluster.apply_crd(&widgets(Some(5))).await?;
    let operator = scene.operator(&[])?;
    eventually(SOON, "some have followed", async || {
        Ok((raw(cluster, "many-03").await?["spec"]["size"] == 5).then_some(()))
    })
    .await?;
    operator.kill().await?;
    assert_ne!(raw(cluster, &many[MANY - 1]).await?["spec"]["size"], 5, "killed in the middle");
    scene.policy("widgets", policy(&[])).await?;
    let operator = scene.operator(&[])?;
    let wording = cluster.persisted(WIDGETS, "AllPersisted", SOON).await?;
    for name in many.iter().map(String::as_str).chain(["unreleased"]) {
        let raw = raw(cluster, name).await?;
        assert_eq!(raw["spec"], spec(5), "{name}");
        assert_eq!(owners(&raw), owners(&before), "{name}: nobody gained or lost anything");
        assert_eq!(raw["metadata"]["generation"], 2, "{name}: what is read has changed, once");
    }
    let owned = raw(cluster, "owned").await?;
    let parts = json!({ "a": { "name": "a", "keep": 3 }, "b": { "name": "b", "keep": 5 } });
    assert_eq!((&owned["spec"]["size"], &owned["spec"]["parts"]), (&json!(3), &parts));
    let other = raw(cluster, "other-value").await?;
    assert_eq!((&other["spec"]["size"], &other["spec"]["parts"]), (&json!(7), &spec(5)["parts"]));
    for name in ["cleared", "ignored"] {
        assert_eq!(raw(cluster, name).await?["spec"], spec(3), "{name}");
    }
    assert!(
        wording.message.contains(" followed a changed default; 45 keep the previous default"),
        "{wording:?}"
    );
    // Others set what they like, at once.
    let mut mine = widget("many-01");
    mine["spec"] = json!({ "size": 9, "ports": [{ "name": "x", "keep": 9 }] });
    cluster.patch(&path("many-01"), Patch::Apply, "somebody", &mine).await?.ok()?;

    // A user who sets the old default later means it.
    cluster.patch(&path("late"), Patch::Merge, "user", &json!({ "spec": { "size": 3 } })).await?.ok()?;
    operator.stop().await?;
    let operator = scene.operator(&[])?;
    cluster
        .patch(&path("late"), Patch::Merge, "user", &json!({ "spec": { "note": "again" } }))
        .await?
        .ok()?;
    scene.barrier().await?;
    assert_eq!(raw(cluster, "late").await?["spec"]["size"], 3);
    let status = scene.report(WIDGETS).await?["status"].clone();
    assert_eq!(status["counts"]["kept"], 45, "{status}");
    let size =
        status["changed"].as_array().and_then(|all| all.iter().find(|change| change["path"] == ".spec.size"));
    assert_eq!(size.context("the size has changed")?["kept"], 2, "owned and cleared; {status}");
    events_are_told(&scene, &wording.message).await?;
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_in_the_middle_loses_no_count() -> Result<()> {
    const MANY: usize = 30;
    let scene = Scene::start(&[GROUP]).await?;
    let cluster = &scene.cluster;
    cluster.apply_crd(&widgets(Some(3))).await?;
    let names: Vec<String> = (0..MANY).map(|index| format!("many-{index:02}")).collect();
    for name in &names {
        cluster.patch(&path(name), Patch::Apply, "owner", &widget(name)).await?.ok()?;
    }
    scene.policy("widgets", policy(&[])).await?;
    let operator = scene.operator(&[])?;
    cluster.persisted(WIDGETS, "AllPersisted", SOON).await?;
    // Slowly, so that it can be paused in the middle.
    scene.policy("widgets", policy(&[("maxWritesPerSecond", json!(10))])).await?;
    cluster.apply_crd(&widgets(Some(5))).await?;
    eventually(SOON, "some have followed", async || {
        Ok((raw(cluster, "many-03").await?["spec"]["size"] == 5).then_some(()))
    })
    .await?;
    let paused = policy(&[("maxWritesPerSecond", json!(10)), ("paused", json!(true))]);
    scene.policy("widgets", paused).await?;
    cluster.persisted(WIDGETS, "Paused", SOON).await?;
    assert_ne!(raw(cluster, &names[MANY - 1]).await?["spec"]["size"], 5, "paused in the middle");
    scene.policy("widgets", policy(&[("maxWritesPerSecond", json!(10))])).await?;
    let wording = cluster.persisted(WIDGETS, "AllPersisted", SOON).await?;
    for name in &names {
        assert_eq!(raw(cluster, name).await?["spec"], spec(5), "{name}");
    }
    assert!(
        wording.message.ends_with("; 30 followed a changed default; 30 keep the previous default"),
        "{wording:?}"
    );
    operator.stop().await
}

/// The end of the pass was published as an event, in the words of the condition.
async fn events_are_told(scene: &Scene, message: &str) -> Result<()> {
    let cluster = &scene.cluster;
    let reported = async || -> Result<Vec<Value>> {
        let all = cluster.get("/apis/events.k8s.io/v1/namespaces/default/events").await?;
        let all = all["items"].as_array().context("events")?.iter();
        let ours = all.filter(|event| event["reportingController"] == "etch-operator.io/etch");
        Ok(ours.filter(|event| event["note"] == message).cloned().collect())
    };
    let events = eventually(SOON, "the event", async || {
        Ok(Some(reported().await?).filter(|reported| !reported.is_empty()))
    })
    .await?;
    let [event] = &events[..] else { anyhow::bail!("{events:?}") };
    assert_eq!(
        (&event["reason"], &event["action"], &event["type"], &event["regarding"]["name"]),
        (&json!("AllPersisted"), &json!("PersistDefaults"), &json!("Normal"), &json!(WIDGETS))
    );
    Ok(())
}

/// What a user does between our read and our write.
#[derive(Clone, Copy, Debug)]
enum Meanwhile {
    Edits,
    Takes,
    Deletes,
    Recreates,
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_writes_meanwhile_wins() -> Result<()> {
    let scene = Scene::start(&[GROUP]).await?;
    let cluster = &scene.cluster;
    let etch = etch::cluster::Cluster::with_config(scene.control_plane.config(0).await?)?;
    let all = [Meanwhile::Edits, Meanwhile::Takes, Meanwhile::Deletes, Meanwhile::Recreates];
    let name = |what: Meanwhile| format!("{what:?}").to_lowercase();
    cluster.apply_crd(&widgets(Some(3))).await?;
    for what in all {
        cluster.patch(&path(&name(what)), Patch::Apply, "owner", &widget(&name(what))).await?.ok()?;
    }
    cluster.apply_crd(&widgets(Some(5))).await?;
    let crd = Crd::read(&Json::from(cluster.get(&format!("{CRDS}/{WIDGETS}")).await?))?;
    let path_of = |text: &str| -> Result<kube_structural_schema::path::Path> { Ok(text.parse()?) };
    let past = [OldDefault { path: path_of(".spec.size")?, values: vec![json!(3).into()] }];
    let changes = changes(&past, &crd, &[path_of(".spec.size")?]);
    for what in all {
        let name = name(what);
        let read = Object::from(cluster.get(&path(&name)).await?);
        let Some(Plan::Write(write)) =
            follow(&read, &crd, &Terms::default(), &changes, &Record::default()).plan
        else {
            anyhow::bail!("{what:?}: nothing is planned");
        };
        match what {
            Meanwhile::Edits => {
                cluster
                    .patch(&path(&name), Patch::Merge, "user", &json!({ "spec": { "note": "x" } }))
                    .await?
                    .ok()?;
            }
            Meanwhile::Takes => {
                let mut mine = widget(&name);
                mine["spec"] = json!({ "size": 3 });
                cluster.patch(&path(&name), Patch::Apply, "user", &mine).await?.ok()?;
            }
            Meanwhile::Deletes => drop(cluster.delete(&path(&name)).await?),
            Meanwhile::Recreates => {
                cluster.delete(&path(&name)).await?;
                let mut mine = widget(&name);
                mine["spec"]["size"] = json!(3);
                cluster.create(&path(""), "user", &mine).await?;
            }
        }
        let stored = async || cluster.etcd().raw_object(GROUP, "widgets", Some("default"), &name).await;
        let before = stored().await?;
        let (terms, check) = (Terms::default(), GenerationCheck::new(&crd, None));
        let outcome = etch.perform(&crd, &read, Instant::now(), &write, &terms, &check).await;
        ensure!(matches!(outcome, Ok(Outcome::Conflict | Outcome::Gone)), "{what:?}: {outcome:?}");
        assert_eq!(stored().await?, before, "{what:?}");
    }
    what_is_told_again_is_counted_up(cluster, &etch).await
}

/// By this process, and by one that has not sent the earlier event.
async fn what_is_told_again_is_counted_up(cluster: &Cluster, etch: &etch::cluster::Cluster) -> Result<()> {
    let widget = cluster.get(&path("edits")).await?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let event = Event {
        regarding: Regarding {
            api_version: text(&widget["apiVersion"]),
            kind: text(&widget["kind"]),
            namespace: Some("default".to_owned()),
            name: text(&widget["metadata"]["name"]),
            uid: text(&widget["metadata"]["uid"]),
        },
        warning: true,
        reason: "HiddenFields".to_owned(),
        action: "PersistDefaults",
        note: "x".repeat(2000),
    };
    for (process, times) in [(1, 3), (2, 1)] {
        let (events, dispatch) = Events::new(etch.clone(), "process");
        (0..times).for_each(|_| events.publish(event.clone()));
        drop(events);
        dispatch.run().await;
        let all = cluster.get("/apis/events.k8s.io/v1/namespaces/default/events").await?;
        let all = all["items"].as_array().context("events")?.iter();
        let reported: Vec<&Value> = all.filter(|reported| reported["regarding"]["name"] == "edits").collect();
        let [reported] = reported[..] else { anyhow::bail!("{reported:?}") };
        let count = if process == 1 { 3 } else { 4 };
        assert_eq!(
            (&reported["series"]["count"], &reported["type"]),
            (&json!(count), &json!("Warning")),
            "{reported}"
        );
    }
    Ok(())
}

/// The report on a CRD whose last defaults are gone, once the pass that this takes has ended.
async fn without_defaults(scene: &Scene) -> Result<Value> {
    eventually(SOON, "the report and the condition say NoDefaults", async || {
        let status = scene.report(CERTIFICATES).await?["status"].clone();
        let condition = scene.cluster.condition(CERTIFICATES, "DefaultsPersisted").await?;
        let is_over = status["state"] == "NoDefaults"
            && status["finished"].is_string()
            && condition.is_some_and(|condition| condition.reason == "NoDefaults");
        Ok(is_over.then_some(status))
    })
    .await
}

async fn release(cluster: &Cluster, file: &str) -> Result<()> {
    cluster.apply_crd(&certificates_crd(file)?).await.map(drop)
}

fn certificates_crd(file: &str) -> Result<Value> {
    let dir = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../yaml/cert-manager"));
    documents(&dir.join(file))?.into_iter().next().context("a CRD")
}

/// The defaults of v1.19.0, one of them another.
fn changed_kind(kind: &str) -> Result<Value> {
    let mut crd = certificates_crd("crd-2-defaults-added.yaml")?;
    let schema = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["properties"]["spec"]["properties"]["issuerRef"]["properties"]["kind"]["default"] = json!(kind);
    Ok(crd)
}

fn certificates(name: &str) -> String {
    let separator = if name.is_empty() { "" } else { "/" };
    format!("/apis/cert-manager.io/v1/namespaces/default/certificates{separator}{name}")
}

fn certificate(name: &str, issuer: &Value) -> Value {
    json!({
        "apiVersion": "cert-manager.io/v1", "kind": "Certificate", "metadata": { "name": name },
        "spec": { "secretName": name, "dnsNames": ["example.com"], "issuerRef": issuer },
    })
}

/// What etcd holds of the Certificates, except the times and numbers of writes.
async fn raws(cluster: &Cluster, made: &[(&str, Value)]) -> Result<Vec<Value>> {
    let mut raws = Vec::new();
    for (name, _) in made {
        let mut raw = cluster.raw("cert-manager.io", "certificates", Some("default"), name).await?;
        raw["metadata"]["generation"].take();
        raws.push(raw);
    }
    Ok(raws)
}

/// `spec.size`, and what lies in a list map, a map, an atomic list and a defaulted object, with this default
/// or none.
fn widgets(default: Option<i64>) -> Value {
    let number = match default {
        Some(default) => json!({ "type": "integer", "default": default }),
        None => json!({ "type": "integer" }),
    };
    let text = json!({ "type": "string" });
    let part = json!({ "type": "object", "properties": { "name": text, "keep": number } });
    let mut policy = part.clone();
    if default.is_some() {
        policy["default"] = json!({});
    }
    let spec = json!({
        "note": text,
        "size": number,
        "policy": policy,
        "ports": {
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object", "required": ["name"], "properties": { "name": text, "keep": number },
            },
        },
        "parts": { "type": "object", "additionalProperties": part },
        "atomic": { "type": "array", "items": part },
    });
    crd(GROUP, "Widget", &[("v1", true, with_spec(spec))])
}

fn policy(more: &[(&str, Value)]) -> Value {
    let paths = [
        ".spec.size",
        ".spec.policy.keep",
        ".spec.ports[].keep",
        ".spec.parts{}.keep",
        ".spec.atomic[].keep",
    ];
    let rules: Vec<Value> = paths.iter().map(|path| json!({ "path": path, "action": "Follow" })).collect();
    let mut spec = json!({ "selector": { "names": [WIDGETS] }, "onChange": rules });
    for (field, value) in more {
        spec[*field] = value.clone();
    }
    spec
}

fn widget(name: &str) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "Widget", "metadata": { "name": name },
        "spec": {
            "ports": [{ "name": "x" }], "parts": { "a": { "name": "a" }, "b": { "name": "b" } }, "atomic": [{
                "name": "l",
            }],
        },
    })
}

/// What etcd holds of a widget that its user has made, with a default that was stored by Etch. The atomic
/// list is the user's, and keeps what it held first.
fn spec(default: i64) -> Value {
    json!({
        "size": default, "policy": { "keep": default }, "ports": [{ "name": "x", "keep": default }],
        "parts": { "a": { "name": "a", "keep": default }, "b": { "name": "b", "keep": default } },
        "atomic": [{ "name": "l", "keep": 3 }],
    })
}

fn path(name: &str) -> String {
    let separator = if name.is_empty() { "" } else { "/" };
    format!("/apis/{GROUP}/v1/namespaces/default/widgets{separator}{name}")
}

async fn raw(cluster: &Cluster, name: &str) -> Result<Value> {
    cluster.raw(GROUP, "widgets", Some("default"), name).await
}

fn owners(raw: &Value) -> Vec<(Value, Value, Value)> {
    let entries = raw["metadata"]["managedFields"].as_array().into_iter().flatten();
    entries
        .map(|entry| (entry["manager"].clone(), entry["operation"].clone(), entry["fieldsV1"].clone()))
        .collect()
}
