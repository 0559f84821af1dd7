//! Etch without any cluster-wide permission for the objects of a CRD, on a real control plane: Roles in the
//! namespaces that the policy names are enough. What is stored is read from etcd.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use e2e::cluster::{Cluster, GUARD, eventually};
use e2e::operator::binary;
use e2e::scene::{Scene, apply};
use e2e::sized_widgets::{define, definition, names, stored};
use serde_json::{Value, json};

const GROUP: &str = "tenant.example.com";
const CRD: &str = "widgets.tenant.example.com";
const NAMESPACES: [&str; 3] = ["team-a", "team-b", "other"];
const ONLY: &str =
    "only namespaces team-a, team-b are read, all others are not selected by DefaultsPolicy tenant";

#[tokio::test(flavor = "multi_thread")]
async fn roles_in_namespaces_are_enough() -> Result<()> {
    let scene = scene().await?;
    let cluster = &scene.cluster;
    let bindings = grant(&scene).await?;
    ensure!(bindings == names(&["team-a", "team-b"]), "{bindings:?}");
    scene.policy("tenant", policy()["spec"].clone()).await?;
    let operator = scene.operator(&[])?;
    define(cluster, GROUP, true).await?;
    let wording = cluster.persisted(CRD, "AllPersisted", GUARD).await?;
    ensure!(wording.message == format!("all 2 selected objects store their defaults; {ONLY}"), "{wording:?}");
    ensure!(
        stored(cluster, GROUP).await? == names(&["team-a/one", "team-b/one"]),
        "{:?}",
        stored(cluster, GROUP).await?
    );
    let status = scene.report(CRD).await?["status"].clone();
    ensure!(status["readNamespaces"] == json!(["team-a", "team-b"]), "{status}");
    ensure!(status["counts"]["objects"] == 2 && status["counts"]["notSelected"] == 0, "{status}");

    // The watch of either namespace brings what happens there.
    create(cluster, "other", "two").await?;
    for (namespace, others) in [("team-b", 1), ("team-a", 2)] {
        create(cluster, namespace, "two").await?;
        message(cluster, &with_ignored(others)).await?;
    }

    // Nothing was ever asked about the objects of all namespaces, or refused.
    let of_objects = |event: &Value| event["objectRef"]["apiGroup"] == GROUP;
    let requests = scene.requests(of_objects)?;
    let namespaces: BTreeSet<&str> = requests
        .iter()
        .map(|event| event["objectRef"]["namespace"].as_str().unwrap_or("all namespaces"))
        .collect();
    ensure!(namespaces == BTreeSet::from(["team-a", "team-b"]), "{namespaces:?}");
    ensure!(requests.iter().all(|event| event["responseStatus"]["code"] != 403), "{requests:?}");

    let binding =
        "/apis/rbac.authorization.k8s.io/v1/namespaces/team-b/rolebindings/etch-policy-tenant".to_owned();
    cluster.delete(&binding).await?;
    let wording = cluster.persisted(CRD, "Forbidden", GUARD).await?;
    let place = "a permission is missing; add this rule to Etch's Role in namespace team-b: ";
    ensure!(wording.status == "False" && wording.message.starts_with(place), "{wording:?}");

    // What is granted again is noticed, and the object of the third namespace goes on lacking the default.
    grant(&scene).await?;
    message(cluster, &with_ignored(2)).await?;
    // New objects have the default from the API server.
    let all_but = ["team-a/one", "team-a/two", "team-b/one", "team-b/two", "other/two"];
    ensure!(stored(cluster, GROUP).await? == names(&all_but), "{:?}", stored(cluster, GROUP).await?);
    operator.stop().await
}

/// An object without a default in each of three namespaces.
async fn scene() -> Result<Scene> {
    let scene = Scene::start(&[]).await?;
    define(&scene.cluster, GROUP, false).await?;
    for namespace in NAMESPACES {
        let object = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } });
        apply(&scene.cluster, &object).await?;
        create(&scene.cluster, namespace, "one").await?;
    }
    Ok(scene)
}

fn policy() -> Value {
    json!({
        "apiVersion": "etch-operator.io/v1alpha1", "kind": "DefaultsPolicy", "metadata": { "name": "tenant" },
        "spec": { "selector": { "groups": [GROUP] }, "objects": { "namespaces": ["team-b", "team-a"] } },
    })
}

/// Grants what `etch rbac` prints for the policy; the namespaces of the RoleBindings.
async fn grant(scene: &Scene) -> Result<BTreeSet<String>> {
    let files = [
        scene.file("crd.json", &definition(GROUP, true).to_string())?,
        scene.file("policy.json", &policy().to_string())?,
    ];
    let mut command = tokio::process::Command::new(binary()?);
    let output = command.args(["rbac", &files[0], "--policy", &files[1], "-o", "json"]).output().await?;
    let wording = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success() && wording.contains("an earlier ClusterRole etch-policy-tenant"),
        "{wording}"
    );
    let printed: Value = serde_json::from_slice(&output.stdout)?;
    let mut bound = BTreeSet::new();
    for object in printed["items"].as_array().context("a list")? {
        ensure!(object["kind"] == "Role" || object["kind"] == "RoleBinding", "{object}");
        apply(&scene.cluster, object).await?;
        bound.insert(object["metadata"]["namespace"].as_str().context("a namespace")?.to_owned());
    }
    Ok(bound)
}

/// Creates an object; one by the name `two` is counted at once, as one that is ignored.
async fn create(cluster: &Cluster, namespace: &str, name: &str) -> Result<()> {
    let annotations = json!({ "etch-operator.io/ignore": (name == "two").to_string() });
    let object = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "Widget",
        "metadata": { "name": name, "annotations": annotations }, "spec": { "name": "n" },
    });
    let collection = format!("/apis/{GROUP}/v1/namespaces/{namespace}/widgets");
    cluster.create(&collection, "creator", &object).await.map(drop)
}

/// How the message begins with so many objects more, which are ignored.
fn with_ignored(others: u64) -> String {
    let all = 2 + others;
    format!(
        "2 of {all} selected objects are known to store their defaults; {ONLY}; {others} ignored by \
         annotation"
    )
}

async fn message(cluster: &Cluster, begins: &str) -> Result<()> {
    eventually(GUARD, begins, async || {
        let wording = cluster.persisted(CRD, "AllPersisted", GUARD).await?;
        Ok(wording.message.starts_with(begins).then_some(()))
    })
    .await
}
