//! Pauses on a real control plane: what stops what, in the middle of a pass, and what happens to it when the
//! pause ends.
//!
//! What is stored is read from etcd, and what was asked from the API server's audit log.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::cluster::{Cluster, Condition, crd, documents, eventually, with_spec};
use e2e::install::root;
use e2e::scene::{Scene, apply_all};
use e2e::webhook::Webhook;
use serde_json::{Value, json};

/// The group that the policy `default` governs, and the one with a policy of its own.
const WIDGETS: Kind = Kind { group: "widgets.example.com", kind: "Widget", plural: "widgets" };
const GADGETS: Kind = Kind { group: "gadgets.example.com", kind: "Gadget", plural: "gadgets" };
const OBJECTS: usize = 40;
const SOON: Duration = Duration::from_secs(60);
const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

#[derive(Clone, Copy)]
struct Kind {
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
}

#[tokio::test(flavor = "multi_thread")]
async fn one_switch_stops_all_writes_and_what_was_done_is_not_repeated() -> Result<()> {
    let scene = scene().await?;
    let cluster = &scene.cluster;
    // The webhook that judges a write keeps it under way for as long as the test needs.
    let webhook = Webhook::start(|_| json!({ "allowed": true })).await?;
    slow_down(cluster, &webhook).await?;
    let operator = scene.operator(&["--max-in-flight=6"])?;

    // `paused` stops what its policy governs, and nothing else.
    scene.policy("default", json!({ "paused": true })).await?;
    let asked = json!({ "selector": { "groups": [GADGETS.group] } });
    scene.policy("own", asked.clone()).await?;
    for kind in [WIDGETS, GADGETS] {
        kind.define(cluster, 1).await?;
    }
    GADGETS.persisted(cluster, "AllPersisted").await?;
    let due = format!(
        "{OBJECTS} would be written, but writes are paused by DefaultsPolicy default (paused): \
         default/object-00"
    );
    let paused = WIDGETS.paused(cluster, &due).await?;
    ensure!(
        paused.status == "False" && paused.message.starts_with(&format!("0 of {OBJECTS} objects")),
        "{paused:?}"
    );
    ensure!(writes(&scene, WIDGETS)?.is_empty(), "a paused policy has written");
    ensure!(writes(&scene, GADGETS)?.len() == OBJECTS);

    // The pause ends, and writes begin: they are held in the middle of the pass.
    webhook.hold();
    scene.policy("default", json!({ "paused": false })).await?;
    eventually(SOON, "writes are under way", async || Ok((webhook.waiting() >= 4).then_some(()))).await?;
    scene.policy("own", with(&asked, "pauseAll", json!(true))).await?;
    for kind in [WIDGETS, GADGETS] {
        kind.paused(cluster, "writes are paused by DefaultsPolicy own (pauseAll)").await?;
    }
    // What is under way goes on to its end, and nothing else begins.
    webhook.release();
    // The report of the first pause stands until this pass writes its own.
    let report =
        reported_as(&scene, WIDGETS, "Paused", |status| status["counts"]["due"] != json!(OBJECTS)).await?;
    let at_pause = now(&scene)?;
    let stored = WIDGETS.stored(cluster).await?;
    ensure!(!stored.is_empty() && stored.len() < OBJECTS, "{} are stored", stored.len());
    let due = OBJECTS - stored.len();
    ensure!(report["counts"]["written"] == stored.len() && report["counts"]["due"] == due, "{report}");
    let written: BTreeSet<String> = writes(&scene, WIDGETS)?.iter().map(name).collect();
    ensure!(stored == written, "in etcd: {stored:?}; asked for: {written:?}");

    // Nor for another CRD, a new object, or after another policy's pause has gone.
    GADGETS.define(cluster, 2).await?;
    let report = reported(&scene, GADGETS, "Paused").await?;
    ensure!(report["counts"]["due"] == OBJECTS, "{report}");
    policies_show_it(&scene).await?;

    // It ends, and what was done is not done again.
    scene.policy("own", with(&asked, "pauseAll", json!(false))).await?;
    for kind in [WIDGETS, GADGETS] {
        kind.persisted(cluster, "AllPersisted").await?;
        ensure!(kind.stored(cluster).await?.len() == OBJECTS);
    }
    let writes = writes(&scene, WIDGETS)?;
    ensure!(writes.len() == OBJECTS, "{} requests for {OBJECTS} objects", writes.len());
    let resumed = resumed(&scene)?;
    let meanwhile: Vec<_> = all_writes(&scene)?
        .into_iter()
        .filter(|event| begun(event) > at_pause && begun(event) < resumed)
        .collect();
    ensure!(meanwhile.is_empty(), "writes while all were paused: {meanwhile:?}");
    let report = reported(&scene, WIDGETS, "AllPersisted").await?;
    ensure!(report["counts"]["written"] == OBJECTS, "{report}");
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_outlives_the_one_that_obeys_it() -> Result<()> {
    let scene = scene().await?;
    let cluster = &scene.cluster;
    let pace = "--max-writes-per-second=10";
    let first = scene.replica("first", &[pace])?;
    WIDGETS.define(cluster, 1).await?;
    eventually(SOON, "some are stored", async || {
        Ok((WIDGETS.stored(cluster).await?.len() >= 3).then_some(()))
    })
    .await?;
    // The policy of the samples selects nothing at all.
    let sample = documents(&root().join("config/samples/pause.yaml"))?;
    apply_all(cluster, &sample).await?;
    reported(&scene, WIDGETS, "Paused").await?;
    let stored = WIDGETS.stored(cluster).await?;
    ensure!(stored.len() < OBJECTS, "the pass was over before it was paused");
    first.stop().await?;

    let lists = scene.requests_to(WIDGETS.group, &["list"])?;
    let watches = scene.requests_to(WIDGETS.group, &["watch"])?;
    let second = scene.replica("second", &[pace])?;
    eventually(SOON, "the next one has made its pass", async || {
        let listed = scene.requests_to(WIDGETS.group, &["list"])? > lists;
        Ok((listed && scene.requests_to(WIDGETS.group, &["watch"])? > watches).then_some(()))
    })
    .await?;
    // A user's new object shows that it is at work, and counts what is due.
    cluster.create(&WIDGETS.collection(), "creator", &WIDGETS.object("object-new")).await?;
    ensure!(WIDGETS.stored(cluster).await? == with_new(&stored), "it has written");
    WIDGETS.paused(cluster, "DefaultsPolicy pause (pauseAll)").await?;

    cluster.delete("/apis/etch-operator.io/v1alpha1/defaultspolicies/pause").await?;
    WIDGETS.persisted(cluster, "AllPersisted").await?;
    ensure!(WIDGETS.stored(cluster).await?.len() == OBJECTS + 1);
    for value in cluster.etcd().list(&format!("/registry/{}/widgets/", WIDGETS.group)).await? {
        let wanted = if value.key.ends_with("object-new") { 1 } else { 2 };
        ensure!(value.version == wanted, "{} was stored {} times", value.key, value.version);
    }
    second.stop().await
}

/// Both kinds with objects, and no default yet.
async fn scene() -> Result<Scene> {
    let scene = Scene::start(&[WIDGETS.group, GADGETS.group]).await?;
    for kind in [WIDGETS, GADGETS] {
        kind.define(&scene.cluster, 0).await?;
        for index in 0..OBJECTS {
            let object = kind.object(&format!("object-{index:02}"));
            scene.cluster.create(&kind.collection(), "creator", &object).await?;
        }
    }
    Ok(scene)
}

/// Has a webhook asked about each write to a widget. One that answers too late keeps no write from being
/// made.
async fn slow_down(cluster: &Cluster, webhook: &Webhook) -> Result<()> {
    let configuration = json!({ "metadata": { "name": "slow" }, "webhooks": [{
        "name": "slow.example.com", "clientConfig": webhook.client_config(),
        "rules": [{
            "apiGroups": [WIDGETS.group], "apiVersions": ["*"], "operations": ["UPDATE"], "resources": ["*"],
        }],
        "failurePolicy": "Ignore", "timeoutSeconds": 30, "sideEffects": "None", "admissionReviewVersions": [
            "v1",
        ],
    }]});
    cluster.create(ADMISSION, "admin", &configuration).await?;
    // It is in force when it is asked about a write.
    webhook.hold();
    let touched = tokio::spawn({
        let cluster = cluster.clone();
        async move {
            loop {
                let labels =
                    json!({ "metadata": { "labels": { "touched": fastrand::u32(..).to_string() } } });
                let path = format!("{}/object-00", WIDGETS.collection());
                let patched = cluster.patch(&path, e2e::cluster::Patch::Merge, "creator", &labels).await;
                if patched.is_err() {
                    return;
                }
            }
        }
    });
    eventually(SOON, "the webhook is asked", async || Ok((webhook.waiting() > 0).then_some(()))).await?;
    touched.abort();
    webhook.release();
    Ok(())
}

async fn policies_show_it(scene: &Scene) -> Result<()> {
    for (policy, message) in [
        ("own", "Etch writes no objects of any CRD until pauseAll is false"),
        ("default", "writes are paused by DefaultsPolicy own (pauseAll)"),
    ] {
        let path = format!("/apis/etch-operator.io/v1alpha1/defaultspolicies/{policy}");
        eventually(SOON, "the policy shows the pause", async || {
            let policy = scene.cluster.get(&path).await?;
            let conditions = policy["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let paused = conditions.into_iter().find(|condition| condition["type"] == "Paused");
            Ok(paused.filter(|paused| {
                let wording = paused["message"].as_str().unwrap_or_default();
                paused["status"] == "True" && paused["reason"] == "PauseAll" && wording.contains(message)
            }))
        })
        .await?;
    }
    let table = scene.cluster.table("/apis/etch-operator.io/v1alpha1/defaultspolicies").await?;
    let columns = table["columnDefinitions"].as_array().context("columns")?;
    let paused = columns.iter().position(|column| column["name"] == "Paused").context("a column")?;
    let rows = table["rows"].as_array().context("rows")?;
    ensure!(rows.iter().all(|row| row["cells"][paused] == "True"), "{rows:?}");
    Ok(())
}

impl Kind {
    /// Defines the CRD with the first of three defaults.
    async fn define(self, cluster: &Cluster, defaults: usize) -> Result<()> {
        let mut properties = json!({ "name": { "type": "string" } });
        for default in ["first", "second", "third"].iter().take(defaults) {
            properties[default] = json!({ "type": "string", "default": "given" });
        }
        cluster.apply_crd(&crd(self.group, self.kind, &[("v1", true, with_spec(properties))])).await.map(drop)
    }

    fn object(self, name: &str) -> Value {
        json!({
            "apiVersion": format!("{}/v1", self.group), "kind": self.kind,
            "metadata": { "name": name }, "spec": { "name": "n" },
        })
    }

    fn collection(self) -> String {
        format!("/apis/{}/v1/namespaces/default/{}", self.group, self.plural)
    }

    fn crd(self) -> String {
        format!("{}.{}", self.plural, self.group)
    }

    /// The objects that hold the newest default in etcd.
    async fn stored(self, cluster: &Cluster) -> Result<BTreeSet<String>> {
        let schema =
            &cluster.get(&format!("{}/{}", e2e::cluster::CRDS, self.crd())).await?["spec"]["versions"][0];
        let properties = &schema["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
        let newest = ["third", "second", "first"].into_iter().find(|name| properties[name].is_object());
        let newest = newest.context("a default")?;
        let mut stored = BTreeSet::new();
        for value in cluster.etcd().list(&format!("/registry/{}/{}/", self.group, self.plural)).await? {
            let object: Value = serde_json::from_slice(&value.bytes)?;
            if object["spec"][newest].is_string() {
                stored.insert(object["metadata"]["name"].as_str().context("a name")?.to_owned());
            }
        }
        Ok(stored)
    }

    /// The condition, once it has this reason: `Paused`, or that all is stored in spite of the pause.
    async fn paused(self, cluster: &Cluster, wording: &str) -> Result<Condition> {
        let mut last = None;
        let found = eventually(SOON, &format!("{} is paused: {wording}", self.crd()), async || {
            last = cluster.condition(&self.crd(), "DefaultsPersisted").await?;
            Ok(last.clone().filter(|condition| {
                ["Paused", "AllPersisted"].contains(&&*condition.reason)
                    && condition.message.contains(wording)
            }))
        })
        .await;
        found.with_context(|| format!("the condition was {last:?}"))
    }

    async fn persisted(self, cluster: &Cluster, reason: &str) -> Result<Condition> {
        cluster.persisted(&self.crd(), reason, SOON).await
    }
}

/// The status of the report, once a pass over the CRD as it is has ended in this state.
async fn reported(scene: &Scene, kind: Kind, state: &str) -> Result<Value> {
    reported_as(scene, kind, state, |_| true).await
}

/// The same, once that is true of it.
async fn reported_as(
    scene: &Scene,
    kind: Kind,
    state: &str,
    holds: impl Fn(&Value) -> bool,
) -> Result<Value> {
    let (name, mut last) = (kind.crd(), Value::Null);
    let found = eventually(SOON, &format!("the report on {name} says {state}"), async || {
        let crd = scene.cluster.get(&format!("{}/{name}", e2e::cluster::CRDS)).await?;
        last = scene.report(&name).await?["status"].clone();
        let is_current = last["generation"] == crd["metadata"]["generation"];
        Ok(Some(last.clone()).filter(|status| {
            is_current && status["state"] == state && status["finished"].is_string() && holds(status)
        }))
    })
    .await;
    found.with_context(|| last.to_string())
}

fn with(spec: &Value, field: &str, value: Value) -> Value {
    let mut spec = spec.clone();
    spec[field] = value;
    spec
}

fn with_new(stored: &BTreeSet<String>) -> BTreeSet<String> {
    // Its default was stored when it was created.
    stored.iter().cloned().chain(["object-new".to_owned()]).collect()
}

/// The operator's writes to the objects of a kind that were carried out.
fn writes(scene: &Scene, kind: Kind) -> Result<Vec<Value>> {
    Ok(all_writes(scene)?.into_iter().filter(|event| event["objectRef"]["apiGroup"] == kind.group).collect())
}

fn all_writes(scene: &Scene) -> Result<Vec<Value>> {
    scene.requests(|event| {
        let object = &event["objectRef"];
        let ours = [WIDGETS, GADGETS].iter().any(|kind| object["apiGroup"] == kind.group);
        ours && event["verb"] == "patch" && event["responseStatus"]["code"] == 200
    })
}

fn name(event: &Value) -> String {
    event["objectRef"]["name"].as_str().unwrap_or_default().to_owned()
}

/// When the API server received a request.
fn begun(event: &Value) -> String {
    event["requestReceivedTimestamp"].as_str().unwrap_or_default().to_owned()
}

/// The moment of the operator's last request: what it has begun since is received later.
fn now(scene: &Scene) -> Result<String> {
    let all = scene.requests(|event| event["verb"] != "watch")?;
    all.iter().map(begun).max().context("a request")
}

/// The moment of the last change of the policy `own`.
fn resumed(scene: &Scene) -> Result<String> {
    let text = std::fs::read_to_string(scene.control_plane.audit_log(0))?;
    let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let changes = events.filter(|event| {
        let object = &event["objectRef"];
        object["resource"] == "defaultspolicies"
            && object["name"] == "own"
            && object["subresource"].is_null()
            && event["verb"] == "patch"
    });
    changes.map(|event| begun(&event)).max().context("a change")
}
