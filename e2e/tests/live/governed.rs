//! What `explain`, `audit` and `impact` predict under each setting of a policy, compared with what the
//! operator does.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::cluster::{CRDS, Cluster, Patch, crd, eventually, plural, with_spec};
use e2e::scene::Scene;
use serde_json::{Value, json};

const GROUP: &str = "governed.example.com";
const SOON: Duration = Duration::from_secs(60);
/// An object with a field that the schema loses, and one without.
const OBJECTS: [&str; 2] = ["plain", "relic"];

/// A kind whose CRD has a policy of its own: the policy, the reasons of `DefaultsPersisted` after the first
/// upgrade and after the second, and whether the second one takes a field away.
struct Governed {
    kind: &'static str,
    policy: Option<Value>,
    reasons: [&'static str; 2],
    loses: bool,
}

fn all() -> Vec<Governed> {
    let follow = json!([{ "path": ".spec.size", "action": "Follow" }]);
    let governed =
        |kind, policy: Value, reasons, loses| Governed { kind, policy: Some(policy), reasons, loses };
    vec![
        governed("Hold", json!({}), ["HiddenFields"; 2], true),
        governed("Drop", json!({ "hiddenFields": "Drop" }), ["AllPersisted"; 2], true),
        governed("Own", json!({ "ownership": "Own", "hiddenFields": "Drop" }), ["AllPersisted"; 2], false),
        governed("Follow", json!({ "onChange": follow, "hiddenFields": "Drop" }), ["AllPersisted"; 2], false),
        governed(
            "Audit",
            json!({ "mode": "Audit", "hiddenFields": "Drop", "onChange": follow }),
            ["AuditOnly"; 2],
            true,
        ),
        governed("Ignore", json!({ "mode": "Ignore", "hiddenFields": "Drop" }), ["Ignored"; 2], true),
        governed("Pause", json!({ "paused": true, "hiddenFields": "Drop" }), ["Paused"; 2], true),
        Governed { kind: "Unselected", policy: None, reasons: [""; 2], loses: true },
    ]
}

impl Governed {
    fn plural(&self) -> String {
        plural(self.kind)
    }

    fn crd(&self) -> String {
        format!("{}.{GROUP}", self.plural())
    }

    fn path(&self, name: &str) -> String {
        format!("/apis/{GROUP}/v1/namespaces/default/{}/{name}", self.plural())
    }

    /// The CRD before there are defaults, after the upgrade that brings one, and after the one that changes
    /// it.
    fn document(&self, phase: usize) -> Value {
        let mut fields = json!({ "size": { "type": "integer" }, "note": { "type": "string" } });
        match phase {
            0 => fields["legacy"] = json!({ "type": "string" }),
            1 => fields["size"]["default"] = json!(1),
            _ => {
                fields["size"]["default"] = json!(5);
                fields["more"] = json!({ "type": "integer", "default": 7 });
            }
        }
        if phase == 2 && self.loses {
            fields.as_object_mut().expect("fields").remove("note");
        }
        crd(GROUP, self.kind, &[("v1", true, with_spec(fields))])
    }

    async fn raw(&self, cluster: &Cluster, name: &str) -> Result<Value> {
        cluster.raw(GROUP, &self.plural(), Some("default"), name).await
    }

    /// Brings the CRD into a phase, and waits until its default is served.
    async fn upgrade(&self, cluster: &Cluster, phase: usize) -> Result<()> {
        cluster.apply_crd(&self.document(phase)).await?;
        let size = [Value::Null, json!(1), json!(5)][phase].clone();
        let probe = json!({
            "apiVersion": format!("{GROUP}/v1"), "kind": self.kind, "metadata": { "name": "probe" },
            "spec": {},
        });
        let path = format!("{}?dryRun=All", self.path("").trim_end_matches('/'));
        eventually(SOON, &format!("{} is served in phase {phase}", self.kind), async || {
            let answer = cluster.send("POST", &path, "application/json", serde_json::to_vec(&probe)?).await?;
            Ok((answer.body["spec"]["size"] == size).then_some(()))
        })
        .await
    }

    /// Waits until the operator has done what it does in a phase.
    async fn settled(&self, cluster: &Cluster, phase: usize) -> Result<()> {
        match self.reasons[phase - 1] {
            "" => Ok(()),
            reason => cluster.persisted(&self.crd(), reason, SOON).await.map(drop),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_predicted_under_a_policy_comes_true() -> Result<()> {
    let scene = Scene::start(&[GROUP]).await?;
    let cluster = &scene.cluster;
    let all = all();
    scene.policy("default", json!({ "selector": { "exclude": [format!("*.{GROUP}")] } })).await?;
    for governed in &all {
        governed.upgrade(cluster, 0).await?;
        for name in OBJECTS {
            let legacy =
                if name == "relic" { json!({ "note": "n", "legacy": "l" }) } else { json!({ "note": "n" }) };
            let object = json!({
                "apiVersion": format!("{GROUP}/v1"), "kind": governed.kind, "metadata": { "name": name },
                "spec": legacy,
            });
            cluster.patch(&governed.path(name), Patch::Apply, "owner", &object).await?.ok()?;
        }
        if let Some(spec) = &governed.policy {
            let mut spec = spec.clone();
            spec["selector"] = json!({ "names": [governed.crd()] });
            scene.policy(&governed.plural(), spec).await?;
        }
        governed.upgrade(cluster, 1).await?;
    }
    let explained = explained(&scene, &all)?;
    let operator = scene.operator(&[])?;
    for governed in &all {
        governed.settled(cluster, 1).await?;
        for name in OBJECTS {
            let raw = governed.raw(cluster, name).await?;
            let reason = &explained[&(governed.kind, name)];
            came_true(reason, &raw)
                .with_context(|| format!("{} {name}: {reason}\n{raw:#}", governed.kind))?;
        }
        held_is_reported(&scene, governed).await?;
    }
    upgraded(&scene, &all).await?;
    operator.stop().await
}

/// What Etch does about the default of each object, as `explain` prints it.
fn explained(scene: &Scene, all: &[Governed]) -> Result<BTreeMap<(&'static str, &'static str), String>> {
    let mut explained = BTreeMap::new();
    for governed in all {
        for name in OBJECTS {
            let (_, wording) = scene.etch_json(&["explain", &governed.crd(), name])?;
            let policy = governed.policy.as_ref().map(|_| governed.plural());
            ensure!(wording["policy"]["name"] == json!(policy), "{wording:#}");
            let reason = wording["defaults"][0]["reason"].as_str().context("a reason")?;
            explained.insert((governed.kind, name), reason.to_owned());
        }
    }
    let reason = |kind, name| explained[&(kind, name)].clone();
    ensure!(reason("Hold", "relic").contains("Etch holds the object"), "{explained:#?}");
    ensure!(reason("Drop", "relic").contains("drops .spec.legacy (hiddenFields: Drop)"), "{explained:#?}");
    ensure!(reason("Own", "plain").contains("and owns it"), "{explained:#?}");
    ensure!(
        reason("Audit", "plain").ends_with("Etch does not write: DefaultsPolicy audits has mode: Audit"),
        "{explained:#?}"
    );
    ensure!(reason("Ignore", "plain").ends_with("DefaultsPolicy ignores has mode: Ignore"), "{explained:#?}");
    ensure!(
        reason("Pause", "plain")
            .contains("DefaultsPolicy pauses (paused) has paused writes; to end the pause, set paused"),
        "{explained:#?}"
    );
    ensure!(reason("Unselected", "plain").ends_with("no DefaultsPolicy selects this CRD"), "{explained:#?}");
    Ok(explained)
}

fn came_true(reason: &str, raw: &Value) -> Result<()> {
    let is_stored = !raw["spec"]["size"].is_null();
    let is_there = !raw["spec"]["legacy"].is_null();
    let managers = raw["metadata"]["managedFields"].as_array().into_iter().flatten();
    let is_owned = managers.into_iter().any(|entry| entry["manager"] == "etch");
    ensure!(reason.contains("Etch stores it") == is_stored, "stored");
    ensure!(reason.contains("and owns it") == is_owned, "owned");
    ensure!(!(is_there && reason.contains("drops .spec.legacy")), "not dropped");
    ensure!(is_there || !reason.contains("Etch holds"), "dropped");
    Ok(())
}

/// What `audit` reports as held, the operator's report has too.
async fn held_is_reported(scene: &Scene, governed: &Governed) -> Result<()> {
    let (_, audit) = scene.etch_json(&["audit", &governed.crd(), "--objects"])?;
    let audit = &audit["crds"][0];
    let report =
        scene.report(&governed.crd()).await.map(|report| report["status"].clone()).unwrap_or_default();
    let reported = report["counts"]["held"].as_u64().unwrap_or_default();
    ensure!(audit["held"] == reported, "{}: {audit:#}\n{report:#}", governed.kind);
    Ok(())
}

/// The default changes, another one is added, and a field is removed.
async fn upgraded(scene: &Scene, all: &[Governed]) -> Result<()> {
    let cluster = &scene.cluster;
    let list: Vec<Value> = all.iter().map(|governed| governed.document(2)).collect();
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": list }).to_string();
    let file = scene.file("next.json", &list)?;
    let etcd = scene.control_plane.etcd_url();
    let (code, impact) = scene.etch_json(&["impact", "-f", &file, "--live", "--etcd-endpoints", etcd])?;
    ensure!(code == Some(1), "{impact:#}");
    for governed in all {
        governed.upgrade(cluster, 2).await?;
    }
    let mut seen = BTreeMap::new();
    for governed in all {
        governed.settled(cluster, 2).await?;
        let found =
            impact["crds"].as_array().into_iter().flatten().find(|found| found["crd"] == governed.crd());
        let found = found.context("a CRD")?;
        for name in OBJECTS {
            let raw = governed.raw(cluster, name).await?;
            let read = cluster.get(&governed.path(name)).await?;
            let details = found["details"].as_array().into_iter().flatten();
            let detail =
                details.into_iter().find(|detail| detail["name"] == name).cloned().unwrap_or_default();
            let named = |key: &str, path: &str| detail[key].to_string().contains(path);
            let what = || format!("{} {name}: {detail:#}\n{raw:#}", governed.kind);
            let is_new = named("changes", ".spec.size") || named("follows", ".spec.size");
            ensure!((read["spec"]["size"] == 5) == is_new, "{}", what());
            if named("follows", ".spec.size") {
                ensure!(raw["spec"]["size"] == 5, "{}", what());
            }
            ensure!(named("appears", ".spec.more"), "{}", what());
            ensure!(named("hidden", ".spec.note") == governed.loses, "{}", what());
            ensure!(raw["spec"]["note"].is_null() == (detail["dropped"] == true), "{}", what());
            for key in ["follows", "dropped", "held"] {
                let is_worded = !matches!(&detail[key], Value::Null | Value::Bool(false))
                    && detail[key].as_array().is_none_or(|paths| !paths.is_empty());
                *seen.entry(key).or_insert(0) += u32::from(is_worded);
            }
        }
        let report =
            scene.report(&governed.crd()).await.map(|report| report["status"].clone()).unwrap_or_default();
        let reported = |key: &str| report["counts"][key].as_u64().unwrap_or_default();
        if governed.reasons[1] != "AuditOnly" && governed.reasons[1] != "Paused" {
            ensure!(found["objects"]["held"] == reported("held"), "{}: {found:#}\n{report:#}", governed.kind);
        }
    }
    ensure!(seen.values().all(|count| *count > 0), "not everything was predicted of something: {seen:?}");
    let crd = &cluster.get(&format!("{CRDS}/follows.{GROUP}")).await?;
    ensure!(crd["metadata"]["generation"] == 3, "three phases");
    Ok(())
}
