//! What a reader sees of what etcd holds (R3 to R8, C5), and what the difference does to the next write
//! (W12).
//!
//! Which version's schema it is that counts is in `versions`.

use anyhow::{Context, Result, ensure};
use e2e::cluster::{GUARD, eventually};
use http::{Request, header::ACCEPT};
use kube_structural_schema::json::Json;
use serde_json::{Value, json};

use crate::{
    cluster::Cluster,
    rows,
    tabs::{Tabs, defaulted, spec, text, v1, versions},
};

rows! {
    r3: "what the schema does not know of its own defaults never reaches an object",
    r4: "fields that the schema dropped stay in etcd, unseen, until the next write (R5, W12)",
    r5: "owners of a dropped field still name it, even when it is back as a phantom default",
    r6: "a changed schema is served at once",
    r7: "CRDs are stored as v1beta1 and served even if today's validation would refuse them",
    r8: "a list of metadata has the same resource versions, and a list goes on in either form",
    r11: "resource versions of custom resources, CRDs and Leases grow with each write of any of them",
    r12: "whoever creates an object owns each field that it was given, and none that a later default shows",
    r13: "a watch from an old resource version delivers what the server remembers, and else names the oldest \
        one",
    r15: "an embedded resource that is none makes every read of its resource an error",
    r16: "what a conversion hands over is read by the schema of its version, and gets no defaults",
    c5: "a default under a parent that is absent and has none is not applied",
}

async fn r3(cluster: &Cluster) -> Result<()> {
    let tabs = Tabs::new(cluster, "r3");
    let item = |properties: Value| {
        v1(json!({"items": {"type": "object",
                            "additionalProperties": {"type": "object", "properties": properties}}}))
    };
    tabs.define(item(json!({}))).await?;
    tabs.apply("v1", "a", "owner", json!({"spec": {"items": {"one": {}}}})).await?.ok()?;
    let default = json!({"known": "x", "unknown": "y"});
    let inner = json!({"type": "object", "properties": {"known": text()}, "default": default});
    tabs.define(item(json!({"inner": inner}))).await?;
    let pruned = json!({"items": {"one": {"inner": {"known": "x"}}}});
    assert_eq!(tabs.seen("v1", "a").await?, pruned);
    tabs.identity("v1", "a").await?.ok()?;
    assert_eq!(tabs.raw("a").await?["spec"], pruned);
    Ok(())
}

/// A field that keeps what it is given, with these additions to its schema.
fn kept(additions: &Value) -> Value {
    let mut schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    schema
        .as_object_mut()
        .into_iter()
        .for_each(|fields| fields.extend(additions.as_object().cloned().unwrap_or_default()));
    schema
}

async fn r15(cluster: &Cluster) -> Result<()> {
    let tabs = Tabs::new(cluster, "r15");
    let embedded = json!({"x-kubernetes-embedded-resource": true});
    tabs.define(v1(json!({"t": kept(&json!({}))}))).await?;
    let unreadable = json!({"apiVersion": 5, "kind": "Pod", "metadata": []});
    tabs.apply("v1", "list", "owner", json!({"spec": {"t": unreadable}})).await?.ok()?;
    let odd = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": 5, "labels": {"b": "c"}}});
    tabs.apply("v1", "odd", "owner", json!({"spec": {"t": odd}})).await?.ok()?;
    tabs.define(v1(json!({"t": kept(&embedded)}))).await?;
    // What is malformed within metadata is left out.
    assert_eq!(tabs.seen("v1", "odd").await?["t"]["metadata"], json!({"labels": {"b": "c"}}));
    let answer = cluster.get(&tabs.path("v1", "list")).await?;
    ensure!(answer.code == 500 && answer.body.to_string().contains("spec.t.metadata"), "{}", answer.code);
    // A server with a watch cache that cannot begin asks to try again.
    let list = cluster.get(&tabs.path("v1", "")).await?;
    ensure!(matches!(list.code, 429 | 500), "{}", list.code);
    // Only conversion hands them over to the version with the embedded resource, and leaves nothing out.
    let tabs = Tabs::new(cluster, "r15-versions");
    tabs.define(versions([("v1beta1", spec(json!({"t": kept(&json!({}))})))])).await?;
    tabs.apply("v1beta1", "odd", "owner", json!({"spec": {"t": odd}})).await?.ok()?;
    let of_version = |additions: &Value| spec(json!({"t": kept(additions)}));
    tabs.define(versions([("v1beta1", of_version(&json!({}))), ("v1", of_version(&embedded))])).await?;
    cluster.get(&tabs.path("v1beta1", "odd")).await?.ok()?;
    let answer = cluster.get(&tabs.path("v1", "odd")).await?;
    ensure!(answer.code == 500 && answer.body.to_string().contains("spec.t.metadata"), "{}", answer.code);
    Ok(())
}

async fn r16(cluster: &Cluster) -> Result<()> {
    let tabs = Tabs::new(cluster, "r16");
    let old =
        spec(json!({"a": {"type": "string", "nullable": true}, "b": {"type": "string", "nullable": true}}));
    tabs.define(versions([("v1beta1", old.clone())])).await?;
    tabs.apply("v1beta1", "a", "owner", json!({"spec": {"a": null, "b": null}})).await?.ok()?;
    tabs.define(versions([("v1beta1", old), ("v1", spec(json!({"a": text(), "b": defaulted("x")})))]))
        .await?;
    assert_eq!(tabs.seen("v1", "a").await?, json!({"b": null}));
    Ok(())
}

async fn r11(cluster: &Cluster) -> Result<()> {
    let tabs = Tabs::new(cluster, "r11");
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    let mut last = 0;
    for round in 0..3 {
        tabs.define(v1(json!({ format!("f{round}"): text(), "a": text() }))).await?;
        let crd = cluster.get(&tabs.crd_path()).await?.ok()?;
        let name = format!("o{round}");
        let object = tabs.apply("v1", &name, "owner", json!({"spec": {"a": "x"}})).await?.ok()?;
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {
                "name": format!("r11-{round}"),
            },
        });
        let lease = cluster.post(leases, &lease).await?.ok()?;
        let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        for list in [leases, crds, tabs.path("v1", "").trim_end_matches('/')] {
            let seen = revision(&cluster.get(&format!("{list}?limit=1")).await?.ok()?)?;
            ensure!(seen >= revision(&lease)?, "the list {list} is at {seen}");
        }
        for written in [&crd, &object, &lease] {
            let revision = revision(written)?;
            ensure!(revision > last, "{revision} after {last}");
            last = revision;
        }
    }
    Ok(())
}

async fn r12(cluster: &Cluster) -> Result<()> {
    let tabs = Tabs::new(cluster, "r12");
    tabs.define(v1(json!({"a": text(), "given": text()}))).await?;
    let spec = json!({"spec": {"a": "x", "given": "red", "unknown": "red"}});
    tabs.create("v1", "create", "owner", spec.clone()).await?;
    tabs.apply("v1", "apply", "owner", json!({"spec": {"a": "x", "given": "red"}})).await?.ok()?;
    tabs.create("v1", "updated", "owner", json!({"spec": {"a": "x"}})).await?;
    tabs.merge("v1", "updated", "other", spec).await?.ok()?;
    tabs.create("v1", "bare", "owner", json!({"spec": {"a": "x"}})).await?;
    let red = defaulted("red");
    tabs.define(v1(json!({"a": text(), "given": red, "unknown": red}))).await?;
    let (shown, given) =
        (json!({"a": "x", "given": "red", "unknown": "red"}), json!({"a": "x", "given": "red"}));
    for (name, stored, owned, generation) in [
        ("create", &given, ".spec.a .spec.given", 1),
        ("apply", &given, ".spec.a .spec.given", 1),
        ("updated", &given, ".spec.given", 2),
        ("bare", &json!({"a": "x"}), ".spec.a", 1),
    ] {
        assert_eq!(tabs.seen("v1", name).await?, shown, "{name}");
        let now = tabs.stored(name).await?;
        assert_eq!((&now.spec, now.generation), (stored, generation), "{name}");
        assert!(now.owners.iter().any(|owner| owner.ends_with(owned)), "{name}: {now:?}");
        assert!(!now.owners.iter().any(|owner| owner.contains("unknown")), "{name}: {now:?}");
    }
    // A field and a default that only another version has.
    let tabs = Tabs::new(cluster, "r12-versions");
    let of = self::spec;
    let other = of(json!({"a": text(), "only": defaulted("red")}));
    tabs.define(versions([("v1beta1", other), ("v1", of(json!({"a": text()})))])).await?;
    tabs.apply("v1beta1", "apply", "owner", json!({"spec": {"a": "x"}})).await?.ok()?;
    tabs.create("v1beta1", "create", "owner", json!({"spec": {"a": "x", "only": "blue"}})).await?;
    tabs.merge("v1beta1", "apply", "other", json!({"spec": {"only": "blue"}})).await?.ok()?;
    for name in ["apply", "create"] {
        assert_eq!(tabs.raw(name).await?["spec"], json!({"a": "x"}), "{name}");
    }
    Ok(())
}

async fn r13(cluster: &Cluster) -> Result<()> {
    let tabs = Tabs::new(cluster, "r13");
    tabs.define(v1(json!({"a": text()}))).await?;
    let first = revision(&tabs.apply("v1", "a", "owner", json!({"spec": {"a": "x"}})).await?.ok()?)?;
    tabs.define(v1(json!({"a": text(), "color": defaulted("red")}))).await?;
    let watch = async |path: String, since: u64| {
        let path = format!("{path}?watch=true&timeoutSeconds=1&resourceVersion={since}");
        let answer = cluster.admin().request_text(Request::get(&path).body(Vec::new())?).await?;
        let events: Result<Vec<Value>, _> = answer.lines().map(serde_json::from_str).collect();
        anyhow::Ok(events?)
    };

    // Each state of the CRD, from its creation on; unless other rows have pushed that out.
    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions".to_owned();
    let mut events = watch(crds.clone(), 1).await?;
    let refusal = events.iter().find(|event| event["type"] == "ERROR").map(|event| event["object"].clone());
    if let Some(refusal) = &refusal {
        events = watch(crds, oldest(refusal, 1)?).await?;
    }
    let ours: Vec<_> = events
        .iter()
        .filter(|event| event["object"]["spec"]["group"] == tabs.group)
        .map(|event| (event["type"].as_str(), event["object"]["metadata"]["generation"].as_i64()))
        .collect();
    assert!(refusal.is_some() || ours.first() == Some(&(Some("ADDED"), Some(1))), "{ours:?}");
    assert_eq!(ours.last(), Some(&(Some("MODIFIED"), Some(2))));
    assert!(ours.is_sorted_by_key(|(_, generation)| *generation), "{ours:?}");

    // With a new schema the server begins a new watch cache of its objects.
    let path = tabs.path("v1", "").trim_end_matches('/').to_owned();
    let refusal = eventually(GUARD, "the watch is refused", async || {
        let events = watch(path.clone(), first - 1).await?;
        let error = events.iter().find(|event| event["type"] == "ERROR");
        Ok(error.map(|error| error["object"].clone()))
    })
    .await?;
    assert_eq!(refusal["code"], 410);
    let oldest = oldest(&refusal, first - 1)?;
    let events = watch(path, oldest).await?;
    assert!(oldest >= first && events.iter().all(|event| event["type"] != "ERROR"), "{events:?}");
    Ok(())
}

/// The oldest resource version that a server has, from its error about an older one.
fn oldest(refusal: &Value, asked: u64) -> Result<u64> {
    let message = refusal["message"].as_str().context("a message")?;
    let oldest = message.strip_prefix(&format!("too old resource version: {asked} ("));
    Ok(oldest.and_then(|rest| rest.strip_suffix(')')).context("the oldest one")?.parse()?)
}

fn revision(written: &Json) -> Result<u64> {
    Ok(written["metadata"]["resourceVersion"].as_str().context("a resource version")?.parse()?)
}

async fn r4(cluster: &Cluster) -> Result<()> {
    let tabs = Tabs::new(cluster, "r4");
    tabs.define(v1(json!({"a": text(), "legacy": text()}))).await?;
    let names = ["identity", "merge", "label", "status-quo"];
    for name in names {
        tabs.apply("v1", name, "owner", json!({"spec": {"a": "x", "legacy": "old"}})).await?.ok()?;
    }
    tabs.define(v1(json!({"a": text()}))).await?;
    for name in names {
        assert_eq!(tabs.raw(name).await?["spec"], json!({"a": "x", "legacy": "old"}));
        assert_eq!(tabs.seen("v1", name).await?, json!({"a": "x"}));
        match name {
            "identity" => tabs.identity("v1", name).await?,
            "merge" => tabs.merge("v1", name, "other", json!({})).await?,
            "label" => tabs.merge("v1", name, "other", json!({"metadata": {"labels": {"l": ""}}})).await?,
            _ => tabs.get("v1", name).await?,
        }
        .ok()?;
        let now = tabs.stored(name).await?;
        let kept = if name == "status-quo" { json!({"a": "x", "legacy": "old"}) } else { json!({"a": "x"}) };
        assert_eq!(now.spec, kept, "{name}");
        assert!(now.owners.contains(&"owner Apply v1: .spec.a .spec.legacy".to_owned()), "{name}: {now:?}");
    }
    Ok(())
}

async fn r5(cluster: &Cluster) -> Result<()> {
    let tabs = Tabs::new(cluster, "r5");
    tabs.define(v1(json!({"a": text(), "legacy": text()}))).await?;
    for name in ["held", "rewritten"] {
        tabs.apply("v1", name, "owner", json!({"spec": {"a": "x", "legacy": "old"}})).await?.ok()?;
    }
    tabs.define(v1(json!({"a": text()}))).await?;
    tabs.merge("v1", "rewritten", "other", json!({})).await?.ok()?;
    tabs.define(v1(json!({"a": text(), "legacy": defaulted("fresh")}))).await?;

    // What was hidden shows again; what was destroyed is a phantom that has an owner.
    assert_eq!(tabs.seen("v1", "held").await?, json!({"a": "x", "legacy": "old"}));
    assert_eq!(tabs.seen("v1", "rewritten").await?, json!({"a": "x", "legacy": "fresh"}));
    let before = tabs.stored("rewritten").await?;
    assert_eq!(before.spec, json!({"a": "x"}));
    assert_eq!(before.owners, ["owner Apply v1: .spec.a .spec.legacy"]);

    tabs.identity("v1", "rewritten").await?.ok()?;
    let after = tabs.stored("rewritten").await?;
    assert_eq!(after.spec, json!({"a": "x", "legacy": "fresh"}));
    assert_eq!((after.owners, after.generation), (before.owners, before.generation));
    // The owner may give up what it never set, and the value stays.
    tabs.apply("v1", "rewritten", "owner", json!({"spec": {"a": "x"}})).await?.ok()?;
    let released = tabs.stored("rewritten").await?;
    assert_eq!(released.spec, json!({"a": "x", "legacy": "fresh"}));
    assert_eq!(released.owners, ["owner Apply v1: .spec.a"]);
    Ok(())
}

async fn r6(cluster: &Cluster) -> Result<()> {
    let tabs = Tabs::new(cluster, "r6");
    tabs.define(v1(json!({"a": text()}))).await?;
    tabs.apply("v1", "a", "owner", json!({"spec": {"a": "x"}})).await?.ok()?;
    tabs.define(v1(json!({"a": text(), "color": defaulted("red")}))).await?;
    // Within 4 to 25 ms on an idle machine; how long it took here, tests cannot know.
    assert_eq!(tabs.seen("v1", "a").await?, json!({"a": "x", "color": "red"}));
    Ok(())
}

async fn r7(cluster: &Cluster) -> Result<()> {
    let tabs = Tabs::new(cluster, "r7");
    tabs.define(v1(json!({"a": text()}))).await?;
    let key = format!("/registry/apiextensions.k8s.io/customresourcedefinitions/crontabs.{}", tabs.group);
    let (bytes, _) = cluster.etcd().get(&key).await?.context("the CRD in etcd")?;
    let mut crd: Value = serde_json::from_slice(&bytes)?;
    assert_eq!(crd["apiVersion"], "apiextensions.k8s.io/v1beta1");
    let schema = crd.pointer_mut("/spec/validation/openAPIV3Schema/properties/spec/properties");
    // A property must have a type, so this one is refused today.
    schema.context("a schema that all versions share")?["untyped"] = json!({"description": "anything"});
    let refused = json!({"spec": {"versions": [{
        "name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": crd["spec"]["validation"]["openAPIV3Schema"].clone()},
    }]}});
    let answer = cluster.patch(crate::cluster::MERGE, &tabs.crd_path(), &refused).await?;
    answer.refused(422, "Invalid", "must not be empty for specified object fields")?;

    cluster.etcd().put_json(&key, &crd).await?;
    eventually(GUARD, "the server sets NonStructuralSchema", async || {
        let crd = cluster.get(&tabs.crd_path()).await?.ok()?;
        let conditions = crd["status"]["conditions"].as_array();
        let found = conditions.into_iter().flatten().find(|it| it["type"] == "NonStructuralSchema");
        Ok(found.is_some_and(|condition| condition["status"] == "True").then_some(()))
    })
    .await?;
    let made = tabs.create("v1", "a", "owner", json!({"spec": {"a": "x", "untyped": 1}})).await?;
    assert_eq!(made["spec"]["a"], "x");
    Ok(())
}

async fn r8(cluster: &Cluster) -> Result<()> {
    let tabs = Tabs::new(cluster, "r8");
    tabs.define(v1(json!({"a": text()}))).await?;
    for name in ["a", "b", "c"] {
        tabs.apply("v1", name, "owner", json!({"spec": {}})).await?.ok()?;
    }
    tabs.define(v1(json!({"a": defaulted("x")}))).await?;
    let list = async |form: &str, rest: &str| {
        let path = format!("{}?limit={rest}", tabs.path("v1", ""));
        cluster
            .admin()
            .request::<Value>(Request::get(path).header(ACCEPT, form).body(Vec::new())?)
            .await
            .map_err(anyhow::Error::from)
    };
    let versions = |list: &Value| -> Vec<Value> {
        let items = list["items"].as_array().into_iter().flatten();
        items.map(|item| item["metadata"]["resourceVersion"].clone()).collect()
    };
    let (whole, metadata) =
        ("application/json", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1");
    let (all, known) = (list(whole, "9").await?, list(metadata, "9").await?);
    assert_eq!((&all["items"][0]["spec"], &known["items"][0]["spec"]), (&json!({"a": "x"}), &Value::Null));
    assert_eq!((versions(&all).len(), versions(&all)), (3, versions(&known)));
    for (first, second) in [(whole, metadata), (metadata, whole)] {
        let begun = list(first, "1").await?;
        let token = begun["metadata"]["continue"].as_str().context("there is more")?;
        let rest = list(second, &format!("9&continue={token}")).await?;
        assert_eq!([versions(&begun), versions(&rest)].concat(), versions(&all), "{first}, {second}");
    }
    Ok(())
}

async fn c5(cluster: &Cluster) -> Result<()> {
    let tabs = Tabs::new(cluster, "c5");
    tabs.define(v1(json!({"a": text()}))).await?;
    tabs.apply("v1", "a", "owner", json!({"spec": {"a": "x"}})).await?.ok()?;
    let inner = json!({"color": defaulted("red")});
    tabs.define(v1(json!({
        "a": text(),
        "absent": {"type": "object", "properties": inner},
        "present": {"type": "object", "properties": inner, "default": {}},
    })))
    .await?;
    assert_eq!(tabs.seen("v1", "a").await?, json!({"a": "x", "present": {"color": "red"}}));
    Ok(())
}
