//! What the server does after mutating admission (D13). What webhooks do is in the write matrix.
//!
//! Releases before 1.36 have MutatingAdmissionPolicies only behind a feature gate.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::json;
use tokio::time::sleep;

use crate::{
    cluster::Cluster,
    rows,
    tabs::{ETCH, Tabs, defaulted, text, v1},
};

rows! {
    d13_policy: "after a MutatingAdmissionPolicy that removes a default the server fills it in again, and stores it",
}

const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";

async fn d13_policy(cluster: &Cluster) -> Result<()> {
    if !cluster.since("1.36")? {
        return Ok(());
    }
    let tabs = Tabs::new(cluster, "d13-policy");
    tabs.define(v1(json!({"a": text()}))).await?;
    tabs.apply("v1", "a", "owner", json!({"spec": {"a": "x"}})).await?.ok()?;
    tabs.apply("v1", "probe", "owner", json!({"spec": {"a": "x"}})).await?.ok()?;
    tabs.define(v1(json!({"a": text(), "color": defaulted("red")}))).await?;
    // The annotation shows that the policy is in force.
    let expression = r#"[JSONPatch{op: "remove", path: "/spec/color"},
        JSONPatch{op: "add", path: "/metadata/annotations", value: {"stripped": "yes"}}]"#;
    let policy = json!({"metadata": {"name": "d13"}, "spec": {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "matchConstraints": {"resourceRules": [{
            "apiGroups": [tabs.group], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": ["*"],
        }]},
        "matchConditions": [{"name": "colored", "expression": "has(object.spec.color)"}],
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}],
    }});
    let binding = json!({"metadata": {"name": "d13"}, "spec": {"policyName": "d13"}});
    cluster.post(&format!("{ADMISSION}/mutatingadmissionpolicies"), &policy).await?.ok()?;
    cluster.post(&format!("{ADMISSION}/mutatingadmissionpolicybindings"), &binding).await?.ok()?;
    let start = Instant::now();
    loop {
        let answer = tabs.merge("v1", "probe", ETCH, json!({})).await?;
        // The policy's own watch of CRDs may lag behind the one that serves objects.
        let is_unknown = answer.code == 503 && answer.body.to_string().contains("There can be a delay");
        if !is_unknown {
            answer.ok()?;
        }
        if tabs.raw("probe").await?["metadata"]["annotations"]["stripped"] == "yes" {
            break;
        }
        ensure!(start.elapsed() < Duration::from_secs(60), "the policy is never in force");
        sleep(Duration::from_millis(50)).await;
    }

    tabs.create("v1", "new", "owner", json!({"spec": {"a": "x"}})).await?;
    tabs.identity("v1", "a").await?.ok()?;
    for name in ["new", "a"] {
        let raw = tabs.raw(name).await?;
        assert_eq!(raw["metadata"]["annotations"]["stripped"], "yes", "{name}");
        assert_eq!(raw["spec"]["color"], "red", "{name}");
    }
    // A repeat changes nothing: what the policy does is the same each time.
    tabs.settled("v1", "a").await
}
