//! What Etch reports on CRDs, in reports and on policies, on a real API server: true, in time, and without a
//! value.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::cluster::{CRDS, Cluster, GUARD, Patch, crd, eventually, with_spec};
use e2e::scene::Scene;
use serde_json::{Value, json};

const GROUP: &str = "truth.example.com";
const POLICIES: &str = "/apis/etch-operator.io/v1alpha1/defaultspolicies";
const REPORTS: &str = "/apis/etch-operator.io/v1alpha1/defaultsreports";
const SOON: Duration = GUARD;
/// Values that only the API server may show.
const CANARY: &str = "canary-7351";

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_is_true() -> Result<()> {
    let scene = Scene::start(&[GROUP]).await?;
    bad_policies_are_refused(&scene.cluster).await?;
    let operator = scene.operator(&[])?;
    invalid_defaults_hold_only_what_they_touch(&scene).await.context("invalid defaults")?;
    an_audit_counts_what_persisting_writes(&scene).await.context("audit")?;
    policies_say_what_they_do(&scene).await.context("policies")?;
    a_release_that_is_taken_back_leaves_nothing(&scene).await.context("settling")?;
    reports_are_a_table(&scene.cluster).await.context("table")?;
    let log = operator.log()?;
    ensure!(!log.contains(CANARY), "a value is in the log");
    operator.stop().await
}

async fn bad_policies_are_refused(cluster: &Cluster) -> Result<()> {
    let cases = [
        (json!({ "settle": "soon" }), "expected a time such as 10s"),
        (json!({ "settle": "" }), "expected a time such as 10s"),
        (json!({ "selector": { "names": ["crontabs"] } }), "names must be names of CRDs"),
        (json!({ "selector": { "names": [""] } }), "spec.selector.names[0]"),
        (
            json!({ "selector": { "groups": ["Stable.Example.com"] } }),
            "groups must be API groups in lower case",
        ),
        (
            json!({ "selector": { "groups": ["*.io"], "exclude": ["a b.io"] } }),
            "exclude must be names of CRDs",
        ),
        (
            json!({ "selector": { "names": ["a.x.io"], "exclude": ["a.x.io"] } }),
            "both in names and in exclude",
        ),
        (json!({ "mode": "Maybe" }), "spec.mode"),
        (json!({ "maxWritesPerSecond": 0 }), "spec.maxWritesPerSecond"),
        (json!({ "onChange": [{ "path": "spec.image", "action": "Follow" }] }), "spec.onChange"),
        (
            json!({
                "onChange": [
                    { "path": ".spec.a", "action": "Follow" }, { "path": ".spec.a", "action": "Keep" },
                ],
            }),
            "Duplicate value",
        ),
    ];
    for (spec, expected) in cases {
        let policy = json!({
            "apiVersion": "etch-operator.io/v1alpha1", "kind": "DefaultsPolicy",
            "metadata": { "name": "bad" }, "spec": spec,
        });
        let Err(error) = cluster.create(POLICIES, "admin", &policy).await else {
            anyhow::bail!("{spec} was taken");
        };
        ensure!(format!("{error:#}").contains(expected), "{spec}: {error:#}");
    }
    let good = json!({
        "apiVersion": "etch-operator.io/v1alpha1", "kind": "DefaultsPolicy", "metadata": { "name": "good" },
        "spec": {
            "selector": { "groups": ["*.nobody.io", "*"], "names": ["a.*", "b.x.io"], "exclude": ["*.y.io"] },
            "settle": "1d12h", "mode": "Audit", "maxWritesPerSecond": 1,
        },
    });
    cluster.create(POLICIES, "admin", &good).await?;
    cluster.delete(&format!("{POLICIES}/good")).await?;
    Ok(())
}

/// Facts C4 and D14: the server does not look at defaults below `additionalProperties`, nor for duplicates in
/// any.
async fn invalid_defaults_hold_only_what_they_touch(scene: &Scene) -> Result<()> {
    let cluster = &scene.cluster;
    let name = &format!("gadgets.{GROUP}");
    let mut schema =
        spec(json!({ "m": { "type": "object", "additionalProperties": { "type": "object", "properties": {
        "n": { "type": "integer" }, "o": { "type": "string" },
        "l": { "type": "array", "x-kubernetes-list-type": "set", "items": { "type": "string" } } } } } }));
    cluster.apply_crd(&crd(GROUP, "Gadget", &[("v1", true, schema.clone())])).await?;
    for object in ["plain", "touched", "full"] {
        let m = match object {
            "plain" => json!({}),
            "touched" => json!({ "k": { "o": "x" } }),
            _ => json!({ "k": { "n": 1, "o": "x", "l": ["y"] } }),
        };
        create(cluster, "Gadget", object, json!({ "m": m })).await?;
    }
    let spec = &mut schema["properties"]["spec"]["properties"];
    spec["good"] = json!({ "type": "string", "default": "yes" });
    spec["m"]["additionalProperties"]["properties"]["n"]["default"] = CANARY.into();
    spec["m"]["additionalProperties"]["properties"]["o"] =
        json!({ "type": "string", "maxLength": 3, "default": CANARY });
    spec["m"]["additionalProperties"]["properties"]["l"]["default"] = json!([CANARY, CANARY]);
    let applied = cluster.apply_crd(&crd(GROUP, "Gadget", &[("v1", true, schema)])).await?;
    let invalid = eventually(Duration::from_secs(10), "InvalidDefaults", async || {
        let condition = cluster.condition(name, "InvalidDefaults").await?;
        Ok(condition.filter(|condition| condition.current && condition.status == "True"))
    })
    .await?;
    for path in [".spec.m{}.l", ".spec.m{}.n", ".spec.m{}.o"] {
        ensure!(invalid.message.contains(path), "{}", invalid.message);
    }
    let persisted = cluster.persisted(name, "InvalidDefaults", SOON).await?;
    ensure!(
        persisted.status == "False" && persisted.message.contains("default/touched"),
        "{}",
        persisted.message
    );
    for (object, stored) in [("plain", true), ("full", true), ("touched", false)] {
        let raw = cluster.raw(GROUP, "gadgets", Some("default"), object).await?;
        ensure!(raw["spec"]["good"].is_string() == stored, "{object}: {raw}");
    }
    let report = scene.report(name).await?;
    let status = &report["status"];
    ensure!(status["generation"] == applied["metadata"]["generation"], "{report}");
    ensure!(status["held"][0]["reason"] == "InvalidDefaults" && status["counts"]["held"] == 1, "{report}");
    let all = cluster.get(&format!("{CRDS}/{name}")).await?["status"]["conditions"].to_string();
    // The schema's own words may stand where the schema's defaults are listed, and nowhere else.
    ensure!(!all.contains(CANARY) && !status["held"].to_string().contains(CANARY), "a value is shown");
    Ok(())
}

async fn an_audit_counts_what_persisting_writes(scene: &Scene) -> Result<()> {
    let cluster = &scene.cluster;
    let name = &format!("audits.{GROUP}");
    scene.policy("audit", json!({ "mode": "Audit", "selector": { "names": [name] } })).await?;
    let old = spec(json!({ "a": { "type": "string", "default": "old" } }));
    cluster.apply_crd(&crd(GROUP, "Audit", &[("v1", true, old.clone())])).await?;
    report_when(scene, name, |status| status["state"] == "AuditOnly").await?;
    for index in 0..6 {
        // Applied, so that no manager owns the default that is stored with it.
        let object = object("Audit", &format!("object-{index}"), json!({ "b": "x" }));
        let path = format!("{}/object-{index}", objects("audits"));
        cluster.patch(&path, Patch::Apply, "owner", &object).await?.ok()?;
    }
    create(cluster, "Audit", "set", json!({ "c": CANARY })).await?;
    let mut new = old;
    new["properties"]["spec"]["properties"]["c"] = json!({ "type": "string", "default": "new" });
    let applied = cluster.apply_crd(&crd(GROUP, "Audit", &[("v1", true, new)])).await?;
    let generation = applied["metadata"]["generation"].clone();
    let audit = report_when(scene, name, |status| {
        status["generation"] == generation && status["finished"].is_string()
    })
    .await?;
    let counts = &audit["counts"];
    ensure!(
        (&counts["objects"], &counts["due"], &counts["unproved"]) == (&json!(7), &json!(6), &json!(1)),
        "{audit}"
    );
    let of = |path: &str| {
        let all = audit["defaults"].as_array().into_iter().flatten();
        all.into_iter().find(|default| default["path"] == path).map(|default| default["objects"].clone())
    };
    ensure!((of(".spec.a"), of(".spec.c")) == (Some(json!(0)), Some(json!(6))), "{audit}");
    let condition = cluster.persisted(name, "AuditOnly", SOON).await?;
    ensure!(condition.message.contains("6 would be written"), "{}", condition.message);
    ensure!(writes(scene, "audits")? == 0, "an audit has written");

    // Nothing is restarted.
    scene.policy("audit", json!({ "mode": "Persist", "selector": { "names": [name] } })).await?;
    let persisted = report_when(scene, name, |status| status["state"] == "AllPersisted").await?;
    let counts = &persisted["counts"];
    ensure!(
        (&counts["written"], &counts["due"], &counts["alreadyStored"]) == (&json!(6), &json!(0), &json!(1)),
        "{persisted}"
    );
    ensure!(writes(scene, "audits")? >= 6, "the audit log sees what is written");
    Ok(())
}

async fn policies_say_what_they_do(scene: &Scene) -> Result<()> {
    let name = &format!("audits.{GROUP}");
    scene.policy("tied", json!({ "mode": "Ignore", "selector": { "names": [name] } })).await?;
    let [audit, tied] = ["audit", "tied"].map(|name| format!("{POLICIES}/{name}"));
    let tied = eventually(Duration::from_secs(10), "the tie is told", async || {
        let [audit, tied] = [scene.cluster.get(&audit).await?, scene.cluster.get(&tied).await?];
        let reported = |policy: &Value| policy["status"]["conflicts"][0]["winner"] == "audit";
        Ok((reported(&audit) && reported(&tied)).then_some(tied))
    })
    .await?;
    ensure!(tied["status"]["crds"] == 0 && tied["status"]["conflicts"][0]["policy"] == "audit", "{tied}");
    ensure!(tied["status"]["observedGeneration"] == tied["metadata"]["generation"], "{tied}");
    scene.cluster.delete(&audit).await?;
    // The other one is in force now.
    scene.cluster.persisted(name, "Ignored", SOON).await?;
    let default = scene.cluster.get(&format!("{POLICIES}/default")).await?;
    ensure!(default["status"]["crds"].as_u64() >= Some(3), "{default}");
    let columns = table(&scene.cluster, POLICIES).await?;
    ensure!(columns.0[..5] == ["Name", "Mode", "CRDs", "Ready", "Reason"], "{columns:?}");
    scene.barrier().await?;
    let default = scene.cluster.get(&format!("{POLICIES}/default")).await?;
    let version = default["metadata"]["resourceVersion"].clone();
    scene.barrier().await?;
    let later = scene.cluster.get(&format!("{POLICIES}/default")).await?;
    ensure!(later["metadata"]["resourceVersion"] == version, "a status is written although it stands there");
    Ok(())
}

async fn a_release_that_is_taken_back_leaves_nothing(scene: &Scene) -> Result<()> {
    let cluster = &scene.cluster;
    let name = &format!("flips.{GROUP}");
    let version = |schema: Value| crd(GROUP, "Flip", &[("v1", true, schema)]);
    let old = spec(json!({ "a": { "type": "string" } }));
    cluster.apply_crd(&version(old.clone())).await?;
    create(cluster, "Flip", "one", json!({})).await?;
    let before = cluster.raw(GROUP, "flips", Some("default"), "one").await?;
    scene.policy("slow", json!({ "settle": "1h", "selector": { "names": [name] } })).await?;
    let mut new = old.clone();
    new["properties"]["spec"]["properties"]["a"]["default"] = "new".into();
    cluster.apply_crd(&version(new)).await?;
    let settling = report_when(scene, name, |status| status["state"] == "Settling").await?;
    ensure!(settling["settlesAt"].is_string(), "{settling}");
    let condition = cluster.persisted(name, "Settling", SOON).await?;
    ensure!(condition.message.contains("writing starts at"), "{condition:?}");
    cluster.apply_crd(&version(old)).await?;
    let report = report_when(scene, name, |status| status["state"] == "NoDefaults").await?;
    ensure!(report["defaults"] == json!([]) && report["settlesAt"].is_null(), "{report}");
    // The report comes first.
    ensure!(cluster.persisted(name, "NoDefaults", SOON).await?.status == "True");
    ensure!(cluster.condition(name, "Established").await?.is_some(), "the server's own is gone");
    ensure!(cluster.raw(GROUP, "flips", Some("default"), "one").await? == before, "the object was written");
    Ok(())
}

async fn reports_are_a_table(cluster: &Cluster) -> Result<()> {
    let (columns, rows) = table(cluster, REPORTS).await?;
    let expected = ["Name", "State", "Policy", "Objects", "Written", "Stored", "Due", "Held", "Rejected"];
    ensure!(columns[..expected.len()] == expected, "{columns:?}");
    let row = rows.iter().find(|row| row[0] == format!("gadgets.{GROUP}")).context("a row")?;
    let expected =
        [json!("InvalidDefaults"), json!("default"), json!(3), json!(2), json!(0), json!(0), json!(1)];
    ensure!(row[1..8] == expected, "{row:?}");
    Ok(())
}

/// What `kubectl get` shows of a collection: its columns, and the cells of each row. Those of `-o wide` are
/// there too, if only not as `<no value>`, which stands for a null.
async fn table(cluster: &Cluster, path: &str) -> Result<(Vec<String>, Vec<Vec<Value>>)> {
    let table = cluster.table(path).await?;
    let columns = table["columnDefinitions"].as_array().context("columns")?;
    let is_shown: Vec<bool> = columns.iter().map(|column| column["priority"] == 0).collect();
    let mut rows = Vec::new();
    for row in table["rows"].as_array().context("rows")? {
        let cells = row["cells"].as_array().context("cells")?;
        ensure!(!cells.contains(&json!("<no value>")), "{cells:?}");
        let shown = cells.iter().zip(&is_shown).filter(|(_, is_shown)| **is_shown);
        rows.push(shown.map(|(cell, _)| cell.clone()).collect());
    }
    let columns = columns.iter().zip(&is_shown).filter(|(_, is_shown)| **is_shown);
    let columns = columns.filter_map(|(column, _)| column["name"].as_str());
    Ok((columns.map(str::to_owned).collect(), rows))
}

async fn report_when(scene: &Scene, name: &str, wanted: impl Fn(&Value) -> bool) -> Result<Value> {
    let mut last = Value::Null;
    let found = eventually(SOON, &format!("a report on {name}"), async || {
        last = scene.report(name).await?["status"].clone();
        Ok(wanted(&last).then(|| last.clone()))
    })
    .await;
    found.with_context(|| last.to_string())
}

/// How many requests of Etch's could have written an object.
fn writes(scene: &Scene, plural: &str) -> Result<usize> {
    let found = scene.requests(|event| {
        event["objectRef"]["resource"] == plural
            && ["patch", "update", "create", "delete"].iter().any(|verb| event["verb"] == *verb)
    })?;
    Ok(found.len())
}

fn spec(properties: Value) -> Value {
    let mut properties = properties;
    properties["b"] = json!({ "type": "string" });
    properties["c"] = properties.get("c").cloned().unwrap_or_else(|| json!({ "type": "string" }));
    with_spec(properties)
}

fn objects(plural: &str) -> String {
    format!("/apis/{GROUP}/v1/namespaces/default/{plural}")
}

fn object(kind: &str, name: &str, spec: Value) -> Value {
    json!({ "apiVersion": format!("{GROUP}/v1"), "kind": kind, "metadata": { "name": name }, "spec": spec })
}

async fn create(cluster: &Cluster, kind: &str, name: &str, spec: Value) -> Result<Value> {
    let plural = e2e::cluster::plural(kind);
    cluster.create(&objects(&plural), "creator", &object(kind, name, spec)).await
}
