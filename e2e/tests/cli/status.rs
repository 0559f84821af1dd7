//! `etch status` of a cluster in which one CRD is persisted, one lacks a permission, and one has an object
//! that Etch holds.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use e2e::cluster::{GUARD, crd, with_spec};
use e2e::operator::binary;
use e2e::scene::{Scene, apply};
use serde_json::{Value, json};

use crate::process::{Ended, finish};

const GRANTED: &str = "granted.example.com";
const LOCKED: &str = "locked.example.com";

fn status(kubeconfig: &Path, arguments: &[&str]) -> Result<Ended> {
    let mut command = Command::new(binary()?);
    // Named by a flag, it would be in the commands that are printed.
    command.env("KUBECONFIG", kubeconfig).arg("status").args(arguments);
    finish(command, b"")
}

fn of(group: &str, kind: &str, fields: &Value) -> Value {
    crd(group, kind, &[("v1", true, with_spec(fields))])
}

#[tokio::test(flavor = "multi_thread")]
async fn one_screen_shows_how_etch_stands() -> Result<()> {
    let scene = Scene::start(&[GRANTED]).await?;
    let admin = scene.control_plane.kubeconfig(0);
    let ended = status(&admin, &[])?;
    ensure!(ended.code == Some(1) && ended.out.contains("No operator leads"), "{ended:?}");

    let size = json!({ "type": "integer", "default": 1 });
    scene.cluster.apply_crd(&of(GRANTED, "Widget", &json!({ "size": size }))).await?;
    scene.cluster.apply_crd(&of(LOCKED, "Gadget", &json!({ "note": { "type": "string" } }))).await?;
    let gadget = json!({ "apiVersion": format!("{LOCKED}/v1"), "kind": "Gadget", "metadata": { "name": "g" },
                         "spec": { "note": "n" } });
    let gadgets = format!("/apis/{LOCKED}/v1/namespaces/default/gadgets");
    scene.cluster.create(&gadgets, "author", &gadget).await?;
    scene.cluster.apply_crd(&of(LOCKED, "Gadget", &json!({ "size": size }))).await?;
    // A field that the schema no longer has is still in etcd.
    scene.cluster.apply_crd(&of(GRANTED, "Bin", &json!({ "old": { "type": "string" } }))).await?;
    let bin = json!({ "apiVersion": format!("{GRANTED}/v1"), "kind": "Bin", "metadata": { "name": "b" },
                      "spec": { "old": "canary" } });
    let bins = format!("/apis/{GRANTED}/v1/namespaces/default/bins");
    scene.cluster.create(&bins, "author", &bin).await?;
    scene.cluster.apply_crd(&of(GRANTED, "Bin", &json!({ "size": size }))).await?;
    let operator = scene.operator(&[])?;
    for (name, reason) in [
        (format!("widgets.{GRANTED}"), "AllPersisted"),
        (format!("gadgets.{LOCKED}"), "Forbidden"),
        (format!("bins.{GRANTED}"), "HiddenFields"),
    ] {
        scene.cluster.persisted(&name, reason, GUARD).await?;
    }

    let ended = status(&admin, &[])?;
    ensure!(ended.code == Some(1) && ended.err.is_empty(), "{ended:?}");
    ensure!(ended.out.lines().all(|line| line.chars().count() <= 80), "{}", ended.out);
    ensure!(!ended.out.contains("canary"), "{}", ended.out);
    let version = scene.cluster.get("/version").await?;
    let version = version["gitVersion"].as_str().context("a version")?;
    for line in [
        format!(", Kubernetes {version}\nLeader: "),
        "etch rbac --policy default | kubectl apply -f -\n".to_owned(),
        "1 object held:\n  bins default/b (HiddenFields): ".to_owned(),
        format!("A permission is missing for gadgets.{LOCKED}; grant it:\n"),
    ] {
        ensure!(ended.out.contains(&line), "{line:?}: {}", ended.out);
    }
    let document = status(&admin, &["-o", "json"])?.json()?;
    let policy = &document["policies"][0];
    let governed =
        &scene.cluster.get("/apis/etch-operator.io/v1alpha1/defaultspolicies/default").await?["status"];
    ensure!(policy["name"] == "default" && policy["crds"] == governed["crds"], "{document:#} {governed:#}");
    ensure!(document["leader"]["namespace"] == "etch-system", "{document:#}");
    ensure!(document["leader"]["since"].is_string(), "{document:#}");
    let unguarded = document["unguarded"].as_str().unwrap_or_default();
    ensure!(unguarded.contains("config/admission"), "{document:#}");
    ensure!(document["problems"]["held"] == 1 && document["installed"] == true, "{document:#}");
    let mut command = Command::new(binary()?);
    command.env("KUBECONFIG", &admin).args(["explain", "gadgets", "g", "-o", "json"]);
    let explained = finish(command, b"")?.json()?;
    let reason = explained["defaults"][0]["reason"].as_str().context("a reason")?;
    let missing = "Etch does not write: a permission is missing; to grant it, run: etch rbac --policy \
        default | kubectl apply -f -";
    ensure!(reason.ends_with(missing), "{explained:#}");
    operator.stop().await?;
    what_may_not_be_read_is_named(&scene).await
}

async fn what_may_not_be_read_is_named(scene: &Scene) -> Result<()> {
    let account = json!({ "apiVersion": "v1", "kind": "ServiceAccount",
                          "metadata": { "name": "nobody", "namespace": "default" } });
    apply(&scene.cluster, &account).await?;
    let nobody = scene.control_plane.service_account_kubeconfig(0, "default", "nobody").await?;
    let ended = status(&nobody, &["-o", "json"])?;
    ensure!(ended.code == Some(2), "{ended:?}");
    for unread in [
        "the Lease of the operator: ",
        "DefaultsPolicies: ",
        "DefaultsReports: ",
        "EmbeddedSchemas: ",
        "the ValidatingWebhookConfiguration etch: ",
        "no permission to list customresourcedefinitions.apiextensions.k8s.io",
    ] {
        ensure!(ended.err.contains(unread), "{unread}: {ended:?}");
    }
    ensure!(ended.json()?["versions"]["kubernetes"].is_string(), "{ended:?}");
    Ok(())
}
