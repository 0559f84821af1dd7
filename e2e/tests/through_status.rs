//! Objects whose own write admission refuses, written through their status where a policy asks for it; the
//! truth is the raw value in etcd.

use anyhow::{Context, Result, ensure};
use e2e::cluster::{Cluster, GUARD, Patch, crd, eventually, plural};
use e2e::scene::Scene;
use serde_json::{Value, json};

const GROUP: &str = "frozen.example.com";
const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";

#[tokio::test(flavor = "multi_thread")]
async fn what_admission_of_the_object_refuses_is_stored_through_its_status() -> Result<()> {
    let scene = Scene::start(&[GROUP]).await?;
    // The default policy governs the first, as it is shipped.
    let [door, gate, wall] = ["Door", "Gate", "Wall"].map(|kind| Kind { cluster: &scene.cluster, kind });
    let through =
        json!({ "selector": { "names": [gate.crd(), wall.crd()] }, "refusedObjects": "WriteStatus" });
    scene.policy("through-status", through).await?;
    for (kind, resources) in
        [(&door, &["doors"][..]), (&gate, &["gates"]), (&wall, &["walls", "walls/status"])]
    {
        kind.create().await?;
        kind.freeze(resources).await.context(kind.kind)?;
        kind.give_default().await?;
    }
    let before = gate.raw("a").await?;
    ensure!(before["spec"] == json!({ "schedule": "s" }), "{before:#}");

    let operator = scene.operator(&[])?;
    for (kind, reason) in [(&door, "ObjectsRejected"), (&gate, "AllPersisted"), (&wall, "ObjectsRejected")] {
        scene.cluster.persisted(&kind.crd(), reason, GUARD).await.context(kind.kind)?;
    }
    for kind in [&door, &wall] {
        ensure!(kind.raw("a").await?["spec"]["color"].is_null(), "{} is stored", kind.kind);
    }
    let after = gate.raw("a").await?;
    ensure!(after["spec"] == json!({ "schedule": "s", "color": "red" }), "{after:#}");
    for part in ["managedFields", "generation", "labels", "annotations", "uid"] {
        ensure!(after["metadata"][part] == before["metadata"][part], "{part} has changed: {after:#}");
    }
    ensure!(after["status"] == before["status"], "{after:#}");
    let report = scene.report(&wall.crd()).await?;
    let message = &report["status"]["rejected"][0]["message"];
    ensure!(message == "ValidatingAdmissionPolicy walls refused it", "{report:#}");

    // Nothing is left to do, and no manager meets a conflict.
    scene.barrier().await?;
    ensure!(gate.raw("a").await? == after, "it was written again");
    scene.cluster.delete(&format!("{ADMISSION}/validatingadmissionpolicybindings/gates")).await?;
    eventually(GUARD, "another manager sets the value", async || {
        let apply = json!({ "apiVersion": format!("{GROUP}/v1"), "kind": gate.kind,
            "metadata": { "name": "a" }, "spec": { "color": "blue" } });
        Ok(scene.cluster.patch(&gate.path("a"), Patch::Apply, "another", &apply).await?.ok().ok())
    })
    .await?;
    operator.stop().await
}

/// One CRD.
struct Kind<'a> {
    cluster: &'a Cluster,
    kind: &'static str,
}

impl Kind<'_> {
    fn plural(&self) -> String {
        plural(self.kind)
    }

    fn crd(&self) -> String {
        format!("{}.{GROUP}", self.plural())
    }

    fn collection(&self) -> String {
        format!("/apis/{GROUP}/v1/namespaces/default/{}", self.plural())
    }

    fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.collection())
    }

    async fn raw(&self, name: &str) -> Result<Value> {
        self.cluster.raw(GROUP, &self.plural(), Some("default"), name).await
    }

    /// Defines the CRD without a default, and creates `a` with a status of a controller's.
    async fn create(&self) -> Result<()> {
        self.define(json!({})).await?;
        let object = json!({ "apiVersion": format!("{GROUP}/v1"), "kind": self.kind,
            "metadata": { "name": "a", "labels": { "l": "1" } }, "spec": { "schedule": "s" } });
        self.cluster.create(&self.collection(), "user", &object).await?;
        let status = json!({ "apiVersion": format!("{GROUP}/v1"), "kind": self.kind,
            "metadata": { "name": "a" }, "status": { "phase": "Running" } });
        let path = format!("{}/status", self.path("a"));
        self.cluster.patch(&path, Patch::Apply, "controller", &status).await?.ok().map(drop)
    }

    /// Gives the CRD a default; returns when `a` shows it.
    async fn give_default(&self) -> Result<()> {
        self.define(json!({ "color": { "type": "string", "default": "red" } })).await?;
        eventually(GUARD, "the default is shown", async || {
            Ok((self.cluster.get(&self.path("a")).await?["spec"]["color"] == "red").then_some(()))
        })
        .await
    }

    async fn define(&self, mut properties: Value) -> Result<()> {
        properties["schedule"] = json!({ "type": "string" });
        let status = json!({ "type": "object", "properties": { "phase": { "type": "string" } } });
        let schema = json!({ "type": "object", "properties": {
            "spec": { "type": "object", "properties": properties }, "status": status,
        }});
        self.cluster.apply_crd(&crd(GROUP, self.kind, &[("v1", true, schema)])).await.map(drop)
    }

    /// Has a policy refuse updates of these resources; returns when it does.
    async fn freeze(&self, resources: &[&str]) -> Result<()> {
        let name = self.plural();
        let rules = json!([{
            "apiGroups": [GROUP], "apiVersions": ["*"], "operations": ["UPDATE"], "resources": resources,
        }]);
        let policy = json!({ "metadata": { "name": name }, "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": { "resourceRules": rules },
            "validations": [{ "expression": "false" }],
        }});
        let binding = json!({ "metadata": { "name": name }, "spec": {
            "policyName": name, "validationActions": ["Deny"],
        }});
        self.cluster.create(&format!("{ADMISSION}/validatingadmissionpolicies"), "admin", &policy).await?;
        self.cluster
            .create(&format!("{ADMISSION}/validatingadmissionpolicybindings"), "admin", &binding)
            .await?;
        eventually(GUARD, "admission refuses", async || {
            let labels = json!({ "metadata": { "labels": { "l": fastrand::u32(..).to_string() } } });
            let answer = self.cluster.patch(&self.path("a"), Patch::Merge, "user", &labels).await?;
            Ok(answer.ok().is_err().then_some(()))
        })
        .await
    }
}
