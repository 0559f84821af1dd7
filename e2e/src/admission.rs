//! Admission that refuses changes of an object.

use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};

use crate::cluster::{Cluster, Patch, eventually};

const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";

/// Has an admission policy `freeze` refuse every update that this validation does, and waits until the object
/// at `path` cannot be changed.
///
/// # Errors
/// The policy is not taken, or refuses nothing.
pub async fn freeze(
    cluster: &Cluster,
    group: &str,
    resource: &str,
    path: &str,
    validation: Value,
) -> Result<()> {
    deny_updates(cluster, "freeze", group, resource, validation).await?;
    eventually(Duration::from_secs(30), "the object is frozen", async || {
        let edit = json!({ "metadata": { "labels": { "seen": "yes" } } });
        let answer = cluster.patch(path, Patch::Merge, "user", &edit).await?;
        Ok((answer.code == 422).then_some(()))
    })
    .await
}

/// Has an admission policy of this name refuse every update that this validation does. It takes a while until
/// it is in force.
///
/// # Errors
/// The policy is not taken.
pub async fn deny_updates(
    cluster: &Cluster,
    name: &str,
    group: &str,
    resource: &str,
    validation: Value,
) -> Result<()> {
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": { "name": name },
        "spec": {
            "matchConstraints": { "resourceRules": [{
                "apiGroups": [group], "apiVersions": ["*"], "resources": [resource], "operations": ["UPDATE"],
            }]},
            "validations": [validation],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": { "name": name },
        "spec": { "policyName": name, "validationActions": ["Deny"] },
    });
    cluster.create(&format!("{ADMISSION}/validatingadmissionpolicies"), "admin", &policy).await?;
    cluster.create(&format!("{ADMISSION}/validatingadmissionpolicybindings"), "admin", &binding).await?;
    Ok(())
}
