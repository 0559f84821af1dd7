//! Real upgrades, and objects made up from their schemas: the guard warns of what `etch impact` finds, and of
//! nothing else.

#![expect(clippy::print_stdout, reason = "how each upgrade was answered is worth a line")]

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use e2e::cluster::{Answer, CRDS, GUARD, eventually};
use e2e::corpus::{load, make, pairs, text};
use serde_json::{Value, json};

use crate::stage::Stage;
use crate::upgrades::impact;
use crate::webhooks;

/// How much of a warning is compared: what follows may be cut off.
const TOLD: usize = 250;

#[tokio::test(flavor = "multi_thread")]
async fn real_upgrades_are_warned_of_as_impact_finds_them() -> Result<()> {
    let pairs = pairs()?;
    let stage = Stage::start().await?;
    let mut granted = Vec::new();
    for pair in &pairs {
        let group = text(&load(pair, "new.yaml")?, &["spec", "group"])?;
        if !granted.contains(&group) {
            stage.scene.grant(&group).await?;
            granted.push(group);
        }
    }
    stage.scene.policy("default", json!({ "mode": "Audit" })).await?;
    let operator = stage.operator()?;
    eventually(GUARD, "the webhook is there", async || {
        Ok((webhooks(&stage.scene.cluster, 1).await? == 2).then_some(()))
    })
    .await?;
    let mut ends: BTreeMap<String, usize> = BTreeMap::new();
    for pair in &pairs {
        let name = pair.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let end = upgrade(&stage, pair).await.unwrap_or_else(|error| format!("failed: {error:#}"));
        println!("{name}: {end}");
        *ends.entry(end.split(':').next().unwrap_or_default().to_owned()).or_default() += 1;
    }
    println!("{ends:?}");
    ensure!(!ends.contains_key("failed"), "{ends:?}");
    for end in ["warned", "silent"] {
        ensure!(ends.contains_key(end), "no upgrade was answered so: {ends:?}");
    }
    operator.stop().await
}

/// Asks for one upgrade by a dry run; how that was answered.
async fn upgrade(stage: &Stage, pair: &Path) -> Result<String> {
    let cluster = &stage.scene.cluster;
    let (old, new) = (load(pair, "old.yaml")?, load(pair, "new.yaml")?);
    let name = text(&new, &["metadata", "name"])?;
    if let Err(error) = cluster.apply_crd(&old).await {
        return Ok(format!("old refused: {error:#}"));
    }
    let made = make(cluster, &old, &name).await?;
    let end = answered(stage, &name, &new).await;
    cluster.delete(&format!("{CRDS}/{name}")).await?;
    eventually(GUARD, "the CRD is gone", async || {
        Ok(cluster.get(&format!("{CRDS}/{name}")).await.is_err().then_some(()))
    })
    .await?;
    let (word, warnings) = end?;
    let listed: String = warnings.iter().map(|warning| format!("\n  {warning}")).collect();
    Ok(format!("{word}: {} objects{listed}", made.len()))
}

/// How the request was answered, in a word, and the warnings.
async fn answered(stage: &Stage, name: &str, new: &Value) -> Result<(&'static str, Vec<String>)> {
    let expected = expected(&impact(stage, new)?)?;
    let path = format!("{CRDS}/{name}?fieldManager=author&force=true&dryRun=All");
    let mut last = String::new();
    // API servers learn of the webhook, and the operator of the CRD, with a delay.
    let answer = eventually(GUARD, "the answer is that of impact", async || {
        let body = serde_json::to_vec(new)?;
        let answer = stage.scene.cluster.send("PATCH", &path, "application/apply-patch+yaml", body).await?;
        let is_final = answer.code != 200 || is_same(&expected, &answer);
        last = format!("{expected:?} in {answer:?}");
        Ok(is_final.then_some(answer))
    })
    .await
    .with_context(|| last)?;
    let word = match answer.code {
        200 if expected.is_empty() => "silent",
        200 => "warned",
        _ => "new refused",
    };
    Ok((word, answer.warnings))
}

/// How each warning about objects begins.
fn expected(impact: &Value) -> Result<Vec<String>> {
    let total = impact["objects"]["total"].as_u64().context("a number")?;
    let all = if total == 1 { "1 object".to_owned() } else { format!("{total} objects") };
    let places = impact["summary"].as_array().context("a summary")?;
    let text = |place: &Value, field: &str| place[field].as_str().unwrap_or_default().to_owned();
    let counts = places.iter().filter(|place| {
        !text(place, "effect").starts_with("appears")
            && !text(place, "where").ends_with(", under the old schema too")
    });
    Ok(counts.map(|place| format!("etch: {} of {all}: {}", place["objects"], text(place, "where"))).collect())
}

fn is_same(expected: &[String], answer: &Answer) -> bool {
    let about_objects: Vec<&String> = answer
        .warnings
        .iter()
        .filter(|warning| {
            !["etch: invalid defaults:", "etch: not structural:"].iter().any(|of| warning.starts_with(of))
        })
        .filter(|warning| warning.starts_with("etch: "))
        .collect();
    let begins = |line: &String| line.chars().take(TOLD).collect::<String>();
    let is_listed = |line: &String| about_objects.iter().any(|warning| warning.starts_with(&begins(line)));
    match expected.len() {
        0..=10 => about_objects.len() == expected.len() && expected.iter().all(is_listed),
        _ => about_objects.len() == 10 && expected.iter().filter(|line| is_listed(line)).count() == 9,
    }
}
