//! `etch persist`, compared with the bytes before and after.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use e2e::process::Printed;
use serde_json::Value;

use crate::laws::{self, Allowed};
use crate::model::Truth;
use crate::notes::{Notes, number, of, sum};
use crate::random::{Partial, Plan};
use crate::stage::{Raw, Stage, id};

/// What a run may touch: the objects of a cluster by their ids.
type Scope<'a> = &'a (dyn Fn(&Plan, &str) -> bool + Sync);

/// Nothing is written, and the plan for each object agrees with its bytes.
pub(crate) async fn dry_run(stage: &Stage, phase: usize, when: &str, notes: &Notes) -> Result<()> {
    let before = stage.raw().await?;
    let printed = stage.etch(&["persist", "--dry-run"]).await?;
    let after = stage.raw().await?;
    for plan in &stage.plans {
        let note =
            |finding: String| notes.note(&plan.plural, format!("{when}, persist --dry-run: {finding}"));
        if before[&plan.plural] != after[&plan.plural] {
            note("objects were written".to_owned());
        }
        let truths = plan.truths(phase, &after);
        let Some(reported) = of(&printed.json, &plan.crd()) else {
            if plan.phases[phase].has_defaults() {
                note("nothing is told".to_owned());
            }
            continue;
        };
        counted(
            reported,
            &truths,
            &["alreadyStored", "due", "unproved", "held", "ignored", "terminating"],
            &note,
        );
        let plans = reported["plans"].as_array().into_iter().flatten();
        let plans: BTreeMap<String, &Value> = plans.map(|plan| (id(plan), plan)).collect();
        for (id, plan) in &plans {
            let is_certain =
                ["apply", "merge"].iter().any(|action| plan["action"] == *action) && plan["reason"].is_null();
            if is_certain && truths.get(id).is_some_and(Truth::is_stored) {
                note(format!("{id} is called due, and stores its defaults"));
            }
        }
        for (id, truth) in truths.iter().filter(|(_, truth)| !truth.is_stored()) {
            if !plans.contains_key(id) {
                note(format!("{id} lacks {:?}, and nothing would be done", truth.missing));
            }
        }
    }
    Ok(())
}

/// Each cluster's own try, with the scope that its plan gives it.
pub(crate) async fn partial(stage: &Stage, phase: usize, notes: &Notes) -> Result<()> {
    for plan in &stage.plans {
        let crd = plan.crd();
        match plan.partial {
            Partial::Nothing => {}
            Partial::Whole => {
                let scope = |other: &Plan, _: &str| other.plural == plan.plural;
                run(stage, phase, "before the operator", &["persist", &crd], &scope, notes).await?;
            }
            Partial::Namespace => {
                let scope = |other: &Plan, id: &str| other.plural == plan.plural && id.starts_with("web/");
                run(stage, phase, "before the operator", &["persist", &crd, "-n", "web"], &scope, notes)
                    .await?;
            }
            Partial::After(index) => {
                let raw = stage.raw().await?;
                let Some(after) = raw[&plan.plural].keys().nth(index) else { continue };
                let scope = |other: &Plan, id: &str| other.plural == plan.plural && id > after.as_str();
                let named = if plan.namespaced { after.clone() } else { format!("/{after}") };
                run(
                    stage,
                    phase,
                    "before the operator",
                    &["persist", &crd, "--after", &named],
                    &scope,
                    notes,
                )
                .await?;
            }
        }
    }
    Ok(())
}

/// Runs the command, and compares its output with what it did.
pub(crate) async fn run(
    stage: &Stage,
    phase: usize,
    when: &str,
    arguments: &[&str],
    scope: Scope<'_>,
    notes: &Notes,
) -> Result<()> {
    let before = stage.raw().await?;
    let printed = stage.etch(arguments).await?;
    let after = stage.raw().await?;
    let how = format!("{when}, {}", arguments.join(" "));
    let mut is_whole = true;
    for plan in &stage.plans {
        let note = |finding: String| notes.note(&plan.plural, format!("{how}: {finding}"));
        let changed = laws::changed(plan, &before, &after);
        for id in changed.iter().filter(|id| !scope(plan, id)) {
            note(format!("{id} was written, which is out of scope"));
        }
        let mut truths = plan.truths(phase, &after);
        let all = truths.len();
        truths.retain(|id, _| scope(plan, id));
        let Some(reported) = of(&printed.json, &plan.crd()) else {
            if plan.phases[phase].has_defaults() && !truths.is_empty() {
                note("nothing is told".to_owned());
            }
            continue;
        };
        let left_out = if arguments.contains(&"--after") { all - truths.len() } else { 0 };
        if reported["notLookedAt"].as_u64().unwrap_or_default() != u64::try_from(left_out)? {
            note(format!("notLookedAt is {}, not {left_out}", reported["notLookedAt"]));
        }
        is_whole &=
            written(plan, phase, reported, &truths, (&before, &after), &changed, &note) && left_out == 0;
    }
    exited(&printed, is_whole, &how, notes);
    Ok(())
}

/// Whether nothing is left to be done, by the output for a cluster.
fn written(
    plan: &Plan,
    phase: usize,
    reported: &Value,
    truths: &BTreeMap<String, Truth>,
    (before, after): (&Raw, &Raw),
    changed: &[&String],
    note: &dyn Fn(String),
) -> bool {
    counted(
        reported,
        truths,
        &["written", "alreadyStored", "held", "rejected", "ignored", "terminating", "unknown"],
        note,
    );
    if number(reported, "written") != i64::try_from(changed.len()).unwrap_or(-1) {
        note(format!("written is {}, and {changed:?} were", reported["written"]));
    }
    let problems: BTreeSet<String> = reported["problems"].as_array().into_iter().flatten().map(id).collect();
    for (id, truth) in truths {
        if (truth.is_left_alone() || problems.contains(id)) && changed.contains(&id) {
            note(format!("{id} was written, although it is to be left alone"));
        }
        if !truth.is_left_alone() && !problems.contains(id) && !truth.is_stored() {
            note(format!("{id} still lacks {:?}, and is not named", truth.missing));
        }
    }
    let allowed = Allowed { follow: Vec::new(), drop: false, own: false };
    for id in changed {
        let bytes = (&before[&plan.plural][*id], &after[&plan.plural][*id]);
        laws::judge(plan, phase, bytes, &allowed, &|finding| note(format!("{id}: {finding}")));
    }
    if reported["verified"] == true && number(reported, "unknown") > 0 {
        note(format!("verified, and not known: {reported}"));
    }
    sum(reported, &["held", "rejected", "ignored", "terminating", "unknown"]) == 0
}

fn counted(reported: &Value, truths: &BTreeMap<String, Truth>, parts: &[&str], note: &dyn Fn(String)) {
    let count = |wanted: fn(&Truth) -> bool| {
        i64::try_from(truths.values().filter(|truth| wanted(truth)).count()).unwrap_or(-1)
    };
    if number(reported, "objects") != count(|_| true) {
        note(format!("objects is {}, not {}", reported["objects"], truths.len()));
    }
    if number(reported, "objects") != sum(reported, parts) {
        note(format!("the sum is not that of its parts: {reported}"));
    }
    let stored = count(|truth| truth.is_stored() && !truth.is_left_alone());
    let claimed = sum(
        reported,
        if parts.contains(&"written") { &["written", "alreadyStored"] } else { &["alreadyStored"] },
    );
    if claimed > stored {
        note(format!("{claimed} are called stored, and {stored} are: {reported}"));
    }
    for (key, expected) in [
        ("ignored", count(|truth| truth.ignored && !truth.terminating)),
        ("terminating", count(|truth| truth.terminating)),
    ] {
        if number(reported, key) != expected {
            note(format!("{key} is {}, not {expected}", reported[key]));
        }
    }
}

fn exited(printed: &Printed, is_whole: bool, how: &str, notes: &Notes) {
    if (printed.code == Some(0)) != is_whole {
        notes.note(
            "all",
            format!("{how}: exit status {:?}, and is everything stored: {is_whole}", printed.code),
        );
    }
}
