//! An audit of objects behind a conversion webhook: exact with access to etcd, since the server is asked what
//! it makes of the bytes.

use anyhow::{Context, Result, ensure};
use e2e::cluster::{Cluster, Patch, crd, eventually, with_spec};
use e2e::control_plane::{ControlPlane, Options};
use e2e::process::Ended;
use e2e::webhook::Webhook;
use serde_json::{Value, json};
use std::time::Duration;

use crate::stage::etch;

const GROUP: &str = "converted.example.com";
const HOSTS: &str = "hosts.converted.example.com";

#[tokio::test(flavor = "multi_thread")]
async fn behind_a_webhook_every_answer_is_exact_as_well() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let control_plane = ControlPlane::start(Options::new(dir.path().join("cluster"))).await?;
    let cluster = Cluster::of(&control_plane).await?;
    let mut webhook = Webhook::start(convert).await?;
    cluster.apply_crd(&hosts(&[("v1beta1", true, old(false))], &webhook)).await?;
    for (name, spec) in [
        ("open", json!({ "host": "a" })),
        ("ported", json!({ "host": "a", "port": 80 })),
        ("told", json!({ "host": "patient", "port": 80 })),
    ] {
        create(&cluster, "v1beta1", name, spec).await?;
    }
    cluster.apply_crd(&hosts(&[("v1beta1", false, old(true)), ("v1", true, new())], &webhook)).await?;
    let collection = format!("/apis/{GROUP}/v1/namespaces/default/hosts");
    eventually(Duration::from_secs(20), "the webhook converts", async || {
        let object = cluster.get(&format!("{collection}/open")).await?;
        Ok((object["spec"]["address"] == "a" && object["spec"]["port"] == 80).then_some(()))
    })
    .await?;
    create(&cluster, "v1", "new", json!({ "address": "a", "port": 80 })).await?;

    let arguments = ["audit", HOSTS, "--objects", "--etcd-endpoints", control_plane.etcd_url()];
    let kubeconfig = control_plane.kubeconfig(0);
    let exact = reported(&etch(&kubeconfig, &arguments)?)?;
    let expected = json!([
        ["open", [[".spec.port", "phantom"], [".spec.retries", "gap"]]],
        ["ported", [[".spec.retries", "gap"]]],
    ]);
    ensure!(exact.0 == json!([4, 2, 2, 0]) && exact.1 == expected, "{exact:?}");

    // While no webhook converts, nothing is reported that is not known.
    webhook.go_down();
    let (counts, details) = reported(&etch(&kubeconfig, &arguments)?)?;
    ensure!(counts == json!([4, 1, 1, 2]), "{counts} {details}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_webhook_renames_is_not_taken_from_its_owner() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let control_plane = ControlPlane::start(Options::new(dir.path().join("cluster"))).await?;
    let cluster = Cluster::of(&control_plane).await?;
    let webhook = Webhook::start(convert).await?;
    cluster.apply_crd(&hosts(&[("v1beta1", true, old(false))], &webhook)).await?;
    let applied = json!({ "apiVersion": format!("{GROUP}/v1beta1"), "kind": "Host",
        "metadata": { "name": "owned" },
        "spec": { "host": "a" } });
    let path = format!("/apis/{GROUP}/v1beta1/namespaces/default/hosts/owned");
    cluster.patch(&path, Patch::Apply, "team", &applied).await?.ok()?;
    cluster.apply_crd(&hosts(&[("v1beta1", false, old(false)), ("v1", true, new())], &webhook)).await?;
    let owned = format!("/apis/{GROUP}/v1/namespaces/default/hosts/owned");
    eventually(Duration::from_secs(60), "the webhook converts", async || {
        Ok((cluster.get(&owned).await?["spec"]["address"] == "a").then_some(()))
    })
    .await?;
    let owners = async || {
        let raw = cluster.raw(GROUP, "hosts", Some("default"), "owned").await?;
        anyhow::Ok(raw["metadata"]["managedFields"].clone())
    };
    let before = owners().await?;

    let ended = etch(&control_plane.kubeconfig(0), &["persist", HOSTS])?;
    ensure!(ended.code == Some(1) && ended.out.contains(".spec.host"), "{ended:?}");
    let after = owners().await?;
    ensure!(after == before, "the owner of .spec.host has lost it: {after}");
    Ok(())
}

/// The counts, and what is missing in which object.
fn reported(audit: &Ended) -> Result<(Value, Value)> {
    let crd = audit.first()?;
    let counts = ["objects", "stored", "phantom", "unknown"].map(|state| &crd[state]);
    let details = crd["details"].as_array().context("details")?.iter().map(|detail| {
        let defaults = detail["defaults"].as_array().into_iter().flatten();
        let missing = defaults.map(|default| json!([default["path"], default["state"]]));
        json!([detail["name"], missing.collect::<Vec<_>>()])
    });
    Ok((json!(counts), details.collect()))
}

/// `host` becomes `address`, and one host is known to want patience.
fn convert(request: &Value) -> Value {
    let objects = request["objects"].as_array().into_iter().flatten().map(|object| {
        let mut object = object.clone();
        object["apiVersion"] = request["desiredAPIVersion"].clone();
        let is_new = request["desiredAPIVersion"] == format!("{GROUP}/v1");
        let (from, to) = if is_new { ("host", "address") } else { ("address", "host") };
        if let Some(name) = object["spec"].as_object_mut().and_then(|spec| spec.remove(from)) {
            if is_new && name == "patient" {
                object["spec"]["retries"] = 9.into();
            }
            object["spec"][to] = name;
        }
        object
    });
    json!({ "convertedObjects": objects.collect::<Vec<_>>(), "result": { "status": "Success" } })
}

fn hosts(versions: &[(&str, bool, Value)], webhook: &Webhook) -> Value {
    let mut hosts = crd(GROUP, "Host", versions);
    hosts["spec"]["conversion"] = json!({ "strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1"], "clientConfig": webhook.client_config(),
    } });
    hosts
}

fn old(default: bool) -> Value {
    let mut port = json!({ "type": "integer" });
    if default {
        port["default"] = 80.into();
    }
    with_spec(json!({ "host": { "type": "string" }, "port": port }))
}

fn new() -> Value {
    with_spec(json!({
        "address": { "type": "string" }, "port": { "type": "integer" },
        "retries": { "type": "integer", "default": 3 },
    }))
}

async fn create(cluster: &Cluster, version: &str, name: &str, spec: Value) -> Result<()> {
    let api_version = format!("{GROUP}/{version}");
    let object =
        json!({ "apiVersion": api_version, "kind": "Host", "metadata": { "name": name }, "spec": spec });
    let collection = format!("/apis/{GROUP}/{version}/namespaces/default/hosts");
    cluster.create(&collection, "creator", &object).await.map(drop)
}
