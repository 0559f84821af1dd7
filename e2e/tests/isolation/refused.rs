//! Objects whose write is refused: by a policy, a webhook, validation, or for their size. The others are
//! stored. What a refusal looks like on the wire is for the facts.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::cluster::{Patch, eventually};
use e2e::webhook::Webhook;
use serde_json::{Value, json};

use crate::cases;
use crate::stage::{CANARY, DEFAULT, DEFAULT_NUMBER, SOON, Stage, Widgets, defaulted, plain, with};

cases![policy_freezes_three_of_thirty, webhook_refuses, new_rule_holds, too_large, invalid_default];

pub(crate) const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";

async fn policy_freezes_three_of_thirty(stage: &Stage, name: &'static str) -> Result<()> {
    let widgets = stage.widgets(name).await?;
    widgets.define(plain()).await?;
    let names: Vec<String> = (0..30).map(|index| format!("widget-{index:02}")).collect();
    for name in &names {
        widgets.create(name).await?;
    }
    let frozen = ["widget-04", "widget-13", "widget-22"];
    freeze(&widgets, &frozen).await?;

    widgets.define(defaulted()).await?;
    let condition = widgets.persisted("ObjectsRejected", SOON).await?;
    ensure!(condition.status == "False", "{condition:?}");
    for name in &names {
        let is_frozen = frozen.contains(&name.as_str());
        ensure!(widgets.is_stored(name).await? != is_frozen, "{name}");
        ensure!(condition.message.contains(&format!("default/{name}")) == is_frozen, "{condition:?}");
    }
    let report = widgets.reported("ObjectsRejected").await?;
    ensure!(report["counts"]["written"] == 27 && report["counts"]["rejected"] == 3, "{report}");
    let rejected = report["rejected"].as_array().context("rejected objects")?;
    let listed: Vec<&str> = rejected.iter().filter_map(|problem| problem["name"].as_str()).collect();
    ensure!(listed == frozen, "{listed:?}");
    for problem in rejected {
        ensure!(problem["message"] == "ValidatingAdmissionPolicy freeze refused it", "{problem}");
        ensure!(problem["reason"] == "Admission", "{problem}");
    }

    // One is tried again since it changes, the others since time passes.
    widgets.cluster.delete(&format!("{ADMISSION}/validatingadmissionpolicybindings/freeze")).await?;
    eventually(SOON, "a frozen widget can be changed", async || {
        Ok(widgets.touch(frozen[0]).await.is_ok().then_some(()))
    })
    .await?;
    eventually(Duration::from_secs(5), "the changed widget is stored", async || {
        Ok(widgets.is_stored(frozen[0]).await?.then_some(()))
    })
    .await?;
    widgets.persisted("AllPersisted", Duration::from_secs(60)).await?;
    for name in frozen {
        ensure!(widgets.is_stored(name).await?, "{name}");
    }
    Ok(())
}

/// Has a policy refuse, with words of its own, whatever is done to these widgets; returns when it does.
async fn freeze(widgets: &Widgets<'_>, names: &[&str]) -> Result<()> {
    let policy = json!({ "metadata": { "name": "freeze" }, "spec": {
        "failurePolicy": "Fail",
        "matchConstraints": { "resourceRules": everything(widgets) },
        "validations": [{
            "expression": format!("!(object.metadata.name in {names:?})"),
            "messageExpression": "'frozen at ' + string(object.spec.number) + object.spec.secret",
        }],
    }});
    let binding = json!({ "metadata": { "name": "freeze" }, "spec": {
        "policyName": "freeze", "validationActions": ["Deny"],
    }});
    widgets.cluster.create(&format!("{ADMISSION}/validatingadmissionpolicies"), "admin", &policy).await?;
    widgets
        .cluster
        .create(&format!("{ADMISSION}/validatingadmissionpolicybindings"), "admin", &binding)
        .await?;
    in_force(widgets, names[0]).await
}

/// Everything that is done to these widgets, as admission selects it.
pub(crate) fn everything(widgets: &Widgets<'_>) -> Value {
    json!([{ "apiGroups": [widgets.group], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"] }])
}

/// Waits until a widget cannot be changed any more.
pub(crate) async fn in_force(widgets: &Widgets<'_>, name: &str) -> Result<()> {
    eventually(SOON, "admission refuses", async || Ok(widgets.touch(name).await.is_err().then_some(()))).await
}

async fn webhook_refuses(stage: &Stage, name: &'static str) -> Result<()> {
    let widgets = stage.widgets(name).await?;
    widgets.define(plain()).await?;
    for name in ["free", "guarded"] {
        widgets.create(name).await?;
    }
    let webhook = Webhook::start(|request| {
        let object = &request["object"];
        let allowed = object["metadata"]["name"] != "guarded";
        json!({
            "allowed": allowed, "status": {
                "code": 409, "reason": CANARY, "message": object["spec"]["secret"],
            },
        })
    })
    .await?;
    let configuration = json!({ "metadata": { "name": name.replace('_', "-") }, "webhooks": [{
        "name": "guard.example.com", "clientConfig": webhook.client_config(),
        "rules": everything(&widgets),
        "failurePolicy": "Fail", "sideEffects": "None", "admissionReviewVersions": ["v1"],
    }]});
    let configurations = format!("{ADMISSION}/validatingwebhookconfigurations");
    widgets.cluster.create(&configurations, "admin", &configuration).await?;
    in_force(&widgets, "guarded").await?;

    widgets.define(defaulted()).await?;
    let condition = widgets.persisted("ObjectsRejected", SOON).await?;
    ensure!(condition.message.contains("default/guarded"), "{condition:?}");
    ensure!(!condition.message.contains("default/free"), "{condition:?}");
    ensure!(widgets.is_stored("free").await? && !widgets.is_stored("guarded").await?);
    let problem = widgets.problem("rejected").await?;
    ensure!(problem["message"] == "webhook guard.example.com refused it", "{problem}");

    widgets.cluster.delete(&format!("{configurations}/{}", name.replace('_', "-"))).await?;
    widgets.persisted("AllPersisted", Duration::from_secs(60)).await?;
    ensure!(widgets.is_stored("guarded").await?);
    Ok(())
}

async fn new_rule_holds(stage: &Stage, name: &'static str) -> Result<()> {
    let widgets = stage.widgets(name).await?;
    let min = json!({ "type": "integer" });
    let old = with("min", min.clone());
    widgets.define_versions(&[("v1beta1", true, old.clone())]).await?;
    for (name, min) in [("fits", 1), ("breaks", 10)] {
        let mut widget = widgets.widget("v1beta1", name);
        widget["spec"]["min"] = json!(min);
        widgets.cluster.create(&widgets.collection("v1beta1"), "owner", &widget).await?;
    }
    // Of another version, the default is new to the object, and all rules count.
    let mut new = with("min", min);
    let spec = &mut new["properties"]["spec"];
    spec["properties"]["size"] = json!({ "type": "integer", "default": 5 });
    spec["x-kubernetes-validations"] =
        json!([{ "rule": "self.min <= self.size", "messageExpression": "'no: ' + self.secret" }]);
    widgets.define_versions(&[("v1beta1", false, old), ("v1", true, new)]).await?;
    let condition = widgets.persisted("InvalidDefaults", SOON).await?;
    ensure!(condition.message.contains("default/breaks"), "{condition:?}");
    ensure!(!condition.message.contains("default/fits"), "{condition:?}");
    ensure!(widgets.is_stored("fits").await?);
    ensure!(widgets.raw("breaks").await?["spec"]["size"].is_null());
    let report = widgets.reported("InvalidDefaults").await?;
    let problem = &report["held"][0];
    ensure!(problem["reason"] == "InvalidDefaults" && problem["paths"] == json!([".spec.size"]), "{problem}");

    // Corrected by its owner, it is processed at once.
    let corrected = json!({ "spec": { "min": 2 } });
    let path = format!("{}/breaks", widgets.collection("v1beta1"));
    widgets.cluster.patch(&path, Patch::Merge, "owner", &corrected).await?.ok()?;
    widgets.persisted("AllPersisted", Duration::from_secs(10)).await?;
    ensure!(widgets.is_stored("breaks").await?);
    Ok(())
}

async fn too_large(stage: &Stage, name: &'static str) -> Result<()> {
    let widgets = stage.widgets(name).await?;
    widgets.define(with("blob", json!({ "type": "string" }))).await?;
    let mut large = widgets.widget("v1", "large");
    // etcd takes requests of 1.5 MiB.
    large["spec"]["blob"] = json!("x".repeat(1_560_000));
    widgets.cluster.create(&widgets.collection("v1"), "owner", &large).await?;
    widgets.create("small").await?;
    let mut schema = with("blob", json!({ "type": "string" }));
    schema["properties"]["spec"]["properties"]["size"] =
        json!({ "type": "string", "default": "y".repeat(20_000) });
    widgets.define(schema).await?;
    let condition = widgets.persisted("ObjectsRejected", SOON).await?;
    ensure!(condition.message.contains("default/large"), "{condition:?}");
    ensure!(widgets.is_stored("small").await? && !widgets.is_stored("large").await?);
    let problem = widgets.problem("rejected").await?;
    ensure!(problem["reason"] == "TooLarge", "{problem}");
    Ok(())
}

async fn invalid_default(stage: &Stage, name: &'static str) -> Result<()> {
    let widgets = stage.widgets(name).await?;
    let map = |values: Value| with("map", json!({ "type": "object", "additionalProperties": values }));
    let plain = json!({ "type": "object", "properties": { "k": { "type": "string" } } });
    widgets.define(map(plain.clone())).await?;
    widgets.create("without").await?;
    let mut widget = widgets.widget("v1", "within");
    widget["spec"]["map"] = json!({ "one": { "k": CANARY } });
    widgets.cluster.create(&widgets.collection("v1"), "owner", &widget).await?;
    let mut values = plain;
    values["properties"]["wrong"] = json!({ "type": "integer", "default": DEFAULT });
    values["properties"]["beyond"] = json!({ "type": "integer", "maximum": 3, "default": DEFAULT_NUMBER });
    let mut schema = map(values);
    schema["properties"]["spec"]["properties"]["size"] = json!({ "type": "integer", "default": 3 });
    let before = widgets.raw("within").await?;
    widgets.define(schema).await?;
    let condition = eventually(Duration::from_secs(10), "InvalidDefaults=True", async || {
        let condition = widgets.cluster.condition(&widgets.crd(), "InvalidDefaults").await?;
        Ok(condition.filter(|condition| condition.status == "True"))
    })
    .await?;
    for path in [".spec.map{}.beyond", ".spec.map{}.wrong"] {
        ensure!(condition.message.contains(path), "{condition:?}");
    }
    let held = widgets.persisted("InvalidDefaults", SOON).await?;
    ensure!(held.message.contains("default/within") && !held.message.contains("default/without"), "{held:?}");
    ensure!(widgets.is_stored("without").await?);
    ensure!(widgets.raw("within").await? == before, "it is held");
    Ok(())
}
