//! Objects that are odd in themselves: very deep, or with owners that nobody can read. They stop no other object.
//! What they are is planted in etcd where no API server would let it in.

use anyhow::{Context, Result, ensure};
use e2e::control_plane::object_key;
use serde_json::{Value, json};

use crate::cases;
use crate::stage::{CANARY, SOON, Stage, Widgets, defaulted, plain, with};

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
    let odd = [
        ("unparsable", json!([entry(json!({ "fieldsV1": { "spec": { "x:": 7 } } }))])),
        ("no-object", json!([entry(json!({ "fieldsV1": "f:spec" }))])),
        ("no-fields", json!([entry(json!({ "fieldsV1": null }))])),
        ("no-manager", json!([entry(json!({ "manager": "" }))])),
        ("odd-type", json!([entry(json!({ "fieldsType": "FieldsV9" }))])),
        ("odd-operation", json!([entry(json!({ "operation": "Perhaps" }))])),
        ("gone-version", json!([entry(json!({ "apiVersion": format!("{}/v0", widgets.group) }))])),
        ("other-group", json!([entry(json!({ "apiVersion": "elsewhere.example.com/v1" }))])),
        ("no-version", json!([entry(json!({ "apiVersion": "" }))])),
        ("twins", json!([entry(json!({})), entry(json!({}))])),
    ];
    widgets.create("even").await?;
    for (name, owners) in &odd {
        widgets.create(name).await?;
        let mut raw = widgets.raw(name).await?;
        raw["metadata"]["managedFields"] = owners.clone();
        let key = object_key(&widgets.group, "widgets", Some("default"), name);
        widgets.cluster.etcd().put(&key, &serde_json::to_vec(&raw)?).await?;
    }
    widgets.define(defaulted()).await?;
    tokio::time::sleep(std::time::Duration::from_secs(25)).await;
    println!("{:?}", widgets.cluster.condition(&widgets.crd(), "DefaultsPersisted").await?);
    println!("{:#}", widgets.report().await?);
    for (name, owners) in &odd {
        let raw = widgets.raw(name).await?;
        println!(
            "{name}: size {} owners before {owners} now {}",
            raw["spec"]["size"], raw["metadata"]["managedFields"]
        );
    }
    ensure!(widgets.is_stored("even").await?);
    let _ = odd.first().context("")?;
    Ok(())
}
