//! CRDs themselves: their conditions, what the server lets through, and their changes seen from outside (C1
//! to C8, A1, A2).
//!
//! What a CRD does to its objects' bytes is in `reading` and `versions`.

use std::time::Duration;

use anyhow::{Context, Result};
use e2e::cluster::{GUARD, eventually};
use futures::{AsyncBufReadExt, TryStreamExt};
use http::{Method, Request};
use kube_structural_schema::json::Json;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::{
    cluster::{APPLY, Answer, Cluster, JSON, MERGE, send},
    rows,
    tabs::{ETCH, Tabs, defaulted, text, v1},
};

rows! {
    c1: "conditions of our own types live beside the server's; what an apply leaves out is removed",
    c2: "the server removes a NonStructuralSchema that it does not agree with at the next generation",
    c3: "observedGeneration of a condition is kept from 1.35 on; before, it fails an apply",
    c4: "under additionalProperties an invalid default is accepted, shown and stored",
    c7: "objects nested 9,000 levels deep are accepted, 20,000 are not",
    c8: "the conditions of a fresh CRD can be null",
    c13: "a CRD that has lost its conditions is not served until its names change",
    c14: "an apply of conditions keeps to a resourceVersion, and sets the time of its entry if it changes \
        one",
    a1: "a watch from before a change goes on for a moment with the old schema, and ends without an error",
    a2: "a CRD deleted and created again has another uid, and may have another scope",
}

/// Applies `conditions` as Etch would; the answer has all that the CRD then has.
async fn apply_conditions(tabs: &Tabs<'_>, conditions: Value) -> Result<Answer> {
    let path = format!("{}/status?fieldManager={ETCH}", tabs.crd_path());
    let body = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("crontabs.{}", tabs.group)},
        "status": {"conditions": conditions},
    });
    tabs.cluster.patch(APPLY, &path, &body).await
}

fn condition(name: &str, status: &str) -> Value {
    json!({"type": name, "status": status, "reason": "Test", "message": "set by a test",
           "lastTransitionTime": "2026-01-01T00:00:00Z"})
}

fn types(crd: &Value) -> Vec<&str> {
    let conditions = crd["status"]["conditions"].as_array();
    conditions.into_iter().flatten().filter_map(|condition| condition["type"].as_str()).collect()
}

async fn c1(cluster: &Cluster) -> Result<()> {
    let tabs = Tabs::new(cluster, "c1");
    tabs.define(v1(json!({"a": text()}))).await?;
    let two = json!([condition("NonStructural", "False"), condition("DefaultsPersisted", "True")]);
    let crd = apply_conditions(&tabs, two).await?.ok()?;
    assert_eq!(types(&crd), ["NamesAccepted", "Established", "NonStructural", "DefaultsPersisted"]);
    let crd = apply_conditions(&tabs, json!([condition("DefaultsPersisted", "True")])).await?.ok()?;
    assert_eq!(types(&crd), ["NamesAccepted", "Established", "DefaultsPersisted"]);
    // The server's own writes keep our fields.
    tabs.define(v1(json!({"a": text(), "color": defaulted("red")}))).await?;
    let crd = cluster.get(&tabs.crd_path()).await?.ok()?;
    assert_eq!(types(&crd), ["NamesAccepted", "Established", "DefaultsPersisted"]);
    Ok(())
}

async fn c2(cluster: &Cluster) -> Result<()> {
    let tabs = Tabs::new(cluster, "c2");
    tabs.define(v1(json!({"a": text()}))).await?;
    let ours = json!([condition("NonStructuralSchema", "True"), condition("NonStructural", "True")]);
    let crd = apply_conditions(&tabs, ours).await?.ok()?;
    assert!(types(&crd).contains(&"NonStructuralSchema"));
    tabs.define(v1(json!({"a": text(), "b": text()}))).await?;
    eventually(GUARD, "the server takes its own condition away", async || {
        let crd = cluster.get(&tabs.crd_path()).await?.ok()?;
        assert!(types(&crd).contains(&"NonStructural"), "ours stays");
        Ok((!types(&crd).contains(&"NonStructuralSchema")).then_some(()))
    })
    .await
}

async fn c3(cluster: &Cluster) -> Result<()> {
    let tabs = Tabs::new(cluster, "c3");
    tabs.define(v1(json!({"a": text()}))).await?;
    let mut observed = condition("DefaultsPersisted", "True");
    observed["observedGeneration"] = json!(1);
    let answer = apply_conditions(&tabs, json!([observed])).await?;
    if !cluster.since("1.35")? {
        let message =
            r#".status.conditions[type="DefaultsPersisted"].observedGeneration: field not declared"#;
        answer.refused(500, "", message)?;
        // A merge patch, which replaces the list, loses the field without a word.
        let path = format!("{}/status", tabs.crd_path());
        let crd = cluster.patch(MERGE, &path, &json!({"status": {"conditions": [observed]}})).await?.ok()?;
        assert_eq!(crd["status"]["conditions"], json!([condition("DefaultsPersisted", "True")]));
        return Ok(());
    }
    let crd = answer.ok()?;
    let conditions = crd["status"]["conditions"].as_array().context("no conditions")?;
    assert_eq!(conditions.last(), Some(&observed));
    Ok(())
}

async fn c4(cluster: &Cluster) -> Result<()> {
    let tabs = Tabs::new(cluster, "c4");
    let map = |properties: Value| {
        v1(json!({"a": text(), "items": {
            "type": "object",
            "additionalProperties": {"type": "object", "properties": properties},
        }}))
    };
    tabs.define(map(json!({"k": text()}))).await?;
    let one = json!({"spec": {"items": {"one": {"k": "x"}}}});
    for name in ["range", "apply", "merge"] {
        tabs.apply("v1", name, "owner", one.clone()).await?.ok()?;
    }
    let range = json!({"type": "integer", "maximum": 3, "default": 9});
    tabs.define(map(json!({"k": text(), "n": range}))).await?;
    let read = json!({"items": {"one": {"k": "x", "n": 9}}});
    assert_eq!(tabs.seen("v1", "range").await?, read);
    tabs.identity("v1", "range").await?.ok()?;
    assert_eq!(tabs.raw("range").await?["spec"], read, "an unchanged invalid value passes (C6)");
    let again = tabs.apply("v1", "fresh", "owner", one).await?;
    again.refused(422, "Invalid", "should be less than or equal to 3")?;

    let wrong = json!({"type": "integer", "default": "nine"});
    tabs.define(map(json!({"k": text(), "n": wrong}))).await?;
    let misfit = tabs.identity("v1", "apply").await?;
    misfit.refused(500, "", ".spec.items.one.n: expected numeric (int or float), got string")?;
    tabs.merge("v1", "merge", ETCH, json!({})).await?.ok()?;
    assert_eq!(tabs.raw("merge").await?["spec"]["items"]["one"], json!({"k": "x", "n": "nine"}));
    // As with W16.
    let owners = if cluster.since("1.37")? { 1 } else { 0 };
    assert_eq!(tabs.stored("merge").await?.owners.len(), owners);
    Ok(())
}

#[derive(serde::Deserialize)]
struct List {
    items: Vec<serde::de::IgnoredAny>,
}

async fn c7(cluster: &Cluster) -> Result<()> {
    let tabs = Tabs::new(cluster, "c7");
    tabs.define(v1(json!({"any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}))).await?;
    let path = tabs.path("v1", "");
    for (name, levels, accepted) in [("deep", 9_000, true), ("deeper", 20_000, false)] {
        let nested = format!("{}{{}}{}", r#"{"d":"#.repeat(levels), "}".repeat(levels));
        let body = format!(
            r#"{{"apiVersion":"{}/v1","kind":"CronTab","metadata":{{"name":"{name}"}},"spec":{{"any":{nested}}}}}"#,
            tabs.group
        );
        let answer = send(cluster.admin(), Method::POST, &path, JSON, body).await?;
        assert_eq!(answer.code == 201, accepted, "{name}: {}", answer.code);
    }
    // It is nested deeper than Etch reads, so it comes as a text. To ignore what is nested needs no depth.
    let listed = cluster.get(&path).await?.ok()?;
    let list: List = serde_json::from_str(listed.as_str().context("a text")?)?;
    assert_eq!(list.items.len(), 1);
    Ok(())
}

async fn c8(cluster: &Cluster) -> Result<()> {
    let tabs = Tabs::new(cluster, "c8");
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let manifest = v1(json!({"a": text()})).manifest(&tabs.group, "probe");
    let fresh = cluster.post(path, &manifest).await?.ok()?;
    assert_eq!(fresh["status"].get("conditions"), Some(&Value::Null));
    Ok(())
}

async fn c14(cluster: &Cluster) -> Result<()> {
    let tabs = Tabs::new(cluster, "c14");
    tabs.define(v1(json!({"a": text()}))).await?;
    let entry = |crd: &Value| {
        let entries = crd["metadata"]["managedFields"].as_array();
        let ours = entries.into_iter().flatten().find(|entry| entry["manager"] == ETCH);
        ours.cloned().context("no entry of ours")
    };
    let first = apply_conditions(&tabs, json!([condition("DefaultsPersisted", "True")])).await?.ok()?;
    // Times have seconds.
    sleep(Duration::from_millis(1_100)).await;
    let same = apply_conditions(&tabs, json!([condition("DefaultsPersisted", "True")])).await?.ok()?;
    assert_eq!(entry(&same)?, entry(&first)?);
    let path = format!("{}/status?fieldManager={ETCH}&force=true", tabs.crd_path());
    let apply = |status: &str| {
        let body = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {
                "name": format!("crontabs.{}", tabs.group), "uid": first["metadata"]["uid"],
                "resourceVersion": first["metadata"]["resourceVersion"],
            },
            "status": {"conditions": [condition("DefaultsPersisted", status)]},
        });
        let (cluster, path) = (cluster, path.clone());
        async move { cluster.patch(APPLY, &path, &body).await }
    };
    let changed = apply("False").await?.ok()?;
    assert_ne!(entry(&changed)?["time"], entry(&first)?["time"]);
    assert_eq!(entry(&changed)?["fieldsV1"], entry(&first)?["fieldsV1"]);
    apply("True").await?.refused(409, "Conflict", "the object has been modified")?;
    Ok(())
}

async fn c13(cluster: &Cluster) -> Result<()> {
    let tabs = Tabs::new(cluster, "c13");
    tabs.define(v1(json!({"a": text()}))).await?;
    let without_conditions = |crd: &mut Value| {
        crd["status"].as_object_mut().context("a status")?.remove("conditions");
        Ok(())
    };
    cluster.etcd().change_crd(&tabs.crd(), without_conditions).await?;
    let is_served = async |expected: bool| {
        eventually(GUARD, &format!("served: {expected}"), async || {
            let is_served = tabs.get("v1", "").await?.code == 200;
            Ok((is_served == expected).then_some(()))
        })
        .await
    };
    is_served(false).await?;
    // The controllers that set conditions take CRDs one after another.
    Tabs::new(cluster, "c13-after").define(v1(json!({"a": text()}))).await?;
    let crd = cluster.get(&tabs.crd_path()).await?.ok()?;
    assert_eq!(types(&crd), [""; 0]);
    let shorter = json!({"spec": {"names": {"shortNames": ["c13"]}}});
    cluster.patch(MERGE, &tabs.crd_path(), &shorter).await?.ok()?;
    is_served(true).await
}

async fn a1(cluster: &Cluster) -> Result<()> {
    let tabs = Tabs::new(cluster, "a1");
    tabs.define(v1(json!({"a": text()}))).await?;
    tabs.apply("v1", "a", "owner", json!({"spec": {"a": "x"}})).await?.ok()?;
    let path = format!("{}?watch=true&resourceVersion=0&timeoutSeconds=600", tabs.path("v1", ""));
    let mut lines = cluster.admin().request_stream(Request::get(&path).body(Vec::new())?).await?.lines();
    let added = lines.try_next().await?.context("no event")?;
    assert!(added.contains("ADDED"), "{added}");

    tabs.define(v1(json!({"a": text(), "color": defaulted("red")}))).await?;
    let answer = tabs.identity("v1", "a").await?.ok()?;
    assert_eq!(answer["spec"], json!({"a": "x", "color": "red"}));
    let mut events = Vec::new();
    // Long before the end that the request asks for.
    let until_end = async {
        while let Some(line) = lines.try_next().await? {
            events.push(serde_json::from_str::<Value>(&line)?);
        }
        anyhow::Ok(())
    };
    timeout(GUARD, until_end).await.context("the watch goes on")??;
    let [modified] = &events[..] else { anyhow::bail!("{} events", events.len()) };
    assert_eq!(modified["type"], "MODIFIED");
    assert_eq!(modified["object"]["metadata"]["resourceVersion"], answer["metadata"]["resourceVersion"]);
    assert_eq!(modified["object"]["spec"], json!({"a": "x"}), "stored with color, shown without");
    Ok(())
}

async fn a2(cluster: &Cluster) -> Result<()> {
    let tabs = Tabs::new(cluster, "a2");
    tabs.define(v1(json!({"a": text()}))).await?;
    tabs.apply("v1", "a", "owner", json!({"spec": {"a": "x"}})).await?.ok()?;
    let first = cluster.get(&tabs.crd_path()).await?.ok()?;
    cluster.delete(&tabs.crd_path()).await?.ok()?;
    eventually(GUARD, "the CRD is gone", async || {
        Ok((cluster.get(&tabs.crd_path()).await?.code == 404).then_some(()))
    })
    .await?;
    assert!(!tabs.exists("a").await?, "its objects go with it");
    let not_served = Json::from(json!("404 page not found\n"));
    eventually(GUARD, "it is no longer served", async || {
        Ok((tabs.get("v1", "a").await?.body == not_served).then_some(()))
    })
    .await?;

    let mut manifest = v1(json!({"b": text()})).manifest(&tabs.group, "probe");
    manifest["spec"]["scope"] = json!("Cluster");
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let second = cluster.post(path, &manifest).await?.ok()?;
    assert_ne!(second["metadata"]["uid"].clone(), first["metadata"]["uid"]);
    assert_eq!(second["spec"]["scope"], "Cluster");
    Ok(())
}
