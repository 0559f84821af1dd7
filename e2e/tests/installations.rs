//! Two installations of Etch in one cluster, each with a namespace and a Lease of its own, so that both lead:
//! they do no harm, report the same, and finish.

use anyhow::{Context, Result, ensure};
use e2e::cluster::{CRDS, Cluster, GUARD, Patch, crd, documents, eventually};
use e2e::operator::Operator;
use e2e::scene::{BARRIER, NAMESPACE, Scene, apply};
use e2e::widgets::Widgets;
use serde_json::{Value, json};

const GROUP: &str = "installations.example.com";
const OTHER: &str = "etch-other";
const REPORTS: &str = "/apis/etch-operator.io/v1alpha1/defaultsreports";

#[tokio::test(flavor = "multi_thread")]
async fn two_installations_do_no_harm_and_come_to_an_end() -> Result<()> {
    let scene = Scene::start(&[GROUP]).await?;
    let cluster = &scene.cluster;
    let mut widgets = Widgets::create(cluster, GROUP, "Widget", 60).await?;
    let holds = troubled(cluster).await?;
    let one = scene.replica("one", &[])?;
    let two = second(&scene).await?;
    for namespace in [NAMESPACE, OTHER] {
        let lease = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/etch");
        eventually(GUARD, &format!("{namespace} leads"), async || {
            let lease = cluster.get(&lease).await?;
            Ok(lease["spec"]["holderIdentity"].as_str().filter(|holder| !holder.is_empty()).map(drop))
        })
        .await?;
    }
    for _ in 0..3 {
        widgets.add_default().await?;
        widgets.stored().await?;
    }
    let held = cluster.persisted(&holds, "HiddenFields", GUARD).await?;
    for crd in [&widgets.crd(), &holds] {
        agreed(&scene, crd).await.with_context(|| format!("what is said of {crd}"))?;
    }
    widgets.keep_the_laws().await?;
    let raw = cluster.raw(GROUP, "holds", Some("default"), "held").await?;
    ensure!(raw["spec"] == json!({ "legacy": "x" }), "{raw}");
    ensure!(held.message.contains("default/held") && held.message.contains("ignored"), "{held:?}");
    let report = cluster.get(&format!("{REPORTS}/{holds}")).await?["status"].clone();
    ensure!((&report["counts"]["held"], &report["counts"]["ignored"]) == (&json!(1), &json!(1)), "{report}");
    // One leaves, and takes nothing with it.
    two.stop().await?;
    widgets.add_default().await?;
    widgets.stored().await?;
    widgets.keep_the_laws().await?;
    one.stop().await
}

/// A CRD with an object that has to be held and one that is not to be written; returns its name.
async fn troubled(cluster: &Cluster) -> Result<String> {
    let schema = |spec: Value| {
        let spec = json!({ "type": "object", "properties": spec });
        json!({ "type": "object", "properties": { "spec": spec } })
    };
    let legacy = schema(json!({ "legacy": { "type": "string" } }));
    cluster.apply_crd(&crd(GROUP, "Hold", &[("v1", true, legacy)])).await?;
    let collection = format!("/apis/{GROUP}/v1/namespaces/default/holds");
    for (name, spec) in [("held", json!({ "legacy": "x" })), ("fine", json!({})), ("ignored", json!({}))] {
        let object = json!({
            "apiVersion": format!("{GROUP}/v1"), "kind": "Hold", "metadata": { "name": name }, "spec": spec,
        });
        cluster.create(&collection, "owner", &object).await?;
    }
    let ignore = json!({ "metadata": { "annotations": { "etch-operator.io/ignore": "true" } } });
    cluster.patch(&format!("{collection}/ignored"), Patch::Merge, "owner", &ignore).await?.ok()?;
    let now = schema(json!({ "size": { "type": "integer", "default": 1 } }));
    cluster.apply_crd(&crd(GROUP, "Hold", &[("v1", true, now)])).await?;
    Ok(format!("holds.{GROUP}"))
}

/// An installation in another namespace, with bindings of its own: those that are shipped would take the
/// first one's place.
async fn second(scene: &Scene) -> Result<Operator> {
    let config = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../config/rbac"));
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": OTHER } });
    apply(&scene.cluster, &namespace).await?;
    for file in ["service-account.yaml", "role-binding.yaml", "lease-role.yaml", "lease-role-binding.yaml"] {
        for mut document in documents(&config.join(file))? {
            if document["kind"] == "ClusterRoleBinding" {
                document["metadata"]["name"] = json!(OTHER);
            } else {
                document["metadata"]["namespace"] = json!(OTHER);
            }
            if document["subjects"].is_array() {
                document["subjects"][0]["namespace"] = json!(OTHER);
            }
            apply(&scene.cluster, &document).await?;
        }
    }
    for group in [GROUP, BARRIER] {
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": { "name": format!("{OTHER}-{group}") },
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                "name": format!("etch-{group}"),
            },
            "subjects": [{ "kind": "ServiceAccount", "name": "etch", "namespace": OTHER }],
        });
        apply(&scene.cluster, &binding).await?;
    }
    let kubeconfig = scene.control_plane.service_account_kubeconfig(0, OTHER, "etch").await?;
    let log = scene.log_path().with_file_name("etch-other.log");
    let lease = format!("--lease-namespace={OTHER}");
    Operator::start(&kubeconfig, &log, &["--settle=200ms", "--listen=127.0.0.1:0", &lease])
}

/// Waits until neither installation writes to a CRD any more.
async fn agreed(scene: &Scene, crd: &str) -> Result<()> {
    let path = format!("{CRDS}/{crd}");
    let version = async || -> Result<Value> {
        Ok(scene.cluster.get(&path).await?["metadata"]["resourceVersion"].clone())
    };
    eventually(GUARD, "both agree", async || {
        let before = version().await?;
        scene.barrier().await?;
        Ok((version().await? == before).then_some(()))
    })
    .await
}
