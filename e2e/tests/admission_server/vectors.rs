//! Requests whose answers by the providers' own webhooks are known, sent to the API server as dry runs.
//! It has no rule of a provider.

use anyhow::{Context, Result, ensure};
use e2e::cluster::{Answer, Cluster, GUARD, eventually};
use e2e::conformance::admission::{Line, each_line};
use e2e::install::root;
use e2e::scene::apply;
use etch_admission::{FieldError, Operation, Review};
use futures::{StreamExt, TryStreamExt, stream};
use kube_structural_schema::finding::Kind;
use serde_json::{Value, json};

use crate::stage::{PLATFORMS, apply_schema, condition, infrastructure};

/// The cluster and the namespace of most of them.
const ID: &str = "demo-x7k2p";
const NAMESPACE: &str = "openshift-machine-api";
/// How many requests are under way at once.
const AT_ONCE: usize = 8;
/// How many there are at least for a platform.
const ENOUGH: usize = 100;

/// All schemas are there, and the Infrastructure decides which of them applies.
pub(crate) async fn each_platform_is_answered_by_its_schema(cluster: &Cluster) -> Result<()> {
    apply(cluster, &json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE } }))
        .await?;
    for platform in PLATFORMS {
        apply_schema(cluster, platform, |_| ()).await?;
    }
    for platform in PLATFORMS {
        condition(cluster, platform, "FactsKnown", "AllKnown").await?;
        condition(cluster, platform, "Serving", "Served").await?;
    }
    for status in [
        json!({ "type": "AWS", "aws": { "region": "eu-west-1" } }),
        json!({ "type": "Azure", "azure": { "cloudName": "AzurePublicCloud" } }),
        json!({ "type": "GCP", "gcp": { "projectID": "proj-1" } }),
        json!({ "type": "VSphere" }),
    ] {
        infrastructure(cluster, ID, &status).await?;
        answered(cluster, &status).await.with_context(|| status["type"].to_string())?;
    }
    Ok(())
}

async fn answered(cluster: &Cluster, status: &Value) -> Result<()> {
    let mut lines = Vec::new();
    each_line(&[root().join("e2e/admission")], &mut |line| {
        if is_about(&line, status) {
            lines.push(line);
        }
    })?;
    ensure!(lines.len() >= ENOUGH, "only {} lines", lines.len());
    // Both webhooks have to be known to the API server, and the fact to the operator.
    let denied = lines.iter().find(|line| !line.is_allowed()).context("one that is denied")?;
    let defaulted = lines.iter().find(|line| line.is_allowed() && is_defaulted(line)).context("a default")?;
    for line in [denied, defaulted] {
        eventually(GUARD, &format!("{} is answered by its schema", line.id), async || {
            Ok(disagreements(cluster, line).await?.is_empty().then_some(()))
        })
        .await?;
    }
    let wrong: Vec<String> = stream::iter(&lines)
        .map(|line| async move {
            let found = disagreements(cluster, line).await?;
            Ok::<_, anyhow::Error>((!found.is_empty()).then(|| format!("{}: {found:?}", line.id)))
        })
        .buffer_unordered(AT_ONCE)
        .try_filter_map(|wrong| std::future::ready(Ok(wrong)))
        .try_collect()
        .await?;
    ensure!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), lines.len(), wrong.join("\n"));
    Ok(())
}

/// Creates on this platform that the webhooks have answered only by their rules.
fn is_about(line: &Line, status: &Value) -> bool {
    let gates = json!({ "VSphereHostVMGroupZonal": true });
    line.operation == Operation::Create
        && !line.is_flagged()
        && line.defaulted().is_some()
        && line.facts["platformStatus"] == *status
        && line.facts["clusterID"] == ID
        && line.facts["dnsDisconnected"] == false
        && line.facts["featureGates"] == gates
        && line.object["metadata"]["namespace"] == NAMESPACE
}

fn is_defaulted(line: &Line) -> bool {
    line.defaulted().is_some_and(|defaulted| **defaulted != *line.object)
}

async fn disagreements(cluster: &Cluster, line: &Line) -> Result<Vec<String>> {
    let plural = if line.object["kind"] == "Machine" { "machines" } else { "machinesets" };
    let path = format!("/apis/machine.openshift.io/v1beta1/namespaces/{NAMESPACE}/{plural}?dryRun=All");
    let answer = cluster.send("POST", &path, "application/json", line.object.to_vec()).await?;
    Ok(line.disagreements(&review(line, &answer)?).into_iter().collect())
}

/// What the API server has answered, as a review. A refusal shows no object.
fn review(line: &Line, answer: &Answer) -> Result<Review> {
    let mut review = Review { object: line.defaulted().cloned(), ..Review::default() };
    if answer.code == 201 {
        let object = review.object.as_deref_mut().context("an object")?;
        for at in ["/metadata/labels", "/spec/providerSpec/value", "/spec/template/spec/providerSpec/value"] {
            match (object.pointer_mut(at), answer.body.pointer(at)) {
                (Some(expected), Some(given)) => *expected = given.clone(),
                (None, None) => {}
                (Some(expected), None) => *expected = Value::Null,
                (None, Some(_)) => anyhow::bail!("{}: nothing is expected at {at}", line.id),
            }
        }
        return Ok(review);
    }
    ensure!(answer.code == 422, "{}: {}", line.id, answer.body);
    let message = answer.body["message"].as_str().unwrap_or_default();
    ensure!(message.starts_with("admission webhook \"machine-api-"), "{}: {message}", line.id);
    let causes = answer.body["details"]["causes"].as_array().context("causes")?;
    for cause in causes {
        let field = cause["field"].as_str().context("a field")?.to_owned();
        review.answer.errors.push(FieldError { field, kind: Kind::Invalid, detail: String::new() });
    }
    Ok(review)
}
