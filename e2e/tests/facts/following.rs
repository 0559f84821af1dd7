//! Moving a stored value to another default, and what that leaves in managedFields (F1 to F4).
//!
//! What makes the server store a default is in `applying`.

use anyhow::Result;
use serde_json::{Value, json};

use crate::{
    cluster::Cluster,
    rows,
    tabs::{Stored, Tabs, defaulted, text, v1},
};

rows! {
    f0: "experiment",
}

async fn show(tabs: &Tabs<'_>, what: &str, name: &str) -> Result<()> {
    let stored: Stored = tabs.stored(name).await?;
    println!("{what}: {stored:?} rv {}", tabs.revision(name).await?);
    Ok(())
}

async fn f0(cluster: &Cluster) -> Result<()> {
    let tabs = Tabs::new(cluster, "f0");
    let schema = |keep: Option<i64>, color: Option<&str>| -> Value {
        let mut history = json!({"type": "integer"});
        if let Some(keep) = keep {
            history["default"] = keep.into();
        }
        json!({"a": text(), "color": color.map_or_else(text, defaulted),
            "policy": {"type":"object", "default": {}, "properties": {"mode": text(), "keep": history.clone()}},
            "items": {"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],
                "items":{"type":"object","required":["name"],"properties":{"name":text(),"keep":history.clone()}}},
            "atomic": {"type":"array","items":{"type":"object","properties":{"name":text(),"keep":history.clone()}}},
            "map": {"type":"object","additionalProperties":{"type":"object","properties":{"name":text(),"keep":history}}},
        })
    };
    tabs.define(v1(schema(None, None))).await?;
    let fields = json!({"spec": {"a": "x", "items": [{"name":"i"}], "atomic":[{"name":"i"}], "map": {"k/~": {"name":"i"}}}});
    let names = ["replace", "remove", "gone", "apply", "merge"];
    for name in names {
        tabs.apply("v1", name, "owner", fields.clone()).await?.ok()?;
    }
    tabs.define(v1(schema(Some(3), Some("red")))).await?;
    for name in names {
        tabs.identity("v1", name).await?.ok()?;
        show(&tabs, "stored", name).await?;
    }
    tabs.define(v1(schema(Some(5), Some("blue")))).await?;
    let tests = async |name: &str| -> Result<Vec<Value>> {
        let pre = tabs.precondition("v1", name).await?;
        Ok(vec![
            json!({"op":"test","path":"/metadata/uid","value":pre["uid"]}),
            json!({"op":"test","path":"/metadata/resourceVersion","value":pre["resourceVersion"]}),
        ])
    };
    for (name, replace) in [("replace", true), ("remove", false)] {
        let mut ops = tests(name).await?;
        for (path, value) in [
            ("/spec/color", json!("blue")),
            ("/spec/policy/keep", json!(5)),
            ("/spec/items/0/keep", json!(5)),
            ("/spec/atomic/0/keep", json!(5)),
            ("/spec/map/k~1~0/keep", json!(5)),
        ] {
            ops.push(if replace {
                json!({"op":"replace","path":path,"value":value})
            } else {
                json!({"op":"remove","path":path})
            });
        }
        tabs.json_patch("v1", name, ops.into()).await?.ok()?;
        show(&tabs, "after", name).await?;
        let answer = tabs.identity("v1", name).await?;
        println!("identity {}", answer.code);
        show(&tabs, "then", name).await?;
    }
    let name = "apply";
    tabs.apply("v1", name, "etch", json!({"spec":{"color":"red"}})).await?.ok()?;
    show(&tabs, "own A", name).await?;
    tabs.identity("v1", name).await?.ok()?;
    show(&tabs, "gave up", name).await?;
    tabs.define(v1(schema(None, None))).await?;
    let name = "gone";
    let mut ops = tests(name).await?;
    for path in [
        "/spec/color",
        "/spec/policy/keep",
        "/spec/items/0/keep",
        "/spec/atomic/0/keep",
        "/spec/map/k~1~0/keep",
    ] {
        ops.push(json!({"op":"remove","path":path}));
    }
    tabs.json_patch("v1", name, ops.into()).await?.ok()?;
    show(&tabs, "after", name).await?;
    Ok(())
}
