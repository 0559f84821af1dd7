//! Objects that Etch does not write, and fields that it drops: what the operator and the commands report of
//! them, compared with etcd and with what happens next.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::cluster::{CRDS, Cluster, Patch, crd, eventually, plural, with_spec};
use e2e::scene::Scene;
use serde_json::{Value, json};

const GROUP: &str = "left.example.com";
const THINGS: &str = "things.left.example.com";
const FREES: &str = "frees.left.example.com";
const DROPS: &str = "drops.left.example.com";
const SOON: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_alone_or_dropped_is_told_as_it_is() -> Result<()> {
    let scene = Scene::start(&[GROUP]).await?;
    let operator = scene.operator(&[])?;
    what_is_skipped_is_never_said_to_be_stored(&scene).await.context("skipped")?;
    what_is_freed_is_stored_when_it_is_said_to_be(&scene).await.context("freed")?;
    what_was_dropped_is_known_to_be_gone(&scene).await.context("dropped")?;
    let log = operator.log()?;
    ensure!(log.contains(".spec.legacy") && !log.contains("secret-value"), "paths are logged, and no values");
    operator.stop().await
}

async fn what_is_skipped_is_never_said_to_be_stored(scene: &Scene) -> Result<()> {
    let cluster = &scene.cluster;
    cluster.apply_crd(&things(&json!({ "type": "integer" }))).await?;
    for (name, metadata) in [
        ("plain", json!({})),
        ("a", json!({ "annotations": { "etch-operator.io/ignore": "true" } })),
        ("b", json!({ "annotations": { "etch-operator.io/ignore": "true" } })),
        ("t", json!({ "finalizers": ["example.com/stays"] })),
    ] {
        apply(cluster, "Thing", name, metadata, json!({ "note": "n" })).await?;
    }
    cluster.delete(&path("things", "t")).await?;
    cluster.apply_crd(&things(&json!({ "type": "integer", "default": 1 }))).await?;
    let wording = cluster.persisted(THINGS, "AllPersisted", SOON).await?;
    ensure!(
        wording.status == "True"
            && wording.message
                == "1 of 4 objects is known to store its defaults; 2 ignored by annotation, etcd may lack \
                    their defaults (default/a, default/b); 1 being deleted, etcd may lack its defaults \
                    (default/t)",
        "{}",
        wording.message
    );
    ensure!(stored(cluster).await? == ["plain"], "what the rest of this test holds the answers against");
    let report = scene.report(THINGS).await?["status"].clone();
    let counts = ["objects", "written", "ignored", "terminating"].map(|field| &report["counts"][field]);
    ensure!(json!(counts) == json!([4, 1, 2, 1]), "{report:#}");
    ensure!(names(&report["ignored"]) == ["a", "b"] && names(&report["terminating"]) == ["t"], "{report:#}");

    let etcd = ["--etcd-endpoints", scene.control_plane.etcd_url()];
    for (access, lacking) in [(&[][..], "unknown"), (&etcd[..], "phantom")] {
        let (code, audit) = scene.etch_json(&[&["audit", THINGS, "--objects"], access].concat())?;
        let crd = &audit["crds"][0];
        let counts = ["objects", "stored", lacking, "ignored", "terminating"].map(|field| &crd[field]);
        ensure!(code == Some(1) && json!(counts) == json!([4, 1, 3, 2, 1]), "{audit:#}");
        let (code, explained) = scene.etch_json(&[&["explain", "things", "a"], access].concat())?;
        let default = &explained["defaults"][0];
        ensure!(
            code == Some(1) && default["state"] == lacking && explained["ignored"] == true,
            "{explained:#}"
        );
        let reason = default["reason"].as_str().unwrap_or_default();
        ensure!(reason.contains("Etch skips the object"), "{reason}");
    }
    let (code, persisted) = scene.etch_json(&["persist", THINGS])?;
    let crd = &persisted["crds"][0];
    ensure!(code == Some(1) && crd["ignored"] == 2 && crd["terminating"] == 1, "{persisted:#}");
    ensure!(stored(cluster).await? == ["plain"], "persist leaves them alone");

    what_is_predicted_of_them_comes_true(scene, &etcd).await?;
    // To take the annotation away is a write: it stores what it shows, and that is the new default.
    let merged = json!({ "metadata": { "annotations": { "etch-operator.io/ignore": null } } });
    cluster.patch(&path("things", "a"), Patch::Merge, "owner", &merged).await?.ok()?;
    eventually(SOON, "the object counts as stored", async || {
        let report = scene.report(THINGS).await?;
        Ok((names(&report["status"]["ignored"]) == ["b"]).then_some(()))
    })
    .await?;
    ensure!(stored(cluster).await? == ["a", "plain"], "what is said to be stored is");
    let (_, audit) = scene.etch_json(&["audit", THINGS])?;
    let counts = ["objects", "stored", "unknown", "ignored"].map(|field| &audit["crds"][0][field]);
    ensure!(json!(counts) == json!([4, 2, 2, 1]), "{audit:#}");
    Ok(())
}

/// The default changes: the objects that were predicted to change do, and no output suggests that `persist`
/// helps.
async fn what_is_predicted_of_them_comes_true(scene: &Scene, etcd: &[&str]) -> Result<()> {
    let cluster = &scene.cluster;
    let new = things(&json!({ "type": "integer", "default": 5 }));
    let file = scene.file("new.json", &new.to_string())?;
    let mut predicted = Vec::new();
    for access in [&[][..], etcd] {
        let arguments = [&["impact", "-f", &file, "--live"], access].concat();
        let (_, impact) = scene.etch_json(&arguments)?;
        let objects = &impact["crds"][0]["objects"];
        let counts =
            ["changing", "protectedByPersist", "ignored", "terminating"].map(|field| &objects[field]);
        ensure!(json!(counts) == json!([3, 0, 2, 1]), "{impact:#}");
        predicted
            .push(names(&impact["crds"][0]["details"]).into_iter().map(str::to_owned).collect::<Vec<_>>());
        let table = scene.etch(&arguments)?.out;
        ensure!(
            table.contains("2 objects are ignored by annotation") && !table.contains("keeps values of"),
            "{table}"
        );
    }
    cluster.apply_crd(&new).await?;
    let mut changed = Vec::new();
    for name in ["a", "b", "plain", "t"] {
        let seen = eventually(SOON, "the schema is served", async || {
            let object = cluster.get(&path("things", name)).await?;
            Ok((object["spec"]["a"] == 5 || name == "plain").then_some(object))
        })
        .await?;
        if seen["spec"]["a"] != 1 {
            changed.push(name.to_owned());
        }
    }
    ensure!(predicted == [changed.clone(), changed.clone()], "{predicted:?}, and it was {changed:?}");
    Ok(())
}

/// The annotation goes with an apply, beside an owner at a version without the default: such a write need not
/// store what it shows.
async fn what_is_freed_is_stored_when_it_is_said_to_be(scene: &Scene) -> Result<()> {
    let cluster = &scene.cluster;
    let note = json!({ "note": { "type": "string" } });
    cluster.apply_crd(&crd(GROUP, "Free", &[("v1beta1", true, with_spec(note.clone()))])).await?;
    let at = |version: &str| format!("/apis/{GROUP}/{version}/namespaces/default/frees/f");
    let object = |version: &str, metadata: Value, spec: Value| {
        json!({
            "apiVersion": format!("{GROUP}/{version}"), "kind": "Free", "metadata": metadata, "spec": spec,
        })
    };
    let kept = object("v1beta1", json!({ "name": "f" }), json!({ "note": "n" }));
    cluster.patch(&at("v1beta1"), Patch::Apply, "keeper", &kept).await?.ok()?;
    let annotations = json!({ "etch-operator.io/ignore": "true" });
    let asking = object("v1beta1", json!({ "name": "f", "annotations": annotations }), json!({}));
    cluster.patch(&at("v1beta1"), Patch::Apply, "owner", &asking).await?.ok()?;
    let mut colored = note.clone();
    colored["color"] = json!({ "type": "string", "default": "red" });
    let mut both =
        crd(GROUP, "Free", &[("v1beta1", false, with_spec(note)), ("v1", true, with_spec(colored))]);
    both["spec"]["versions"][0]["served"] = json!(false);
    cluster.apply_crd(&both).await?;
    let wording = cluster.persisted(FREES, "AllPersisted", SOON).await?;
    ensure!(wording.message.contains("1 ignored by annotation, etcd may lack"), "{}", wording.message);
    let raw = async || cluster.raw(GROUP, "frees", Some("default"), "f").await;
    ensure!(raw().await?["spec"]["color"].is_null(), "it is left alone");

    let freed = object("v1", json!({ "name": "f" }), json!({}));
    let answer = cluster.patch(&at("v1"), Patch::Apply, "owner", &freed).await?.ok()?;
    ensure!(answer["spec"]["color"] == "red" && answer["metadata"]["annotations"].is_null(), "{answer:#}");
    eventually(SOON, "it is ignored no more", async || {
        let counts = scene.report(FREES).await?["status"]["counts"].clone();
        Ok((counts["objects"] == 1 && counts["ignored"] == 0).then_some(()))
    })
    .await?;
    ensure!(raw().await?["spec"]["color"] == "red", "what is said to be stored is");
    ensure!(raw().await?["metadata"]["managedFields"].to_string().contains("keeper"), "owners stay");
    Ok(())
}

/// Policy `Drop`, a pass, the policy deleted: what was dropped is named, and holds nothing up that is due
/// later.
async fn what_was_dropped_is_known_to_be_gone(scene: &Scene) -> Result<()> {
    let cluster = &scene.cluster;
    let with = |fields: Value| {
        let mut fields = fields;
        fields["note"] = json!({ "type": "string" });
        with_spec(fields)
    };
    let old = with(json!({ "legacy": { "type": "string" } }));
    cluster.apply_crd(&crd(GROUP, "Drop", &[("v1", true, old)])).await?;
    for name in ["d1", "d2"] {
        apply(cluster, "Drop", name, json!({}), json!({ "legacy": "secret-value", "note": "n" })).await?;
    }
    let a = json!({ "type": "integer", "default": 1 });
    cluster.apply_crd(&crd(GROUP, "Drop", &[("v1", true, with(json!({ "a": a })))])).await?;
    let wording = cluster.persisted(DROPS, "HiddenFields", SOON).await?;
    ensure!(
        wording.message.contains(
            "2 held: a write would destroy fields that etcd may still hold and reads do not show: \
             .spec.legacy (default/d1, default/d2)"
        ),
        "{}",
        wording.message
    );
    scene.policy("drop", json!({ "selector": { "names": [DROPS] }, "hiddenFields": "Drop" })).await?;
    cluster.persisted(DROPS, "AllPersisted", SOON).await?;
    let report = scene.report(DROPS).await?["status"].clone();
    ensure!(report["counts"]["dropped"] == 2, "{report:#}");
    ensure!(report["dropped"] == json!([{ "path": ".spec.legacy", "objects": 2 }]), "{report:#}");
    ensure!(names(&report["cleared"]) == ["d1", "d2"], "{report:#}");
    eventually(SOON, "an event names what was dropped", async || {
        let events = cluster.get("/apis/events.k8s.io/v1/namespaces/default/events").await?;
        let mut all = events["items"].as_array().into_iter().flatten();
        let reported = |event: &&Value| {
            let note = event["note"].as_str().unwrap_or_default();
            event["reason"] == "HiddenFieldsDropped" && note.ends_with("2 objects: .spec.legacy")
        };
        Ok(all.find(reported).map(drop))
    })
    .await?;
    let is_as_it_should_be = async |expected: Value| {
        for name in ["d1", "d2"] {
            let raw = cluster.raw(GROUP, "drops", Some("default"), name).await?;
            ensure!(raw["spec"] == expected, "{raw:#}");
            let fields = raw["metadata"]["managedFields"].to_string();
            ensure!(fields.contains("f:legacy"), "managedFields go on naming it: {fields}");
        }
        Ok(())
    };
    is_as_it_should_be(json!({ "note": "n", "a": 1 })).await?;

    cluster.delete("/apis/etch-operator.io/v1alpha1/defaultspolicies/drop").await?;
    eventually(SOON, "the other policy is in force", async || {
        Ok((scene.report(DROPS).await?["status"]["policy"] == "default").then_some(()))
    })
    .await?;
    cluster.persisted(DROPS, "AllPersisted", SOON).await?;
    // What etcd does not hold is not held for.
    let fields =
        json!({ "a": { "type": "integer", "default": 1 }, "b": { "type": "integer", "default": 2 } });
    let applied = cluster.apply_crd(&crd(GROUP, "Drop", &[("v1", true, with(fields))])).await?;
    let generation = applied["metadata"]["generation"].clone();
    let status = eventually(SOON, "a report on the new defaults", async || {
        let status = scene.report(DROPS).await?["status"].clone();
        Ok((status["generation"] == generation && status["finished"].is_string()).then_some(status))
    })
    .await?;
    ensure!(status["state"] == "AllPersisted" && status["counts"]["dropped"] == 2, "{status:#}");
    is_as_it_should_be(json!({ "note": "n", "a": 1, "b": 2 })).await?;
    let (_, audit) = scene.etch_json(&["audit", DROPS])?;
    ensure!(audit["crds"][0]["stored"] == 2 && audit["crds"][0]["held"] == 0, "{audit:#}");
    ensure!(
        cluster.get(&format!("{CRDS}/{DROPS}")).await?["metadata"]["generation"] == generation,
        "one CRD"
    );
    Ok(())
}

fn things(a: &Value) -> Value {
    crd(GROUP, "Thing", &[("v1", true, with_spec(json!({ "a": a, "note": { "type": "string" } })))])
}

fn path(plural: &str, name: &str) -> String {
    format!("/apis/{GROUP}/v1/namespaces/default/{plural}/{name}")
}

async fn apply(cluster: &Cluster, kind: &str, name: &str, mut metadata: Value, spec: Value) -> Result<()> {
    metadata["name"] = name.into();
    let object =
        json!({ "apiVersion": format!("{GROUP}/v1"), "kind": kind, "metadata": metadata, "spec": spec });
    let path = path(&plural(kind), name);
    cluster.patch(&path, Patch::Apply, "owner", &object).await?.ok().map(drop)
}

/// The objects of which etcd holds the default.
async fn stored(cluster: &Cluster) -> Result<Vec<&'static str>> {
    let mut stored = Vec::new();
    for name in ["a", "b", "plain", "t"] {
        let raw = cluster.raw(GROUP, "things", Some("default"), name).await?;
        if !raw["spec"]["a"].is_null() {
            stored.push(name);
        }
    }
    Ok(stored)
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(|object| object["name"].as_str()).collect()
}
