//! Certificates that Etch makes itself, renewed while requests come all the time.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::cluster::{Cluster, GUARD, Patch, documents, eventually};
use e2e::install::root;
use e2e::permissions::{Differences, compare, granted, used};
use e2e::scene::apply;
use serde_json::{Value, json};

use crate::load::{Load, held};
use crate::stage::{Stage, apply_schema, condition};
use crate::{denied_soon, strict};

const SECRET: &str = "/api/v1/namespaces/etch-system/secrets/etch-admission-certificates";
/// How long a certificate is valid. Two thirds of it are longer than a new authority has to be trusted.
const LIFETIME: &str = "--admission-certificate-lifetime=50s";

#[tokio::test(flavor = "multi_thread")]
async fn certificates_are_renewed_under_load_and_no_request_fails() -> Result<()> {
    let stage = Stage::start().await?;
    let cluster = &stage.scene.cluster;
    for object in role()? {
        apply(cluster, &object).await?;
    }
    let own = "--admission-certificates-secret=etch-admission-certificates";
    let operator = stage.operator_with(&[own, LIFETIME])?;
    apply_schema(cluster, "aws", strict).await?;
    condition(cluster, "aws", "Serving", "Served").await?;
    denied_soon(cluster).await?;
    let first = cluster.get(SECRET).await?;
    assert_eq!(first["type"], "kubernetes.io/tls");

    let load = Load::start(cluster, stage.serving.address);
    for _ in 0..3 {
        load.goes_on().await?;
        another_authority(cluster).await?;
    }
    // And by itself, as two thirds of its time are over.
    let before = cluster.get(SECRET).await?;
    eventually(2 * GUARD, "another certificate", async || {
        let now = cluster.get(SECRET).await?;
        Ok((now["data"]["tls.crt"] != before["data"]["tls.crt"]).then_some(()))
    })
    .await?;
    load.goes_on().await?;
    load.end().await?;

    // What is broken is made again, and what is foreign is taken out.
    let junk = json!({ "data": { "tls.crt": "Y2FuYXJ5", "ca.crt": "Y2FuYXJ5" } });
    cluster.patch(SECRET, Patch::Merge, "author", &junk).await?.ok()?;
    eventually(GUARD, "the certificate is whole again", async || {
        let now = cluster.get(SECRET).await?;
        Ok((now["data"]["ca.crt"] != junk["data"]["ca.crt"]).then_some(()))
    })
    .await?;
    denied_soon(cluster).await?;

    let log = operator.log()?;
    operator.stop().await?;
    let served = log.matches("loaded the admission certificate").count();
    ensure!(served >= 5, "{served} certificates were served");
    for key in ["tls.key", "ca.key"] {
        let pem = String::from_utf8(held(&first, key)?)?;
        let line = pem.lines().nth(1).context("a line of the key")?;
        ensure!(!log.contains(line), "a key is in the log");
    }
    what_is_granted_is_needed(&stage)
}

/// No replica can sign any more, so another authority is made; when it is trusted, it signs.
async fn another_authority(cluster: &Cluster) -> Result<()> {
    let before = cluster.get(SECRET).await?;
    let lost = json!({ "data": { "ca.key": null } });
    cluster.patch(SECRET, Patch::Merge, "author", &lost).await?.ok()?;
    let mut overlap = false;
    eventually(Duration::from_secs(60), "a certificate by another authority", async || {
        let now = cluster.get(SECRET).await?;
        let is_new = |key: &str| now["data"][key] != before["data"][key];
        overlap |= is_new("ca.crt") && !is_new("tls.crt");
        Ok((is_new("ca.crt") && is_new("tls.crt")).then_some(()))
    })
    .await?;
    ensure!(overlap, "the new authority was not there before what it signs");
    Ok(())
}

/// No request to Secrets was refused, and the overlay grants nothing that was not needed.
fn what_is_granted_is_needed(stage: &Stage) -> Result<()> {
    let requests = stage.scene.requests(|event| {
        let object = &event["objectRef"];
        object["resource"] == "secrets" && object["namespace"] == "etch-system"
    })?;
    let role: Vec<Value> = role()?.into_iter().filter(|object| object["kind"] == "Role").collect();
    let differences = compare(&granted(&role)?, &used(&requests));
    ensure!(differences == Differences::default(), "granted and needed differ: {differences:?}");
    Ok(())
}

fn role() -> Result<Vec<Value>> {
    let folder = root().join("config/admission-self-managed");
    Ok([documents(&folder.join("role.yaml"))?, documents(&folder.join("role-binding.yaml"))?].concat())
}
