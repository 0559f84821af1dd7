//! The main job on a real control plane: a CRD upgrade adds defaults, and every object then holds them in
//! etcd.
//!
//! The operator runs with the service account of `config/rbac`; what is claimed is read from etcd.

use std::time::Duration;

use anyhow::{Context, Result};
use e2e::cluster::{Cluster, GUARD, Patch, crd, eventually, with_spec};
use e2e::scene::{BARRIER, Scene};
use futures::StreamExt;
use serde_json::{Value, json};

const GROUP: &str = "stable.example.com";
const CRD: &str = "crontabs.stable.example.com";
const SOON: Duration = GUARD;

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_is_stored_and_nobody_loses_a_field() -> Result<()> {
    let scene = Scene::start(&[GROUP]).await?;
    let cluster = &scene.cluster;
    cluster.apply_crd(&crontabs(before())).await?;
    let names: Vec<String> = (0..160).map(|index| format!("cron-{index:03}")).collect();
    for_each(&names, |name| async move { make(cluster, &name).await }).await?;

    let operator = scene.operator(&[])?;
    cluster.apply_crd(&crontabs(after(1))).await?;
    cluster.delete(&object("cron-007")).await?;
    cluster.persisted(CRD, "AllPersisted", SOON).await?;

    for name in &names {
        if name == "cron-007" {
            assert_eq!(cluster.etcd().raw_object(GROUP, "crontabs", Some("default"), name).await?, None);
            continue;
        }
        let raw = raw(cluster, name).await?;
        assert_eq!(raw["spec"]["retries"], 1, "{name}");
        assert_eq!(
            raw["spec"]["policy"],
            json!({ "concurrency": "Allow", "history": { "keep": 3 } }),
            "{name}"
        );
        assert_eq!(raw["spec"]["jobs"][0]["weight"], 10, "{name}");
        assert_eq!(raw["status"]["phase"], "Pending", "{name}");
        assert_eq!(raw["metadata"]["generation"], 1, "{name}");
        let managers = managers(&raw);
        assert!(
            !managers.iter().any(|manager| manager == "etch" || manager == "before-first-apply"),
            "{managers:?}"
        );
    }
    // The owner applies again, and another manager applies another value: neither meets a conflict.
    let applied = applied("cron-001");
    cluster.patch(&object("cron-001"), Patch::Apply, "owner", &applied).await?.ok()?;
    let mut other = applied.clone();
    other["spec"] = json!({ "retries": 9 });
    cluster.patch(&object("cron-001"), Patch::Apply, "other", &other).await?.ok()?;
    assert_eq!(raw(cluster, "cron-001").await?["spec"]["retries"], 9);
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_default_leaves_stored_objects_alone() -> Result<()> {
    let scene = Scene::start(&[GROUP]).await?;
    let cluster = &scene.cluster;
    cluster.apply_crd(&crontabs(before())).await?;
    for name in ["kept", "ignored", "seven"] {
        make(cluster, name).await?;
    }
    let annotations = json!({ "metadata": { "annotations": { "etch-operator.io/ignore": "true" } } });
    cluster.patch(&object("ignored"), Patch::Merge, "user", &annotations).await?.ok()?;
    let operator = scene.operator(&[])?;
    cluster.apply_crd(&crontabs(after(1))).await?;
    cluster.persisted(CRD, "AllPersisted", SOON).await?;
    cluster
        .patch(&object("seven"), Patch::Merge, "user", &json!({ "spec": { "retries": 7 } }))
        .await?
        .ok()?;

    cluster.apply_crd(&crontabs(after(5))).await?;
    cluster.persisted(CRD, "AllPersisted", SOON).await?;
    for (name, read, stored) in [("kept", 1, json!(1)), ("seven", 7, json!(7)), ("ignored", 5, Value::Null)] {
        assert_eq!(cluster.get(&object(name)).await?["spec"]["retries"], read, "{name} as read");
        assert_eq!(raw(cluster, name).await?["spec"]["retries"], stored, "{name} in etcd");
    }
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quiet_cluster_and_a_restart_cost_nothing() -> Result<()> {
    let scene = Scene::start(&[GROUP]).await?;
    let cluster = &scene.cluster;
    cluster.apply_crd(&crontabs(before())).await?;
    for index in 0..20 {
        make(cluster, &format!("cron-{index}")).await?;
    }
    let operator = scene.operator(&[])?;
    cluster.apply_crd(&crontabs(after(1))).await?;
    cluster.persisted(CRD, "AllPersisted", SOON).await?;
    scene.barrier().await?;

    let everything = ["get", "list", "watch", "patch", "create", "update", "delete"];
    let before = scene.requests_to(GROUP, &everything)?;
    scene.barrier().await?;
    assert_eq!(scene.requests_to(GROUP, &everything)?, before, "a quiet cluster sees no request");

    operator.stop().await?;
    let stored = revisions(cluster).await?;
    let mut restarts = Vec::new();
    // A restart may have other things to write, but never objects; and a restart after it writes nothing.
    while restarts.len() < 3 {
        let (lists, writes) = (scene.requests_to(GROUP, &["list"])?, scene.requests(is_write)?.len());
        let operator = scene.operator(&[])?;
        eventually(SOON, "a list after the restart", async || {
            Ok((scene.requests_to(GROUP, &["list"])? > lists).then_some(()))
        })
        .await?;
        scene.barrier().await?;
        let later = scene.requests(is_write)?.split_off(writes);
        let later: Vec<_> = later.iter().map(|event| [&event["verb"], &event["objectRef"]]).collect();
        let listed = scene.requests_to(GROUP, &["list"])? - lists;
        assert_eq!(revisions(cluster).await?, stored, "a restart writes no object");
        let log = operator.log()?;
        operator.stop().await?;
        if later.is_empty() && listed == 1 {
            return Ok(());
        }
        restarts.push(format!("{listed} lists, and writes: {later:#?}\n{log}"));
    }
    anyhow::bail!("a restart lists once and writes nothing:\n{}", restarts.join("\n\n"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_default_of_a_new_storage_version_is_stored_and_owners_keep_their_fields() -> Result<()> {
    let scene = Scene::start(&[GROUP]).await?;
    let cluster = &scene.cluster;
    let old = with_spec(json!({
        "schedule": { "type": "string" }, "image": { "type": "string" },
    }));
    let mut new = old.clone();
    new["properties"]["spec"]["properties"]["color"] = json!({ "type": "string", "default": "green" });
    let v1beta1 = |storage| ("v1beta1", storage, old.clone());
    cluster.apply_crd(&crd(GROUP, "CronTab", &[v1beta1(true)])).await?;
    let at = |version: &str, name: &str, spec: Value| {
        json!({
            "apiVersion": format!("{GROUP}/{version}"), "kind": "CronTab", "metadata": { "name": name },
            "spec": spec,
        })
    };
    for name in ["one", "two", "three"] {
        let applied = at("v1beta1", name, json!({ "schedule": "daily" }));
        let path = object_at("v1beta1", name);
        cluster.patch(&path, Patch::Apply, "owner", &applied).await?.ok()?;
        cluster.patch(&path, Patch::Merge, "editor", &json!({ "spec": { "image": "a" } })).await?.ok()?;
    }
    let operator = scene.operator(&[])?;
    cluster.apply_crd(&crd(GROUP, "CronTab", &[v1beta1(false), ("v1", true, new.clone())])).await?;
    cluster.persisted(CRD, "AllPersisted", SOON).await?;

    for name in ["one", "two", "three"] {
        let raw = raw(cluster, name).await?;
        assert_eq!(
            (&raw["apiVersion"], &raw["spec"]["color"]),
            (&json!(format!("{GROUP}/v1")), &json!("green"))
        );
        let owned: Vec<(Value, Value)> = raw["metadata"]["managedFields"]
            .as_array()
            .context("owners")?
            .iter()
            .map(|entry| (entry["manager"].clone(), entry["fieldsV1"].clone()))
            .collect();
        let expected = [
            (json!("owner"), json!({ "f:spec": { "f:schedule": {} } })),
            (json!("editor"), json!({ "f:spec": { "f:image": {} } })),
        ];
        assert_eq!(owned, expected, "{name}");
    }
    // Owners go on at either version, without conflict.
    let apply = async |version: &str, spec: Value| {
        let path = object_at(version, "one");
        cluster.patch(&path, Patch::Apply, "owner", &at(version, "one", spec)).await?.ok()
    };
    apply("v1", json!({ "schedule": "daily", "color": "blue" })).await?;
    apply("v1", json!({ "schedule": "daily" })).await?;
    apply("v1beta1", json!({ "schedule": "weekly" })).await?;
    // A write through the old version drops the field, and it comes back.
    let edit = json!({ "spec": { "image": "b" } });
    cluster.patch(&object_at("v1beta1", "two"), Patch::Merge, "editor", &edit).await?.ok()?;
    for name in ["one", "two"] {
        eventually(SOON, "the default is stored again", async || {
            Ok((raw(cluster, name).await?["spec"]["color"] == "green").then_some(()))
        })
        .await?;
    }
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn hidden_fields_are_held_until_the_policy_drops_them() -> Result<()> {
    let scene = Scene::start(&[GROUP]).await?;
    let cluster = &scene.cluster;
    let mut legacy = before();
    legacy["properties"]["spec"]["properties"]["legacy"] = json!({ "type": "string" });
    cluster.apply_crd(&crontabs(legacy)).await?;
    for name in ["plain", "hiding"] {
        make(cluster, name).await?;
    }
    let path = object("hiding");
    cluster.patch(&path, Patch::Merge, "user", &json!({ "spec": { "legacy": "precious" } })).await?.ok()?;
    let revision = raw(cluster, "hiding").await?;

    let operator = scene.operator(&[])?;
    cluster.apply_crd(&crontabs(after(1))).await?;
    let condition = cluster.persisted(CRD, "HiddenFields", SOON).await?;
    assert_eq!(condition.status, "False");
    assert!(condition.message.contains("default/hiding"), "{}", condition.message);
    assert_eq!(raw(cluster, "hiding").await?, revision, "it is untouched");
    assert_eq!(raw(cluster, "plain").await?["spec"]["retries"], 1);
    let report = scene.report(CRD).await?;
    assert_eq!(report["status"]["held"][0]["paths"], json!([".spec.legacy"]), "{report}");

    scene.policy("default", json!({ "hiddenFields": "Drop" })).await?;
    cluster.persisted(CRD, "AllPersisted", SOON).await?;
    let raw = raw(cluster, "hiding").await?;
    assert_eq!((&raw["spec"]["retries"], &raw["spec"]["legacy"]), (&json!(1), &Value::Null));
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_etch_owns_is_given_back_with_the_policy() -> Result<()> {
    let scene = Scene::start(&[GROUP]).await?;
    let cluster = &scene.cluster;
    cluster.apply_crd(&crontabs(before())).await?;
    let names = ["cron-0", "cron-1"];
    for name in names {
        make(cluster, name).await?;
    }
    scene.policy("default", json!({ "ownership": "Own" })).await?;
    let operator = scene.operator(&[])?;
    cluster.apply_crd(&crontabs(after(1))).await?;
    cluster.persisted(CRD, "AllPersisted", SOON).await?;
    let mut wish = applied("cron-1");
    wish["spec"] = json!({ "retries": 9 });
    for name in names {
        let managers = managers(&raw(cluster, name).await?);
        assert!(managers.iter().any(|manager| manager == "etch"), "{name}: {managers:?}");
    }
    assert_eq!(cluster.patch(&object("cron-1"), Patch::Apply, "other", &wish).await?.code, 409);

    scene.policy("default", json!({ "ownership": "None" })).await?;
    for name in names {
        let raw = eventually(SOON, "the entry is released", async || {
            let raw = raw(cluster, name).await?;
            Ok((!managers(&raw).iter().any(|manager| manager == "etch")).then_some(raw))
        })
        .await?;
        assert_eq!(
            (&raw["spec"]["retries"], &raw["metadata"]["generation"]),
            (&json!(1), &json!(1)),
            "{raw}"
        );
        assert_eq!(raw["spec"]["policy"]["history"]["keep"], 3, "{raw}");
    }
    cluster.persisted(CRD, "AllPersisted", SOON).await?;
    cluster.patch(&object("cron-1"), Patch::Apply, "other", &wish).await?.ok()?;
    operator.stop().await
}

fn before() -> Value {
    json!({ "type": "object", "properties": {
        "spec": { "type": "object", "properties": {
            "schedule": { "type": "string" },
            "jobs": {
                "type": "array", "items": {
                    "type": "object", "properties": { "name": { "type": "string" } },
                },
            },
        }},
        "status": { "type": "object", "properties": { "last": { "type": "string" } } },
    }})
}

fn after(retries: i64) -> Value {
    let mut schema = before();
    let spec = &mut schema["properties"]["spec"]["properties"];
    spec["retries"] = json!({ "type": "integer", "default": retries });
    spec["policy"] = json!({ "type": "object", "default": {}, "properties": {
        "concurrency": { "type": "string", "default": "Allow" },
        "history": {
            "type": "object", "default": {}, "properties": { "keep": { "type": "integer", "default": 3 } },
        },
    }});
    spec["jobs"]["items"]["properties"]["weight"] = json!({ "type": "integer", "default": 10 });
    schema["properties"]["status"]["default"] = json!({});
    schema["properties"]["status"]["properties"]["phase"] = json!({ "type": "string", "default": "Pending" });
    schema
}

fn crontabs(schema: Value) -> Value {
    crd(GROUP, "CronTab", &[("v1", true, schema)])
}

fn applied(name: &str) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": "CronTab",
        "metadata": { "name": name },
        "spec": { "schedule": "daily", "jobs": [{ "name": "a" }] },
    })
}

/// One object, in one of the three ways in which objects come to be: created, applied, with its owners wiped.
async fn make(cluster: &Cluster, name: &str) -> Result<()> {
    let object = applied(name);
    let way = name.bytes().last().unwrap_or_default() % 3;
    if way == 1 {
        cluster.patch(&self::object(name), Patch::Apply, "owner", &object).await?.ok()?;
        return Ok(());
    }
    cluster.create(&objects("v1"), "creator", &object).await?;
    if way == 2 {
        let wiped = json!({ "metadata": { "managedFields": [{}] } });
        cluster.patch(&self::object(name), Patch::Merge, "creator", &wiped).await?.ok()?;
    }
    Ok(())
}

async fn for_each<F: Future<Output = Result<()>>>(names: &[String], act: impl Fn(String) -> F) -> Result<()> {
    let mut acts = futures::stream::iter(names.iter().cloned().map(act)).buffer_unordered(8);
    while let Some(done) = acts.next().await {
        done?;
    }
    Ok(())
}

fn objects(version: &str) -> String {
    format!("/apis/{GROUP}/{version}/namespaces/default/crontabs")
}

fn object(name: &str) -> String {
    object_at("v1", name)
}

fn object_at(version: &str, name: &str) -> String {
    format!("{}/{name}", objects(version))
}

async fn raw(cluster: &Cluster, name: &str) -> Result<Value> {
    cluster.raw(GROUP, "crontabs", Some("default"), name).await
}

async fn revisions(cluster: &Cluster) -> Result<Vec<i64>> {
    let all = cluster.etcd().list(&format!("/registry/{GROUP}/crontabs/")).await?;
    Ok(all.into_iter().map(|value| value.mod_revision).collect())
}

fn managers(object: &Value) -> Vec<String> {
    let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    entries.filter_map(|entry| entry["manager"].as_str()).map(str::to_owned).collect()
}

/// Whether a request wrote anything but the operator's own Lease, and what a barrier needs.
fn is_write(event: &Value) -> bool {
    let target = &event["objectRef"];
    let own = ["authorization.k8s.io", "coordination.k8s.io", BARRIER]
        .iter()
        .any(|group| target["apiGroup"] == *group);
    let of_barrier = target["name"].as_str().is_some_and(|name| name.contains(BARRIER));
    matches!(event["verb"].as_str(), Some("patch" | "create" | "update" | "delete")) && !own && !of_barrier
}
