//! How the server refuses: the code, the reason, the form of the message and the causes of every refusal that
//! Etch distinguishes.
//!
//! Refusals that belong to a row of their own (a stale resourceVersion, a missing object, owners) are there.

use anyhow::Result;
use e2e::cluster::{GUARD, eventually};
use serde_json::{Value, json};

use crate::{
    cluster::{Answer, Cluster},
    rows,
    tabs::{ETCH, Tabs, defaulted, spec, text, v1, versions},
};

rows! {
    admission_policy: "a ValidatingAdmissionPolicy refuses with 422 or what it likes, even a write that \
        changes nothing (W14)",
    admission_webhook: "a webhook that is down is a 500 with a cause",
    validation: "a phantom default that breaks a rule is stored, a new one is refused with the field (C6)",
    size: "an object that grows beyond what etcd takes is a 500 without a reason",
    conversion: "without its conversion webhook a version lists as 429 without end and patches as 500",
    stored_version_gone: "bytes of a version that the CRD no longer has list as 429 without end",
    forbidden: "a missing right is a 403 without causes",
}

const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";

/// Sends identity-only applies until one is refused: the server watches policies, webhooks and roles.
async fn refused_at_last(tabs: &Tabs<'_>, name: &str) -> Result<Answer> {
    eventually(GUARD, &format!("{name} is refused"), async || {
        let answer = tabs.identity("v1", name).await?;
        Ok((answer.code != 200).then_some(answer))
    })
    .await
}

/// An object that has nothing left to store.
async fn unremarkable<'a>(cluster: &'a Cluster, row: &str) -> Result<Tabs<'a>> {
    let tabs = Tabs::new(cluster, row);
    tabs.define(v1(json!({"a": text()}))).await?;
    tabs.apply("v1", "a", "owner", json!({"spec": {"a": "x"}})).await?.ok()?;
    Ok(tabs)
}

/// Everything in the group of `tabs`, whatever is done to it.
fn everything(tabs: &Tabs<'_>) -> Value {
    json!([{"apiGroups": [tabs.group], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}])
}

async fn admission_policy(cluster: &Cluster) -> Result<()> {
    let violated = json!({"expression": "false", "message": "never"});
    let mut forbidding = violated.clone();
    forbidding["reason"] = json!("Forbidden");
    let failing = json!({"expression": "object.spec.b == 'x'"});
    for (name, validation, code, reason, message) in [
        ("policy-plain", violated, 422, "Invalid", "never"),
        ("policy-forbidding", forbidding, 403, "Forbidden", "never"),
        ("policy-failing", failing, 422, "Invalid", "resulted in error: no such key: b"),
    ] {
        let tabs = unremarkable(cluster, name).await?;
        let policy = json!({"metadata": {"name": name}, "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": everything(&tabs)},
            "validations": [validation],
        }});
        let binding = json!({"metadata": {"name": name},
                             "spec": {"policyName": name, "validationActions": ["Deny"]}});
        cluster.post(&format!("{ADMISSION}/validatingadmissionpolicies"), &policy).await?.ok()?;
        cluster.post(&format!("{ADMISSION}/validatingadmissionpolicybindings"), &binding).await?.ok()?;

        let answer = refused_at_last(&tabs, "a").await?;
        let denied = format!("ValidatingAdmissionPolicy '{name}' with binding '{name}' denied request: ");
        answer.refused(code, reason, &format!(r#"crontabs.{} "a" is forbidden: {denied}"#, tabs.group))?;
        answer.refused(code, reason, message)?;
        let causes = answer.body["details"]["causes"].as_array().map(Vec::as_slice).unwrap_or_default();
        let [cause] = causes else { anyhow::bail!("{} causes", causes.len()) };
        assert!((cause.get("field"), cause.get("reason")) == (None, None), "{cause}");
        assert_eq!(answer.body["details"]["kind"], "crontabs", "the plural, where validation has the kind");
    }
    Ok(())
}

async fn admission_webhook(cluster: &Cluster) -> Result<()> {
    for (name, path) in [
        ("webhook-validating", "validatingwebhookconfigurations"),
        ("webhook-mutating", "mutatingwebhookconfigurations"),
    ] {
        let tabs = unremarkable(cluster, name).await?;
        let webhook = json!({"metadata": {"name": name}, "webhooks": [{
            "name": "down.example.com",
            "clientConfig": {"url": "https://127.0.0.1:1/review"},
            "rules": everything(&tabs),
            "failurePolicy": "Fail", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        }]});
        cluster.post(&format!("{ADMISSION}/{path}"), &webhook).await?.ok()?;
        let answer = refused_at_last(&tabs, "a").await?;
        let message =
            r#"Internal error occurred: failed calling webhook "down.example.com": failed to call webhook: "#;
        answer.refused(500, "InternalError", message)?;
        assert_eq!(answer.body["details"]["causes"].as_array().map(Vec::len), Some(1));
    }
    Ok(())
}

async fn validation(cluster: &Cluster) -> Result<()> {
    let tabs = Tabs::new(cluster, "validation");
    let number = json!({"type": "integer"});
    let ruled = |more: Value| {
        let properties = json!({"min": number, "max": {"type": "integer", "default": 5}});
        let mut schema = spec(properties);
        schema["properties"]["spec"]["x-kubernetes-validations"] =
            json!([{"rule": "self.min <= self.max", "message": "min must not exceed max"}]);
        schema["properties"]["spec"]["required"] = more;
        schema
    };
    tabs.define(v1(json!({"min": number}))).await?;
    tabs.apply("v1", "a", "owner", json!({"spec": {"min": 10}})).await?.ok()?;
    // The read view broke the rule before the write too, so the rule is not looked at; neither is what is
    // missing.
    tabs.define(versions([("v1", ruled(json!([])))])).await?;
    tabs.identity("v1", "a").await?.ok()?;
    assert_eq!(tabs.raw("a").await?["spec"], json!({"min": 10, "max": 5}));
    let answer = tabs.apply("v1", "a", "owner", json!({"spec": {"min": 11}})).await?;
    answer.refused(422, "Invalid", &format!(r#"CronTab.{} "a" is invalid: spec: "#, tabs.group))?;
    assert_eq!(answer.fields(), ["spec"]);
    assert_eq!(answer.body["details"]["kind"], "CronTab");

    // To an object of another version the default is new, and all rules count.
    let tabs = Tabs::new(cluster, "validation-versions");
    let older = spec(json!({"min": number}));
    tabs.define(versions([("v1beta1", older.clone())])).await?;
    tabs.apply("v1beta1", "a", "owner", json!({"spec": {"min": 10}})).await?.ok()?;
    let read = tabs.raw("a").await?;
    tabs.define(versions([("v1beta1", older), ("v1", ruled(json!([])))])).await?;
    for answer in [
        tabs.merge("v1", "a", ETCH, json!({})).await?,
        tabs.reversion("v1", "a", "v1").await?,
        tabs.identity("v1", "a").await?,
    ] {
        answer.refused(422, "Invalid", "min must not exceed max")?;
        assert_eq!(answer.fields(), ["spec"]);
    }
    assert_eq!(tabs.raw("a").await?, read);
    Ok(())
}

async fn size(cluster: &Cluster) -> Result<()> {
    let tabs = Tabs::new(cluster, "size");
    tabs.define(v1(json!({"a": text()}))).await?;
    // etcd takes requests of 1.5 MiB.
    let large = "x".repeat(1_560_000);
    tabs.create("v1", "a", "owner", json!({"spec": {"a": large}})).await?;
    let before = tabs.revision("a").await?;
    tabs.define(v1(json!({"a": text(), "more": defaulted(&"y".repeat(20_000))}))).await?;
    for answer in [tabs.identity("v1", "a").await?, tabs.merge("v1", "a", ETCH, json!({})).await?] {
        answer.refused(500, "", "etcdserver: request is too large")?;
        assert_eq!(answer.body.get("details"), None);
    }
    assert_eq!(tabs.revision("a").await?, before);
    Ok(())
}

async fn conversion(cluster: &Cluster) -> Result<()> {
    let tabs = Tabs::new(cluster, "conversion");
    let older = spec(json!({"a": text()}));
    tabs.define(versions([("v1beta1", older.clone())])).await?;
    tabs.apply("v1beta1", "a", "owner", json!({"spec": {"a": "x"}})).await?.ok()?;
    let before = tabs.revision("a").await?;
    let webhook = json!({"strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://127.0.0.1:1/convert"},
    }});
    let newer = spec(json!({"a": text(), "color": defaulted("red")}));
    tabs.define(versions([("v1beta1", older), ("v1", newer)]).converted(webhook)).await?;

    let cause = format!("conversion webhook for {}/v1beta1, Kind=CronTab failed: ", tabs.group);
    lists_as_429(&tabs, &cause).await?;
    let reason = if cluster.since("1.37")? { "InternalError" } else { "" };
    tabs.get("v1", "a").await?.refused(500, reason, &cause)?;
    let uid = tabs.precondition("v1beta1", "a").await?["uid"].clone();
    tabs.apply("v1", "a", ETCH, json!({"metadata": {"uid": uid}})).await?.refused(500, "", &cause)?;
    tabs.merge("v1", "a", ETCH, json!({})).await?.refused(500, "", &cause)?;
    assert_eq!(tabs.revision("a").await?, before);
    Ok(())
}

async fn stored_version_gone(cluster: &Cluster) -> Result<()> {
    let tabs = Tabs::new(cluster, "version-gone");
    let schema = || spec(json!({"a": text()}));
    tabs.define(versions([("v1beta1", schema())])).await?;
    tabs.apply("v1beta1", "a", "owner", json!({"spec": {"a": "x"}})).await?.ok()?;
    tabs.define(versions([("v1beta1", schema()), ("v1", schema())])).await?;
    tabs.forget_versions_but(&["v1"]).await?;
    tabs.define(versions([("v1", schema())])).await?;

    let cause = format!("request to convert CR from an invalid group/version: {}/v1beta1", tabs.group);
    lists_as_429(&tabs, &cause).await?;
    tabs.merge("v1", "a", ETCH, json!({})).await?.refused(500, "", &cause)
}

/// Fails unless the list at v1 is answered with 429 and, sooner or later, with `cause`.
async fn lists_as_429(tabs: &Tabs<'_>, cause: &str) -> Result<()> {
    eventually(GUARD, &format!("the list is answered with {cause:?}"), async || {
        let answer = tabs.get("v1", "").await?;
        let is_429 = answer.refused(429, "TooManyRequests", "storage is (re)initializing");
        assert!(is_429.is_ok(), "{is_429:?}");
        assert!(answer.body["details"]["retryAfterSeconds"].as_i64().is_some_and(|seconds| seconds >= 1));
        Ok(answer.refused(429, "TooManyRequests", cause).ok())
    })
    .await
}

async fn forbidden(cluster: &Cluster) -> Result<()> {
    let tabs = unremarkable(cluster, "forbidden").await?;
    let robot = tabs.seen_by(cluster.service_account("onlooker", &tabs.group, &["get"]).await?);
    let answer = robot.merge("v1", "a", ETCH, json!({})).await?;
    let message =
        r#"User "system:serviceaccount:default:onlooker" cannot patch resource "crontabs" in API group "#;
    answer.refused(403, "Forbidden", message)?;
    assert_eq!(answer.body["details"].get("causes"), None);
    Ok(())
}
