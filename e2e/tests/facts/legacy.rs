//! CRDs from before schemas had to be structural, and defaults that the server does not look at (D12, D14).

use anyhow::{Context, Result, ensure};
use e2e::cluster::{GUARD, eventually};
use serde_json::{Value, json};

use crate::{
    cluster::Cluster,
    rows,
    tabs::{Tabs, defaulted, text, v1},
};

rows! {
    d12: "the defaults of a schema that is not structural are filled in, on read and on create",
    d12_preserve: "preserveUnknownFields keeps unknown fields and nulls, and after the step to false they \
        are hidden",
    d12_absent: "a stored CRD that does not say otherwise keeps unknown fields",
    d12_unread: "a schema that cannot be made structural fills in nothing where unknown fields are kept",
    d14: "a default with duplicates is accepted, and then every object that gets it is refused",
    d14_combined: "defaults that are valid alone and not together are accepted, and their objects refused",
}

/// Changes the CRD in etcd, as an older release left it there, and waits until an object that shows the
/// change is served so.
async fn plant(tabs: &Tabs<'_>, change: impl FnOnce(&mut Value)) -> Result<()> {
    let change = |crd: &mut Value| {
        change(&mut crd["spec"]);
        let generation = crd["metadata"]["generation"].as_i64().context("a generation")?;
        crd["metadata"]["generation"] = json!(generation + 1);
        Ok(())
    };
    tabs.cluster.etcd().change_crd(&tabs.crd(), change).await
}

/// Waits until an object is read like this.
async fn until_seen(tabs: &Tabs<'_>, name: &str, expected: &Value) -> Result<()> {
    eventually(GUARD, &format!("{name} is read as {expected}"), async || {
        // While its storage is set up again, a resource is not found.
        let seen = tabs.seen("v1", name).await.unwrap_or_default();
        ensure!(seen == *expected, "it is read as {seen}");
        Ok(Some(()))
    })
    .await
}

fn properties(spec: &mut Value) -> &mut Value {
    &mut spec["validation"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
}

async fn d12(cluster: &Cluster) -> Result<()> {
    let tabs = Tabs::new(cluster, "d12");
    tabs.define(v1(json!({"a": text()}))).await?;
    tabs.create("v1", "old", "owner", json!({"spec": {"a": "x"}})).await?;
    plant(&tabs, |spec| {
        properties(spec)["size"] = json!({"description": "no type", "default": 3});
        properties(spec)["untyped"] = json!({"default": {"unknown": 1}});
    })
    .await?;
    until_seen(&tabs, "old", &json!({"a": "x", "size": 3, "untyped": {}})).await?;
    assert_eq!(tabs.raw("old").await?["spec"], json!({"a": "x"}));
    tabs.create("v1", "new", "owner", json!({"spec": {"a": "x", "unknown": 1}})).await?;
    assert_eq!(tabs.raw("new").await?["spec"], json!({"a": "x", "size": 3, "untyped": {}}));
    Ok(())
}

async fn d12_preserve(cluster: &Cluster) -> Result<()> {
    let tabs = Tabs::new(cluster, "d12_preserve");
    tabs.define(v1(json!({"a": text()}))).await?;
    tabs.create("v1", "probe", "owner", json!({"spec": {"a": "x"}})).await?;
    plant(&tabs, |spec| {
        spec["preserveUnknownFields"] = json!(true);
        properties(spec)["d"] = json!({"type": "integer", "default": 1});
        properties(spec)["n"] = json!({"type": "integer"});
    })
    .await?;
    until_seen(&tabs, "probe", &json!({"a": "x", "d": 1})).await?;
    let written = json!({"spec": {"a": "x", "unknown": {"data": null}}, "beside": {"x": 1}});
    tabs.create("v1", "one", "owner", written).await?;
    let kept = json!({"a": "x", "d": 1, "unknown": {"data": null}});
    assert_eq!(tabs.seen("v1", "one").await?, kept);
    assert_eq!(tabs.raw("one").await?["beside"], json!({"x": 1}));
    plant(&tabs, |spec| spec["preserveUnknownFields"] = json!(false)).await?;
    until_seen(&tabs, "one", &json!({"a": "x", "d": 1})).await?;
    assert_eq!(tabs.raw("one").await?["spec"], kept);
    Ok(())
}

async fn d12_absent(cluster: &Cluster) -> Result<()> {
    let tabs = Tabs::new(cluster, "d12_absent");
    tabs.define(v1(json!({"a": text()}))).await?;
    tabs.create("v1", "probe", "owner", json!({"spec": {"a": "x"}})).await?;
    plant(&tabs, |spec| {
        spec.as_object_mut().map(|spec| spec.remove("preserveUnknownFields"));
        properties(spec)["d"] = json!({"type": "integer", "default": 1});
    })
    .await?;
    until_seen(&tabs, "probe", &json!({"a": "x", "d": 1})).await?;
    let served = cluster.get(&tabs.crd_path()).await?.ok()?;
    assert_eq!(served["spec"]["preserveUnknownFields"], true);
    tabs.create("v1", "one", "owner", json!({"spec": {"a": "x", "unknown": 1}})).await?;
    assert_eq!(tabs.seen("v1", "one").await?, json!({"a": "x", "d": 1, "unknown": 1}));
    Ok(())
}

async fn d12_unread(cluster: &Cluster) -> Result<()> {
    let tabs = Tabs::new(cluster, "d12_unread");
    tabs.define(v1(json!({"a": defaulted("x"), "d": text()}))).await?;
    tabs.create("v1", "one", "owner", json!({"spec": {"d": "y"}})).await?;
    let raw = json!({"d": "y"});
    tabs.cluster
        .etcd()
        .put(
            &format!("/registry/{}/crontabs/default/one", tabs.group),
            &serde_json::to_vec(&{
                let mut object = tabs.raw("one").await?;
                object["spec"] = raw.clone();
                object
            })?,
        )
        .await?;
    until_seen(&tabs, "one", &json!({"a": "x", "d": "y"})).await?;
    plant(&tabs, |spec| {
        spec["preserveUnknownFields"] = json!(true);
        properties(spec)["list"] = json!({"items": [{"type": "string"}]});
    })
    .await?;
    until_seen(&tabs, "one", &raw).await
}

async fn d14(cluster: &Cluster) -> Result<()> {
    let tabs = Tabs::new(cluster, "d14");
    tabs.define(v1(json!({"a": text()}))).await?;
    tabs.create("v1", "old", "owner", json!({"spec": {"a": "x"}})).await?;
    let set =
        json!({"type": "array", "x-kubernetes-list-type": "set", "items": text(), "default": ["a", "a"]});
    let map = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                     "items": {"type": "object", "properties": {"k": defaulted("x"), "v": text()}},
                     "default": [{"v": "a"}, {"k": "x"}]});
    tabs.define(v1(json!({"a": text(), "set": set, "map": map}))).await?;
    assert_eq!(tabs.seen("v1", "old").await?["set"], json!(["a", "a"]));
    let refused = tabs.apply("v1", "new", "owner", json!({"spec": {"a": "x"}})).await?;
    refused.refused(422, "Invalid", "Duplicate value")?;
    for field in ["spec.set[1]", "spec.map[1]"] {
        ensure!(refused.body["message"].to_string().contains(field), "{}", refused.body["message"]);
    }
    Ok(())
}

async fn d14_combined(cluster: &Cluster) -> Result<()> {
    let tabs = Tabs::new(cluster, "d14_combined");
    let number = json!({"type": "integer"});
    let both = json!({"a": number, "b": {"type": "integer", "default": 2}});
    tabs.define(v1(json!({
        "few": {"type": "object", "maxProperties": 1, "default": {"a": 1}, "properties": both},
        "ruled": {"type": "object", "default": {"a": 1}, "properties": both,
                  "x-kubernetes-validations": [{"rule": "!has(self.b) || !has(self.a)"}]},
        "port": {"x-kubernetes-int-or-string": true, "default": 1.5},
        "ports": {"type": "array", "items": {"x-kubernetes-int-or-string": true}, "default": [80, true]},
        // Objects are checked without a format that the server does not know for the type.
        "shape": {"type": "object", "format": "int16", "default": "x"},
        "bag": {"type": "object", "format": "byte", "default": [1]},
    })))
    .await?;
    let valid = json!({"few": {"b": 1}, "ruled": {"b": 1}, "port": 1, "ports": [], "shape": {}, "bag": {}});
    for (name, problem) in [
        ("few", "spec.few: Too many"),
        ("ruled", "spec.ruled: Invalid value"),
        ("port", "spec.port: Invalid value"),
        ("ports", "spec.ports[1]: Invalid value"),
        ("shape", "spec.shape: Invalid value"),
        ("bag", "spec.bag: Invalid value"),
    ] {
        let mut spec = valid.clone();
        spec.as_object_mut().context("an object")?.remove(name);
        let refused = tabs.apply("v1", name, "owner", json!({"spec": spec})).await?;
        refused.refused(422, "Invalid", problem)?;
    }
    Ok(())
}
