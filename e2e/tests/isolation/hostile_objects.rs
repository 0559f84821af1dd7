//! Objects that are odd in themselves: very deep, or with owners that nobody can read. They stop no other
//! object. What they are is planted in etcd where no API server would let it in.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::cluster::{Patch, eventually};
use e2e::control_plane::object_key;
use serde_json::{Value, json};

use crate::cases;
use crate::stage::{CANARY, SOON, Stage, defaulted, plain, with};

cases![nested_five_thousand_levels, odd_owners];

async fn nested_five_thousand_levels(stage: &Stage, name: &'static str) -> Result<()> {
    const LEVELS: usize = 5_000;
    let widgets = stage.widgets(name).await?;
    let any = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    widgets.define(with("any", any.clone())).await?;
    widgets.create("flat").await?;
    let nested = format!("{}\"{CANARY}\"{}", r#"{"d":"#.repeat(LEVELS), "}".repeat(LEVELS));
    let body = format!(
        r#"{{"apiVersion":"{}/v1","kind":"Widget","metadata":{{"name":"deep"}},"spec":{{"any":{nested}}}}}"#,
        widgets.group
    );
    let collection = widgets.collection("v1");
    let answer = widgets.cluster.send("POST", &collection, "application/json", body.into_bytes()).await?;
    ensure!(answer.code == 201, "not created: {}", answer.code);

    let mut schema = with("any", any);
    schema["properties"]["spec"]["properties"]["size"] = json!({ "type": "integer", "default": 3 });
    widgets.define(schema).await?;
    widgets.persisted("AllPersisted", SOON).await?;
    let deep = widgets.raw("deep").await?;
    ensure!(deep["spec"]["size"] == 3 && widgets.is_stored("flat").await?);
    let mut inside = &deep["spec"]["any"];
    let mut levels = 0;
    while let Some(next) = inside.get("d") {
        (inside, levels) = (next, levels + 1);
    }
    ensure!(levels == LEVELS && inside == CANARY, "{levels} levels");
    std::mem::forget(deep);
    Ok(())
}

async fn odd_owners(stage: &Stage, name: &'static str) -> Result<()> {
    let widgets = stage.widgets(name).await?;
    widgets.define(plain()).await?;
    let entry = |more: Value| {
        let mut entry = json!({
            "manager": "owner", "operation": "Update", "apiVersion": format!("{}/v1", widgets.group),
            "fieldsType": "FieldsV1", "fieldsV1": { "f:spec": { "f:secret": {} } },
        });
        for (field, value) in more.as_object().into_iter().flatten() {
            entry[field] = value.clone();
        }
        entry
    };
    // Each with whether the server can read it.
    let odd = [
        ("unparsable", false, json!([entry(json!({ "fieldsV1": { "spec": { "x:": 7 } } }))])),
        ("no-object", false, json!([entry(json!({ "fieldsV1": "f:spec" }))])),
        ("odd-type", false, json!([entry(json!({ "fieldsType": "FieldsV9" }))])),
        ("odd-operation", false, json!([entry(json!({ "operation": "Perhaps" }))])),
        ("other-group", false, json!([entry(json!({ "apiVersion": "elsewhere.example.com/v1" }))])),
        ("no-fields", true, json!([entry(json!({ "fieldsV1": null }))])),
        ("no-manager", true, json!([entry(json!({ "manager": "" }))])),
        ("gone-version", true, json!([entry(json!({ "apiVersion": format!("{}/v0", widgets.group) }))])),
        ("no-version", true, json!([entry(json!({ "apiVersion": "" }))])),
        ("twins", true, json!([entry(json!({})), entry(json!({}))])),
    ];
    widgets.create("even").await?;
    for (name, _, owners) in &odd {
        widgets.create(name).await?;
        let mut raw = widgets.raw(name).await?;
        raw["metadata"]["managedFields"] = owners.clone();
        let key = object_key(&widgets.group, "widgets", Some("default"), name);
        widgets.cluster.etcd().put(&key, &serde_json::to_vec(&raw)?).await?;
    }
    widgets.define(defaulted()).await?;
    let condition = widgets.persisted("ObjectsRejected", SOON).await?;
    ensure!(widgets.is_stored("even").await?);
    let report = widgets.reported("ObjectsRejected").await?;
    for (name, readable, owners) in &odd {
        let raw = widgets.raw(name).await?;
        ensure!(raw["spec"]["size"].is_null() != *readable, "{name}: {raw}");
        ensure!(condition.message.contains(&format!("default/{name}")) != *readable, "{condition:?}");
        if !readable {
            ensure!(raw["metadata"]["managedFields"] == *owners, "{name}: {raw}");
        }
    }
    let rejected = report["rejected"].as_array().context("rejected objects")?;
    ensure!(rejected.len() == 5, "{rejected:?}");
    for problem in rejected {
        ensure!(
            problem["reason"] == "Owners" && problem["paths"] == json!([".metadata.managedFields"]),
            "{problem}"
        );
    }
    // Corrected, as the message asks for, one is seen to at once.
    let cleared = json!({ "metadata": { "managedFields": [{}] } });
    widgets.cluster.patch(&widgets.path("odd-type"), Patch::Merge, "owner", &cleared).await?.ok()?;
    eventually(Duration::from_secs(5), "the corrected widget is stored", async || {
        Ok(widgets.is_stored("odd-type").await?.then_some(()))
    })
    .await
}
