//! Real upgrades of well-known projects, with objects made up from their schemas: what `etch plan` has to be
//! done before is done, all is stored, old versions go, and nothing else changes; nor is anything lost where
//! the upgrade is taken back. The operator carries one half of them through, and the commands of `etch plan`
//! the other.

#![expect(clippy::print_stdout, reason = "how each upgrade ended is worth a line")]

mod plan;
mod release;
mod trip;
mod values;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use e2e::cluster::{Condition, GUARD, Patch, eventually};
use e2e::corpus::{Made, load, make, pairs, storage_version, text};
use e2e::scene::Scene;
use futures::{StreamExt, stream};
use serde_json::{Value, json};

use crate::plan::{Pass, Plan};
use crate::release::{FINAL, Release, has_defaults, path_at};
use crate::trip::Trip;
use crate::values::nothing_changed;

/// How many CRDs are upgraded at the same time.
const AT_ONCE: usize = 4;

/// What carries an upgrade through.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    /// The operator, under policies that let it write.
    Operator,
    /// The commands of a plan, under a policy that lets the operator write nothing.
    Plan,
}

#[tokio::test(flavor = "multi_thread")]
async fn real_upgrades_are_stored_and_nothing_else_changes() -> Result<()> {
    let pairs = pairs()?;
    let mut groups = Vec::new();
    for pair in &pairs {
        groups.push(text(&load(pair, "new.yaml")?, &["spec", "group"])?);
    }
    groups.sort();
    groups.dedup();
    let scene = Scene::start(&groups.iter().map(String::as_str).collect::<Vec<_>>()).await?;
    scene.policy("default", json!({ "mode": "Audit" })).await?;
    let operator = scene.operator(&[])?;
    // One CRD is upgraded after the other only where they have one name.
    let mut of_crds = BTreeMap::<String, Vec<(&Path, By)>>::new();
    for (index, pair) in pairs.iter().enumerate() {
        let by = if index % 2 == 0 { By::Plan } else { By::Operator };
        of_crds.entry(text(&load(pair, "new.yaml")?, &["metadata", "name"])?).or_default().push((pair, by));
    }
    let reported =
        stream::iter(of_crds.into_values()).map(|pairs| one_by_one(&scene, pairs)).buffer_unordered(AT_ONCE);
    let reported: Vec<String> = reported.concat().await;
    let mut ends = BTreeMap::<&str, usize>::new();
    for end in &reported {
        *ends.entry(end.split(':').next().unwrap_or_default()).or_default() += 1;
    }
    ensure!(!ends.contains_key("failed"), "upgrades failed: {ends:?}");
    let trips = |what: &str| reported.iter().filter(|end| end.contains(what)).count();
    println!("{ends:?}, {} taken back, {} trimmed", trips("back and again"), trips("trimmed"));
    ensure!(trips("back and again") >= 30, "too few upgrades could be taken back: {ends:?}");
    ensure!(trips("trimmed") >= 15, "too few old versions were taken out: {ends:?}");
    let stored = ends.get("AllPersisted").copied().unwrap_or_default();
    ensure!(stored * 10 >= pairs.len() * 6, "too few upgrades could be carried through: {ends:?}");
    operator.stop().await
}

/// Carries upgrades out, one after the other; how they ended.
async fn one_by_one(scene: &Scene, pairs: Vec<(&Path, By)>) -> Vec<String> {
    let mut ends = Vec::new();
    for (pair, by) in pairs {
        let name = pair.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let end = upgrade(scene, pair, by).await.unwrap_or_else(|error| format!("failed: {error:#}"));
        println!("{name}: {end}");
        ends.push(end);
    }
    ends
}

/// Carries one upgrade out; how it ended.
async fn upgrade(scene: &Scene, pair: &Path, by: By) -> Result<String> {
    let mut release = Release::load(scene, pair)?;
    if !has_defaults(&release.new)? {
        return Ok("NoDefaults".to_owned());
    }
    if let Err(error) = release.cluster().apply_crd(&release.old).await {
        return Ok(format!("old refused: {error:#}"));
    }
    // Etch has to know the old defaults, to distinguish them from the new ones.
    release.seen(&release.old).await?;
    release.objects = make(release.cluster(), &release.old, &release.name).await?;
    if release.objects.is_empty() {
        release.delete().await?;
        return Ok("no object was accepted".to_owned());
    }
    let outcome = carried(&release, pair, by).await;
    release.audit_only().await?;
    release.delete().await?;
    outcome
}

/// Carries an upgrade out for objects that are there, and back where all is stored.
async fn carried(release: &Release<'_>, pair: &Path, by: By) -> Result<String> {
    let plan = Plan::of(release, &pair.join("new.yaml"))?;
    let mut done = Vec::new();
    let (persisted, is_trimmed) = plan.run(release, "before", &[]).await.context("before the upgrade")?;
    done.extend(persisted.map(|_| "persisted before"));
    done.extend(is_trimmed.then_some("trimmed before"));
    let before = release.read(&release.old).await?;
    let writes = release.writes()?;
    let applied = release.cluster().apply_crd(&release.new).await;
    ensure!(applied.is_err() == plan.is_refused(), "{applied:?}");
    if let Err(error) = applied {
        return Ok(format!("new refused: {error:#}"));
    }
    let audit = release.audited().await?;
    ensure!(release.writes()? == writes, "an audit has written objects");
    let ended = match by {
        By::Operator => by_operator(release).await?,
        By::Plan => {
            let (pass, is_trimmed) = plan.run(release, "after", &[]).await.context("after the upgrade")?;
            ensure!(release.writes()? == writes, "an operator that audits has written objects");
            done.extend(is_trimmed.then_some("trimmed"));
            Ended::of_plan(pass, &audit)
        }
    };
    let moves = by == By::Plan && storage_version(&release.old)? != storage_version(&release.new)?;
    ended.is_as_audited(&audit["counts"], release.objects.len(), moves)?;
    let version = storage_version(&release.new)?;
    for (object, before) in release.objects.iter().zip(&before) {
        let is_troubled = ended.troubled.contains(&object.name);
        is_as_it_should_be(release, object, &version, before, is_troubled)
            .await
            .with_context(|| object.name.clone())?;
    }
    let end = format!("{}: {} objects", ended.reason, release.objects.len());
    if ended.reason != "AllPersisted" {
        return Ok(end);
    }
    let trip = Trip { release, pair, before: &before };
    if by == By::Operator && trip.trimmed_by_policy().await.context("old versions")? {
        done.push("trimmed");
    }
    done.extend(trip.there_and_back().await?);
    Ok(format!("{end}, {}", done.join(", ")))
}

/// How the defaults of the new release were stored.
struct Ended {
    /// The reason of the condition, or what it would be.
    reason: String,
    /// How many objects were treated how; `None` if nothing was due.
    counts: Option<Value>,
    /// The objects that were not written, by name.
    troubled: Vec<String>,
}

/// A policy lets the operator write.
async fn by_operator(release: &Release<'_>) -> Result<Ended> {
    let writes = release.writes()?;
    release.policy(json!({ "mode": "Persist" })).await?;
    let condition = eventually(GUARD, "a pass ends", async || {
        // The audit may have given the same reason, but only an audit leaves objects due.
        let is_due = release.scene.report(&release.name).await?["status"]["counts"]["due"] != 0;
        let condition = release.cluster().condition(&release.name, "DefaultsPersisted").await?;
        let is_final =
            |condition: &Condition| condition.current && FINAL.contains(&condition.reason.as_str());
        Ok(condition.filter(|condition| is_final(condition) && !is_due))
    })
    .await?;
    let status = release.scene.report(&release.name).await?["status"].clone();
    ensure!(status["counts"]["written"] == 0 || release.writes()? > writes, "no write is in the audit log");
    let troubled = ["held", "rejected"].iter().flat_map(|list| names(&status[*list])).collect();
    Ok(Ended { reason: condition.reason, counts: Some(status["counts"].clone()), troubled })
}

/// The names of the objects in a list of problems.
fn names(problems: &Value) -> Vec<String> {
    let problems = problems.as_array().into_iter().flatten();
    problems.filter_map(|problem| problem["name"].as_str().map(str::to_owned)).collect()
}

impl Ended {
    /// Where nothing is to be written, `etch persist` is no step, and the audit shows what is held.
    fn of_plan(pass: Option<Pass>, audit: &Value) -> Self {
        let counts = pass.map(|Pass(counts)| counts);
        let troubled = match &counts {
            Some(counts) => names(&counts["problems"]),
            None => names(&audit["held"]),
        };
        let seen = counts.as_ref().unwrap_or(&audit["counts"]);
        let reason = match (&seen["held"], &seen["rejected"]) {
            (held, _) if *held != 0 => "HiddenFields",
            (_, rejected) if *rejected != 0 => "ObjectsRejected",
            _ => "AllPersisted",
        };
        Self { reason: reason.to_owned(), counts, troubled }
    }

    /// Whether an audit has counted what was done then: what is due is written, or refused. Where objects are
    /// moved, those that store their defaults are written, too.
    fn is_as_audited(&self, audit: &Value, objects: usize, moves: bool) -> Result<()> {
        let count = |counts: &Value, kind: &str| counts[kind].as_u64().unwrap_or_default();
        ensure!(count(audit, "objects") == objects as u64, "{audit} instead of {objects} objects");
        let Some(is) = &self.counts else {
            ensure!(count(audit, "due") == 0, "nothing is planned for what is due: {audit}");
            return Ok(());
        };
        for kind in ["objects", "held", "ignored", "terminating"] {
            ensure!(count(audit, kind) == count(is, kind), "{kind}: {audit} in the audit, and then {is}");
        }
        let presumed = count(audit, "alreadyStored") + count(audit, "unproved");
        let (stored, done) = (count(is, "alreadyStored"), count(is, "written") + count(is, "rejected"));
        let due = count(audit, "due");
        let are_same = presumed == stored && due == done;
        let are_moved = moves && presumed + due == stored + done && due <= done;
        ensure!(are_same || are_moved, "{audit} in the audit, and then {is}");
        Ok(())
    }
}

/// An object has kept what it had, and etcd holds all that is shown of it; one in trouble was not written.
async fn is_as_it_should_be(
    release: &Release<'_>,
    object: &Made,
    version: &str,
    before: &Value,
    is_troubled: bool,
) -> Result<()> {
    let path = path_at(object, version);
    let now = release.cluster().get(&path).await?;
    if is_troubled {
        let is_unchanged = now["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"];
        ensure!(is_unchanged, "it is in trouble and was written all the same");
        return Ok(());
    }
    nothing_changed(before, &now)?;
    release.is_stored(object, &now).await?;
    let answer = release.cluster().patch(&path, Patch::Merge, "test", &json!({})).await?;
    if answer.code == 422 {
        // The upgrade made the object invalid for reasons that have nothing to do with defaults.
        return Ok(());
    }
    let (was, is) = (&now["metadata"]["resourceVersion"], &answer.ok()?["metadata"]["resourceVersion"]);
    ensure!(was == is, "a write that changes nothing still stored something");
    Ok(())
}
