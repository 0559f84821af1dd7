//! Every answer, over random clusters: commands, reports, conditions and metrics are compared with raw etcd.
//!
//! `ANSWERS_CLUSTERS` sets how many clusters (30, and those that once got a false answer), and `ANSWERS_SEED`
//! which come first. A cluster that fails is printed with the seed with which it can be run alone.

mod audit;
mod impact;
mod laws;
mod model;
mod notes;
mod pass;
mod persist;
mod random;
mod stage;

use std::collections::BTreeMap;
use std::io::Write as _;

use anyhow::{Context, Result, bail, ensure};
use e2e::environment::number;
use notes::Notes;
use random::{NEXT, NOW, Plan};
use stage::Stage;

/// How many clusters share a control plane.
const TOGETHER: usize = 50;
/// How often a cluster that failed is tried with fewer objects.
const TRIES: usize = 5;
/// The first of the clusters of the usual run.
const USUAL: u64 = 100;
/// Clusters that got a false answer before Etch was fixed.
const FOUND: [u64; 7] = [3275628578, 3275628588, 3275628591, 3275628655, 3275628700, 3275628703, 3275628832];

#[tokio::test(flavor = "multi_thread")]
async fn no_answer_is_false() -> Result<()> {
    let (clusters, seed) = (number("ANSWERS_CLUSTERS")?, number("ANSWERS_SEED")?);
    // The same clusters each time, unless the environment asks for others: what fails once must fail again.
    let found = if clusters.is_none() && seed.is_none() { &FOUND[..] } else { &[] };
    let chosen = if clusters.is_some() { fastrand::u64(..1 << 32) } else { USUAL };
    let (clusters, seed) = (clusters.unwrap_or(30), seed.unwrap_or(chosen));
    writeln!(std::io::stderr(), "ANSWERS_SEED={seed} ANSWERS_CLUSTERS={clusters}")?;
    let seeds = (0..clusters).map(|index| seed.wrapping_add(index as u64));
    let seeds: Vec<u64> = found.iter().copied().chain(seeds).collect();
    let (mut failed, mut of_all) = (Vec::new(), Vec::new());
    for (round, seeds) in seeds.chunks(TOGETHER).enumerate() {
        writeln!(std::io::stderr(), "clusters from {}", round * TOGETHER)?;
        let plans = seeds.iter().enumerate().map(|(index, seed)| Plan::random(*seed, index));
        let plans: Vec<Plan> = plans.collect();
        for (plural, findings) in lived(&plans).await? {
            match plans.iter().find(|plan| plan.plural == plural) {
                Some(plan) => failed.push((plan.clone(), findings)),
                None => of_all.extend(findings),
            }
        }
    }
    let Some((plan, findings)) = failed.first() else {
        ensure!(of_all.is_empty(), "of all clusters together:\n{}", of_all.join("\n"));
        return Ok(());
    };
    let (smallest, few) = smaller(plan.clone(), findings.clone()).await?;
    let all: Vec<String> = failed.iter().map(|(plan, findings)| described(plan, findings)).collect();
    bail!(
        "{} clusters got a false answer\n\n{}\n\nThe smallest form of the first:\n{}\n{:#?}",
        failed.len(),
        all.join("\n\n"),
        described(&smallest, &few),
        smallest.objects
    )
}

/// What is untrue in the life of some clusters that share a control plane, by the plurals of their types.
async fn lived(plans: &[Plan]) -> Result<BTreeMap<String, Vec<String>>> {
    let notes = Notes::default();
    let stage = Stage::start(plans.to_vec()).await?;
    let ended = follow(&stage, &notes).await;
    let findings = notes.all();
    ended.with_context(|| format!("{findings:#?}"))?;
    Ok(findings)
}

/// A cluster that fails by itself, reduced to as few objects as the failure needs.
async fn smaller(mut plan: Plan, mut findings: Vec<String>) -> Result<(Plan, Vec<String>)> {
    for _ in 0..TRIES {
        let text = findings.first().cloned().unwrap_or_default();
        let mut fewer = plan.clone();
        fewer.objects.retain(|thing| names(&text, &thing.name));
        if fewer.objects.is_empty() || fewer.objects.len() == plan.objects.len() {
            fewer = plan.clone();
            fewer.objects.truncate(plan.objects.len() / 2);
        }
        if fewer.objects.is_empty() {
            break;
        }
        match lived(std::slice::from_ref(&fewer)).await?.remove(&fewer.plural) {
            Some(found) => (plan, findings) = (fewer, found),
            None => break,
        }
    }
    Ok((plan, findings))
}

/// Whether a text names an object, and not just one whose name begins like it.
fn names(text: &str, name: &str) -> bool {
    text.split(name).skip(1).any(|rest| !rest.starts_with(|next: char| next.is_ascii_digit()))
}

/// A life of all clusters: an upgrade, Etch by hand, the operator, what others do meanwhile, the next
/// upgrade.
async fn follow(stage: &Stage, notes: &Notes) -> Result<()> {
    stage.upgrade(NOW).await?;
    stage.deeds(0).await?;
    agreed(stage, NOW).await?;
    audit::check(stage, NOW, "after an upgrade", notes).await?;
    persist::dry_run(stage, NOW, "after an upgrade", notes).await?;
    persist::partial(stage, NOW, notes).await?;
    pass::check(stage, NOW, "first pass", notes).await?;
    audit::check(stage, NOW, "after the first pass", notes).await?;
    persist::dry_run(stage, NOW, "after the first pass", notes).await?;
    stage.deeds(1).await?;
    agreed(stage, NOW).await?;
    audit::check(stage, NOW, "after other writes", notes).await?;
    let predicted = impact::predict(stage).await?;
    stage.upgrade(NEXT).await?;
    agreed(stage, NEXT).await?;
    predicted.check(stage, notes).await?;
    audit::check(stage, NEXT, "after the next upgrade", notes).await?;
    pass::check(stage, NEXT, "second pass", notes).await?;
    audit::check(stage, NEXT, "after the second pass", notes).await?;
    let everywhere = |_: &Plan, _: &str| true;
    persist::run(stage, NEXT, "in the end", &["persist"], &everywhere, notes).await?;
    audit::check(stage, NEXT, "in the end", notes).await
}

/// The answers are compared with what the API server shows.
async fn agreed(stage: &Stage, phase: usize) -> Result<()> {
    let raw = stage.raw().await?;
    for plan in &stage.plans {
        let read = stage.read(plan, plan.phases[phase].storage()).await?;
        for (id, truth) in plan.truths(phase, &raw) {
            let shown = read.get(&id).map(model::parts);
            ensure!(
                shown.as_ref() == Some(&truth.view),
                "{} {id} is read as {shown:?}, and expected as {}: {}\n{plan:#?}",
                plan.plural,
                truth.view,
                raw[&plan.plural][&id]
            );
        }
    }
    Ok(())
}

/// A cluster that failed: the findings, how to run it alone, and as much of it as the findings are about.
fn described(plan: &Plan, findings: &[String]) -> String {
    let text = findings.join("\n  ");
    let objects = plan.objects.iter().filter(|thing| names(&text, &thing.name));
    let objects: String = objects.map(|thing| format!("\n  {thing:?}")).collect();
    let schemas = [random::BEFORE, NOW, NEXT].map(|phase| {
        let versions = plan.phases[phase].versions.iter();
        let versions =
            versions.map(|(name, storage, schema)| format!("\n  {phase} {name} {storage} {schema}"));
        versions.collect::<String>()
    });
    format!(
        "ANSWERS_SEED={} ANSWERS_CLUSTERS=1 ({}):\n  {text}\n  policy {:?}{}{objects}",
        plan.seed,
        plan.plural,
        plan.policy,
        schemas.concat()
    )
}
