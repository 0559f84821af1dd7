//! Moving a stored value to another default, and what that leaves in managedFields (F1 to F4).
//!
//! How the value was stored without an owner is in `applying`.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::{
    cluster::Cluster,
    rows,
    tabs::{Tabs, defaulted, text, v1},
};

rows! {
    f1: "a JSON patch of a value makes us its owner; without our entry everything else is as it was",
    f2: "a removed value leaves no entry, and what the schema defaults comes back as ours",
    f3: "a value in an atomic list takes the list from its owner",
    f4: "a JSON patch that puts uid and resourceVersion where they are obeys them",
}

const OWNER: &str = "owner Apply v1: .spec.a";

/// Objects with a stored `color: red` that no manager owns, and a schema that gives `blue` now, or nothing.
async fn moving<'a>(cluster: &'a Cluster, row: &str, names: &[&str], now: Value) -> Result<Tabs<'a>> {
    let tabs = Tabs::new(cluster, row);
    tabs.define(v1(json!({"a": text(), "color": defaulted("red")}))).await?;
    for name in names {
        tabs.apply("v1", name, "owner", json!({"spec": {"a": "x"}})).await?.ok()?;
    }
    tabs.define(v1(json!({"a": text(), "color": now}))).await?;
    for name in names {
        ensure!(tabs.raw(name).await?["spec"] == json!({"a": "x", "color": "red"}), "{name} stores red");
    }
    Ok(tabs)
}

async fn patch(tabs: &Tabs<'_>, name: &str, operation: Value) -> Result<()> {
    let operations = [conditions(&tabs.precondition("v1", name).await?), vec![operation]].concat();
    tabs.json_patch("v1", name, operations.into()).await?.ok().map(drop)
}

fn conditions(metadata: &Value) -> Vec<Value> {
    let put =
        |key: &str| json!({"op": "replace", "path": format!("/metadata/{key}"), "value": metadata[key]});
    vec![put("uid"), put("resourceVersion")]
}

async fn f1(cluster: &Cluster) -> Result<()> {
    let tabs = moving(cluster, "f1", &["a"], defaulted("blue")).await?;
    patch(&tabs, "a", json!({"op": "replace", "path": "/spec/color", "value": "blue"})).await?;
    let stored = tabs.stored("a").await?;
    assert_eq!(stored.spec, json!({"a": "x", "color": "blue"}));
    assert_eq!(
        (stored.generation, &stored.owners[..]),
        (2, &["etch Update v1: .spec.color".to_owned(), OWNER.into()][..])
    );

    let entries = &tabs.read("v1", "a").await?["metadata"]["managedFields"];
    let ours = entries.as_array().and_then(|all| all.iter().position(|entry| entry["manager"] == "etch"));
    let entry = format!("/metadata/managedFields/{}", ours.unwrap_or_default());
    patch(&tabs, "a", json!({"op": "remove", "path": entry})).await?;
    let released = tabs.stored("a").await?;
    assert_eq!((released.spec, released.generation), (stored.spec, 2));
    assert_eq!(released.owners, [OWNER]);
    tabs.settled("v1", "a").await?;
    tabs.apply("v1", "a", "other", json!({"spec": {"color": "green"}})).await?.ok()?;
    Ok(())
}

async fn f2(cluster: &Cluster) -> Result<()> {
    let remove = json!({"op": "remove", "path": "/spec/color"});
    let tabs = moving(cluster, "f2-gone", &["a"], text()).await?;
    patch(&tabs, "a", remove.clone()).await?;
    let stored = tabs.stored("a").await?;
    assert_eq!((stored.spec, stored.generation), (json!({"a": "x"}), 2));
    assert_eq!(stored.owners, [OWNER]);

    let tabs = moving(cluster, "f2-changed", &["a"], defaulted("blue")).await?;
    patch(&tabs, "a", remove).await?;
    let stored = tabs.stored("a").await?;
    assert_eq!(stored.spec, json!({"a": "x", "color": "blue"}));
    assert_eq!(stored.owners, ["etch Update v1: .spec.color", OWNER]);
    Ok(())
}

async fn f3(cluster: &Cluster) -> Result<()> {
    let tabs = Tabs::new(cluster, "f3");
    let list = |keep: Value| {
        v1(json!({"list": {"type": "array", "items": {
            "type": "object", "properties": {"name": text(), "keep": keep}}}}))
    };
    tabs.define(list(defaulted("red"))).await?;
    tabs.apply("v1", "a", "owner", json!({"spec": {"list": [{"name": "x"}]}})).await?.ok()?;
    assert_eq!(tabs.stored("a").await?.owners, ["owner Apply v1: .spec.list"]);
    tabs.define(list(defaulted("blue"))).await?;
    patch(&tabs, "a", json!({"op": "replace", "path": "/spec/list/0/keep", "value": "blue"})).await?;
    let owners = tabs.stored("a").await?.owners;
    assert_eq!(owners, ["etch Update v1: .spec.list"], "the owner has nothing left, and so no entry");
    Ok(())
}

async fn f4(cluster: &Cluster) -> Result<()> {
    let tabs = moving(cluster, "f4", &["edited", "recreated"], defaulted("blue")).await?;
    for name in ["edited", "recreated"] {
        let read = tabs.precondition("v1", name).await?;
        if name == "edited" {
            tabs.merge("v1", name, "user", json!({"spec": {"a": "y"}})).await?.ok()?;
        } else {
            cluster.delete(&tabs.path("v1", name)).await?.ok()?;
            tabs.apply("v1", name, "user", json!({"spec": {"a": "y", "color": "red"}})).await?.ok()?;
        }
        let before = tabs.raw(name).await?;
        let replace = json!({"op": "replace", "path": "/spec/color", "value": "blue"});
        let answer = tabs.json_patch("v1", name, [conditions(&read), vec![replace]].concat().into()).await?;
        assert_eq!(answer.code, 409, "{name}: {}", *answer.body);
        assert_eq!(tabs.raw(name).await?, before, "{name}");
    }
    cluster.delete(&tabs.path("v1", "edited")).await?.ok()?;
    let gone = tabs.json_patch("v1", "edited", json!([])).await?;
    assert_eq!((gone.code, tabs.exists("edited").await?), (404, false));
    Ok(())
}
