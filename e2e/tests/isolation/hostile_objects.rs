//! Objects that are odd in themselves: very deep, or with owners that the API server cannot read. They stop
//! no other object. The test writes them into etcd, since no API server would accept them.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::cluster::{Patch, eventually};
use e2e::control_plane::object_key;
use e2e::process;
use serde_json::{Value, json};

use crate::cases;
use crate::stage::{CANARY, SOON, Stage, defaulted, plain, with};

cases![nested_five_thousand_levels, odd_owners];

async fn nested_five_thousand_levels(stage: &Stage, name: &'static str) -> Result<()> {
    let widgets = stage.widgets(name).await?;
    let any = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    widgets.define(with("any", any.clone())).await?;
    let body = |name: &str, levels: usize| {
        let nested = format!("{}\"{CANARY}\"{}", r#"{"d":"#.repeat(levels), "}".repeat(levels));
        let metadata = format!(r#"{{"name":"{name}"}}"#);
        let group = &widgets.group;
        format!(
            r#"{{"apiVersion":"{group}/v1","kind":"Widget","metadata":{metadata},"spec":{{"any":{nested}}}}}"#
        )
    };
    widgets.create("flat").await?;
    // The owners of a field are nested some levels deeper than the field.
    for (name, levels) in [("limit", 990), ("deep", 5_000)] {
        let collection = widgets.collection("v1");
        let body = body(name, levels).into_bytes();
        let answer = widgets.cluster.send("POST", &collection, "application/json", body).await?;
        ensure!(answer.code == 201, "not created: {}", answer.code);
    }
    let bytes = async || {
        let key = object_key(&widgets.group, "widgets", Some("default"), "deep");
        let found = widgets.cluster.etcd().list(&key).await?;
        anyhow::Ok(found.first().context("the widget")?.bytes.clone())
    };
    let before = bytes().await?;

    let mut schema = with("any", any);
    schema["properties"]["spec"]["properties"]["size"] = json!({ "type": "integer", "default": 3 });
    widgets.define(schema).await?;
    let condition = widgets.persisted("TooDeep", SOON).await?;
    ensure!(condition.status == "Unknown", "{condition:?}");
    let reported_text = "1 left alone (nested more than 1000 levels deep), etcd may lack its defaults \
        (default/deep)";
    ensure!(
        condition.message == format!("2 of 3 objects are known to store their defaults; {reported_text}"),
        "{condition:?}"
    );
    ensure!(widgets.is_stored("flat").await? && widgets.is_stored("limit").await?);
    ensure!(bytes().await? == before, "the widget was written");
    let report = widgets.reported("TooDeep").await?;
    ensure!(report["counts"]["tooDeep"] == 1 && report["tooDeep"][0]["name"] == "deep", "{report}");

    let etch = |arguments: &[&str]| {
        let ended = process::etch(stage.scene.kubeconfig(), arguments)?;
        ensure!(!ended.out.contains(CANARY), "{arguments:?} prints a value");
        ensure!(ended.code == Some(1), "{arguments:?}: {ended:?}");
        Ok(ended.out)
    };
    let audited: Value = serde_json::from_str(&etch(&["audit", &widgets.crd(), "--objects", "-o", "json"])?)?;
    let details = audited["crds"][0]["details"].as_array().context("objects")?;
    ensure!(details.len() == 1 && details[0]["name"] == "deep", "{audited}");
    ensure!(details[0]["tooDeep"] == true && details[0]["state"] == "unknown", "{audited}");
    let explained = etch(&["explain", &widgets.crd(), "deep"])?;
    ensure!(explained.contains("nested more than 1,000 levels deep"), "{explained}");

    // Flatter, as the message asks for, it is stored.
    let flat = br#"{"spec":{"any":null}}"#.to_vec();
    let patch = "application/merge-patch+json";
    widgets.cluster.send("PATCH", &widgets.path("deep"), patch, flat).await?.ok()?;
    widgets.persisted("AllPersisted", SOON).await?;
    ensure!(widgets.is_stored("deep").await?);
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
        widgets.cluster.etcd().put_json(&key, &raw).await?;
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
    // Corrected, as the message asks for, one is processed at once.
    let cleared = json!({ "metadata": { "managedFields": [{}] } });
    widgets.cluster.patch(&widgets.path("odd-type"), Patch::Merge, "owner", &cleared).await?.ok()?;
    eventually(Duration::from_secs(5), "the corrected widget is stored", async || {
        Ok(widgets.is_stored("odd-type").await?.then_some(()))
    })
    .await
}
