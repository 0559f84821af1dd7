//! What the server does after mutating admission (D13). What webhooks do is in the write matrix.
//!
//! Releases before 1.36 have MutatingAdmissionPolicies only behind a feature gate.

use anyhow::Result;
use e2e::cluster::{GUARD, eventually};
use serde_json::{Value, json};

use crate::{
    cluster::Cluster,
    rows,
    tabs::{ETCH, Tabs, defaulted, text, v1},
};

rows! {
    d13_policy: "after a MutatingAdmissionPolicy that removes a default the server fills it in again, and \
        stores it",
    r14: "what a MutatingAdmissionPolicy sets is stored although no version declares it, and nobody owns it",
}

const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";

/// Has a policy mutate objects that fulfil a condition.
async fn set_policy(
    cluster: &Cluster,
    tabs: &Tabs<'_>,
    name: &str,
    expression: &str,
    condition: &str,
) -> Result<()> {
    let policy = json!({"metadata": {"name": name}, "spec": {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "matchConstraints": {"resourceRules": [{
            "apiGroups": [tabs.group], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"],
            "resources": [
                "*",
            ],
        }]},
        "matchConditions": [{"name": "meant", "expression": condition}],
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}],
    }});
    let binding = json!({"metadata": {"name": name}, "spec": {"policyName": name}});
    cluster.post(&format!("{ADMISSION}/mutatingadmissionpolicies"), &policy).await?.ok()?;
    cluster.post(&format!("{ADMISSION}/mutatingadmissionpolicybindings"), &binding).await?.ok().map(drop)
}

/// Writes the probe until its bytes show that the policy is in force.
async fn in_force(tabs: &Tabs<'_>, is_shown: impl Fn(&Value) -> bool) -> Result<()> {
    eventually(GUARD, "the policy is in force", async || {
        // The policy's own watch of CRDs may lag behind the one that serves objects.
        tabs.merge("v1", "probe", ETCH, json!({})).await?.ok()?;
        Ok(is_shown(&tabs.raw("probe").await?).then_some(()))
    })
    .await
}

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
    set_policy(cluster, &tabs, "d13", expression, "has(object.spec.color)").await?;
    in_force(&tabs, |probe| probe["metadata"]["annotations"]["stripped"] == "yes").await?;

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

async fn r14(cluster: &Cluster) -> Result<()> {
    if !cluster.since("1.36")? {
        return Ok(());
    }
    let tabs = Tabs::new(cluster, "r14-policy");
    tabs.define(v1(json!({"a": text()}))).await?;
    tabs.apply("v1", "probe", "owner", json!({"spec": {"a": "x"}})).await?.ok()?;
    let expression = r#"[JSONPatch{op: "add", path: "/spec/unknown", value: "red"}]"#;
    set_policy(cluster, &tabs, "r14", expression, "!has(object.spec.other)").await?;
    in_force(&tabs, |probe| probe["spec"]["unknown"] == "red").await?;
    tabs.create("v1", "new", "owner", json!({"spec": {"a": "x"}})).await?;
    assert_eq!(tabs.raw("new").await?["spec"], json!({"a": "x", "unknown": "red"}));
    tabs.define(v1(json!({"a": text(), "unknown": defaulted("red")}))).await?;
    let now = tabs.stored("new").await?;
    assert_eq!(now.generation, 1);
    assert_eq!(now.owners, ["owner Update v1: .spec .spec.a"]);
    Ok(())
}
