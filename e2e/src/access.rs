//! What the operator's service account may do, as the API server answers it.
//! How a permission came about, by which roles, is not what is asked.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::cluster::{Cluster, eventually};
use crate::scene::NAMESPACE;

/// Every verb that RBAC knows for resources.
const VERBS: [&str; 8] = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];

/// What a SubjectAccessReview asks about, except the verb: all objects of a resource, or of a
/// `resource/subresource`.
pub fn attributes(group: &str, resource: &str) -> Value {
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    json!({"group": group, "resource": resource, "subresource": subresource})
}

/// Waits until the service account may use exactly these verbs: the authorizer learns of roles with a delay,
/// and a role that is aggregated from others is delayed as well.
///
/// # Errors
/// It does not happen in time; the error names what is granted instead.
pub async fn granted_soon(cluster: &Cluster, attributes: Value, verbs: &[&str]) -> Result<()> {
    let wanted: BTreeSet<&str> = verbs.iter().copied().collect();
    let mut last = BTreeSet::new();
    let found = eventually(Duration::from_secs(20), "the granted verbs", async || {
        last = granted(cluster, &attributes).await?;
        Ok((last == wanted).then_some(()))
    })
    .await;
    found.with_context(|| format!("{attributes}: granted are {last:?}, and should be {wanted:?}"))
}

/// The verbs that the service account may use.
async fn granted(cluster: &Cluster, attributes: &Value) -> Result<BTreeSet<&'static str>> {
    let mut granted = BTreeSet::new();
    for verb in VERBS {
        let mut attributes = attributes.clone();
        attributes["verb"] = json!(verb);
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": format!("system:serviceaccount:{NAMESPACE}:etch"),
                "groups": ["system:serviceaccounts", format!("system:serviceaccounts:{NAMESPACE}"),
                           "system:authenticated"],
                "resourceAttributes": attributes,
            },
        });
        let reviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        if cluster.create(reviews, "test", &review).await?["status"]["allowed"] == true {
            granted.insert(verb);
        }
    }
    Ok(granted)
}
