//! Widgets in several namespaces, whose CRD gains the default 1 of `.spec.size`.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::cluster::{Cluster, crd, with_spec};

/// The CRD, with the default or without it.
pub fn definition(group: &str, has_default: bool) -> Value {
    let mut properties = json!({ "name": { "type": "string" } });
    if has_default {
        properties["size"] = json!({ "type": "integer", "default": 1 });
    }
    crd(group, "Widget", &[("v1", true, with_spec(properties))])
}

/// Applies it.
///
/// # Errors
/// It is refused.
pub async fn define(cluster: &Cluster, group: &str, has_default: bool) -> Result<()> {
    cluster.apply_crd(&definition(group, has_default)).await.map(drop)
}

/// Objects as [`stored`] names them.
pub fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// The objects that hold the default in etcd, as `namespace/name`.
///
/// # Errors
/// etcd does not answer, or holds something else.
pub async fn stored(cluster: &Cluster, group: &str) -> Result<BTreeSet<String>> {
    let mut stored = BTreeSet::new();
    for value in cluster.etcd().list(&format!("/registry/{group}/widgets/")).await? {
        let object: Value = serde_json::from_slice(&value.bytes)?;
        if object["spec"]["size"] == 1 {
            let text = |field: &str| object["metadata"][field].as_str().context("metadata");
            stored.insert(format!("{}/{}", text("namespace")?, text("name")?));
        }
    }
    Ok(stored)
}
