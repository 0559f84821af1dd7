//! What Etch calls stored, where requests of others leave etcd without a default that every read shows, on a
//! real API server; the truth is the raw value in etcd.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, ensure};
use e2e::cluster::{Cluster, GUARD, Patch, crd, eventually, plural, with_spec};
use e2e::process;
use e2e::scene::Scene;
use e2e::webhook::Webhook;
use k8s_openapi::ByteString;
use serde_json::{Value, json};

const GROUP: &str = "stored.example.com";

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_called_stored_that_etcd_lacks() -> Result<()> {
    let scene = Scene::start(&[GROUP]).await?;
    created(&scene).await.context("created objects")?;
    unserved(&scene).await.context("a version that is served no more")?;
    alike(&scene).await.context("a version that has the default by now")?;
    converted(&scene).await.context("a conversion webhook of an older release")?;
    let remove = json!([{ "op": "remove", "path": "/spec/color" }]);
    admitted(&scene, "Strip", remove, "AllPersisted").await.context("a webhook that removes the default")?;
    Ok(())
}

/// Fact D11: a create drops `status`, with the defaults that were filled in there.
async fn created(scene: &Scene) -> Result<()> {
    let cluster = &scene.cluster;
    let kind = Kind::new(cluster, "Repo");
    let schema = |generation: i64| {
        let number = json!({ "type": "integer" });
        let status = json!({
            "type": "object", "default": { "observed": generation }, "properties": { "observed": number },
        });
        let spec = json!({ "type": "object", "properties": { "url": { "type": "string", "default": "x" } } });
        json!({ "type": "object", "properties": { "spec": spec, "status": status } })
    };
    cluster.apply_crd(&crd(GROUP, "Repo", &[("v1", true, schema(-1))])).await?;
    kind.create("before").await?;
    let operator = scene.operator(&[])?;
    kind.stores_soon("before", "/status/observed").await?;
    kind.create("watched").await?;
    kind.stores_soon("watched", "/status/observed").await?;
    operator.stop().await?;
    kind.create("unwatched").await?;
    ensure!(kind.raw("unwatched").await?["status"].is_null(), "not the server that this is about");
    let file = scene.file("repos.json", &crd(GROUP, "Repo", &[("v1", true, schema(0))]).to_string())?;
    let audit = process::etch(scene.kubeconfig(), &["audit", &kind.crd(), "--objects"])?.out;
    ensure!(audit.contains("unwatched") && audit.contains(".status"), "{audit}");
    let impact = process::etch(scene.kubeconfig(), &["impact", "-f", &file, "--live"])?.out;
    ensure!(impact.contains("unwatched"), "{impact}");
    let operator = scene.operator(&[])?;
    kind.stores_soon("unwatched", "/status/observed").await?;
    operator.stop().await
}

/// Fact W10: a write through `v1beta1` drops the default. Then the CRD stops serving `v1beta1`.
async fn unserved(scene: &Scene) -> Result<()> {
    let kind = Kind::new(&scene.cluster, "Cron");
    kind.define(&spec(json!({})), true, Value::Null).await?;
    kind.create("a").await?;
    let operator = scene.operator(&[])?;
    kind.stores_soon("a", "/spec/color").await?;
    scene.cluster.persisted(&kind.crd(), "AllPersisted", GUARD).await?;
    operator.stop().await?;
    kind.write_back_at_v1beta1("a").await?;
    kind.define(&spec(json!({})), false, Value::Null).await?;
    let operator = scene.operator(&[])?;
    scene.cluster.persisted(&kind.crd(), "AllPersisted", GUARD).await?;
    kind.stores("a", "/spec/color").await?;
    operator.stop().await
}

/// The same, and the CRD gives `v1beta1` the default.
async fn alike(scene: &Scene) -> Result<()> {
    let kind = Kind::new(&scene.cluster, "Tab");
    kind.define(&spec(json!({})), true, Value::Null).await?;
    kind.create("a").await?;
    let operator = scene.operator(&[])?;
    scene.cluster.persisted(&kind.crd(), "AllPersisted", GUARD).await?;
    operator.stop().await?;
    kind.write_back_at_v1beta1("a").await?;
    kind.define(&spec(red()), true, Value::Null).await?;
    let operator = scene.operator(&[])?;
    scene.cluster.persisted(&kind.crd(), "AllPersisted", GUARD).await?;
    kind.stores("a", "/spec/color").await?;
    operator.stop().await
}

/// Both versions have the default, and the webhook that converts knows nothing of it.
async fn converted(scene: &Scene) -> Result<()> {
    let webhook = Webhook::start(|request| {
        let objects = request["objects"].as_array().into_iter().flatten().cloned();
        let converted = objects.map(|mut object| {
            object["apiVersion"] = request["desiredAPIVersion"].clone();
            if let Some(spec) = object["spec"].as_object_mut() {
                spec.retain(|field, _| field == "schedule");
            }
            object
        });
        json!({ "result": { "status": "Success" }, "convertedObjects": converted.collect::<Vec<_>>() })
    })
    .await?;
    let conversion = json!({ "strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1"], "clientConfig": webhook.client_config() } });
    let kind = Kind::new(&scene.cluster, "Job");
    kind.define(&spec(red()), true, conversion).await?;
    kind.create("a").await?;
    let operator = scene.operator(&[])?;
    scene.cluster.persisted(&kind.crd(), "AllPersisted", GUARD).await?;
    let body = json!({ "spec": { "schedule": "t" } });
    scene.cluster.patch(&kind.path("v1beta1", "a"), Patch::Merge, "user", &body).await?.ok()?;
    kind.stores_soon("a", "/spec/color").await?;
    operator.stop().await
}

/// Fact D13: after mutating admission the server fills in the defaults again, so a webhook that patches each
/// object that shows the default cannot keep it from being stored.
async fn admitted(scene: &Scene, kind: &'static str, patch: Value, reason: &str) -> Result<()> {
    let (kind, cluster) = (Kind::new(&scene.cluster, kind), &scene.cluster);
    kind.define_only(&spec(json!({}))).await?;
    kind.create("a").await?;
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    let patch = ByteString(patch.to_string().into_bytes());
    let webhook = Webhook::start(move |request| {
        counted.fetch_add(1, Ordering::SeqCst);
        match request["object"]["spec"]["color"].is_string() {
            true => json!({ "allowed": true, "patchType": "JSONPatch", "patch": patch }),
            false => json!({ "allowed": true }),
        }
    })
    .await?;
    let rules = json!([{
        "apiGroups": [GROUP], "apiVersions": ["*"], "resources": [kind.plural()], "operations": ["UPDATE"],
    }]);
    let configuration = json!({ "metadata": { "name": kind.plural() }, "webhooks": [{
        "name": format!("{}.example.com", kind.plural()), "clientConfig": webhook.client_config(),
        "rules": rules,
        "failurePolicy": "Fail", "sideEffects": "None", "admissionReviewVersions": ["v1"],
    }]});
    let configurations = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
    cluster.create(configurations, "admin", &configuration).await?;
    eventually(GUARD, "the webhook is asked", async || {
        let edit = json!({ "metadata": { "labels": { "seen": "yes" } } });
        cluster.patch(&kind.path("v1", "a"), Patch::Merge, "user", &edit).await?.ok()?;
        Ok((asked.load(Ordering::SeqCst) > 0).then_some(()))
    })
    .await?;
    let operator = scene.operator(&[])?;
    kind.define_only(&spec(red())).await?;
    cluster.persisted(&kind.crd(), reason, GUARD).await?;
    kind.stores("a", "/spec/color").await?;
    operator.stop().await?;
    cluster.delete(&format!("{configurations}/{}", kind.plural())).await.map(drop)
}

struct Kind<'a> {
    cluster: &'a Cluster,
    kind: &'static str,
}

impl<'a> Kind<'a> {
    fn new(cluster: &'a Cluster, kind: &'static str) -> Self {
        Self { cluster, kind }
    }

    fn plural(&self) -> String {
        plural(self.kind)
    }

    fn crd(&self) -> String {
        format!("{}.{GROUP}", self.plural())
    }

    fn path(&self, version: &str, name: &str) -> String {
        format!("/apis/{GROUP}/{version}/namespaces/default/{}/{name}", self.plural())
    }

    /// Defines `v1beta1` with this schema beside `v1`, which has the default.
    async fn define(&self, v1beta1: &Value, is_served: bool, conversion: Value) -> Result<()> {
        let versions = [("v1beta1", false, v1beta1.clone()), ("v1", true, spec(red()))];
        let mut crd = crd(GROUP, self.kind, &versions);
        crd["spec"]["versions"][0]["served"] = is_served.into();
        if !conversion.is_null() {
            crd["spec"]["conversion"] = conversion;
        }
        self.cluster.apply_crd(&crd).await.map(drop)
    }

    /// Defines one version.
    async fn define_only(&self, schema: &Value) -> Result<()> {
        self.cluster.apply_crd(&crd(GROUP, self.kind, &[("v1", true, schema.clone())])).await.map(drop)
    }

    async fn create(&self, name: &str) -> Result<()> {
        let object = json!({ "apiVersion": format!("{GROUP}/v1"), "kind": self.kind,
            "metadata": { "name": name, "namespace": "default" }, "spec": { "schedule": "s" } });
        let collection = format!("/apis/{GROUP}/v1/namespaces/default/{}", self.plural());
        self.cluster.create(&collection, "user", &object).await.map(drop)
    }

    /// Writes an object back as a client of `v1beta1` reads it: no owner changes.
    async fn write_back_at_v1beta1(&self, name: &str) -> Result<()> {
        let path = self.path("v1beta1", name);
        let object = self.cluster.get(&path).await?;
        self.cluster.send("PUT", &path, "application/json", serde_json::to_vec(&object)?).await?.ok()?;
        let raw = self.raw(name).await?;
        ensure!(raw["spec"]["color"].is_null(), "not the server that this is about: {raw}");
        Ok(())
    }

    async fn raw(&self, name: &str) -> Result<Value> {
        self.cluster.raw(GROUP, &self.plural(), Some("default"), name).await
    }

    async fn stores(&self, name: &str, pointer: &str) -> Result<()> {
        let raw = self.raw(name).await?;
        ensure!(raw.pointer(pointer).is_some(), "etcd lacks {pointer} of {name}: {raw}");
        Ok(())
    }

    async fn stores_soon(&self, name: &str, pointer: &str) -> Result<()> {
        eventually(GUARD, &format!("{pointer} of {name} is stored"), async || {
            Ok(self.raw(name).await?.pointer(pointer).map(drop))
        })
        .await
    }
}

fn red() -> Value {
    json!({ "color": { "type": "string", "default": "red" } })
}

fn spec(mut properties: Value) -> Value {
    properties["schedule"] = json!({ "type": "string" });
    with_spec(properties)
}
