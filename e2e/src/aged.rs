//! Objects and CRDs that look older than they are: as if the time had come at which no API server lags behind
//! a change any more. Their times are changed in etcd, and nothing else is.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::cluster::{CRDS, Cluster, GUARD, eventually};

/// When aged objects were written.
pub const BEFORE: &str = "2025-01-01T00:00:00Z";
/// When aged CRDs were changed: after aged objects were written, and long before anything else.
pub const LONG_AGO: &str = "2025-06-01T00:00:00Z";

/// Where etcd has CRDs, below `/registry/`.
pub const DEFINITIONS: &str = "apiextensions.k8s.io/customresourcedefinitions/";

/// Has every value under a key of etcd, such as `stable.example.com/crontabs/`, be written at a time.
///
/// # Errors
/// Etcd does not answer, or a value is no JSON.
pub async fn values(cluster: &Cluster, under: &str, time: &str) -> Result<()> {
    for value in cluster.etcd().list(&format!("/registry/{under}")).await? {
        cluster.etcd().put(&value.key, &dated(&value.bytes, time)?).await?;
    }
    Ok(())
}

/// Has a CRD's last change be [`LONG_AGO`], and waits until the API server shows that.
///
/// # Errors
/// There is no such CRD, or the API server does not show it.
pub async fn crd(cluster: &Cluster, name: &str) -> Result<()> {
    let key = format!("/registry/{DEFINITIONS}{name}");
    let (bytes, _) = cluster.etcd().get(&key).await?.with_context(|| key.clone())?;
    cluster.etcd().put(&key, &dated(&bytes, LONG_AGO)?).await?;
    let path = format!("{CRDS}/{name}");
    eventually(GUARD, "the CRD is old", async || {
        let seen = cluster.get(&path).await?;
        Ok((seen["metadata"]["creationTimestamp"] == json!(LONG_AGO)).then_some(()))
    })
    .await
}

/// A value with other times. All else stays as the API server wrote it, to the last byte: otherwise a write
/// that changes nothing would be one.
fn dated(bytes: &[u8], time: &str) -> Result<Vec<u8>> {
    let stored: Value = serde_json::from_slice(bytes)?;
    let owners = stored["metadata"]["managedFields"].as_array().into_iter().flatten();
    let mut times: Vec<(&str, &Value)> = owners.map(|owner| ("time", &owner["time"])).collect();
    times.push(("creationTimestamp", &stored["metadata"]["creationTimestamp"]));
    let mut text = String::from_utf8(bytes.to_vec())?;
    for (field, was) in times {
        text = text.replace(&format!("\"{field}\":{was}"), &format!("\"{field}\":\"{time}\""));
    }
    Ok(text.into_bytes())
}
