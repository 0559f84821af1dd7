//! The operator's pass: its reports, conditions and metrics, compared with the bytes before and after.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};
use e2e::cluster::{Condition, GUARD, eventually};
use e2e::ports::free_port;
use kube::{Client, Config};
use serde_json::Value;

use crate::laws::{self, Allowed};
use crate::model::Truth;
use crate::notes::{Notes, number, sum};
use crate::random::Plan;
use crate::stage::{Stage, id};

/// The numbers that the objects of a report come apart into.
const PARTS: [&str; 9] =
    ["written", "alreadyStored", "due", "unproved", "held", "rejected", "ignored", "terminating", "unknown"];

/// What Etch reports of one CRD once its pass has ended.
struct Said {
    status: Value,
    condition: Condition,
}

/// Runs the operator until it is done with every CRD, and compares its reports with what it did.
pub(crate) async fn check(stage: &Stage, phase: usize, when: &str, notes: &Notes) -> Result<()> {
    let before = stage.raw().await?;
    let port = free_port()?;
    let operator = stage.scene.replica(&when.replace(' ', "-"), &[&format!("--listen=127.0.0.1:{port}")])?;
    let mut wording = BTreeMap::new();
    for plan in stage.plans.iter().filter(|plan| is_reported(plan, phase)) {
        wording.insert(plan.plural.clone(), ended(stage, plan).await?);
    }
    let after = stage.raw().await?;
    for plan in &stage.plans {
        let note = |finding: String| notes.note(&plan.plural, format!("{when}: {finding}"));
        let changed = laws::changed(plan, &before, &after);
        if !writes(plan) && !changed.is_empty() {
            note(format!("{changed:?} were written under {:?}", plan.policy));
        }
        let allowed = Allowed {
            follow: followed(plan),
            drop: plan.says("hiddenFields") == "Drop",
            own: plan.says("ownership") == "Own",
        };
        for id in &changed {
            let bytes = (&before[&plan.plural][*id], &after[&plan.plural][*id]);
            laws::judge(plan, phase, bytes, &allowed, &|finding| note(format!("{id}: {finding}")));
        }
        if let Some(wording) = wording.get(&plan.plural) {
            reported(plan, &wording.status, &plan.truths(phase, &after), &changed, &note);
            conditioned(plan, wording, &plan.truths(phase, &after), &note);
        } else {
            silent(stage, plan, phase, &note).await?;
        }
    }
    measured(port, stage, &wording, &|plural, finding| notes.note(plural, format!("{when}: {finding}")))
        .await?;
    operator.stop().await
}

/// Whether the policy lets objects be written.
fn writes(plan: &Plan) -> bool {
    plan.says("mode") == "Persist" && plan.says("paused") != true
}

/// Whether there is a pass to be reported.
fn is_reported(plan: &Plan, phase: usize) -> bool {
    plan.phases[phase].has_defaults() && !matches!(plan.says("mode").as_str(), None | Some("Ignore"))
}

fn followed(plan: &Plan) -> Vec<String> {
    let rules = plan.says("onChange").as_array().into_iter().flatten();
    rules.filter_map(|rule| rule["path"].as_str()).map(str::to_owned).collect()
}

/// Waits until a pass for the present state of the CRD has ended, and the condition gives its numbers. Where
/// they never come, the present ones are judged.
async fn ended(stage: &Stage, plan: &Plan) -> Result<Said> {
    let crd = plan.crd();
    let generation = stage.crd(plan).await?["metadata"]["generation"].clone();
    let mut last = None;
    let found = eventually(GUARD, &format!("a pass over {crd} ends"), async || {
        let status = stage.scene.report(&crd).await?["status"].clone();
        let condition = stage.scene.cluster.condition(&crd, "DefaultsPersisted").await?;
        let is_over = status["generation"] == generation
            && status["finished"].is_string()
            && !matches!(status["state"].as_str(), Some("InProgress" | "Settling"));
        let condition =
            condition.filter(|condition| condition.current && status["state"] == condition.reason);
        let Some(condition) = condition.filter(|_| is_over) else { return Ok(None) };
        // The report comes first, and the condition has reasons such as Paused during the pass, too.
        let agrees =
            condition.message.contains(&format!(" of {} object", number(&status["counts"], "objects")));
        last = Some((status, condition));
        Ok(agrees.then_some(()))
    })
    .await;
    match last {
        Some((status, condition)) => Ok(Said { status, condition }),
        None => bail!("{found:?} {plan:#?}"),
    }
}

/// The report's numbers, and its result for each object, by name or by naming only the others.
fn reported(
    plan: &Plan,
    status: &Value,
    truths: &BTreeMap<String, Truth>,
    changed: &[&String],
    note: &dyn Fn(String),
) {
    let counts = &status["counts"];
    let count = |wanted: &dyn Fn(&String, &Truth) -> bool| {
        i64::try_from(truths.iter().filter(|(id, truth)| wanted(id, truth)).count()).unwrap_or(-1)
    };
    let named =
        |list: &str| -> BTreeSet<String> { status[list].as_array().into_iter().flatten().map(id).collect() };
    let (held, rejected) = (named("held"), named("rejected"));
    let is_named = |id: &String| held.contains(id) || rejected.contains(id);
    if number(counts, "objects") != sum(counts, &PARTS) {
        note(format!("the sum is not that of its parts: {counts}"));
    }
    for (key, expected) in [
        ("objects", count(&|_, _| true)),
        ("ignored", count(&|_, truth| truth.ignored && !truth.terminating)),
        ("terminating", count(&|_, truth| truth.terminating)),
        ("held", i64::try_from(held.len()).unwrap_or(-1)),
        ("rejected", i64::try_from(rejected.len()).unwrap_or(-1)),
        ("unknown", 0),
    ] {
        if number(counts, key) != expected {
            note(format!("{key} is {}, not {expected}", counts[key]));
        }
    }
    let stored = count(&|id, truth| !truth.is_left_alone() && !is_named(id) && truth.is_stored());
    let claimed = sum(counts, &["written", "alreadyStored"]);
    if claimed > stored {
        note(format!("{claimed} are called stored, and {stored} are: {counts}"));
    }
    if writes(plan) && number(counts, "due") != 0 {
        note(format!("a pass that may write leaves {} due", counts["due"]));
    }
    for left in
        ["ignored", "terminating"].iter().flat_map(|list| status[list].as_array().into_iter().flatten())
    {
        let is_stored = truths.get(&id(left)).is_some_and(Truth::is_stored);
        if !lacks(left) && !is_stored {
            note(format!("{} is said to lack no default: {left}", id(left)));
        }
    }
    for (id, truth) in truths {
        // Where a value cannot follow its default, the object is named for it, and its other defaults are
        // stored.
        let is_untouchable = truth.is_left_alone() || is_named(id) && followed(plan).is_empty();
        if is_untouchable && changed.contains(&id) {
            note(format!("{id} was written, although it is to be left alone"));
        }
        if truth.is_left_alone() && is_named(id) {
            note(format!("{id} is ignored or terminating, and named as held or rejected"));
        }
        let is_due = !truth.is_left_alone() && !is_named(id);
        if writes(plan) && is_due && !truth.is_stored() {
            note(format!("{id} still lacks {:?}, and is not named", truth.missing));
        }
        if rejected.contains(id) && !truth.refused && !truth.is_broken() {
            note(format!("{id} is called rejected, which nothing refuses: {}", status["rejected"]));
        }
    }
}

/// The condition: true only if everything that may be written is stored, and its message has the report's
/// numbers.
fn conditioned(plan: &Plan, wording: &Said, truths: &BTreeMap<String, Truth>, note: &dyn Fn(String)) {
    let Said { status, condition } = wording;
    let counts = &status["counts"];
    let lacking: Vec<&String> = truths
        .iter()
        .filter(|(_, truth)| !truth.is_left_alone() && !truth.is_stored())
        .map(|(id, _)| id)
        .collect();
    let is_true = condition.status == "True";
    if is_true && !lacking.is_empty() {
        note(format!("True, and {lacking:?} lack defaults: {condition:?}"));
    }
    if is_true != (condition.reason == "AllPersisted") {
        note(format!("status and reason disagree: {condition:?}"));
    }
    let has_trouble = sum(counts, &["held", "rejected", "unknown"]) > 0;
    if writes(plan) && !has_trouble && !is_true {
        note(format!("everything is stored, and it is not True: {condition:?}"));
    }
    let stored = sum(counts, &["written", "alreadyStored"]);
    let all = number(counts, "objects");
    let objects = if all == 1 { "object" } else { "objects" };
    let verb = match (stored == all, stored == 1 || all == 1) {
        (true, true) => "stores its defaults",
        (true, false) => "store their defaults",
        (false, true) => "is known to store its defaults",
        (false, false) => "are known to store their defaults",
    };
    let first = match stored == all && all > 1 {
        true => format!("all {all} objects store their defaults"),
        false => format!("{stored} of {all} {objects} {verb}"),
    };
    if !condition.message.starts_with(&first) {
        note(format!("the message does not begin with {first:?}: {:?}", condition.message));
    }
    for (key, words) in [
        ("ignored", "ignored by annotation"),
        ("terminating", "being deleted"),
        ("rejected", "rejected"),
        ("due", "would be written"),
    ] {
        let wording: i64 = before_each(&condition.message, words).iter().sum();
        // A long message is cut at its end.
        if number(counts, key) != wording && !condition.message.ends_with('…') {
            note(format!(
                "{key} is {}, and the message says {wording}: {:?}",
                counts[key], condition.message
            ));
        }
    }
    let is_paused = plan.says("paused") == true && plan.says("mode") == "Persist";
    if is_paused && !has_trouble && number(counts, "due") > 0 && condition.reason != "Paused" {
        note(format!("a paused policy gives the reason {}", condition.reason));
    }
}

/// The numbers before some words, wherever these occur.
fn before_each(message: &str, words: &str) -> Vec<i64> {
    let mut parts: Vec<&str> = message.split(&format!(" {words}")).collect();
    parts.pop();
    parts.iter().filter_map(|part| part.rsplit([' ', ';']).next()?.parse().ok()).collect()
}

/// Etch reports nothing of a CRD that no policy selects, and of one in mode `Ignore` only that.
async fn silent(stage: &Stage, plan: &Plan, phase: usize, note: &dyn Fn(String)) -> Result<()> {
    let crd = plan.crd();
    let condition = stage.scene.cluster.condition(&crd, "DefaultsPersisted").await?;
    let is_ignored = plan.says("mode") == "Ignore" && plan.phases[phase].has_defaults();
    if is_ignored {
        let found = eventually(GUARD, &format!("{crd} is called ignored"), async || {
            let condition = stage.scene.cluster.condition(&crd, "DefaultsPersisted").await?;
            Ok(condition.filter(|condition| condition.current && condition.reason == "Ignored"))
        })
        .await?;
        if found.status == "True" {
            note(format!("ignored, and {found:?}"));
        }
    } else if let Some(condition) =
        condition.filter(|condition| condition.status == "True" && condition.reason != "NoDefaults")
    {
        note(format!("nobody cares for it, and {condition:?}"));
    }
    Ok(())
}

/// The gauges, once they have caught up with the reports.
async fn measured(
    port: u16,
    stage: &Stage,
    wording: &BTreeMap<String, Said>,
    note: &dyn Fn(&str, String),
) -> Result<()> {
    let mut last = BTreeMap::new();
    let caught_up = eventually(std::time::Duration::from_secs(10), "the metrics", async || {
        let text = scrape(port).await?;
        last.clear();
        for plan in &stage.plans {
            if let Some(Said { status, .. }) = wording.get(&plan.plural)
                && let Some(finding) = gauges(&text, &plan.crd(), status)
            {
                last.insert(plan.plural.clone(), finding);
            }
        }
        Ok(last.is_empty().then_some(()))
    })
    .await;
    if caught_up.is_err() {
        last.into_iter().for_each(|(plural, finding)| note(&plural, finding));
    }
    Ok(())
}

/// What is wrong with the gauges of a CRD.
fn gauges(text: &str, crd: &str, status: &Value) -> Option<String> {
    let counts = &status["counts"];
    let alone =
        ["ignored", "terminating"].iter().flat_map(|list| status[list].as_array().into_iter().flatten());
    let missing = sum(counts, &["due", "held", "rejected", "unknown"])
        + i64::try_from(alone.filter(|left| lacks(left)).count()).unwrap_or(-1);
    let phantom = format!("etch_phantom_objects{{crd=\"{crd}\"}} {missing}");
    let state = format!("reason={}", status["state"]);
    let named = format!("crd=\"{crd}\"");
    let lines: Vec<&str> = text.lines().filter(|line| line.contains(&named)).collect();
    let states: Vec<_> =
        lines.iter().filter(|line| line.starts_with("etch_crd_state") && line.ends_with(" 1")).collect();
    let is_so = lines.contains(&phantom.as_str()) && states.len() == 1 && states[0].contains(&state);
    (!is_so).then(|| format!("the metrics are {lines:?}, and not {phantom}, {state}"))
}

/// Whether the report states that an object that is not written lacks a default, or may lack one.
fn lacks(left: &Value) -> bool {
    !left["message"].as_str().is_some_and(|message| message.ends_with("no default missing"))
}

async fn scrape(port: u16) -> Result<String> {
    let mut config = Config::new(format!("http://127.0.0.1:{port}").parse()?);
    config.default_retry = false;
    let request = http::Request::get("/metrics").body(Vec::new())?;
    Ok(Client::try_from(config)?.request_text(request).await?)
}
