//! Machines from before a schema: what it means for them is known before it is enforced, and their defaults
//! are stored where it asks for that.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use e2e::cluster::{Cluster, GUARD, Patch, eventually};
use e2e::operator::binary;
use e2e::scene::{NAMESPACE, apply};
use serde_json::{Value, json};

use crate::stage::Stage;
use crate::{GROUP, MACHINES, dry, machine};

const SCHEMA: &str = "/apis/etch-operator.io/v1alpha1/embeddedschemas/example";

/// Machines of a provider of our own, which no other schema or webhook handles.
fn schema(existing: &str) -> Value {
    json!({
        "apiVersion": "etch-operator.io/v1alpha1", "kind": "EmbeddedSchema",
        "metadata": { "name": "example" },
        "spec": {
            "targets": [{ "group": GROUP, "version": "v1beta1", "resource": "machines",
                          "path": ".spec.providerSpec.value" }],
            "when": "extension != null && extension.?kind.orValue('') == 'Example'",
            "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                "kind": { "type": "string" },
                "size": { "type": "string", "default": "small" },
                "count": { "type": "integer" },
                "placement": { "type": "object", "properties": {
                    "zone": { "type": "string", "default": "a" }, "host": { "type": "string" } } },
                "disks": { "type": "array", "items": { "type": "object", "properties": {
                    "name": { "type": "string" }, "type": { "type": "string", "default": "ssd" } } } },
            } } },
            "rules": [{ "rule": "self.?count.orValue(1) > 0", "field": ".count" }],
            "existing": existing,
        },
    })
}

async fn declare(cluster: &Cluster, existing: &str) -> Result<()> {
    put(cluster, &schema(existing)).await
}

async fn put(cluster: &Cluster, schema: &Value) -> Result<()> {
    let name = schema["metadata"]["name"].as_str().context("a name")?;
    let path =
        format!("/apis/etch-operator.io/v1alpha1/embeddedschemas/{name}?fieldManager=author&force=true");
    let body = serde_json::to_vec(schema)?;
    cluster.send("PATCH", &path, "application/apply-patch+yaml", body).await?.ok().map(drop)
}

async fn create(cluster: &Cluster, name: &str, value: Value, metadata: Value) -> Result<Value> {
    let mut machine = machine(name, value);
    machine["spec"]["providerSpec"]["value"]["kind"] = json!("Example");
    for (field, value) in metadata.as_object().into_iter().flatten() {
        machine["metadata"][field] = value.clone();
    }
    cluster.create(MACHINES, "author", &machine).await
}

/// Grants the operator what `etch rbac` prints for the schema, and nothing else.
async fn grant(stage: &Stage, existing: &str) -> Result<()> {
    let file = stage.scene.file("schema.json", &schema(existing).to_string())?;
    let output =
        Command::new(binary()?).args(["rbac", &file, "--name", "etch-example", "-o", "json"]).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let cluster = &stage.scene.cluster;
    apply(cluster, &serde_json::from_slice(&output.stdout)?).await?;
    let group = "rbac.authorization.k8s.io";
    let binding = json!({
        "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": {
            "name": "etch-example",
        },
        "roleRef": { "apiGroup": group, "kind": "ClusterRole", "name": "etch-example" },
        "subjects": [{ "kind": "ServiceAccount", "name": "etch", "namespace": NAMESPACE }],
    });
    apply(cluster, &binding).await
}

/// Waits for what the status has of existing objects.
async fn existing(cluster: &Cluster, what: &str, is_it: impl Fn(&Value) -> bool) -> Result<Value> {
    eventually(GUARD, what, async || {
        let mut schema = cluster.get(SCHEMA).await?;
        let found = schema["status"]["existing"].take();
        Ok(is_it(&found).then_some(found))
    })
    .await
}

/// `kind/name` of each, in order.
fn names(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(|object| object["name"].as_str()).collect()
}

async fn raw(cluster: &Cluster, name: &str) -> Result<Value> {
    let raw = cluster.etcd().raw_object(GROUP, "machines", Some("default"), name).await?;
    raw.with_context(|| format!("{name} is stored"))
}

fn value(machine: &Value) -> &Value {
    &machine["spec"]["providerSpec"]["value"]
}

#[tokio::test(flavor = "multi_thread")]
async fn machines_from_before_a_schema_are_counted_before_anybody_is_refused() -> Result<()> {
    let stage = Stage::start().await?;
    let cluster = &stage.scene.cluster;
    let none = || json!({});
    create(cluster, "full", json!({ "size": "large" }), none()).await?;
    create(cluster, "lacking", none(), none()).await?;
    create(cluster, "wrong", json!({ "size": "large", "count": 0 }), none()).await?;
    let other = machine("other", json!({ "kind": "Other" }));
    cluster.create(MACHINES, "author", &other).await?;
    grant(&stage, "LeaveAlone").await?;
    let operator = stage.operator()?;
    declare(cluster, "LeaveAlone").await?;
    let found = existing(cluster, "all machines are looked at", |found| found["complete"] == true).await?;
    assert_eq!((&found["objects"], names(&found["firstDenied"])), (&json!(3), vec!["wrong"]));
    assert_eq!((&found["denied"], &found["defaulted"]), (&json!(1), &json!(1)));
    assert_eq!(names(&found["firstDefaulted"]), ["lacking"]);
    assert_eq!(value(&raw(cluster, "lacking").await?), &json!({ "kind": "Example" }), "nothing is stored");

    // kubectl shows both counts.
    let table = cluster.table("/apis/etch-operator.io/v1alpha1/embeddedschemas").await?;
    let columns: Vec<_> = table["columnDefinitions"]
        .as_array()
        .context("columns")?
        .iter()
        .map(|column| &column["name"])
        .collect();
    let cell = |name: &str| {
        let at = columns.iter().position(|column| **column == json!(name));
        at.map(|at| table["rows"][0]["cells"][at].clone())
    };
    assert_eq!((cell("Denied"), cell("Defaults")), (Some(json!(1)), Some(json!(1))));

    // A user who corrects an object asks for another check.
    let mend = json!({ "spec": { "providerSpec": { "value": { "count": 1 } } } });
    cluster.patch(&format!("{MACHINES}/wrong"), Patch::Merge, "author", &mend).await?.ok()?;
    let ask = json!({ "metadata": { "annotations": { "etch-operator.io/recheck": "1" } } });
    cluster.patch(SCHEMA, Patch::Merge, "author", &ask).await?.ok()?;
    existing(cluster, "nothing is denied", |found| found["denied"] == 0).await?;
    let writes = stage
        .scene
        .requests(|event| event["objectRef"]["resource"] == "machines" && event["verb"] != "list")?;
    ensure!(writes.is_empty(), "machines are only listed: {writes:?}");
    a_schema_before_the_last_that_sets_a_default_is_asked_once_more(cluster).await?;
    operator.stop().await
}

async fn a_schema_before_the_last_that_sets_a_default_is_asked_once_more(cluster: &Cluster) -> Result<()> {
    let third = json!([{ "path": ".z", "when": "has(self.x)", "value": "'third'" }]);
    let first = json!([{ "path": ".x", "when": "has(self.y)", "value": "'first'" }]);
    let second = json!([{ "path": ".y", "value": "'second'" }]);
    for (name, defaults) in [("twice-a", third), ("twice-b", first), ("twice-c", second)] {
        let mut schema = schema("LeaveAlone");
        schema["metadata"]["name"] = json!(name);
        schema["spec"]["when"] = json!("extension.?kind.orValue('') == 'Twice'");
        schema["spec"]["defaults"] = defaults;
        for field in ["schema", "rules"] {
            schema["spec"].as_object_mut().context("a spec")?.remove(field);
        }
        put(cluster, &schema).await?;
    }
    let set = async || -> Result<Value> {
        let made = dry(cluster, &machine("twice", json!({ "kind": "Twice" }))).await?.ok()?;
        Ok(value(&made).clone())
    };
    eventually(GUARD, "API servers ask by all of them", async || {
        Ok((!set().await?["x"].is_null()).then_some(()))
    })
    .await?;
    assert_eq!(set().await?, json!({ "kind": "Twice", "x": "first", "y": "second" }));
    Ok(())
}

/// The managers of a machine, and what each owns.
fn owners(machine: &Value) -> Vec<(Value, Value)> {
    let entries = machine["metadata"]["managedFields"].as_array().into_iter().flatten();
    entries.map(|entry| (entry["manager"].clone(), entry["fieldsV1"].clone())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn defaults_of_existing_machines_are_stored_and_nobody_loses_or_gains_a_field() -> Result<()> {
    let stage = Stage::start().await?;
    let cluster = &stage.scene.cluster;
    let none = || json!({});
    let full = json!({ "size": "large", "placement": { "zone": "b" } });
    create(cluster, "full", full.clone(), none()).await?;
    create(cluster, "lacking", json!({ "unheardOf": 0, "placement": { "host": "h" } }), none()).await?;
    let listed = json!({ "size": "large", "disks": [{ "name": "a" }] });
    create(cluster, "listed", listed.clone(), none()).await?;
    create(cluster, "ignored", none(), json!({ "annotations": { "etch-operator.io/ignore": "true" } }))
        .await?;
    create(cluster, "going", none(), json!({ "finalizers": ["example.com/hold"] })).await?;
    cluster.delete(&format!("{MACHINES}/going")).await?;
    // By another manager, with server-side apply.
    let mut applied = machine("applied", json!({ "kind": "Example", "count": 1 }));
    applied["apiVersion"] = json!(format!("{GROUP}/v1beta1"));
    let path = format!("{MACHINES}/applied?fieldManager=applier");
    let body = serde_json::to_vec(&applied)?;
    cluster.send("PATCH", &path, "application/apply-patch+yaml", body).await?.ok()?;
    let names = ["applied", "full", "going", "ignored", "lacking", "listed"];
    let mut before = Vec::new();
    for name in names {
        before.push(raw(cluster, name).await?);
    }

    grant(&stage, "Persist").await?;
    let operator = stage.operator()?;
    declare(cluster, "Persist").await?;
    let found =
        existing(cluster, "what can be stored is", |found| found["persisted"]["reason"] == "ObjectsHeld")
            .await?;
    let counts = &found["persisted"];
    assert_eq!((&found["objects"], &counts["stored"], &counts["held"]), (&json!(5), &json!(3), &json!(1)));
    let held = &counts["firstHeld"][0];
    assert_eq!((&held["name"], &held["reason"]), (&json!("listed"), &json!("Owned")));

    let mut after = Vec::new();
    for name in names {
        after.push(raw(cluster, name).await?);
    }
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(owners(before), owners(after), "nobody loses a field, nor gains one");
    }
    let expected = [
        json!({ "kind": "Example", "count": 1, "size": "small" }),
        value(&before[1]).clone(),
        value(&before[2]).clone(),
        value(&before[3]).clone(),
        json!({
            "kind": "Example", "unheardOf": 0, "size": "small", "placement": { "host": "h", "zone": "a" },
        }),
        value(&before[5]).clone(),
    ];
    assert_eq!(after.iter().map(|machine| value(machine).clone()).collect::<Vec<_>>(), expected);

    // Once more, and after a restart: nothing is written.
    let writes = || {
        stage.scene.requests(|event| {
            event["objectRef"]["resource"] == "machines"
                && event["verb"] == "patch"
                && !event["requestURI"].as_str().unwrap_or_default().contains("dryRun")
        })
    };
    let written = writes()?.len();
    assert_eq!(written, 4, "two machines, the write and the removal of our entry: {:?}", writes()?);
    let lists = || {
        stage.scene.requests(|event| event["objectRef"]["resource"] == "machines" && event["verb"] == "list")
    };
    operator.stop().await?;
    let listed = lists()?.len();
    let operator = stage.operator()?;
    eventually(GUARD, "a look after the restart", async || Ok((lists()?.len() > listed).then_some(())))
        .await?;
    let ask = json!({ "metadata": { "annotations": { "etch-operator.io/recheck": "1" } } });
    let before = existing(cluster, "a look", |_| true).await?["lastLooked"].take();
    cluster.patch(SCHEMA, Patch::Merge, "author", &ask).await?.ok()?;
    existing(cluster, "another look", |found| {
        found["lastLooked"] != before && found["persisted"]["reason"] == "ObjectsHeld"
    })
    .await?;
    assert_eq!(writes()?.len(), written, "{:?}", writes()?);

    // The owner of the list adds the default himself.
    let disks =
        json!({ "spec": { "providerSpec": { "value": { "disks": [{ "name": "a", "type": "hdd" }] } } } });
    cluster.patch(&format!("{MACHINES}/listed"), Patch::Merge, "author", &disks).await?.ok()?;
    let ask = json!({ "metadata": { "annotations": { "etch-operator.io/recheck": "2" } } });
    cluster.patch(SCHEMA, Patch::Merge, "author", &ask).await?.ok()?;
    existing(cluster, "nothing is held", |found| found["persisted"]["held"] == 0 && found["defaulted"] == 1)
        .await?;
    operator.stop().await
}
