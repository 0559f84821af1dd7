//! Writes that change nothing a reader would see (W1 to W5, W11, W13, W15, W21, W23, W24, W30), on CRDs with
//! one version.
//!
//! What several versions add to it is in `versions`.

use anyhow::Result;
use e2e::cluster::{GUARD, eventually};
use e2e::webhook::{Webhook, renamed};
use http::Method;
use serde_json::{Value, json};

use crate::{
    cluster::{Cluster, JSON_PATCH, MERGE, send},
    rows,
    tabs::{ETCH, Stored, Tabs, defaulted, spec, text, v1, versions},
};

rows! {
    w1: "a request that changes nothing stores the phantom defaults, and only then changes resourceVersion",
    w2: "an identity-only apply stores spec and status defaults and leaves no trace",
    w2_preconditions: "an identity-only apply obeys uid and resourceVersion",
    w3: "who applies the computed values owns them; after W2 nobody does",
    w4: "apply creates what does not exist, unless it names a uid",
    w5: "without managedFields an apply adds before-first-apply, a merge patch does not",
    w11: "merge patch and apply on /status store the spec's defaults too",
    w13: "dryRun answers like the read view and stores nothing",
    w15: "without create, no apply brings an object back",
    w21: "a JSON patch with values stores them; what the server shows already leaves no trace, another value \
        an entry of ours",
    w23: "a dry run that tests a value and removes it shows what this server fills in",
    w30: "a JSON patch that moves fields onto themselves stores the phantom defaults, unless the schema \
        lacks one of the fields",
    w24: "a delete that only marks, and one more of what is marked, store the phantom defaults",
}

/// `a` and, the second time, a default for `color`.
fn plain() -> Value {
    json!({"a": text()})
}

fn colored() -> Value {
    json!({"a": text(), "color": defaulted("red")})
}

/// Objects with a phantom `color`, applied by `owner`.
async fn phantoms<'a>(cluster: &'a Cluster, row: &str, names: &[&str]) -> Result<Tabs<'a>> {
    let tabs = Tabs::new(cluster, row);
    tabs.define(v1(plain())).await?;
    for name in names {
        tabs.apply("v1", name, "owner", json!({"spec": {"a": "x"}})).await?.ok()?;
    }
    tabs.define(v1(colored())).await?;
    for name in names {
        assert_eq!(tabs.raw(name).await?["spec"], json!({"a": "x"}));
        assert_eq!(tabs.seen("v1", name).await?, json!({"a": "x", "color": "red"}));
    }
    Ok(tabs)
}

/// Stored at v1 with its default, and with these owners.
fn colored_object(owners: &[&str]) -> Stored {
    Stored {
        version: "v1".into(),
        spec: json!({"a": "x", "color": "red"}),
        generation: 1,
        owners: owners.iter().map(ToString::to_string).collect(),
    }
}

async fn w1(cluster: &Cluster) -> Result<()> {
    let tabs = phantoms(cluster, "w1", &["merge", "same", "put", "label"]).await?;
    for name in ["merge", "same", "put", "label"] {
        let request = async || match name {
            "merge" => tabs.merge("v1", name, "other", json!({})).await,
            "same" => tabs.merge("v1", name, "other", json!({"spec": {"a": "x"}})).await,
            "put" => tabs.put_unchanged("v1", name, "other").await,
            _ => tabs.json_patch("v1", name, json!([])).await,
        };
        let read = tabs.revision(name).await?;
        let answer = request().await?.ok()?;
        assert_eq!(tabs.stored(name).await?, colored_object(&["owner Apply v1: .spec.a"]), "{name}");
        assert_ne!(tabs.revision(name).await?, read, "{name}");
        assert_eq!(answer["metadata"]["resourceVersion"], json!(tabs.revision(name).await?.to_string()));

        let written = tabs.revision(name).await?;
        request().await?.ok()?;
        assert_eq!(tabs.revision(name).await?, written, "{name}: a second one stores nothing");
    }
    Ok(())
}

async fn w2(cluster: &Cluster) -> Result<()> {
    let tabs = Tabs::new(cluster, "w2");
    let schema = |spec: Value, status: Value| {
        json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": spec},
            "status": status,
        }})
    };
    let status = json!({"type": "object", "properties": {"phase": text()}});
    tabs.define(versions([("v1", schema(plain(), status))]).with_status()).await?;
    for name in ["bare", "running", "by-status"] {
        tabs.apply("v1", name, "owner", json!({"spec": {"a": "x"}})).await?.ok()?;
    }
    for name in ["running/status", "by-status/status"] {
        tabs.apply("v1", name, "controller", json!({"status": {"phase": "Running"}})).await?.ok()?;
    }
    let status = json!({"type": "object", "default": {},
                        "properties": {"phase": text(), "ready": {"type": "boolean", "default": false}}});
    tabs.define(versions([("v1", schema(colored(), status))]).with_status()).await?;

    let (owner, controller) = ("owner Apply v1: .spec.a", "controller Apply v1/status: .status.phase");
    let running = json!({"phase": "Running", "ready": false});
    for (name, request, status, owners) in [
        ("bare", "bare", json!({"ready": false}), &[owner][..]),
        ("running", "running", running.clone(), &[controller, owner]),
        ("by-status", "by-status/status", running, &[controller, owner]),
    ] {
        tabs.identity("v1", request).await?.ok()?;
        assert_eq!(tabs.stored(name).await?, colored_object(owners), "{name}");
        assert_eq!(tabs.raw(name).await?["status"], status, "{name}");
        tabs.settled("v1", name).await?;
    }
    Ok(())
}

async fn w2_preconditions(cluster: &Cluster) -> Result<()> {
    let tabs = phantoms(cluster, "w2_preconditions", &["a", "b", "c"]).await?;
    let precondition = tabs.precondition("v1", "a").await?;
    let uid = json!({"metadata": {"uid": precondition["uid"]}});
    tabs.apply("v1", "a", ETCH, uid).await?.ok()?;
    assert_eq!(tabs.stored("a").await?, colored_object(&["owner Apply v1: .spec.a"]));
    let repeated = tabs.precondition("v1", "a").await?;
    assert_ne!(repeated, precondition);
    tabs.apply("v1", "a", ETCH, json!({"metadata": repeated})).await?.ok()?;
    assert_eq!(tabs.precondition("v1", "a").await?, repeated);

    // Another client was faster. (If it wrote what we would write, the server may skip our write and answer
    // with 200, as in `versions::w6_proof`.)
    tabs.merge("v1", "a", "other", json!({"metadata": {"labels": {"l": ""}}})).await?.ok()?;
    let modified =
        "the object has been modified; please apply your changes to the latest version and try again";
    let stale = json!({"metadata": precondition});
    tabs.apply("v1", "a", ETCH, stale.clone()).await?.refused(409, "Conflict", modified)?;
    tabs.merge("v1", "a", ETCH, stale).await?.refused(409, "Conflict", modified)?;

    // The object has been deleted and created again: a uid that differs is no conflict but invalid.
    let other_uid = json!({"metadata": {"uid": "00000000-0000-0000-0000-000000000000"}});
    for answer in [
        tabs.apply("v1", "b", ETCH, other_uid.clone()).await?,
        tabs.merge("v1", "b", ETCH, other_uid.clone()).await?,
    ] {
        answer.refused(422, "Invalid", "metadata.uid: Invalid value")?;
        assert_eq!(answer.fields(), ["metadata.uid", "metadata.uid"]);
    }
    // With both wrong, resourceVersion is looked at first.
    let mut both = other_uid;
    both["metadata"]["resourceVersion"] = json!("1");
    tabs.apply("v1", "b", ETCH, both).await?.refused(409, "Conflict", modified)?;
    assert_eq!(tabs.raw("b").await?["spec"], json!({"a": "x"}));

    // The error of a JSON patch whose test fails states neither which test nor why.
    let operations = json!([{"op": "test", "path": "/metadata/resourceVersion", "value": "1"}]);
    let failed = tabs.json_patch("v1", "c", operations).await?;
    failed.refused(422, "Invalid", "the server rejected our request due to an error in our request")?;
    assert_eq!(failed.fields(), [""; 0]);
    Ok(())
}

async fn w3(cluster: &Cluster) -> Result<()> {
    let tabs = phantoms(cluster, "w3", &["listed", "identity"]).await?;
    let blue = || json!({"spec": {"a": "x", "color": "blue"}});

    tabs.apply("v1", "listed", ETCH, json!({"spec": {"color": "red"}})).await?.ok()?;
    let owned = ["etch Apply v1: .spec.color", "owner Apply v1: .spec.a"];
    assert_eq!(tabs.stored("listed").await?, colored_object(&owned));
    let conflict = tabs.apply("v1", "listed", "owner", blue()).await?;
    conflict.refused(409, "Conflict", r#"conflict with "etch": .spec.color"#)?;
    assert_eq!(conflict.fields(), [".spec.color"]);

    tabs.identity("v1", "identity").await?.ok()?;
    tabs.apply("v1", "identity", "owner", blue()).await?.ok()?;
    assert_eq!(tabs.raw("identity").await?["spec"], json!({"a": "x", "color": "blue"}));
    Ok(())
}

async fn w4(cluster: &Cluster) -> Result<()> {
    let tabs = phantoms(cluster, "w4", &["gone"]).await?;
    let precondition = tabs.precondition("v1", "gone").await?;
    cluster.delete(&tabs.path("v1", "gone")).await?.ok()?;
    assert!(!tabs.exists("gone").await?);

    let none = "uid mismatch: the provided object specified uid";
    let uid = json!({"metadata": {"uid": precondition["uid"]}});
    tabs.apply("v1", "gone", ETCH, uid).await?.refused(409, "Conflict", none)?;
    let both = json!({"metadata": precondition});
    tabs.apply("v1", "gone", ETCH, both.clone()).await?.refused(409, "Conflict", none)?;
    tabs.merge("v1", "gone", ETCH, both).await?.refused(404, "NotFound", "not found")?;
    assert!(!tabs.exists("gone").await?);

    let revision = json!({"metadata": {"resourceVersion": precondition["resourceVersion"]}});
    assert_eq!(tabs.apply("v1", "gone", ETCH, revision).await?.code, 201);
    assert_eq!(tabs.raw("gone").await?["spec"], Value::Null, "an empty ghost");
    Ok(())
}

async fn w5(cluster: &Cluster) -> Result<()> {
    let tabs = Tabs::new(cluster, "w5");
    tabs.define(v1(plain())).await?;
    for name in ["apply", "merge"] {
        tabs.apply("v1", name, "owner", json!({"spec": {"a": "x"}})).await?.ok()?;
        tabs.merge("v1", name, "cleaner", json!({"metadata": {"managedFields": [{}]}})).await?.ok()?;
    }
    tabs.define(v1(colored())).await?;

    tabs.identity("v1", "apply").await?.ok()?;
    let before_first = ["before-first-apply Update v1: .spec .spec.a .spec.color"];
    assert_eq!(tabs.stored("apply").await?, colored_object(&before_first));

    let precondition = json!({"metadata": tabs.precondition("v1", "merge").await?});
    tabs.merge("v1", "merge", ETCH, precondition).await?.ok()?;
    assert_eq!(tabs.stored("merge").await?, colored_object(&[]));
    let (written, precondition) = (tabs.revision("merge").await?, tabs.precondition("v1", "merge").await?);
    tabs.merge("v1", "merge", ETCH, json!({"metadata": precondition})).await?.ok()?;
    assert_eq!(tabs.revision("merge").await?, written);

    // The owner's next apply of another value meets before-first-apply on both: it always does without
    // managedFields.
    for name in ["apply", "merge"] {
        let answer = tabs.apply("v1", name, "owner", json!({"spec": {"a": "y"}})).await?;
        answer.refused(409, "Conflict", r#"conflict with "before-first-apply""#)?;
    }
    Ok(())
}

async fn w11(cluster: &Cluster) -> Result<()> {
    let tabs = Tabs::new(cluster, "w11");
    tabs.define(versions([("v1", spec(plain()))]).with_status()).await?;
    for name in ["merge", "apply"] {
        tabs.apply("v1", name, "owner", json!({"spec": {"a": "x"}})).await?.ok()?;
    }
    tabs.define(versions([("v1", spec(colored()))]).with_status()).await?;
    tabs.merge("v1", "merge/status", ETCH, json!({})).await?.ok()?;
    tabs.identity("v1", "apply/status").await?.ok()?;
    for name in ["merge", "apply"] {
        assert_eq!(tabs.stored(name).await?, colored_object(&["owner Apply v1: .spec.a"]), "{name}");
    }
    Ok(())
}

async fn w21(cluster: &Cluster) -> Result<()> {
    let tabs = phantoms(cluster, "w21", &["shown", "other", "owners"]).await?;
    let put = |path: &str, value: &Value| json!({"op": "replace", "path": path, "value": value});
    let ours = "etch Update v1: .spec.color";
    for (name, value, generation, owners) in [
        ("shown", "red", 1, &["owner Apply v1: .spec.a"][..]),
        ("other", "blue", 2, &[ours, "owner Apply v1: .spec.a"]),
        ("owners", "blue", 2, &[ours, "owner Apply v1: .spec.a"]),
    ] {
        let object = tabs.read("v1", name).await?;
        let metadata = &object["metadata"];
        let mut operations = vec![
            put("/metadata/uid", &metadata["uid"]),
            put("/metadata/resourceVersion", &metadata["resourceVersion"]),
            put("/spec/color", &json!(value)),
        ];
        if name == "owners" {
            operations.insert(2, put("/metadata/managedFields", &metadata["managedFields"]));
        }
        tabs.json_patch("v1", name, Value::from(operations)).await?.ok()?;
        let expected =
            Stored { spec: json!({"a": "x", "color": value}), generation, ..colored_object(owners) };
        assert_eq!(tabs.stored(name).await?, expected, "{name}");
    }
    // Nothing is written where it was not read.
    let operations =
        json!([put("/metadata/resourceVersion", &json!("1")), put("/spec/color", &json!("green"))]);
    tabs.json_patch("v1", "shown", operations).await?.refused(409, "Conflict", "modified")?;
    Ok(())
}

async fn w23(cluster: &Cluster) -> Result<()> {
    let tabs = phantoms(cluster, "w23", &["phantom", "stored"]).await?;
    let color = |value: &str| json!([{ "op": "replace", "path": "/spec/color", "value": value }]);
    tabs.json_patch("v1", "stored", color("blue")).await?.ok()?;
    for (name, shown, tested) in
        [("phantom", "red", "red"), ("stored", "blue", "blue"), ("stored", "blue", "red")]
    {
        let before = (tabs.revision(name).await?, tabs.stored(name).await?);
        let path = format!("{}?dryRun=All", tabs.path("v1", name));
        let operations = json!([
            { "op": "test", "path": "/spec/color", "value": tested },
            { "op": "remove", "path": "/spec/color" },
        ]);
        let answer = cluster.patch(JSON_PATCH, &path, &operations).await?;
        match tested == shown {
            true => assert_eq!(answer.ok()?["spec"]["color"], "red", "{name}: what this server fills in"),
            false => answer.refused(422, "Invalid", "")?,
        }
        assert_eq!((tabs.revision(name).await?, tabs.stored(name).await?), before, "{name}");
    }
    // What is compared are the bytes that Go writes.
    tabs.json_patch("v1", "stored", color(">=1&2")).await?.ok()?;
    let path = tabs.path("v1", "stored");
    for (value, holds) in [(r"\u003e=1\u00262", true), (">=1&2", false)] {
        let body = format!(r#"[{{"op": "test", "path": "/spec/color", "value": "{value}"}}]"#);
        let answer = send(cluster.admin(), Method::PATCH, &path, JSON_PATCH, body).await?;
        assert_eq!(answer.code, if holds { 200 } else { 422 }, "{value}");
    }
    Ok(())
}

async fn w30(cluster: &Cluster) -> Result<()> {
    let tabs = Tabs::new(cluster, "w30");
    let kept = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let both = json!({"a": text(), "b": text()});
    let schema = |rows: &Value, mut others: Value| {
        others["rows"] = json!({"type": "array", "items": {"type": "object", "properties": rows}});
        others["kept"] = kept.clone();
        v1(others)
    };
    tabs.define(schema(&both, json!({"a": text()}))).await?;
    let values = json!({
        "a/b": "<&>", "c~d": 1e21, "": 9_007_199_254_740_993_i64, "\u{fc}\u{2028}": [[{"x": null}]],
        "none": null, "empty": {},
    });
    let body = json!({"a": "x", "rows": [{"a": "1"}, {}, {"b": "2"}], "kept": values});
    tabs.create("v1", "a", "owner", json!({"spec": body.clone()})).await?;
    tabs.define(schema(&both, json!({"a": text(), "color": defaulted("red")}))).await?;
    let before = tabs.stored("a").await?;
    assert_eq!(before.spec.get("color"), None);
    let places = [
        "a",
        "rows/0/a",
        "rows/2/b",
        "kept/a~1b",
        "kept/c~0d",
        "kept/",
        "kept/\u{fc}\u{2028}/0/0/x",
        "kept/none",
        "kept/empty",
    ];
    let moves = |places: &[&str]| {
        let onto_itself = |place: &&str| {
            let path = format!("/spec/{place}");
            json!({"op": "move", "from": path, "path": path})
        };
        places.iter().map(onto_itself).collect::<Value>()
    };
    tabs.json_patch("v1", "a", moves(&places)).await?.ok()?;
    let mut spec = before.spec.clone();
    spec["color"] = json!("red");
    let stored = Stored { spec, ..before };
    assert_eq!(tabs.stored("a").await?, stored, "the default, and nothing else");
    let revision = tabs.revision("a").await?;
    tabs.json_patch("v1", "a", moves(&places)).await?.ok()?;
    assert_eq!(tabs.revision("a").await?, revision);

    // The schema no longer has `a`, nor `b` in an item.
    tabs.create("v1", "b", "owner", json!({"spec": body})).await?;
    let fewer = json!({"color": defaulted("red"), "size": defaulted("big")});
    tabs.define(schema(&json!({"a": text()}), fewer)).await?;
    let before = (tabs.revision("b").await?, tabs.stored("b").await?);
    for missing in ["a", "rows/2/b"] {
        let failed = tabs.json_patch("v1", "b", moves(&[missing])).await?;
        failed.refused(422, "Invalid", "the server rejected our request due to an error in our request")?;
        assert_eq!(failed.fields(), [""; 0]);
        assert_eq!((tabs.revision("b").await?, tabs.stored("b").await?), before, "{missing}");
    }
    w30_gap(cluster).await
}

/// What a webhook drops at each conversion the server fills in with the patch, and takes its sender for the
/// owner.
async fn w30_gap(cluster: &Cluster) -> Result<()> {
    let webhook = Webhook::start(|request| {
        let mut answer = renamed(request);
        for object in answer["convertedObjects"].as_array_mut().into_iter().flatten() {
            object["spec"].as_object_mut().map(|spec| spec.remove("color"));
        }
        answer
    })
    .await?;
    let conversion = json!({"strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1"], "clientConfig": webhook.client_config() }});
    let tabs = Tabs::new(cluster, "w30-gap");
    let (old, new) = (("v1", spec(colored())), ("v2", spec(colored())));
    tabs.define(versions([new.clone(), old.clone()]).converted(conversion.clone())).await?;
    tabs.create("v2", "a", "owner", json!({"spec": {"a": "x"}})).await?;
    tabs.define(versions([old, new]).converted(conversion)).await?;
    assert_eq!(tabs.seen("v2", "a").await?, json!({"a": "x"}));
    let onto_itself = json!([{"op": "move", "from": "/spec/a", "path": "/spec/a"}]);
    tabs.json_patch("v2", "a", onto_itself).await?.ok()?;
    let stored = tabs.stored("a").await?;
    assert_eq!(stored.spec["color"], "red");
    assert_eq!(stored.owners, ["etch Update v2: .spec.color", "owner Update v2: .spec .spec.a"]);
    Ok(())
}

async fn w24(cluster: &Cluster) -> Result<()> {
    let tabs = phantoms(cluster, "w24", &["marks", "again"]).await?;
    let path = |name: &str| tabs.path("v1", name);
    let held = json!({"metadata": {"finalizers": ["etch.example.com/held"]}});
    tabs.define(v1(plain())).await?;
    for name in ["marks", "again"] {
        tabs.merge("v1", name, "owner", held.clone()).await?.ok()?;
    }
    cluster.delete(&path("again")).await?;
    tabs.define(v1(colored())).await?;
    for name in ["marks", "again"] {
        assert_eq!(tabs.raw(name).await?["spec"], json!({"a": "x"}), "{name}");
        cluster.delete(&path(name)).await?;
        assert_eq!(tabs.raw(name).await?["spec"], json!({"a": "x", "color": "red"}), "{name}");
    }
    Ok(())
}

async fn w13(cluster: &Cluster) -> Result<()> {
    let tabs = phantoms(cluster, "w13", &["phantom", "stored"]).await?;
    tabs.identity("v1", "stored").await?.ok()?;
    for name in ["phantom", "stored"] {
        let before = tabs.revision(name).await?;
        let path = format!("{}?dryRun=All", tabs.path("v1", name));
        let answer = cluster.patch(MERGE, &path, &json!({})).await?.ok()?;
        assert_eq!(answer["spec"], tabs.seen("v1", name).await?, "{name}");
        assert_eq!(answer["metadata"]["resourceVersion"], json!(before.to_string()), "{name}");
        assert_eq!(tabs.revision(name).await?, before, "{name}");
    }
    Ok(())
}

async fn w15(cluster: &Cluster) -> Result<()> {
    let tabs = phantoms(cluster, "w15", &["there", "gone"]).await?;
    let uid = json!({"uid": tabs.precondition("v1", "gone").await?["uid"].clone()});
    cluster.delete(&tabs.path("v1", "gone")).await?.ok()?;
    let verbs = ["get", "list", "watch", "patch"];
    let robot = tabs.seen_by(cluster.service_account("patcher", &tabs.group, &verbs).await?);
    eventually(GUARD, "the new role is in force", async || {
        Ok((robot.get("v1", "there").await?.code != 403).then_some(()))
    })
    .await?;

    robot.identity("v1", "there").await?.ok()?;
    assert_eq!(tabs.stored("there").await?, colored_object(&["owner Apply v1: .spec.a"]));
    let denied = robot.apply("v1", "gone", ETCH, json!({})).await?;
    denied.refused(403, "Forbidden", r#"cannot create resource "crontabs""#)?;
    // A uid is compared before rights are.
    let mismatch = robot.apply("v1", "gone", ETCH, json!({"metadata": uid})).await?;
    mismatch.refused(409, "Conflict", "uid mismatch")?;
    assert!(!tabs.exists("gone").await?);
    Ok(())
}
