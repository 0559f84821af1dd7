//! `etch audit` and `etch explain`, compared with the bytes.

use std::collections::BTreeMap;

use anyhow::Result;
use e2e::paths::is_below;
use e2e::process::Printed;
use serde_json::Value;

use crate::model::Truth;
use crate::notes::{Notes, number, of, sum, texts};
use crate::random::Plan;
use crate::stage::{Raw, Stage, id};

/// Asks for an audit with access to etcd and without, and of one object of each cluster for an explanation.
pub(crate) async fn check(stage: &Stage, phase: usize, when: &str, notes: &Notes) -> Result<()> {
    let raw = stage.raw().await?;
    let exact = stage.etch_exact(&["audit", "--objects"]).await?;
    let seen = stage.etch(&["audit", "--objects"]).await?;
    for (printed, is_exact) in [(&exact, true), (&seen, false)] {
        let how = format!("{when}, audit {}", if is_exact { "with etcd" } else { "without etcd" });
        let mut is_clean = true;
        for plan in &stage.plans {
            let truths = plan.truths(phase, &raw);
            is_clean &= truths.values().all(Truth::is_stored);
            let reported = of(&printed.json, &plan.crd());
            let note = |finding: String| notes.note(&plan.plural, format!("{how}: {finding}"));
            match reported {
                Some(reported) => judge(reported, &truths, is_exact, &note),
                None if plan.phases[phase].has_defaults() => note("nothing is told".to_owned()),
                None => {}
            }
        }
        if printed.code == Some(0) && !is_clean {
            notes.note("all", format!("{how}: exit status 0, and defaults are missing"));
        }
    }
    explain(stage, phase, when, &raw, notes).await
}

fn judge(reported: &Value, truths: &BTreeMap<String, Truth>, exact: bool, note: &dyn Fn(String)) {
    let expect = |key: &str, expected: usize| {
        if number(reported, key) != i64::try_from(expected).unwrap_or(i64::MAX) {
            note(format!("{key} is {}, not {expected}", reported[key]));
        }
    };
    let count = |wanted: fn(&Truth) -> bool| truths.values().filter(|truth| wanted(truth)).count();
    expect("objects", truths.len());
    expect("ignored", count(|truth| truth.ignored && !truth.terminating));
    expect("terminating", count(|truth| truth.terminating));
    expect("unreadable", 0);
    if number(reported, "objects") != sum(reported, &["stored", "phantom", "unknown", "unreadable"]) {
        note(format!("the sum is not that of its parts: {reported}"));
    }
    if exact {
        expect("stored", count(Truth::is_stored));
        expect("phantom", count(|truth| !truth.is_stored()));
        expect("hidden", count(|truth| !truth.hidden.is_empty()));
    }
    let details: BTreeMap<String, &Value> =
        reported["details"].as_array().into_iter().flatten().map(|detail| (id(detail), detail)).collect();
    for (id, truth) in truths {
        let detail = details.get(id).copied().unwrap_or(&Value::Null);
        let defaults = detail["defaults"].as_array().into_iter().flatten();
        let paths: Vec<String> =
            defaults.filter_map(|default| default["path"].as_str()).map(str::to_owned).collect();
        if exact && paths != truth.missing {
            note(format!("{id} is told to lack {paths:?}, and lacks {:?}", truth.missing));
        }
        if exact && !detail.is_null() && texts(&detail["hidden"]) != truth.hidden {
            note(format!("{id} is told to hide {}, and hides {:?}", detail["hidden"], truth.hidden));
        }
        let state = detail["state"].as_str().unwrap_or("stored");
        if state == "stored" && !truth.is_stored() {
            let alone = if truth.is_left_alone() { " (ignored or terminating)" } else { "" };
            note(format!("{id}{alone} is called stored, and lacks {:?}", truth.missing));
        }
        for missing in truth.missing.iter().filter(|_| state != "stored") {
            if !paths.iter().any(|path| is_below(missing, path)) {
                note(format!("{id} is told to store {missing}"));
            }
        }
        if state == "phantom" && truth.is_stored() {
            note(format!("{id} is called phantom, and is stored"));
        }
        let held = detail["held"]["reason"].as_str();
        judge_held(id, truth, held, note);
    }
}

/// What is held has a reason to be, and what has one is held, as far as bytes show.
pub(crate) fn judge_held(id: &str, truth: &Truth, held: Option<&str>, note: &dyn Fn(String)) {
    let is_so = match held {
        Some("Misfit") => !truth.misfits.is_empty(),
        // An owner's claim may outlive its field, so that without etcd more is held than must be.
        Some("HiddenFields" | "InvalidDefaults") => true,
        Some(_) => false,
        None => true,
    };
    if !is_so {
        note(format!("{id} is held for {held:?}: {truth:?}"));
    }
}

async fn explain(stage: &Stage, phase: usize, when: &str, raw: &Raw, notes: &Notes) -> Result<()> {
    for plan in &stage.plans {
        let truths = plan.truths(phase, raw);
        let Some((id, truth)) = truths.iter().nth(usize::try_from(plan.seed % 20)? % truths.len().max(1))
        else {
            continue;
        };
        let plural = plan.crd();
        // The type's scope decides which of the two is asked for.
        let arguments = match id.split_once('/') {
            Some((namespace, name)) => vec!["explain", &plural, name, "-n", namespace],
            None => vec!["explain", &plural, id],
        };
        let is_exact = plan.seed % 2 == 0;
        let printed = match is_exact {
            true => stage.etch_exact(&arguments).await?,
            false => stage.etch(&arguments).await?,
        };
        let how = format!("{when}, explain {id} {}", if is_exact { "with etcd" } else { "without etcd" });
        explained(plan, truth, &printed, is_exact, &|finding| {
            notes.note(&plan.plural, format!("{how}: {finding}"))
        });
    }
    Ok(())
}

fn explained(plan: &Plan, truth: &Truth, printed: &Printed, exact: bool, note: &dyn Fn(String)) {
    let defaults: Vec<&Value> = printed.json["defaults"].as_array().into_iter().flatten().collect();
    for default in &defaults {
        let path = default["path"].as_str().unwrap_or_default();
        let state = default["state"].as_str().unwrap_or_default();
        let is_missing = truth.missing.iter().any(|missing| is_below(path, missing));
        if is_missing && state == "stored" {
            note(format!("{path} is called stored, and is missing: {}", default["reason"]));
        }
        if !is_missing && matches!(state, "phantom" | "gap") {
            note(format!("{path} is called {state}, and is stored"));
        }
        if exact && state == "unknown" {
            note(format!("{path} is called unknown with access to etcd"));
        }
    }
    for missing in &truth.missing {
        if !defaults.iter().any(|default| {
            default["path"].as_str().is_some_and(|path| is_below(missing, path) || is_below(path, missing))
        }) {
            note(format!("{missing} is missing, and is not explained"));
        }
    }
    if printed.code == Some(0) && !truth.is_stored() {
        note(format!("exit status 0, and {:?} are missing in {}", truth.missing, plan.plural));
    }
}
