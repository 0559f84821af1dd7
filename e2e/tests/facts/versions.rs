//! Writes to objects whose bytes or owners are of another version than the storage version (R2, W6 to W10,
//! W16 to W18).
//!
//! The older version is v1beta1, the newer, where `color` has its default, is v1; nothing is converted.

use anyhow::Result;
use serde_json::{Value, json};

use crate::{
    cluster::{Answer, Cluster},
    rows,
    tabs::{ETCH, Stored, Tabs, defaulted, spec, text, v1, versions},
};

rows! {
    r2: "the defaults that a read view shows are those of the version of the bytes",
    w6: "an identity-only apply moves the object to v1 without its default, and applies at v1 fail from then \
        on",
    w6_proof: "a repeated apply tells the truth if it names the resourceVersion of the first answer",
    w6_at_v1: "on an object already stored at v1, applies at v1 fail at once",
    w6_update: "it is the same when the foreign manager is of Updates",
    w25: "an apply that changes nothing moves bytes of v1beta1 to v1 without its default, even if all owners \
        are at v1",
    w7: "an apply with the computed value fails and stores nothing",
    w8: "merge patch {} stores the default, and up to 1.36 wipes all owners",
    w9: "re-versioned owners let the default be stored; our entry can be removed",
    w9_after_w6: "on an object stored at v1, re-versioned owners leave neither an entry of ours nor a new \
        generation",
    w9_validated: "an identity-only apply is validated without the new default, re-versioning with it",
    w10: "any write at v1beta1 drops what only v1 knows, and nothing but resourceVersion tells",
    w12_versions: "any write at v1 drops what only v1beta1 knows",
    w16: "a value of the wrong type fails every apply; a patch stores it and, up to 1.36, wipes the owners",
    w17: "of two entries that become the same the last stays, unless they are united",
    w18: "owners at a version that is gone fail every apply; re-versioning heals",
}

/// The answer to applies of what the managers' versions cannot express.
const NOT_DECLARED: &str = ".spec.color: field not declared in schema";

fn old() -> Value {
    spec(json!({"a": text(), "b": text()}))
}

fn new() -> Value {
    spec(json!({"a": text(), "b": text(), "color": defaulted("red")}))
}

/// Objects by `owner` (`a`, applied) and `other` (`b`, updated), both at v1beta1, where the bytes are too;
/// then v1 with its default becomes the storage version.
async fn introduced<'a>(cluster: &'a Cluster, row: &str, names: &[&str]) -> Result<Tabs<'a>> {
    let tabs = Tabs::new(cluster, row);
    tabs.define(versions([("v1beta1", old())])).await?;
    for name in names {
        at_v1beta1(&tabs, name).await?;
    }
    tabs.define(versions([("v1beta1", old()), ("v1", new())])).await?;
    Ok(tabs)
}

async fn at_v1beta1(tabs: &Tabs<'_>, name: &str) -> Result<()> {
    tabs.apply("v1beta1", name, "owner", json!({"spec": {"a": "x"}})).await?.ok()?;
    tabs.merge("v1beta1", name, "other", json!({"spec": {"b": "y"}})).await?.ok()?;
    Ok(())
}

const OTHER: &str = "other Update v1: .spec.b";
const OTHER_BETA: &str = "other Update v1beta1: .spec.b";
const OWNER: &str = "owner Apply v1: .spec.a";
const OWNER_BETA: &str = "owner Apply v1beta1: .spec.a";

fn stored(version: &str, spec: Value, generation: i64, owners: &[&str]) -> Stored {
    let owners = owners.iter().map(ToString::to_string).collect();
    Stored { version: version.into(), spec, generation, owners }
}

fn without() -> Value {
    json!({"a": "x", "b": "y"})
}

fn with(color: &str) -> Value {
    json!({"a": "x", "b": "y", "color": color})
}

/// Fails unless every manager can apply at v1 what it likes: `owner` its own, a third one another `color`.
async fn all_can_apply(tabs: &Tabs<'_>, name: &str) -> Result<()> {
    tabs.settled("v1", name).await?;
    tabs.apply("v1", name, "owner", json!({"spec": {"a": "x"}})).await?.ok()?;
    tabs.apply("v1", name, "owner", json!({"spec": {"a": "z"}})).await?.ok()?;
    tabs.apply("v1", name, "third", json!({"spec": {"color": "blue"}})).await?.ok()?;
    assert_eq!(tabs.raw(name).await?["spec"], json!({"a": "z", "b": "y", "color": "blue"}), "{name}");
    Ok(())
}

/// Fails unless the bytes are `stored`, and applies at v1 by any manager are answered with 500.
async fn none_can_apply(tabs: &Tabs<'_>, name: &str, stored: Stored) -> Result<()> {
    assert_eq!(tabs.stored(name).await?, stored, "{name}");
    for (manager, spec) in [(ETCH, json!({})), ("owner", json!({"a": "x"})), ("owner", json!({"a": "z"}))] {
        let metadata = tabs.precondition("v1", name).await?;
        let answer = tabs.apply("v1", name, manager, json!({"metadata": metadata, "spec": spec})).await?;
        answer.refused(500, "", NOT_DECLARED)?;
    }
    tabs.identity("v1", name).await?.refused(500, "", NOT_DECLARED)?;
    assert_eq!(tabs.stored(name).await?, stored, "{name}");
    Ok(())
}

async fn r2(cluster: &Cluster) -> Result<()> {
    let tabs = introduced(cluster, "r2", &["old"]).await?;
    at_v1beta1(&tabs, "new").await?;
    assert_eq!(tabs.stored("old").await?, stored("v1beta1", without(), 2, &[OTHER_BETA, OWNER_BETA]));
    assert_eq!(tabs.seen("v1", "old").await?, without(), "a gap: not even visible");
    assert_eq!(tabs.stored("new").await?, stored("v1", without(), 2, &[OTHER_BETA, OWNER_BETA]));
    assert_eq!(tabs.seen("v1", "new").await?, with("red"), "a phantom");
    Ok(())
}

async fn w6(cluster: &Cluster) -> Result<()> {
    let tabs = introduced(cluster, "w6", &["a"]).await?;
    let before = tabs.revision("a").await?;
    let answer = tabs.identity("v1", "a").await?.ok()?;
    assert_eq!(answer["spec"], with("red"), "the answer lies");
    assert_ne!(tabs.revision("a").await?, before, "so does resourceVersion");
    none_can_apply(&tabs, "a", stored("v1", without(), 2, &[OTHER_BETA, OWNER_BETA])).await?;
    tabs.apply("v1beta1", "a", "owner", json!({"spec": {"a": "x"}})).await?.ok()?;
    Ok(())
}

async fn w6_proof(cluster: &Cluster) -> Result<()> {
    let names: Vec<_> = (0..50).map(|number| format!("a{number}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let tabs = introduced(cluster, "w6_proof", &names).await?;
    for name in names {
        let uid = tabs.precondition("v1", name).await?["uid"].clone();
        let mut identity = json!({"metadata": {"uid": uid}});
        let first = tabs.apply("v1", name, ETCH, identity.clone()).await?.ok()?;
        // Without this one in some dozens is answered with 200 and the same resourceVersion: the server
        // starts from what its watch cache still holds, the object at v1beta1, arrives at the bytes that etcd
        // holds by now, and skips.
        identity["metadata"]["resourceVersion"] = first["metadata"]["resourceVersion"].clone();
        tabs.apply("v1", name, ETCH, identity).await?.refused(500, "", NOT_DECLARED)?;
        assert_eq!(tabs.raw(name).await?["spec"], without());
    }
    Ok(())
}

async fn w25(cluster: &Cluster) -> Result<()> {
    let tabs = Tabs::new(cluster, "w25");
    tabs.define(versions([("v1", old()), ("v1beta1", old())])).await?;
    tabs.apply("v1", "thing", "owner", json!({"spec": {"a": "x"}})).await?.ok()?;
    tabs.define(versions([("v1beta1", old()), ("v1", new())])).await?;
    assert_eq!(tabs.stored("thing").await?, stored("v1beta1", json!({"a": "x"}), 1, &[OWNER]));
    assert_eq!(tabs.seen("v1", "thing").await?, json!({"a": "x"}), "a gap");
    tabs.apply("v1", "thing", "owner", json!({"spec": {"a": "x"}})).await?.ok()?;
    assert_eq!(tabs.stored("thing").await?, stored("v1", json!({"a": "x"}), 1, &[OWNER]));
    assert_eq!(
        tabs.seen("v1", "thing").await?,
        json!({"a": "x", "color": "red"}),
        "a phantom, of a later revision"
    );
    tabs.identity("v1", "thing").await?.ok()?;
    assert_eq!(tabs.raw("thing").await?["spec"], json!({"a": "x", "color": "red"}));
    Ok(())
}

async fn w6_at_v1(cluster: &Cluster) -> Result<()> {
    let tabs = introduced(cluster, "w6_at_v1", &[]).await?;
    at_v1beta1(&tabs, "a").await?;
    none_can_apply(&tabs, "a", stored("v1", without(), 2, &[OTHER_BETA, OWNER_BETA])).await
}

async fn w6_update(cluster: &Cluster) -> Result<()> {
    let tabs = Tabs::new(cluster, "w6_update");
    tabs.define(versions([("v1beta1", old())])).await?;
    tabs.create("v1beta1", "a", "other", json!({"spec": without()})).await?;
    tabs.define(versions([("v1beta1", old()), ("v1", new())])).await?;
    tabs.identity("v1", "a").await?.ok()?;
    let owners = ["other Update v1beta1: .spec .spec.a .spec.b"];
    assert_eq!(tabs.stored("a").await?, stored("v1", without(), 1, &owners));
    tabs.identity("v1", "a").await?.refused(500, "", NOT_DECLARED)?;
    tabs.apply("v1", "a", "owner", json!({"spec": {"b": "y"}})).await?.refused(500, "", NOT_DECLARED)
}

async fn w7(cluster: &Cluster) -> Result<()> {
    let tabs = introduced(cluster, "w7", &["old"]).await?;
    at_v1beta1(&tabs, "new").await?;
    for (name, version, message) in [
        ("old", "v1beta1", "failed to convert new object: .spec.color: field not declared in schema"),
        ("new", "v1", NOT_DECLARED),
    ] {
        let answer = tabs.apply("v1", name, ETCH, json!({"spec": {"color": "red"}})).await?;
        answer.refused(500, "", message)?;
        assert_eq!(tabs.stored(name).await?, stored(version, without(), 2, &[OTHER_BETA, OWNER_BETA]));
    }
    Ok(())
}

async fn w8(cluster: &Cluster) -> Result<()> {
    let tabs = introduced(cluster, "w8", &["old"]).await?;
    at_v1beta1(&tabs, "new").await?;
    let kept = cluster.since("1.37")?;
    let owners = if kept { &[OTHER_BETA, OWNER_BETA][..] } else { &[] };
    // What a reader at v1 sees of `old` changes, so its generation does.
    for (name, generation) in [("old", 3), ("new", 2)] {
        tabs.merge("v1", name, ETCH, json!({})).await?.ok()?;
        assert_eq!(tabs.stored(name).await?, stored("v1", with("red"), generation, owners), "{name}");
        let answer = tabs.apply("v1", name, "owner", json!({"spec": {"a": "z"}})).await?;
        if kept {
            // The owners stay where they were, at v1beta1, so W6 is not healed.
            answer.refused(500, "", NOT_DECLARED)?;
        } else {
            answer.refused(409, "Conflict", r#"conflict with "before-first-apply""#)?;
        }
    }
    Ok(())
}

async fn w9(cluster: &Cluster) -> Result<()> {
    let tabs = introduced(cluster, "w9", &["a"]).await?;
    tabs.reversion("v1", "a", "v1").await?.ok()?;
    let ours = "etch Update v1: .spec.color";
    assert_eq!(tabs.stored("a").await?, stored("v1", with("red"), 3, &[ours, OTHER, OWNER]));

    let object = tabs.read("v1", "a").await?;
    let entries = object["metadata"]["managedFields"].as_array();
    let index = entries.and_then(|entries| entries.iter().position(|entry| entry["manager"] == ETCH));
    let entry = format!("/metadata/managedFields/{}", index.unwrap_or_default());
    let operations = json!([
        {"op": "test", "path": "/metadata/uid", "value": object["metadata"]["uid"]},
        {"op": "test", "path": "/metadata/resourceVersion", "value": object["metadata"]["resourceVersion"]},
        {"op": "test", "path": format!("{entry}/manager"), "value": ETCH},
        {"op": "remove", "path": entry},
    ]);
    tabs.json_patch("v1", "a", operations).await?.ok()?;
    assert_eq!(tabs.stored("a").await?, stored("v1", with("red"), 3, &[OTHER, OWNER]));
    all_can_apply(&tabs, "a").await
}

async fn w9_after_w6(cluster: &Cluster) -> Result<()> {
    let tabs = introduced(cluster, "w9_after_w6", &["moved", "by-v1beta1"]).await?;
    at_v1beta1(&tabs, "new").await?;
    tabs.identity("v1", "moved").await?.ok()?;
    for name in ["moved", "new"] {
        tabs.reversion("v1", name, "v1").await?.ok()?;
        assert_eq!(tabs.stored(name).await?, stored("v1", with("red"), 2, &[OTHER, OWNER]), "{name}");
        all_can_apply(&tabs, name).await?;
    }

    // The other way round: first the owners, through the old version, then the bytes.
    tabs.reversion("v1beta1", "by-v1beta1", "v1").await?.ok()?;
    assert_eq!(tabs.stored("by-v1beta1").await?, stored("v1", without(), 2, &[OTHER, OWNER]));
    tabs.identity("v1", "by-v1beta1").await?.ok()?;
    assert_eq!(tabs.stored("by-v1beta1").await?, stored("v1", with("red"), 2, &[OTHER, OWNER]));
    all_can_apply(&tabs, "by-v1beta1").await
}

async fn w9_validated(cluster: &Cluster) -> Result<()> {
    let tabs = Tabs::new(cluster, "w9_validated");
    tabs.define(versions([("v1beta1", old())])).await?;
    at_v1beta1(&tabs, "a").await?;
    let mut ruled = new();
    ruled["properties"]["spec"]["x-kubernetes-validations"] = json!([{"rule": "self.color != 'green'"}]);
    tabs.define(versions([("v1beta1", old()), ("v1", ruled)])).await?;

    let refused = tabs.identity("v1", "a").await?;
    refused.refused(422, "Invalid", "no such key: color")?;
    assert_eq!(refused.fields(), ["spec"]);
    assert_eq!(tabs.stored("a").await?, stored("v1beta1", without(), 2, &[OTHER_BETA, OWNER_BETA]));
    tabs.reversion("v1", "a", "v1").await?.ok()?;
    let ours = "etch Update v1: .spec.color";
    assert_eq!(tabs.stored("a").await?, stored("v1", with("red"), 3, &[ours, OTHER, OWNER]));

    // A required field that has a default is no such rule.
    let mut required = new();
    required["properties"]["spec"]["required"] = json!(["color"]);
    tabs.define(versions([("v1", old()), ("v1beta1", old())])).await?;
    at_v1beta1(&tabs, "b").await?;
    tabs.define(versions([("v1beta1", old()), ("v1", required)])).await?;
    tabs.identity("v1", "b").await?.ok()?;
    assert_eq!(tabs.stored("b").await?, stored("v1", without(), 2, &[OTHER_BETA, OWNER_BETA]));
    Ok(())
}

async fn w10(cluster: &Cluster) -> Result<()> {
    let names = ["put", "merge", "json", "apply", "identity"];
    let user = "user Update v1: .spec.color";
    let tabs = introduced(cluster, "w10", &[]).await?;
    for name in names {
        at_v1beta1(&tabs, name).await?;
        tabs.reversion("v1", name, "v1").await?.ok()?;
        tabs.merge("v1", name, "user", json!({"spec": {"color": "blue"}})).await?.ok()?;
        assert_eq!(tabs.stored(name).await?, stored("v1", with("blue"), 3, &[OTHER, OWNER, user]), "{name}");
    }
    for name in names {
        let before = tabs.revision(name).await?;
        // Each changes nothing that v1beta1 shows.
        let answer = match name {
            "put" => tabs.put_unchanged("v1beta1", name, "other").await?,
            "merge" => tabs.merge("v1beta1", name, "other", json!({"spec": {"b": "y"}})).await?,
            "json" => tabs.json_patch("v1beta1", name, json!([])).await?,
            "apply" => tabs.apply("v1beta1", name, "owner", json!({"spec": {"a": "x"}})).await?,
            _ => tabs.identity("v1beta1", name).await?,
        };
        answer.ok()?;
        // The owner's entry is of the version of its last apply; the user's claim stays, on a value that is
        // gone.
        let owner = if name == "apply" { OWNER_BETA } else { OWNER };
        assert_eq!(tabs.stored(name).await?, stored("v1", without(), 3, &[OTHER, owner, user]), "{name}");
        assert_ne!(tabs.revision(name).await?, before, "{name}");
        assert_eq!(tabs.seen("v1", name).await?, with("red"), "{name}: not even the user's value");
    }
    Ok(())
}

async fn w12_versions(cluster: &Cluster) -> Result<()> {
    let tabs = Tabs::new(cluster, "w12_versions");
    tabs.define(versions([("v1beta1", old())])).await?;
    for name in ["identity", "merge"] {
        tabs.apply("v1beta1", name, "owner", json!({"spec": without()})).await?.ok()?;
    }
    let newer = spec(json!({"a": text()}));
    tabs.define(versions([("v1beta1", old()), ("v1", newer)])).await?;
    // The only hint: an owner at v1beta1 of a field that v1 does not declare.
    let hint = ["owner Apply v1beta1: .spec.a .spec.b"];
    for name in ["identity", "merge"] {
        assert_eq!(tabs.stored(name).await?, stored("v1beta1", without(), 1, &hint));
        match name {
            "identity" => tabs.identity("v1", name).await?.ok()?,
            _ => tabs.merge("v1", name, ETCH, json!({})).await?.ok()?,
        };
        assert_eq!(tabs.stored(name).await?, stored("v1", json!({"a": "x"}), 1, &hint), "{name}");
        assert_eq!(tabs.seen("v1beta1", name).await?, json!({"a": "x"}), "{name}");
    }
    Ok(())
}

async fn w16(cluster: &Cluster) -> Result<()> {
    let tabs = Tabs::new(cluster, "w16");
    tabs.define(versions([("v1beta1", old())])).await?;
    for name in ["merge", "reversion", "identity"] {
        at_v1beta1(&tabs, name).await?;
    }
    let object = json!({"type": "object", "properties": {"name": text()}});
    let newer = spec(json!({"a": text(), "b": object, "color": defaulted("red")}));
    tabs.define(versions([("v1beta1", old()), ("v1", newer)])).await?;

    let misfit = tabs.identity("v1", "identity").await?;
    // The message quotes the value.
    misfit.refused(500, "", "CronTab): .spec.b: expected map, got &{y}")?;
    assert_eq!(tabs.stored("identity").await?, stored("v1beta1", without(), 2, &[OTHER_BETA, OWNER_BETA]));
    // The server cannot work out who owns what. Up to 1.36 it then drops all owners; since 1.37 it keeps
    // those that were there and ignores ours.
    let owners = if cluster.since("1.37")? { &[OTHER_BETA, OWNER_BETA][..] } else { &[] };
    tabs.merge("v1", "merge", ETCH, json!({})).await?.ok()?;
    tabs.reversion("v1", "reversion", "v1").await?.ok()?;
    for name in ["merge", "reversion"] {
        assert_eq!(tabs.stored(name).await?, stored("v1", with("red"), 3, owners), "{name}");
    }
    Ok(())
}

async fn w17(cluster: &Cluster) -> Result<()> {
    let tabs = Tabs::new(cluster, "w17");
    tabs.define(versions([("v1beta1", old()), ("v1", old())])).await?;
    for name in ["lost", "united"] {
        tabs.create("v1beta1", name, "other", json!({"spec": {"a": "x"}})).await?;
        tabs.merge("v1", name, "other", json!({"spec": {"b": "y"}})).await?.ok()?;
    }
    tabs.define(versions([("v1beta1", old()), ("v1", new())])).await?;
    let entries = |object: &Value| object["metadata"]["managedFields"].clone();

    let before = tabs.read("v1", "lost").await?;
    let last = entries(&before)[1]["fieldsV1"].clone();
    tabs.reversion("v1", "lost", "v1").await?.ok()?;
    let after = tabs.read("v1", "lost").await?;
    assert_eq!(entries(&after).as_array().map(Vec::len), Some(1));
    assert_eq!(entries(&after)[0]["fieldsV1"], last, "the last one stays");

    let mut united = entries(&*tabs.read("v1", "united").await?)[0].clone();
    united["apiVersion"] = json!(format!("{}/v1", tabs.group));
    united["fieldsV1"] = json!({"f:spec": {".": {}, "f:a": {}, "f:b": {}}});
    tabs.set_owners("v1", "united", json!([united])).await?.ok()?;
    let both = ["other Update v1: .spec .spec.a .spec.b"];
    assert_eq!(tabs.stored("united").await?, stored("v1", with("red"), 2, &both));
    Ok(())
}

async fn w18(cluster: &Cluster) -> Result<()> {
    let names = ["apply", "merge", "reversion"];
    let tabs = Tabs::new(cluster, "w18");
    tabs.define(versions([("v1beta1", old())])).await?;
    for name in names {
        at_v1beta1(&tabs, name).await?;
    }
    tabs.define(versions([("v1beta1", old()), ("v1", old())])).await?;
    for name in names {
        tabs.put_unchanged("v1", name, "migration").await?.ok()?;
        assert_eq!(tabs.stored(name).await?, stored("v1", without(), 2, &[OTHER_BETA, OWNER_BETA]));
    }
    tabs.forget_versions_but(&["v1"]).await?;
    tabs.define(v1(json!({"a": text(), "b": text(), "color": defaulted("red")}))).await?;

    let gone = |answer: Answer| {
        answer.refused(500, "", "request to convert CR to an invalid group/version: w18.example.com/v1beta1")
    };
    gone(tabs.identity("v1", "apply").await?)?;
    gone(tabs.apply("v1", "apply", ETCH, json!({"spec": {"color": "red"}})).await?)?;
    gone(tabs.apply("v1", "apply", "owner", json!({"spec": {"a": "x"}})).await?)?;
    assert_eq!(tabs.stored("apply").await?, stored("v1", without(), 2, &[OTHER_BETA, OWNER_BETA]));

    tabs.merge("v1", "merge", ETCH, json!({})).await?.ok()?;
    let owner = tabs.apply("v1", "merge", "owner", json!({"spec": {"a": "z"}})).await?;
    let owners = if cluster.since("1.37")? {
        gone(owner)?;
        &[OTHER_BETA, OWNER_BETA][..]
    } else {
        owner.refused(409, "Conflict", r#"conflict with "before-first-apply""#)?;
        &[]
    };
    assert_eq!(tabs.stored("merge").await?, stored("v1", with("red"), 2, owners));

    tabs.reversion("v1", "reversion", "v1").await?.ok()?;
    assert_eq!(tabs.stored("reversion").await?, stored("v1", with("red"), 2, &[OTHER, OWNER]));
    all_can_apply(&tabs, "reversion").await
}
