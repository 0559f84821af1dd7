//! What is away for a while: a webhook, a conversion webhook, a permission, a version. It is reported, costs
//! few requests, and what is back is made up for without a restart.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use e2e::cluster::{CRDS, Patch, crd};
use e2e::control_plane::object_key;
use e2e::webhook::{Webhook, renamed};
use serde_json::{Value, json};

use crate::cases;
use crate::refused::{ADMISSION, everything, in_force};
use crate::stage::{DEFAULT, SOON, Stage, Widgets, defaulted, plain, with};

cases![
    webhook_down,
    conversion_down,
    conversion_down_later,
    corrupt_in_etcd,
    permission_lost,
    never_permitted,
    not_served
];

/// Within this, what is away is reported.
const REPORTED: Duration = Duration::from_secs(30);
/// Within this, what is back is made up for.
const RECOVERED: Duration = Duration::from_secs(60);
/// How long requests are counted while something is away, and how many there may be.
const COUNTED: Duration = Duration::from_secs(20);

async fn webhook_down(stage: &Stage, name: &'static str) -> Result<()> {
    let widgets = stage.widgets(name).await?;
    widgets.define(plain()).await?;
    let names: Vec<String> = (0..20).map(|index| format!("widget-{index}")).collect();
    for name in &names {
        widgets.create(name).await?;
    }
    let mut webhook = Webhook::start(|_| json!({ "allowed": true })).await?;
    let configuration = json!({ "metadata": { "name": "away" }, "webhooks": [{
        "name": "away.example.com", "clientConfig": webhook.client_config(),
        "rules": everything(&widgets),
        "failurePolicy": "Fail", "sideEffects": "None", "admissionReviewVersions": ["v1"],
    }]});
    widgets
        .cluster
        .create(&format!("{ADMISSION}/validatingwebhookconfigurations"), "admin", &configuration)
        .await?;
    webhook.go_down();
    in_force(&widgets, &names[0]).await?;

    widgets.define(defaulted()).await?;
    let condition = widgets.persisted("ObjectsRejected", REPORTED).await?;
    ensure!(condition.message.contains("default/widget-"), "{condition:?}");
    let rejected = widgets.reported("ObjectsRejected").await?["rejected"].clone();
    ensure!(rejected.as_array().is_some_and(|all| all.len() == 20), "{rejected}");
    ensure!(rejected[0]["message"] == "the API server could not call webhook away.example.com", "{rejected}");
    ensure!(!widgets.is_stored(&names[0]).await?);
    few_requests(&widgets).await?;

    webhook.come_back().await?;
    widgets.persisted("AllPersisted", RECOVERED).await?;
    for name in &names {
        ensure!(widgets.is_stored(name).await?, "{name}");
    }
    Ok(())
}

async fn conversion_down(stage: &Stage, name: &'static str) -> Result<()> {
    let widgets = stage.widgets(name).await?;
    let mut webhook = Webhook::start(renamed).await?;
    stored_at_v1beta1(&widgets).await?;
    webhook.go_down();
    upgrade(&widgets, &webhook, defaulted()).await?;

    let condition = widgets.persisted("ConversionFailed", REPORTED).await?;
    ensure!(condition.status == "False" && condition.message.contains("conversion webhook"), "{condition:?}");
    few_requests(&widgets).await?;
    webhook.come_back().await?;
    widgets.persisted("AllPersisted", RECOVERED).await?;
    ensure!(widgets.is_stored("widget").await?);
    Ok(())
}

async fn conversion_down_later(stage: &Stage, name: &'static str) -> Result<()> {
    let widgets = stage.widgets(name).await?;
    let mut webhook = Webhook::start(renamed).await?;
    stored_at_v1beta1(&widgets).await?;
    let ignore = json!({ "metadata": { "annotations": { "etch-operator.io/ignore": "true" } } });
    let other = format!("{}/other", widgets.collection("v1beta1"));
    widgets.cluster.patch(&other, Patch::Merge, "owner", &ignore).await?.ok()?;
    upgrade(&widgets, &webhook, defaulted()).await?;
    widgets.persisted("AllPersisted", SOON).await?;

    // All work is done, and what is left at the old version cannot be read any more.
    webhook.go_down();
    upgrade(&widgets, &webhook, and_more()).await?;
    widgets.persisted("ConversionFailed", REPORTED).await?;
    few_requests(&widgets).await?;
    webhook.come_back().await?;
    widgets.persisted("AllPersisted", RECOVERED).await?;
    Ok(())
}

async fn corrupt_in_etcd(stage: &Stage, name: &'static str) -> Result<()> {
    let widgets = stage.widgets(name).await?;
    widgets.define(plain()).await?;
    widgets.create("widget").await?;
    let etcd = widgets.cluster.etcd();
    let key = object_key(&widgets.group, "widgets", Some("default"), "widget");
    let (whole, _) = etcd.get(&key).await?.context("the widget")?;
    etcd.put(&key, &whole[..whole.len() / 2]).await?;
    widgets.define(defaulted()).await?;
    widgets.persisted("ObjectsUnreadable", REPORTED).await?;
    few_requests(&widgets).await?;
    etcd.put(&key, &whole).await?;
    widgets.persisted("AllPersisted", RECOVERED).await?;
    ensure!(widgets.is_stored("widget").await?);
    Ok(())
}

/// The same defaults, and one more property.
fn and_more() -> Value {
    let mut schema = defaulted();
    schema["properties"]["spec"]["properties"]["more"] = json!({ "type": "string" });
    schema
}

/// Two widgets stored at `v1beta1`.
async fn stored_at_v1beta1(widgets: &Widgets<'_>) -> Result<()> {
    widgets.define_versions(&[("v1beta1", true, plain())]).await?;
    for name in ["widget", "other"] {
        let widget = widgets.widget("v1beta1", name);
        widgets.cluster.create(&widgets.collection("v1beta1"), "owner", &widget).await?;
    }
    Ok(())
}

/// A new storage version with a default, to which a webhook converts.
async fn upgrade(widgets: &Widgets<'_>, webhook: &Webhook, new: Value) -> Result<()> {
    let versions = [("v1beta1", false, plain()), ("v1", true, new)];
    let mut crd = crd(&widgets.group, "Widget", &versions);
    crd["spec"]["conversion"] = json!({ "strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1"], "clientConfig": webhook.client_config(),
    }});
    widgets.cluster.apply_crd(&crd).await.map(drop)
}

async fn permission_lost(stage: &Stage, name: &'static str) -> Result<()> {
    let widgets = stage.widgets(name).await?;
    widgets.define(plain()).await?;
    widgets.create("widget").await?;
    let first = json!({ "type": "string", "default": DEFAULT });
    widgets.define(with("first", first.clone())).await?;
    widgets.persisted("AllPersisted", SOON).await?;

    // A watch is open, and stays open.
    stage.scene.revoke(&widgets.group).await?;
    let condition = widgets.persisted("Forbidden", REPORTED).await?;
    names_rule(&widgets, &condition.message)?;
    few_requests(&widgets).await?;
    let mut both = defaulted();
    both["properties"]["spec"]["properties"]["first"] = first;
    widgets.define(both).await?;
    widgets.persisted("Forbidden", REPORTED).await?;
    stage.scene.grant(&widgets.group).await?;
    widgets.persisted("AllPersisted", RECOVERED).await?;
    ensure!(widgets.is_stored("widget").await?);
    Ok(())
}

async fn never_permitted(stage: &Stage, name: &'static str) -> Result<()> {
    let widgets = stage.forbidden_widgets(name);
    widgets.define(plain()).await?;
    widgets.create("widget").await?;
    widgets.define(defaulted()).await?;
    let condition = widgets.persisted("Forbidden", REPORTED).await?;
    names_rule(&widgets, &condition.message)?;
    ensure!(widgets.requests()? == 0, "asked for what is known to be forbidden");
    stage.scene.grant(&widgets.group).await?;
    widgets.persisted("AllPersisted", RECOVERED).await?;
    ensure!(widgets.is_stored("widget").await?);
    Ok(())
}

fn names_rule(widgets: &Widgets<'_>, message: &str) -> Result<()> {
    let rule = format!(
        r#"{{apiGroups: ["{}"], resources: ["widgets"], verbs: ["get", "list", "watch", "patch"]}}"#,
        widgets.group
    );
    ensure!(message.contains(&rule), "not the rule to add: {message}");
    Ok(())
}

async fn not_served(stage: &Stage, name: &'static str) -> Result<()> {
    let widgets = stage.widgets(name).await?;
    widgets.define_versions(&[("v1", true, plain())]).await?;
    widgets.create("widget").await?;
    let mut crd = crd(&widgets.group, "Widget", &[("v1", true, defaulted()), ("v2", false, defaulted())]);
    crd["spec"]["versions"][0]["served"] = json!(false);
    widgets.cluster.apply_crd(&crd).await?;
    let condition = widgets.persisted("NotServed", REPORTED).await?;
    ensure!(condition.message.contains("v1"), "{condition:?}");
    let requests = widgets.requests()?;
    ensure!(!widgets.is_stored("widget").await?);
    crd["spec"]["versions"][0]["served"] = json!(true);
    widgets.cluster.apply_crd(&crd).await?;
    widgets.persisted("AllPersisted", RECOVERED).await?;
    ensure!(widgets.is_stored("widget").await? && widgets.requests()? > requests);
    Ok(())
}

/// Fails if the operator asks and asks about widgets that it can do nothing for.
async fn few_requests(widgets: &Widgets<'_>) -> Result<()> {
    let (begun, before) = (Instant::now(), widgets.requests()?);
    let crd = format!("{CRDS}/{}", widgets.crd());
    let revision = |crd: serde_json::Value| crd["metadata"]["resourceVersion"].clone();
    let unchanged = revision(widgets.cluster.get(&crd).await?);
    tokio::time::sleep(COUNTED).await;
    let requests = widgets.requests()? - before;
    let rate = requests as f64 / begun.elapsed().as_secs_f64();
    println!("{}: {requests} requests, {rate:.1} per second", widgets.group);
    ensure!(rate <= 2.0, "{requests} requests in {} s", COUNTED.as_secs());
    ensure!(revision(widgets.cluster.get(&crd).await?) == unchanged, "the same is said again and again");
    Ok(())
}
