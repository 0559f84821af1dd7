//! `etch revert` on a real control plane: after a CRD was rolled back, what the operator stored goes, if no
//! manager owns it and no client changed it.
//!
//! What is claimed is read from etcd.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::cluster::{Cluster, GUARD, Patch, crd, eventually, with_spec};
use e2e::scene::Scene;
use serde_json::{Value, json};

const SOON: Duration = GUARD;
const GROUP: &str = "revert.example.com";
const WIDGETS: &str = "widgets.revert.example.com";
/// A namespace that every cluster has.
const OTHER: &str = "kube-system";
const FREE: [&str; 3] = ["free-0", "free-1", "free-2"];

#[tokio::test(flavor = "multi_thread")]
async fn what_was_stored_goes_after_a_rollback_and_what_belongs_to_others_stays() -> Result<()> {
    let scene = Scene::start(&[GROUP]).await?;
    let cluster = &scene.cluster;
    cluster.apply_crd(&old()).await?;
    let names = ["owned", "changed", "hidden", "cleared", "ignored"];
    for name in FREE.iter().chain(&names) {
        apply(cluster, "default", name, "owner", json!({ "note": "mine" })).await?;
    }
    apply(cluster, OTHER, "free", "owner", json!({ "note": "mine" })).await?;
    let at_first = raws(cluster).await?;
    scene.policy("widgets", json!({ "selector": { "names": [WIDGETS] } })).await?;
    let operator = scene.operator(&[])?;
    cluster.apply_crd(&new()).await?;
    cluster.persisted(WIDGETS, "AllPersisted", SOON).await?;
    for (name, raw) in raws(cluster).await? {
        ensure!(raw["spec"]["size"] == 3 && raw["spec"]["parts"]["a"]["keep"] == 4, "{name}: {raw}");
    }
    operator.stop().await?;
    others_write(&scene).await?;
    let before = raws(cluster).await?;
    let to = scene.file("old.yaml", &old().to_string())?;

    // While the schema has the defaults, nothing can be removed.
    let (code, reported) = etch(&scene, &["--to", &to, "--yes"])?;
    ensure!(code == Some(1) && reported["removed"] == 0 && reported["removable"] == 0, "{reported:#}");
    ensure!(
        standings(&reported) == [(".spec.parts{}.keep", true), (".spec.size", true)].map(still),
        "{reported:#}"
    );
    ensure!(raws(cluster).await? == before, "something was written");
    let (code, reported) = etch(&scene, &[])?;
    ensure!(code == Some(0) && reported["removable"] == 0, "{reported:#}");

    cluster.apply_crd(&old()).await?;
    // The same before the operator has seen the rollback and after it.
    let (code, plan) = etch(&scene, &["--to", &to])?;
    ensure!(code == Some(1) && plan["dryRun"] == true, "{plan:#}");
    assert_eq!(details(&plan), planned(), "{plan:#}");
    let operator = scene.operator(&[])?;
    eventually(SOON, "the operator has seen the rollback", async || {
        let condition = cluster.condition(WIDGETS, "DefaultsPersisted").await?;
        Ok(condition.filter(|condition| condition.reason == "NoDefaults").map(drop))
    })
    .await?;
    scene.barrier().await?;
    let (_, plan) = etch(&scene, &[])?;
    assert_eq!(details(&plan), planned(), "{plan:#}");
    ensure!(raws(cluster).await? == before, "something was written");

    let text = scene.etch(&["revert", "widgets"])?.out;
    ensure!(text.contains("Nothing was written; --yes removes them."), "{text}");
    let words: Vec<&str> = text.split_whitespace().collect();
    ensure!(words.join(" ").contains("default/hidden hold HiddenFields .spec.extra"), "{text}");

    // One namespace, and then the rest.
    let (_, reported) = etch(&scene, &["-n", "default", "--yes"])?;
    ensure!(reported["removed"] == FREE.len() && reported["namespace"] == "default", "{reported:#}");
    ensure!(raws(cluster).await?["kube-system/free"]["spec"]["size"] == 3);
    let (code, reported) = etch(&scene, &["--yes"])?;
    ensure!(
        code == Some(1) && reported["removed"] == 1 && reported["held"] == 1 && reported["skipped"] == 1,
        "{reported:#}"
    );
    let after = raws(cluster).await?;
    let removed: Vec<String> =
        FREE.iter().map(|name| format!("default/{name}")).chain(["kube-system/free".to_owned()]).collect();
    for (name, raw) in &after {
        match removed.contains(name) {
            // As before the upgrade, owners included.
            true => assert_eq!(without_generation(raw), without_generation(&at_first[name]), "{name}"),
            false => assert_eq!(raw, &before[name], "{name}"),
        }
    }

    // Once.
    let versions = versions(cluster).await?;
    let (code, reported) = etch(&scene, &["--yes"])?;
    ensure!(code == Some(1) && reported["removed"] == 0 && reported["removable"] == 0, "{reported:#}");
    scene.barrier().await?;
    assert_eq!(raws(cluster).await?, after);
    assert_eq!(self::versions(cluster).await?, versions);
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn values_of_a_field_that_is_gone_go_once_the_field_is_back_without_its_default() -> Result<()> {
    let scene = Scene::start(&[GROUP]).await?;
    let cluster = &scene.cluster;
    // Go escapes it, and the server compares what Go writes.
    let default = ">=3 & <4";
    let (without, with) = (json!({}), json!({ "size": { "type": "string" } }));
    cluster.apply_crd(&noted(&without)).await?;
    for name in ["free", "owned"] {
        apply(cluster, "default", name, "creator", json!({ "note": "mine" })).await?;
    }
    let at_first = raws(cluster).await?;
    scene.policy("widgets", json!({ "selector": { "names": [WIDGETS] } })).await?;
    let operator = scene.operator(&[])?;
    cluster.apply_crd(&noted(&json!({ "size": { "type": "string", "default": default } }))).await?;
    cluster.persisted(WIDGETS, "AllPersisted", SOON).await?;
    apply(cluster, "default", "owned", "user", json!({ "size": default })).await?;
    let before = raws(cluster).await?;
    ensure!(before.values().all(|raw| raw["spec"]["size"] == default), "{before:#?}");

    // A rollback that takes the field away, too: its values are hidden, and stay.
    rolled_back(&scene, &without).await?;
    let (code, reported) = etch(&scene, &["--yes"])?;
    ensure!(code == Some(0) && reported["removed"] == 0, "{reported:#}");
    ensure!(reported["defaults"][0]["standing"] == "FieldGone", "{reported:#}");
    ensure!(raws(cluster).await? == before, "something was written");

    rolled_back(&scene, &with).await?;
    let (code, reported) = etch(&scene, &["--yes"])?;
    ensure!(code == Some(0) && reported["removed"] == 1, "{reported:#}");
    rolled_back(&scene, &without).await?;
    scene.barrier().await?;
    let after = raws(cluster).await?;
    // As before the upgrade, owners included; a user's value stays.
    let free = "default/free";
    assert_eq!(without_generation(&after[free]), without_generation(&at_first[free]));
    assert_eq!(after["default/owned"], before["default/owned"]);
    operator.stop().await?;

    // Nothing else names what had a default once.
    let wording = |arguments: &[&str]| -> Result<String> {
        let ended = scene.etch(arguments)?;
        ensure!(ended.code == Some(0), "{ended:?}");
        Ok(ended.out + &ended.err)
    };
    ensure!(wording(&["clean"])?.contains(&format!("defaultsreport/{WIDGETS} stays")), "it is gone");
    scene.report(WIDGETS).await?;
    ensure!(
        wording(&["clean", "--force"])?.contains(&format!("defaultsreport/{WIDGETS}: removed")),
        "it stays"
    );
    ensure!(scene.report(WIDGETS).await.is_err(), "it is still there");
    Ok(())
}

/// Rolls the CRD back to a schema without defaults, and waits until the operator has seen it.
async fn rolled_back(scene: &Scene, fields: &Value) -> Result<()> {
    scene.cluster.apply_crd(&noted(fields)).await?;
    scene.cluster.persisted(WIDGETS, "NoDefaults", SOON).await.map(drop)
}

/// A CRD with a field that stays, and these.
fn noted(fields: &Value) -> Value {
    let mut spec = fields.clone();
    spec["note"] = json!({ "type": "string" });
    crd(GROUP, "Widget", &[("v1", true, with_spec(spec))])
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_record_nothing_is_removed() -> Result<()> {
    let scene = Scene::start(&[]).await?;
    scene.cluster.apply_crd(&old()).await?;
    let ended = scene.etch(&["revert", "widgets", "--yes"])?;
    ensure!(ended.code == Some(2) && ended.err.contains("it has no DefaultsReport"), "{ended:?}");
    let to = scene.file(
        "other.yaml",
        &e2e::cluster::crd("x.example.com", "Thing", &[("v1", true, json!({ "type": "object" }))])
            .to_string(),
    )?;
    let ended = scene.etch(&["revert", "widgets", "--to", &to])?;
    let found = "contains no CRD widgets.revert.example.com: found things.x.example.com";
    ensure!(ended.code == Some(2) && ended.err.contains(found), "{ended:?}");
    Ok(())
}

/// What others do after the pass, while the schema has the defaults.
async fn others_write(scene: &Scene) -> Result<()> {
    let cluster = &scene.cluster;
    apply(cluster, "default", "owned", "user", json!({ "size": 3, "parts": { "a": { "keep": 4 } } })).await?;
    let patch = async |name: &str, body: Value| -> Result<()> {
        cluster.patch(&path("default", name), Patch::Merge, "user", &body).await?.ok().map(drop)
    };
    patch("changed", json!({ "spec": { "size": 7, "parts": { "a": { "keep": 8 } } } })).await?;
    patch("hidden", json!({ "spec": { "extra": "dear" } })).await?;
    patch("cleared", json!({ "metadata": { "managedFields": [{}] } })).await?;
    patch("ignored", json!({ "metadata": { "annotations": { "etch-operator.io/ignore": "true" } } })).await?;
    // Times are in seconds: it is created again until it is later than the pass.
    let finished = scene.report(WIDGETS).await?["status"]["finished"].clone();
    eventually(SOON, "an object that is created after the pass", async || {
        let late = apply(cluster, "default", "late", "owner", json!({ "note": "mine" })).await?;
        if late["metadata"]["creationTimestamp"].as_str() > finished.as_str() {
            return Ok(Some(()));
        }
        cluster.delete(&path("default", "late")).await?;
        Ok(None)
    })
    .await
}

/// The schema before the upgrade and after the rollback.
fn old() -> Value {
    let mut crd = new();
    let spec =
        &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
    spec["size"] = json!({ "type": "integer" });
    spec["parts"]["additionalProperties"]["properties"]["keep"] = json!({ "type": "integer" });
    spec.as_object_mut().map(|spec| spec.remove("extra"));
    crd
}

fn new() -> Value {
    let part = json!({ "type": "object", "properties": { "keep": { "type": "integer", "default": 4 } } });
    let spec = json!({
        "note": { "type": "string" },
        "extra": { "type": "string" },
        "size": { "type": "integer", "default": 3 },
        "parts": { "type": "object", "additionalProperties": part },
    });
    crd(GROUP, "Widget", &[("v1", true, with_spec(spec))])
}

/// What is planned for each object: its action, reason and places.
fn planned() -> Vec<(String, String, String, String)> {
    let both = ".spec.parts[\"a\"].keep .spec.size";
    let rows = [
        ("default/changed", "keep", "Changed", both),
        ("default/cleared", "keep", "OwnersUnknown", both),
        ("default/free-0", "remove", "UnchangedSincePass", both),
        ("default/free-1", "remove", "UnchangedSincePass", both),
        ("default/free-2", "remove", "UnchangedSincePass", both),
        ("default/hidden", "hold", "HiddenFields", ".spec.extra"),
        ("default/ignored", "skip", "Ignored", both),
        ("default/late", "keep", "NotByPass", both),
        ("default/owned", "keep", "Owned", both),
        ("kube-system/free", "remove", "UnchangedSincePass", both),
    ];
    rows.iter().map(|(a, b, c, d)| ((*a).into(), (*b).into(), (*c).into(), (*d).into())).collect()
}

fn details(reported: &Value) -> Vec<(String, String, String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let all = reported["details"].as_array().into_iter().flatten();
    all.map(|detail| {
        let paths: Vec<String> = detail["paths"].as_array().into_iter().flatten().map(text).collect();
        let name = format!("{}/{}", text(&detail["namespace"]), text(&detail["name"]));
        (name, text(&detail["action"]), text(&detail["reason"]), paths.join(" "))
    })
    .collect()
}

fn standings(reported: &Value) -> Vec<(String, String, Value)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let all = reported["defaults"].as_array().into_iter().flatten();
    all.map(|default| (text(&default["path"]), text(&default["standing"]), default["rollBackFirst"].clone()))
        .collect()
}

fn still((path, first): (&str, bool)) -> (String, String, Value) {
    (path.to_owned(), "StillDefault".to_owned(), json!(first))
}

fn etch(scene: &Scene, arguments: &[&str]) -> Result<(Option<i32>, Value)> {
    scene.etch_json(&[&["revert", "widgets"], arguments].concat())
}

async fn apply(
    cluster: &Cluster,
    namespace: &str,
    name: &str,
    manager: &str,
    mut spec: Value,
) -> Result<Value> {
    if manager == "owner" {
        spec["parts"] = json!({ "a": {} });
    }
    let widget = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "Widget", "metadata": { "name": name }, "spec": spec,
    });
    cluster.patch(&path(namespace, name), Patch::Apply, manager, &widget).await?.ok()
}

fn path(namespace: &str, name: &str) -> String {
    format!("/apis/{GROUP}/v1/namespaces/{namespace}/widgets/{name}")
}

async fn list(cluster: &Cluster) -> Result<Vec<Value>> {
    let list = cluster.get(&format!("/apis/{GROUP}/v1/widgets")).await?;
    Ok(list["items"].as_array().cloned().unwrap_or_default())
}

/// What etcd holds of each object.
async fn raws(cluster: &Cluster) -> Result<BTreeMap<String, Value>> {
    let mut raws = BTreeMap::new();
    for object in list(cluster).await? {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        let raw = cluster.raw(GROUP, "widgets", Some(text("namespace")), text("name")).await?;
        raws.insert(format!("{}/{}", text("namespace"), text("name")), raw);
    }
    Ok(raws)
}

async fn versions(cluster: &Cluster) -> Result<Vec<Value>> {
    Ok(list(cluster).await?.iter().map(|object| object["metadata"]["resourceVersion"].clone()).collect())
}

fn without_generation(raw: &Value) -> Value {
    let mut raw = raw.clone();
    raw["metadata"]["generation"].take();
    raw
}
