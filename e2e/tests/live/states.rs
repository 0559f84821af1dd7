//! `etch audit`, `etch explain` and `etch persist`, over a thousand objects in ten states.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use e2e::paths::of_schema;
use serde_json::{Value, json};

use crate::objects::{Form, Made, missing, objects};
use crate::stage::Stage;

const TYPES: [&str; 2] = ["tabs", "pairs"];

#[tokio::test(flavor = "multi_thread")]
async fn what_etcd_holds_is_told_exactly_and_never_presumed() -> Result<()> {
    let stage = Stage::start().await?;
    let (tabs, pairs) = ("tabs.live.example.com", "pairs.live.example.com");
    let snapshot = stage.snapshot().await?;
    let snapshot = snapshot.to_str().context("a path")?;
    came_out(&stage).await?;

    for access in [&["--etcd-endpoints", stage.endpoint.as_str()], &["--etcd-snapshot", snapshot]] {
        let arguments = [&["audit", tabs, pairs, "--objects"], &access[..]].concat();
        let printed = stage.etch(&arguments)?;
        ensure!(printed.code == Some(1), "{:?}", printed.code);
        exact(&printed.json).with_context(|| format!("{access:?}"))?;
    }

    for more in [&[][..], &["--trust-owners"]] {
        let printed = stage.etch(&[&["audit", "tab", "Pair", "--objects"], more].concat())?;
        ensure!(printed.code == Some(1), "{:?}", printed.code);
        never_presumed(&stage, &printed.json).await.with_context(|| format!("{more:?}"))?;
    }

    let explained = stage.etch(&["explain", "tab", "atomic-0", "--etcd-endpoints", &stage.endpoint])?;
    let state = |reported: &Value, path: &str| {
        let mut all = reported["defaults"].as_array().into_iter().flatten();
        all.find(|default| default["path"] == path).map(|default| text(&default["state"])).unwrap_or_default()
    };
    for (path, expected) in
        [(".spec.ports[0].protocol", "phantom"), (".spec.ports[1].protocol", "stored"), (".spec.a", "stored")]
    {
        ensure!(state(&explained.json, path) == expected, "{path}: {:#}", explained.json);
    }
    let gap = stage.etch(&["explain", "pairs", "gap-0"])?;
    ensure!(state(&gap.json, ".spec.color") == "gap", "{:#}", gap.json);

    persisted(&stage).await
}

/// Etcd holds of each object what it was made to hold: what is expected of the commands is true.
async fn came_out(stage: &Stage) -> Result<()> {
    let objects = objects();
    ensure!(objects.len() == 1000, "{} objects", objects.len());
    let raw = BTreeMap::from([("tabs", stage.raw("tabs").await?), ("pairs", stage.raw("pairs").await?)]);
    ensure!(raw.values().map(BTreeMap::len).sum::<usize>() == objects.len(), "there are others");
    let read = BTreeMap::from([
        ("tabs", stage.read("v1", "tabs").await?),
        ("pairs", stage.read("v1", "pairs").await?),
    ]);
    for made @ Made { name, form } in &objects {
        let plural = made.plural();
        let (raw, read) = (&raw[plural][name], &read[plural][name]);
        let lacks = lacks(form);
        let paths: Vec<&str> = lacks.iter().map(|(path, _)| *path).collect();
        ensure!(missing(plural, raw) == paths, "{name} is to lack {paths:?}: {raw}");
        ensure!(missing(plural, read) == form.gaps, "{name} is to be read without {:?}: {read}", form.gaps);
        for hidden in form.hidden {
            let pointer = hidden.replace('.', "/");
            ensure!(raw.pointer(&pointer).is_some() && read.pointer(&pointer).is_none(), "{name}: {hidden}");
        }
    }
    Ok(())
}

/// The defaults that etcd lacks of an object, in order, and what they are called.
fn lacks(form: &Form) -> Vec<(&'static str, &'static str)> {
    let phantoms = form.phantoms.iter().map(|path| (*path, "phantom"));
    let mut all: Vec<_> = phantoms.chain(form.gaps.iter().map(|path| (*path, "gap"))).collect();
    all.sort_unstable();
    all
}

/// By hand, everything is stored but what is held, and nothing is promised that does not happen.
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
        let raw = stage.raw(plural).await?;
        for Made { name, form } in objects().iter().filter(|made| made.plural() == plural) {
            let is_held = actions.get(name).is_some_and(|action| action == "hold");
            let expected = if is_held { form.phantoms } else { &[] };
            let left = missing(plural, &raw[name]);
            ensure!(left == expected, "{name} was planned as {:?} and lacks {left:?}", actions.get(name));
            ensure!(
                is_held != (form.held.is_none() && form.hidden.is_empty()),
                "{name}: {:?}",
                actions.get(name)
            );
        }
    }
    let again = stage.etch(&["persist", "tabs", "--after", "default/owned-99"])?;
    let tabs = of(&again.json, "tabs")?;
    ensure!(tabs["written"] == 0 && tabs["held"] == 0, "what stands before is left out: {tabs:#}");
    Ok(())
}

/// Every object is reported to lack exactly what it lacks, path by path, with the reason if it is held.
fn exact(audit: &Value) -> Result<()> {
    for plural in TYPES {
        let crd = of(audit, plural)?;
        let reported = details(crd)?;
        let (mut objects, mut phantoms, mut held, mut hidden) = (0, 0, 0, 0);
        let mut places: BTreeMap<String, u64> = BTreeMap::new();
        for Made { name, form } in self::objects().iter().filter(|made| made.plural() == plural) {
            let lacks = lacks(form);
            objects += 1;
            phantoms += u64::from(!lacks.is_empty());
            held += u64::from(form.held.is_some());
            hidden += u64::from(!form.hidden.is_empty());
            let lacking: BTreeSet<String> = lacks.iter().map(|(path, _)| of_schema(path)).collect();
            for place in lacking {
                *places.entry(place).or_default() += 1;
            }
            let Some(reported) = reported.get(name) else {
                ensure!(lacks.is_empty() && form.hidden.is_empty(), "nothing is told of {name}");
                continue;
            };
            let defaults: Vec<Value> =
                lacks.iter().map(|(path, state)| json!({ "path": path, "state": state })).collect();
            ensure!(reported["defaults"] == json!(defaults), "{name}: {reported:#}, not {defaults:?}");
            ensure!(reported["hidden"] == json!(form.hidden), "{name}: {reported:#}");
            let reason =
                form.held.map(|(reason, paths)| json!({ "reason": reason, "paths": paths, "broken": [] }));
            ensure!(reported["held"] == json!(reason), "{name}: {reported:#}, not {reason:?}");
            let state = if lacks.is_empty() { "stored" } else { "phantom" };
            ensure!(reported["state"] == state && reported["unreadable"].is_null(), "{name}: {reported:#}");
        }
        let counts = json!([objects, objects - phantoms, phantoms, 0, held, hidden, 0]);
        let fields = ["objects", "stored", "phantom", "unknown", "held", "hidden", "unreadable"];
        ensure!(json!(fields.map(|field| &crd[field])) == counts, "{plural}: {crd:#}, not {counts}");
        let paths: BTreeMap<String, u64> = crd["paths"]
            .as_array()
            .context("paths")?
            .iter()
            .map(|place| (text(&place["path"]), place["missing"].as_u64().unwrap_or_default()))
            .collect();
        ensure!(paths == places, "{plural}: {paths:?}, not {places:?}");
    }
    Ok(())
}

/// No object that lacks a default is reported as stored.
async fn never_presumed(stage: &Stage, audit: &Value) -> Result<()> {
    for plural in TYPES {
        let (crd, raw) = (of(audit, plural)?, stage.raw(plural).await?);
        let details = details(crd)?;
        for (name, raw) in raw.iter().filter(|(_, raw)| !missing(plural, raw).is_empty()) {
            let reported = details.get(name).map(|detail| paths(&detail["defaults"])).unwrap_or_default();
            for lacks in missing(plural, raw) {
                let is_reported = reported.iter().any(|reported| lacks.starts_with(reported.as_str()));
                ensure!(is_reported, "{name}: {lacks} is told to be stored");
            }
        }
        let sum = ["stored", "phantom", "unknown", "unreadable"]
            .map(|state| crd[state].as_u64().unwrap_or_default());
        ensure!(crd["objects"] == sum.iter().sum::<u64>(), "{crd:#}");
    }
    let pairs = of(audit, "pairs")?;
    ensure!(pairs["phantom"] == 100, "a gap is proof: {pairs:#}");
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
