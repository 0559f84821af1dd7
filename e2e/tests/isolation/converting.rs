//! Conversion webhooks that never answer the same twice: the API server finds that every write changes what
//! others own. Etch writes nothing until that is over, takes no field from another manager, and names the
//! objects.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anyhow::{Result, ensure};
use e2e::cluster::{Patch, crd, eventually, with_spec};
use e2e::webhook::Webhook;
use serde_json::{Value, json};

use crate::cases;
use crate::stage::{SOON, Stage, Widgets};

cases![conversion_never_the_same, conversion_never_the_same_with_other_names];

/// The widgets: one that was created, one that was applied.
const NAMES: [&str; 2] = ["created", "applied"];

async fn conversion_never_the_same(stage: &Stage, name: &'static str) -> Result<()> {
    nothing_is_written_while_conversions_differ(&stage.widgets(name).await?, "old").await
}

/// Owners use a name for a field that the storage version does not have.
async fn conversion_never_the_same_with_other_names(stage: &Stage, name: &'static str) -> Result<()> {
    nothing_is_written_while_conversions_differ(&stage.widgets(name).await?, "new").await
}

/// `name` is what the field `old` is called in the new version.
async fn nothing_is_written_while_conversions_differ(
    widgets: &Widgets<'_>,
    name: &'static str,
) -> Result<()> {
    let (count, differs) = (AtomicU64::new(1), Arc::new(AtomicBool::new(true)));
    let prunes = Arc::new(AtomicBool::new(false));
    let webhook = Webhook::start({
        let (differs, prunes) = (differs.clone(), prunes.clone());
        move |request| {
            converted(request, |is_new, spec| {
                let (from, to) = if is_new { ("old", name) } else { (name, "old") };
                if let Some(value) = spec.as_object_mut().and_then(|spec| spec.remove(from)) {
                    spec[to] = value;
                }
                if let Some(fields) =
                    spec.as_object_mut().filter(|_| !is_new && prunes.load(Ordering::SeqCst))
                {
                    fields.remove("size");
                }
                if differs.load(Ordering::SeqCst) {
                    spec["stamp"] = count.fetch_add(1, Ordering::SeqCst).into();
                }
            })
        }
    })
    .await?;
    stored_at_v1beta1(widgets).await?;
    let before = [widgets.raw(NAMES[0]).await?, widgets.raw(NAMES[1]).await?];
    let versions = [("v1beta1", false, schema("old", false)), ("v1", true, schema(name, true))];
    let mut upgraded = crd(&widgets.group, "Widget", &versions);
    upgraded["spec"]["conversion"] = json!({ "strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1"], "clientConfig": webhook.client_config(),
    } });
    widgets.cluster.apply_crd(&upgraded).await?;

    let condition = widgets.persisted("InProgress", SOON).await?;
    ensure!(condition.status == "False", "{condition:?}");
    let report = widgets.reported("InProgress").await?;
    ensure!(report["counts"]["unknown"] == 2 && report["counts"]["written"] == 0, "{report}");
    // It follows the report.
    eventually(SOON, "the condition names both", async || {
        let condition = widgets.persisted("InProgress", SOON).await?;
        Ok(condition.message.contains("(default/applied, default/created)").then_some(()))
    })
    .await?;
    widgets.stage.scene.barrier().await?;
    let after = [widgets.raw(NAMES[0]).await?, widgets.raw(NAMES[1]).await?];
    ensure!(after == before, "something was written: {after:?}");

    differs.store(false, Ordering::SeqCst);
    if name != "old" {
        // The server refuses every apply, for the webhook returns a field that the old version does not have.
        // Who applied owns one that has another name now: it stays the owner's, and the webhook is to be
        // corrected.
        let owned = |raw: &Value| raw["metadata"]["managedFields"].clone();
        widgets.persisted("ObjectsRejected", 4 * SOON).await?;
        let [_, applied] = NAMES;
        let raw = widgets.raw(applied).await?;
        ensure!(owned(&raw) == owned(&before[1]), "the owner has lost a field: {raw}");
        prunes.store(true, Ordering::SeqCst);
        widgets.persisted("AllPersisted", 8 * SOON).await?;
        let raw = widgets.raw(applied).await?;
        ensure!(owned(&raw) == owned(&before[1]), "the owner has lost a field: {raw}");
    }
    widgets.persisted("AllPersisted", 4 * SOON).await?;
    for (widget, before) in NAMES.into_iter().zip(&before) {
        let raw = widgets.raw(widget).await?;
        ensure!(raw["spec"]["size"] == 3 && raw["spec"][name] == "mine", "{raw}");
        ensure!(raw["spec"]["stamp"] == 0 && raw["spec"]["secret"] == before["spec"]["secret"], "{raw}");
        ensure!(owners(&raw) == owners(before), "the owners are others: {raw}");
    }
    Ok(())
}

/// Two widgets stored at `v1beta1`.
async fn stored_at_v1beta1(widgets: &Widgets<'_>) -> Result<()> {
    widgets.define_versions(&[("v1beta1", true, schema("old", false))]).await?;
    let collection = widgets.collection("v1beta1");
    let widget = |name: &str| {
        let mut widget = widgets.widget("v1beta1", name);
        widget["spec"]["old"] = "mine".into();
        widget["spec"]["stamp"] = 0.into();
        widget
    };
    let [created, applied] = NAMES;
    widgets.cluster.create(&collection, "owner", &widget(created)).await?;
    let path = format!("{collection}/{applied}");
    widgets.cluster.patch(&path, Patch::Apply, "owner", &widget(applied)).await?.ok().map(drop)
}

/// The owners of a widget's fields, and by what operation.
fn owners(widget: &Value) -> Vec<[&Value; 2]> {
    let entries = widget["metadata"]["managedFields"].as_array().into_iter().flatten();
    entries.map(|entry| [&entry["manager"], &entry["operation"]]).collect()
}

/// The answer to a request for conversion, with the spec of each object changed; `true` is for the new
/// version.
fn converted(request: &Value, change: impl Fn(bool, &mut Value)) -> Value {
    let wanted = request["desiredAPIVersion"].as_str().unwrap_or_default();
    let objects = request["objects"].as_array().into_iter().flatten().map(|object| {
        let mut object = object.clone();
        object["apiVersion"] = wanted.into();
        change(wanted.ends_with("/v1"), &mut object["spec"]);
        object
    });
    json!({ "convertedObjects": objects.collect::<Vec<_>>(), "result": { "status": "Success" } })
}

/// A schema with a field of this name, and maybe with a default.
fn schema(name: &str, has_default: bool) -> Value {
    let mut schema = with_spec(json!({
        "secret": { "type": "string" }, "number": { "type": "integer" }, "stamp": { "type": "integer" },
        name: { "type": "string" },
    }));
    if has_default {
        schema["properties"]["spec"]["properties"]["size"] = json!({ "type": "integer", "default": 3 });
    }
    schema
}
