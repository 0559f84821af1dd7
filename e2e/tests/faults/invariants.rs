//! What must hold whatever happened, from raw etcd and the conditions. It must not know any fault but by its name.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use e2e::cluster::Cluster;
use e2e::faults::Seen;
use serde_json::{Value, json};

use crate::workload::{GROUP, Subject, Workload};

/// Every object of all subjects with the revision of its last write.
pub(crate) async fn revisions(cluster: &Cluster) -> Result<BTreeMap<String, i64>> {
    let all = cluster.etcd().list(&format!("/registry/{GROUP}/")).await?;
    Ok(all.into_iter().map(|raw| (raw.key, raw.mod_revision)).collect())
}

/// The objects of a subject, with how often they were written and the revision of the last write.
async fn stored(cluster: &Cluster, subject: &Subject) -> Result<BTreeMap<String, (Value, i64, i64)>> {
    let prefix = format!("/registry/{GROUP}/{}/default/", subject.plural());
    let all = cluster.etcd().list(&prefix).await?;
    all.into_iter()
        .map(|raw| {
            let name = raw.key.trim_start_matches(&prefix).to_owned();
            Ok((name, (serde_json::from_slice(&raw.bytes)?, raw.version, raw.mod_revision)))
        })
        .collect()
}

/// Whether etcd is a fixed point of filling, and the condition of the CRD's present generation says so.
pub(crate) async fn is_stable(cluster: &Cluster, subject: &Subject) -> Result<bool> {
    let condition = cluster.condition(&subject.crd(), "DefaultsPersisted").await?;
    if condition.is_none_or(|condition| !condition.current || condition.reason != subject.reason()) {
        return Ok(false);
    }
    let stored = stored(cluster, subject).await?;
    Ok(subject
        .expected
        .iter()
        .all(|(name, expected)| stored.get(name).is_some_and(|(raw, ..)| raw["spec"] == expected.spec)))
}

/// What is broken.
pub(crate) async fn broken(
    cluster: &Cluster,
    subject: &Subject,
    seen: &[Seen],
    kills: i64,
) -> Result<Vec<String>> {
    let mut broken = Vec::new();
    let stored = stored(cluster, subject).await?;
    let names: BTreeSet<_> = stored.keys().collect();
    if names != subject.expected.keys().collect() {
        broken.push(format!("created, lost or brought back: {names:?}"));
    }
    for (name, expected) in &subject.expected {
        let Some((raw, version, _)) = stored.get(name) else { continue };
        if raw["spec"] != expected.spec {
            broken.push(format!("{name} holds {} instead of {}", raw["spec"], expected.spec));
        }
        let owners: BTreeSet<String> = raw["metadata"]["managedFields"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|entry| entry["manager"].as_str().map(str::to_owned))
            .collect();
        if owners != expected.owners {
            broken.push(format!("{name} is owned by {owners:?} instead of {:?}", expected.owners));
        }
        if raw["metadata"]["uid"] != subject.uids[name].as_str() {
            broken.push(format!("{name} has another uid"));
        }
        let ambiguous = ambiguous(subject, name, seen) + kills;
        let allowed = subject.by_users[name] + expected.writes + ambiguous;
        if *version > allowed {
            broken.push(format!("{name} was written {version} times, and {allowed} would do"));
        }
        // What a user creates after the upgrade is the user's, defaults included; and to the first apply of an object without
        // managedFields the server holds everything against it that was there before.
        let is_nobodys = expected.owners.contains("owner");
        if subject.workload != Workload::Hidden && is_nobodys {
            broken.extend(not_free(cluster, subject, name).await?);
        }
    }
    broken.extend(early(cluster, subject, &stored).await?);
    Ok(broken)
}

/// How many writes of an object may have to be made once more, or may have been made without the operator's knowledge.
fn ambiguous(subject: &Subject, name: &str, seen: &[Seen]) -> i64 {
    let plural = subject.plural();
    let befell = |seen: &&Seen| {
        let is_write = seen.target.verb.is_write() && seen.target.resource == plural;
        let is_its = seen.target.name.as_deref() == Some(name);
        is_write && is_its && seen.fault.is_some_and(|fault| fault.is_ambiguous())
    };
    i64::try_from(seen.iter().filter(befell).count()).unwrap_or(i64::MAX)
}

/// Any user may set a default's value to another, without force.
async fn not_free(cluster: &Cluster, subject: &Subject, name: &str) -> Result<Option<String>> {
    let path = subject.stored_path(name);
    let version = if subject.workload == Workload::NewVersion { "v2" } else { "v1" };
    let mut object = json!({
        "apiVersion": format!("{GROUP}/{version}"), "kind": subject.kind,
        "metadata": { "name": name }, "spec": { "nested": { "depth": 9 } },
    });
    // What a user has set is the user's.
    if !subject.expected[name].owners.contains("user") {
        object["spec"]["size"] = json!(9);
    }
    let path = format!("{path}?dryRun=All&fieldManager=stranger");
    let answer =
        cluster.send("PATCH", &path, "application/apply-patch+yaml", serde_json::to_vec(&object)?).await?;
    Ok((answer.code != 200).then(|| format!("{name}: a stranger's apply is answered with {}", answer.code)))
}

/// `AllPersisted` is set after the last write that it is about. What users write after it is not; their workload cannot tell.
async fn early(
    cluster: &Cluster,
    subject: &Subject,
    stored: &BTreeMap<String, (Value, i64, i64)>,
) -> Result<Option<String>> {
    if subject.reason() != "AllPersisted" || subject.workload == Workload::Users {
        return Ok(None);
    }
    let key = format!("/registry/apiextensions.k8s.io/customresourcedefinitions/{}", subject.crd());
    let Some((_, said)) = cluster.etcd().get(&key).await? else { return Ok(Some("the CRD is gone".into())) };
    let last = stored.values().map(|(.., revision)| *revision).max().unwrap_or_default();
    Ok((last > said).then(|| format!("written at {last}, after the condition of {said}")))
}
