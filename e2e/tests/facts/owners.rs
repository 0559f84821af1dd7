//! When the server forgets the owners of an object, when it gathers some of them, and what they own where a
//! schema specifies nothing (W19, W20, W22, W26, W31, W34).

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::{
    cluster::{Cluster, JSON_PATCH, MERGE},
    rows,
    tabs::{ETCH, Tabs, defaulted, owners, spec, text, v1, versions},
};

rows! {
    w19: "list items that owners cannot name fail every apply; a patch is refused or, up to 1.36, wipes the \
        owners; items that are there twice are borne",
    w20: "of more than 10 owners by Update the oldest are gathered as `ancient-changes`, with all that they \
        own",
    w26: "owners keep fields that the schema no longer has: an apply, a merge patch and a move to another \
        version drop the values alone",
    w31: "where the server cannot read an owner, every apply is refused, and a patch makes it forget all \
        owners",
    w34: "a write of the scale of an object changes its replicas, and names no owner of them where nobody \
        owned them before",
    w22: "below x-kubernetes-preserve-unknown-fields objects are owned field by field, lists as a whole; a \
        dry run shows it",
}

async fn w31(cluster: &Cluster) -> Result<()> {
    let tabs = Tabs::new(cluster, "w31");
    tabs.define(v1(json!({"a": text()}))).await?;
    let odd = [
        ("operation", json!("Perhaps")),
        ("fieldsType", json!("FieldsV9")),
        ("fieldsV1", json!("f:spec")),
        ("fieldsV1", json!({"spec": {}})),
        ("fieldsV1", json!({"f:spec": {"k:7": {}}})),
    ];
    let name = |index: usize| format!("odd-{index}");
    for (index, (field, value)) in odd.iter().enumerate() {
        tabs.apply("v1", &name(index), "owner", json!({"spec": {"a": "x"}})).await?.ok()?;
        let mut raw = tabs.raw(&name(index)).await?;
        raw["metadata"]["managedFields"][0][*field] = value.clone();
        let key = format!("/registry/{}/crontabs/default/{}", tabs.group, name(index));
        cluster.etcd().put_json(&key, &raw).await?;
    }
    tabs.define(v1(json!({"a": text(), "color": defaulted("red")}))).await?;
    for (index, (field, value)) in odd.iter().enumerate() {
        let before = tabs.raw(&name(index)).await?;
        let answer = tabs.identity("v1", &name(index)).await?;
        ensure!(answer.code == 500, "{field} {value}: {}", answer.code);
        ensure!(tabs.raw(&name(index)).await? == before, "{field} {value}: something was stored");
        tabs.json_patch("v1", &name(index), json!([])).await?.ok()?;
        let after = tabs.raw(&name(index)).await?;
        ensure!(after["spec"]["color"] == "red", "{field} {value}: {after}");
        ensure!(after["metadata"]["managedFields"].is_null(), "{field} {value}: {after}");
    }
    Ok(())
}

async fn w34(cluster: &Cluster) -> Result<()> {
    let tabs = Tabs::new(cluster, "w34");
    let replicas = json!({"type": "integer", "default": 1});
    tabs.define(v1(json!({"a": text(), "replicas": replicas})).with_scale()).await?;
    for owns in [false, true] {
        let name = format!("owned-{owns}");
        let fields = if owns { json!({"a": "x", "replicas": 2}) } else { json!({"a": "x"}) };
        tabs.apply("v1", &name, "owner", json!({"spec": fields})).await?.ok()?;
        let scale = format!("{}?fieldManager=scaler", tabs.path("v1", &format!("{name}/scale")));
        cluster.patch(MERGE, &scale, &json!({"spec": {"replicas": 4}})).await?.ok()?;
        let raw = tabs.raw(&name).await?;
        ensure!(raw["spec"]["replicas"] == 4, "{raw}");
        let entries = raw["metadata"]["managedFields"].as_array().into_iter().flatten();
        let is_owned = |entry: &&Value| !entry["fieldsV1"]["f:spec"]["f:replicas"].is_null();
        let owners: Vec<_> = entries.filter(is_owned).map(|entry| &entry["manager"]).collect();
        // Who has scaled takes it from who owned it.
        ensure!(owners == if owns { vec!["scaler"] } else { vec![] }, "{raw}");
    }
    Ok(())
}

async fn w22(cluster: &Cluster) -> Result<()> {
    let tabs = Tabs::new(cluster, "w22");
    tabs.define(v1(json!({"free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}})))
        .await?;
    let free = json!({"a": 1, "empty": {}, "list": [{"x": 1}], "text": ""});
    for (name, op, path, is_kept) in [
        ("field", "add", "/spec/free/b", true),
        ("below", "add", "/spec/free/empty/b", true),
        ("item", "add", "/spec/free/list/0/y", false),
        ("value", "replace", "/spec/free/text", false),
    ] {
        tabs.apply("v1", name, "owner", json!({"spec": {"free": free}})).await?.ok()?;
        let before = tabs.stored(name).await?.owners;
        let operations = json!([{"op": op, "path": path, "value": "new"}]);
        let dry = format!("{}?fieldManager={ETCH}&dryRun=All", tabs.path("v1", name));
        let answer = cluster.patch(JSON_PATCH, &dry, &operations).await?.ok()?;
        let predicted = owners(&answer);
        ensure!(tabs.stored(name).await?.owners == before, "{name}: a dry run stores nothing");
        tabs.json_patch("v1", name, operations).await?.ok()?;
        let after = tabs.stored(name).await?.owners;
        ensure!(predicted == after, "{name}: {predicted:?} and {after:?}");
        let theirs = |owners: &[String]| {
            owners.iter().filter(|owner| owner.starts_with("owner ")).cloned().collect::<Vec<_>>()
        };
        ensure!((theirs(&before) == theirs(&after)) == is_kept, "{name}: {before:?} and {after:?}");
    }
    Ok(())
}

async fn w19(cluster: &Cluster) -> Result<()> {
    let tabs = Tabs::new(cluster, "w19");
    let item = |required: &[&str]| {
        json!({
            "type": "object", "nullable": true, "required": required, "properties": {
                "name": text(), "note": text(),
            },
        })
    };
    let words = || json!({"type": "string", "nullable": true});
    let list = |items: Value| json!({"type": "array", "items": items});
    let loose = json!({"a": text(), "keyed": list(item(&[])), "set": list(words())});
    tabs.define(versions([("v1", spec(loose))])).await?;
    let cases = [
        ("keyless", json!({"keyed": [{"note": "x"}, {"name": "y"}]}), false),
        ("null", json!({"keyed": [null]}), false),
        ("set", json!({"set": [null]}), false),
        ("twice", json!({"keyed": [{"name": "x"}, {"name": "x"}], "set": ["x", "x"]}), true),
    ];
    for (name, mut fields, _) in cases.clone() {
        fields["a"] = json!("x");
        tabs.apply("v1", name, "owner", json!({"spec": fields})).await?.ok()?;
    }
    let (mut keyed, mut set) = (list(item(&["name"])), list(words()));
    keyed["items"]["nullable"] = json!(false);
    keyed["x-kubernetes-list-type"] = json!("map");
    keyed["x-kubernetes-list-map-keys"] = json!(["name"]);
    set["items"]["nullable"] = json!(false);
    set["x-kubernetes-list-type"] = json!("set");
    let typed = json!({"a": text(), "keyed": keyed, "set": set, "color": defaulted("red")});
    tabs.define(v1(typed)).await?;
    for (name, _, is_borne) in cases {
        let applied = tabs.identity("v1", name).await?;
        match is_borne {
            true => drop(applied.ok()?),
            false => applied.refused(500, "", "failed to create typed live object")?,
        }
        let before = tabs.stored(name).await?.owners;
        let patched = tabs.merge("v1", name, ETCH, json!({})).await?;
        // Validation refuses the first two, since nothing shows which item was there before.
        if ["keyless", "null"].contains(&name) {
            patched.refused(422, "Invalid", "spec.keyed[0]")?;
        } else {
            patched.ok()?;
        }
        let is_wiped = name == "set" && !cluster.since("1.37")?;
        let expected = if is_wiped { Vec::new() } else { before };
        ensure!(tabs.stored(name).await?.owners == expected, "{name}: {:?}", tabs.stored(name).await?);
    }
    Ok(())
}

async fn w26(cluster: &Cluster) -> Result<()> {
    let tabs = Tabs::new(cluster, "w26");
    let all = || json!({"a": text(), "legacy": text(), "old": text()});
    let fewer = || json!({"a": text(), "color": defaulted("red")});
    let of = |old: Value, new: Value| versions([("v1beta1", spec(old)), ("v1", spec(new))]);
    tabs.define(of(all(), all())).await?;
    for name in ["applied", "merged", "moved", "moved-from-more"] {
        tabs.apply("v1beta1", name, "owner", json!({"spec": {"a": "x", "old": "x"}})).await?.ok()?;
        tabs.apply("v1beta1", name, "applier", json!({"spec": {"legacy": "x"}})).await?.ok()?;
        tabs.merge("v1beta1", name, "updater", json!({"spec": {"old": "y"}})).await?.ok()?;
    }
    let owners = tabs.stored("moved").await?.owners;
    ensure!(owners.len() == 3, "{owners:?}");
    tabs.define(of(all(), fewer())).await?;
    tabs.reversion("v1", "moved-from-more", "v1").await?.ok()?;
    tabs.define(of(fewer(), fewer())).await?;
    tabs.identity("v1beta1", "applied").await?.ok()?;
    tabs.merge("v1beta1", "merged", ETCH, json!({})).await?.ok()?;
    tabs.reversion("v1", "moved", "v1").await?.ok()?;
    for (name, version) in
        [("applied", "v1beta1"), ("merged", "v1beta1"), ("moved", "v1"), ("moved-from-more", "v1")]
    {
        let stored = tabs.stored(name).await?;
        let expected: Vec<_> = owners.iter().map(|owner| owner.replace("v1beta1", version)).collect();
        ensure!(stored.spec == json!({"a": "x", "color": "red"}), "{name}: {stored:?}");
        ensure!(stored.owners == expected, "{name}: {:?}", stored.owners);
    }
    Ok(())
}

async fn w20(cluster: &Cluster) -> Result<()> {
    let tabs = Tabs::new(cluster, "w20");
    let fields: Vec<String> = (0..12).map(|number| format!("f{number}")).collect();
    let properties: serde_json::Map<String, Value> =
        fields.iter().map(|name| (name.clone(), text())).collect();
    tabs.define(v1(Value::Object(properties))).await?;
    tabs.create("v1", "a", "m0", json!({"spec": {"f0": "x"}})).await?;
    for number in 1..10 {
        tabs.merge("v1", "a", &format!("m{number}"), json!({"spec": {format!("f{number}"): "x"}}))
            .await?
            .ok()?;
    }
    let before = owners(&*tabs.read("v1", "a").await?);
    ensure!(before.len() == 10, "{before:?}");
    tabs.apply("v1", "a", "applied", json!({"spec": {"f10": "x"}})).await?.ok()?;
    ensure!(owners(&*tabs.read("v1", "a").await?).len() == 11, "an apply gathers nobody");
    tabs.merge("v1", "a", "m11", json!({"spec": {"f11": "x"}})).await?.ok()?;
    let after = owners(&*tabs.read("v1", "a").await?);
    let gathered: Vec<_> =
        after.iter().filter(|owner| owner.starts_with("ancient-changes Update v1: ")).collect();
    ensure!(gathered.len() == 1 && after.len() == 11, "{after:?}");
    for field in &fields {
        let times = after
            .iter()
            .filter(|owner| owner.split(' ').any(|path| path == format!(".spec.{field}")))
            .count();
        ensure!(times == 1, "{field} has {times} owners: {after:?}");
    }
    Ok(())
}
