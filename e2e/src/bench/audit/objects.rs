//! The objects that are audited: a hundred thousand of two kilobytes, half of which etcd holds without their
//! defaults. It writes them to etcd: through the API server that would take minutes, and is not what is
//! measured.

use anyhow::Context;
use futures::stream::{self, StreamExt, TryStreamExt};
use serde_json::{Value, json};

use crate::cluster::{Cluster, crd};
use crate::control_plane::object_key;

const GROUP: &str = "bench.example.com";
pub(super) const CRD: &str = "crontabs.bench.example.com";
pub(super) const COLLECTION: &str = "/apis/bench.example.com/v1/crontabs";
/// Objects that one request writes, and requests at once.
const TOGETHER: u64 = 100;
const AT_ONCE: usize = 4;

/// Writes the objects to etcd, and then lets the API server serve them.
pub(super) async fn write(cluster: &Cluster, objects: u64) -> anyhow::Result<()> {
    let batches = (0..objects).step_by(usize::try_from(TOGETHER)?).map(|first| async move {
        let batch = (first..objects.min(first + TOGETHER)).map(|index| {
            let name = format!("object-{index:06}");
            let key = object_key(GROUP, "crontabs", Some("default"), &name);
            (key, object(&name, index).to_string().into_bytes())
        });
        cluster.etcd().put_all(batch).await
    });
    stream::iter(batches).buffer_unordered(AT_ONCE).try_collect::<()>().await?;
    cluster.apply_crd(&crd(GROUP, "CronTab", &[("v1", true, schema())])).await.context("the CRD")?;
    Ok(())
}

fn schema() -> Value {
    let text = || json!({ "type": "string" });
    let with = |kind: &str, default: Value| json!({ "type": kind, "default": default });
    let container = json!({ "type": "object", "required": ["name"], "properties": {
        "name": text(), "image": text(), "args": { "type": "array", "items": text() },
        "pullPolicy": with("string", json!("IfNotPresent")),
        "env": {
            "type": "array", "items": { "type": "object", "properties": { "name": text(), "value": text() } },
        },
        "ports": { "type": "array", "items": { "type": "object", "properties": {
            "number": { "type": "integer" }, "protocol": with("string", json!("TCP")),
        } } },
        "resources": { "type": "object", "additionalProperties": text() },
    } });
    json!({ "type": "object", "properties": {
        "spec": { "type": "object", "properties": {
            "schedule": text(),
            "replicas": with("integer", json!(1)),
            "suspend": with("boolean", json!(false)),
            "history": { "type": "object", "default": {}, "properties": {
                "succeeded": with("integer", json!(3)), "failed": with("integer", json!(1)),
            } },
            "labels": { "type": "object", "additionalProperties": text() },
            "containers": { "type": "array", "items": container,
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"] },
        } },
        "status": { "type": "object", "properties": { "last": text(), "active": { "type": "integer" } } },
    } })
}

/// An object with its owners, about two kilobytes as it is read.
fn object(name: &str, index: u64) -> Value {
    let is_stored = index.is_multiple_of(2);
    let container = |name: &str| {
        let mut container = json!({
            "name": name, "image": format!("registry.example.com/team/{name}:1.{index}"),
            "args": ["--config=/etc/app/config.yaml", "--log-level=info"],
            "env": [{ "name": "REGION", "value": "eu-1" }, { "name": "TIER", "value": "batch" }],
            "ports": [{ "number": 8080 }, { "number": 9090 }],
            "resources": { "cpu": "100m", "memory": "128Mi" },
        });
        if is_stored {
            container["pullPolicy"] = "IfNotPresent".into();
            container["ports"] =
                json!([{ "number": 8080, "protocol": "TCP" }, { "number": 9090, "protocol": "TCP" }]);
        }
        container
    };
    let owned = json!({
        ".": {}, "f:name": {}, "f:image": {}, "f:args": {}, "f:env": {}, "f:ports": {}, "f:resources": {
            ".": {}, "f:cpu": {}, "f:memory": {},
        },
    });
    let mut object = json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": "CronTab",
        "metadata": {
            "name": name, "namespace": "default", "uid": format!("00000000-0000-4000-8000-{index:012}"),
            "creationTimestamp": "2026-01-01T00:00:00Z", "generation": 1,
            "labels": { "app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "bench" },
            "managedFields": [{
                "manager": "kubectl", "operation": "Apply", "apiVersion": format!("{GROUP}/v1"),
                "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1",
                "fieldsV1": {
                    "f:metadata": {
                        "f:labels": { "f:app.kubernetes.io/name": {}, "f:app.kubernetes.io/part-of": {} },
                    },
                    "f:spec": {
                        "f:schedule": {},
                        "f:labels": { "f:team": {}, "f:cost": {} },
                        "f:containers": { "k:{\"name\":\"main\"}": owned, "k:{\"name\":\"side\"}": owned },
                    },
                },
            }],
        },
        "spec": {
            "schedule": "*/5 * * * *",
            "labels": { "team": "a", "cost": "low" },
            "containers": [container("main"), container("side")],
        },
        "status": { "last": "2026-01-01T00:05:00Z", "active": 0 },
    });
    if is_stored {
        object["spec"]["replicas"] = 1.into();
        object["spec"]["suspend"] = false.into();
        object["spec"]["history"] = json!({ "succeeded": 3, "failed": 1 });
    }
    object
}
