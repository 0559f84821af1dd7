//! `etch audit`, `etch explain` and `etch persist`, over objects in ten states.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::stage::{Stage, missing};

const TYPES: [&str; 2] = ["tabs", "pairs"];

#[tokio::test(flavor = "multi_thread")]
async fn what_etcd_holds_is_told_exactly_and_never_presumed() -> Result<()> {
    let stage = Stage::start().await?;
    let (tabs, pairs) = ("tabs.live.example.com", "pairs.live.example.com");
    let snapshot = stage.snapshot().await?;
    let snapshot = snapshot.to_str().context("a path")?;

    for access in [&["--etcd-endpoints", stage.endpoint.as_str()], &["--etcd-snapshot", snapshot]] {
        let arguments = [&["audit", tabs, pairs, "--objects"], &access[..]].concat();
        let printed = stage.etch(&arguments)?;
        ensure!(printed.code == Some(1), "{:?}", printed.code);
        exact(&stage, &printed.json).await.with_context(|| format!("{access:?}"))?;
    }

    for more in [&[][..], &["--trust-owners"]] {
        let printed = stage.etch(&[&["audit", "tab", "Pair", "--objects"], more].concat())?;
        ensure!(printed.code == Some(1), "{:?}", printed.code);
        never_presumed(&stage, &printed.json).await.with_context(|| format!("{more:?}"))?;
    }

    let explained = stage.etch(&["explain", "tab", "atomic-0", "--etcd-endpoints", &stage.endpoint])?;
    let state = |path: &str| {
        let all = explained.json["defaults"].as_array().into_iter().flatten();
        all.into_iter().find(|default| default["path"] == path).map(|default| default["state"].clone())
    };
    ensure!(state(".spec.ports[0].protocol") == Some("phantom".into()), "{:#}", explained.json);
    ensure!(state(".spec.ports[1].protocol") == Some("stored".into()), "{:#}", explained.json);
    ensure!(state(".spec.a") == Some("stored".into()), "{:#}", explained.json);
    let gap = stage.etch(&["explain", "pairs", "gap-0"])?;
    ensure!(gap.json["defaults"][0]["state"] == "gap", "{:#}", gap.json);

    persisted(&stage).await
}

/// By hand, everything comes to be stored but what is held, and nothing is promised that does not happen.
async fn persisted(stage: &Stage) -> Result<()> {
    let before = (stage.raw("tabs").await?, stage.raw("pairs").await?);
    let planned = stage.etch(&["persist", "--dry-run"])?;
    ensure!(planned.code == Some(1), "{:?}", planned.code);
    ensure!(before == (stage.raw("tabs").await?, stage.raw("pairs").await?), "a dry run has written");
    let mut actions: BTreeMap<String, String> = BTreeMap::new();
    for crd in planned.json["crds"].as_array().context("crds")? {
        for plan in crd["plans"].as_array().context("plans")? {
            actions.insert(text(&plan["name"]), text(&plan["action"]));
        }
    }
    for (name, action) in [
        ("phantom-0", "apply"),
        ("cleared-0", "merge"),
        ("gap-0", "rewrite"),
        ("hidden-0", "hold"),
        ("held-0", "hold"),
    ] {
        ensure!(
            actions.get(name).is_some_and(|planned| planned == action),
            "{name}: {:?}",
            actions.get(name)
        );
    }

    let done = stage.etch(&["persist"])?;
    ensure!(done.code == Some(1), "{:#}", done.json);
    for plural in TYPES {
        let crd = of(&done.json, plural)?;
        ensure!(crd["verified"] == true && crd["rejected"] == 0 && crd["unknown"] == 0, "{crd:#}");
        for (name, raw) in stage.raw(plural).await? {
            let is_held = actions.get(&name).is_some_and(|action| action == "hold");
            let left = missing(plural, &raw);
            ensure!(
                left.is_empty() != is_held,
                "{name} was planned as {:?} and lacks {left:?}",
                actions.get(&name)
            );
        }
    }
    let again = stage.etch(&["persist", "tabs", "--after", "default/owned-9"])?;
    let tabs = of(&again.json, "tabs")?;
    ensure!(tabs["written"] == 0 && tabs["held"] == 0, "what stands before is left out: {tabs:#}");
    Ok(())
}

/// Every object is told to lack just what it lacks.
async fn exact(stage: &Stage, audit: &Value) -> Result<()> {
    for plural in TYPES {
        let (crd, raw) = (of(audit, plural)?, stage.raw(plural).await?);
        let details = details(crd)?;
        let mut phantoms = 0;
        for (name, raw) in &raw {
            let lacks = missing(plural, raw);
            let told = details.get(name).map_or_else(Vec::new, |detail| paths(&detail["defaults"]));
            ensure!(told == lacks, "{name}: told {told:?}, lacks {lacks:?}");
            phantoms += usize::from(!lacks.is_empty());
        }
        ensure!(crd["objects"] == raw.len() && crd["phantom"] == phantoms, "{crd:#}");
        ensure!(crd["stored"] == raw.len() - phantoms && crd["possible"] == 0, "{crd:#}");
    }
    let tabs = of(audit, "tabs")?;
    // Those with fields that only etcd holds, and those that would get an invalid default.
    ensure!(tabs["hidden"] == 10 && tabs["held"] == 20, "{tabs:#}");
    Ok(())
}

/// No object that lacks a default is told to be stored.
async fn never_presumed(stage: &Stage, audit: &Value) -> Result<()> {
    for plural in TYPES {
        let (crd, raw) = (of(audit, plural)?, stage.raw(plural).await?);
        let details = details(crd)?;
        for (name, raw) in raw.iter().filter(|(_, raw)| !missing(plural, raw).is_empty()) {
            let told = details.get(name).map(|detail| paths(&detail["defaults"])).unwrap_or_default();
            for lacks in missing(plural, raw) {
                let is_told = told.iter().any(|told| lacks.starts_with(told.as_str()));
                ensure!(is_told, "{name}: {lacks} is told to be stored");
            }
        }
        let sum = ["stored", "phantom", "possible", "unreadable"]
            .map(|state| crd[state].as_u64().unwrap_or_default());
        ensure!(crd["objects"] == sum.iter().sum::<u64>(), "{crd:#}");
    }
    let pairs = of(audit, "pairs")?;
    ensure!(pairs["phantom"] == 10, "a gap is proof: {pairs:#}");
    Ok(())
}

fn of<'a>(document: &'a Value, plural: &str) -> Result<&'a Value> {
    let all = document["crds"].as_array().context("crds")?;
    let is_it = |crd: &&Value| text(&crd["crd"]).starts_with(&format!("{plural}."));
    all.iter().find(is_it).with_context(|| format!("nothing is told of {plural}"))
}

fn details(crd: &Value) -> Result<BTreeMap<String, &Value>> {
    let all = crd["details"].as_array().context("details")?;
    Ok(all.iter().map(|detail| (text(&detail["name"]), detail)).collect())
}

fn paths(defaults: &Value) -> Vec<String> {
    defaults.as_array().into_iter().flatten().map(|default| text(&default["path"])).collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
