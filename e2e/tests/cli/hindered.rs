//! Commands of which a part cannot be done, or whose output is not read.

use std::io::pipe;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};
use e2e::cluster::{CRDS, Cluster, GUARD, Patch, crd, eventually, with_spec};
use e2e::operator::binary;
use e2e::scene::{Scene, apply};
use serde_json::{Value, json};

use crate::process::{Ended, run, text};

const GROUP: &str = "hindered.example.com";
const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";

fn etch(kubeconfig: &Path, line: &[&str]) -> Result<Ended> {
    let mut command = Command::new(binary()?);
    command.args(["--kubeconfig", text(kubeconfig)]).args(line);
    run(command, b"")
}

fn definition(kind: &str, a: &Value) -> Value {
    crd(GROUP, kind, &[("v1", true, with_spec(json!({ "a": a })))])
}

async fn widget_stores_a(cluster: &Cluster) -> Result<bool> {
    Ok(cluster.raw(GROUP, "widgets", Some("default"), "one").await?["spec"]["a"] == 1)
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_written_or_said_without_what_is_on_record() -> Result<()> {
    let scene = Scene::start(&[]).await?;
    let cluster = &scene.cluster;
    cluster.apply_crd(&definition("Widget", &json!({ "type": "integer" }))).await?;
    let widget = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "Widget", "metadata": { "name": "one" }, "spec": {},
    });
    cluster.create(&format!("/apis/{GROUP}/v1/namespaces/default/widgets"), "creator", &widget).await?;
    cluster.apply_crd(&definition("Widget", &json!({ "type": "integer", "default": 1 }))).await?;
    let rules = json!([
        { "apiGroups": [GROUP], "resources": ["*"], "verbs": ["get", "list", "patch"] },
        {
            "apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": [
                "get",
            ],
        },
    ]);
    let role = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
                       "metadata": { "name": "keeper" }, "rules": rules });
    let subject = json!({ "kind": "ServiceAccount", "name": "keeper", "namespace": "default" });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": { "name": "keeper" }, "subjects": [subject],
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "keeper" },
    });
    let account = json!({ "apiVersion": "v1", "kind": "ServiceAccount",
                          "metadata": { "name": "keeper", "namespace": "default" } });
    for object in [account, role, binding] {
        apply(cluster, &object).await?;
    }
    let keeper = scene.control_plane.service_account_kubeconfig(0, "default", "keeper").await?;
    let refused = "no permission to get defaultsreports.etch-operator.io";
    eventually(GUARD, "the keeper may read CRDs", async || {
        let ended = etch(&keeper, &["persist", &format!("widgets.{GROUP}")])?;
        Ok((ended.code == Some(2) && ended.err.contains(refused)).then_some(()))
    })
    .await?;
    for line in [&["audit"][..], &["persist", "--dry-run"], &["explain"]] {
        let of_object = ["one".to_owned()];
        let object = if line[0] == "explain" { &of_object[..] } else { &[] };
        let crd = format!("widgets.{GROUP}");
        let line: Vec<&str> =
            line.iter().copied().chain([crd.as_str()]).chain(object.iter().map(String::as_str)).collect();
        let ended = etch(&keeper, &line)?;
        ensure!(ended.code == Some(2) && ended.err.contains(refused), "{line:?}: {ended:?}");
    }
    ensure!(!widget_stores_a(cluster).await?);

    // Where Etch is not installed, nothing is on record.
    for kind in ["defaultspolicies", "defaultsreports", "embeddedschemas"] {
        cluster.delete(&format!("{CRDS}/{kind}.etch-operator.io")).await?;
    }
    eventually(GUARD, "the API of Etch is gone, and the keeper stores defaults", async || {
        let ended = etch(&keeper, &["persist", &format!("widgets.{GROUP}")])?;
        Ok((ended.code == Some(0)).then_some(()))
    })
    .await?;
    ensure!(widget_stores_a(cluster).await?);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn clean_removes_what_it_can_though_nobody_reads_what_it_prints() -> Result<()> {
    let scene = Scene::start(&[]).await?;
    let cluster = &scene.cluster;
    for kind in ["Frozen", "Other"] {
        let document = definition(kind, &json!({ "type": "integer" }));
        cluster.apply_crd(&document).await?;
        let name = document["metadata"]["name"].as_str().unwrap_or_default();
        let marked = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": name, "annotations": { "etch-operator.io/persisted": "x" } },
        });
        cluster.patch(&format!("{CRDS}/{name}"), Patch::Apply, "etch", &marked).await?.ok()?;
    }
    let frozen = format!("frozens.{GROUP}");
    let policy = json!({ "metadata": { "name": "freeze" }, "spec": {
        "failurePolicy": "Fail",
        "matchConstraints": { "resourceRules": [{
            "apiGroups": ["apiextensions.k8s.io"], "apiVersions": ["*"], "operations": ["UPDATE"],
            "resources": ["customresourcedefinitions"],
        }]},
        "validations": [{ "expression": format!("object.metadata.name != '{frozen}'") }],
    }});
    let binding = json!({ "metadata": { "name": "freeze" }, "spec": {
        "policyName": "freeze", "validationActions": ["Deny"],
    }});
    cluster.create(&format!("{ADMISSION}/validatingadmissionpolicies"), "admin", &policy).await?;
    cluster.create(&format!("{ADMISSION}/validatingadmissionpolicybindings"), "admin", &binding).await?;
    eventually(GUARD, "admission refuses", async || {
        let touch = json!({ "metadata": { "labels": { "touched": fastrand::u32(..).to_string() } } });
        let answer = cluster.patch(&format!("{CRDS}/{frozen}"), Patch::Merge, "admin", &touch).await?;
        Ok(answer.ok().is_err().then_some(()))
    })
    .await?;
    let configurations = format!("{ADMISSION}/validatingwebhookconfigurations");
    let configuration = json!({ "metadata": {
        "name": "etch", "labels": { "app.kubernetes.io/managed-by": "etch" },
    }});
    cluster.create(&configurations, "etch", &configuration).await?;

    let mut command = Command::new(binary()?);
    let (reader, writer) = pipe()?;
    drop(reader);
    command.args(["--kubeconfig", text(&scene.control_plane.kubeconfig(0)), "clean"]).stdout(writer);
    let ended = command.output()?;
    let err = String::from_utf8_lossy(&ended.stderr);
    ensure!(ended.status.code() == Some(2) && err.contains(&frozen), "{ended:?}");
    let annotation = async |name: &str| -> Result<Value> {
        let document = cluster.get(&format!("{CRDS}/{name}")).await?;
        Ok(document["metadata"]["annotations"]["etch-operator.io/persisted"].clone())
    };
    ensure!(annotation(&frozen).await? == "x" && annotation(&format!("others.{GROUP}")).await?.is_null());
    let left = cluster.get(&configurations).await?;
    ensure!(left["items"].as_array().is_some_and(Vec::is_empty), "{left:#}");
    Ok(())
}
