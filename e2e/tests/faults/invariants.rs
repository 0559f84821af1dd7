//! What must hold whatever happened, from the history of etcd, the audit log and the requests that came by.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use e2e::faults::{Progress, Seen};
use e2e::scene::Scene;
use serde_json::Value;

use crate::history::History;
use crate::laws::{covers, of_crd, of_objects};
use crate::plan::Place;
use crate::workload::{Expected, GROUP, State, Subject, Workload, persisted};

/// Whether etcd is a fixed point of filling, and the condition of the CRD's present generation reports it.
pub(crate) fn is_stable(history: &History, subject: &Subject) -> bool {
    // While a user acts, it is not.
    let Ok(state) = subject.state.try_lock() else { return false };
    if !subject.is_worded(history) {
        return false;
    }
    let stored = history.below(&subject.keys());
    state.objects.iter().all(|(name, expected)| {
        stored.get(name).is_some_and(|raw| wrong_spec(subject, &state, expected, raw).is_none())
    })
}

/// What keeps a plan from being stable.
pub(crate) fn unstable(history: &History, subject: &Subject) -> String {
    let wording = history.now(&subject.crd_key()).map(|crd| persisted(&crd)).unwrap_or_default();
    let Ok(state) = subject.state.try_lock() else { return "somebody acts".to_owned() };
    let stored = history.below(&subject.keys());
    let wrong = state.objects.iter().filter_map(|(name, expected)| {
        let raw = stored.get(name).map_or(&Value::Null, |raw| raw);
        Some(format!("; {name} {}", wrong_spec(subject, &state, expected, raw)?))
    });
    format!("the condition is {wording}{}", wrong.collect::<String>())
}

/// What is wrong with the spec of an object.
fn wrong_spec(subject: &Subject, state: &State, expected: &Expected, raw: &Value) -> Option<String> {
    if expected.is_terminating {
        let is_kept =
            covers(&expected.values, &raw["spec"]) && !raw["metadata"]["deletionTimestamp"].is_null();
        return (!is_kept).then(|| format!("holds {raw}, which lacks {}", expected.values));
    }
    let spec = match subject.workload {
        Workload::Hidden => expected.values.clone(),
        _ => state.spec(expected),
    };
    (raw["spec"] != spec).then(|| format!("holds {} instead of {spec}", raw["spec"]))
}

/// What is broken of a plan that is over; and how often each object was written, and may have been.
pub(crate) async fn broken(
    scene: &Scene,
    history: &History,
    subject: &Subject,
    seen: &[Seen],
    begun: i64,
) -> Result<(Vec<String>, BTreeMap<String, (usize, usize)>)> {
    let mut broken = Vec::new();
    let state = subject.state.lock().await;
    let stored = history.below(&subject.keys());
    let names: BTreeSet<_> = stored.keys().collect();
    if names != state.objects.keys().collect() {
        broken.push(format!("created, lost or brought back: {names:?}"));
    }
    let (wrong, writes) = of_objects(history, subject, &state, begun);
    broken.extend(wrong);
    broken.extend(of_crd(history, subject, &state, begun));
    for (name, expected) in &state.objects {
        let Some(raw) = stored.get(name) else { continue };
        broken.extend(wrong_spec(subject, &state, expected, raw).map(|wrong| format!("{name} {wrong}")));
        let owners = owners(raw);
        // While owners cannot express a new field, the server does not list who updates an object (fact W8).
        let unlisted = if subject.workload == Workload::NewVersion { "user" } else { "" };
        // An object that is deleted between a move and the removal of Etch's entry keeps that entry: Etch
        // does not write it again.
        let left = if expected.is_terminating { "etch" } else { "" };
        let differing = owners.symmetric_difference(&expected.owners);
        if differing.filter(|owner| ![unlisted, left].contains(&owner.as_str())).count() > 0 {
            broken.push(format!("{name} is owned by {owners:?} instead of {:?}", expected.owners));
        }
        if raw["metadata"]["uid"] != expected.uid.as_str() {
            broken.push(format!("{name} has another uid"));
        }
        // What a user creates after the upgrade is the user's, defaults included; and to the first apply of
        // an object without managedFields the server holds everything against it that was there before.
        if subject.workload != Workload::Hidden
            && expected.owners.contains("owner")
            && !expected.is_terminating
        {
            broken.extend(subject.not_free(&scene.cluster, &state, name).await?);
        }
    }
    let lost = lost(subject, seen);
    let mut bounds = BTreeMap::new();
    for (name, expected) in &state.objects {
        let (done, lost) = (writes.get(name), lost.get(name));
        let (done, lost) = (done.copied().unwrap_or_default(), lost.copied().unwrap_or_default());
        if done > expected.writes + lost {
            broken
                .push(format!("{name} was written {done} times, and {} + {lost} would do", expected.writes));
        }
        bounds.insert(name.clone(), (done, expected.writes + lost));
    }
    Ok((broken, bounds))
}

/// For each object, how many of its writes the server may have done without Etch's knowledge: those, and no
/// others, Etch may have to make once more.
///
/// Where Etch was killed, they are what was under way just then. A write whose answer came before is known to
/// be stored or not from the object itself, since the next process reads it again, and the server does not
/// write what is there (fact W1): what a process forgets costs requests, but no write. A late answer is an
/// answer, and so is a refusal.
fn lost(subject: &Subject, seen: &[Seen]) -> BTreeMap<String, usize> {
    let mut lost = BTreeMap::new();
    for write in Place::Objects.of(&subject.plural(), seen) {
        if write.progress == Progress::Sent && !write.target.is_dry_run {
            *lost.entry(write.target.name.clone().unwrap_or_default()).or_default() += 1;
        }
    }
    lost
}

fn owners(raw: &Value) -> BTreeSet<String> {
    let entries = raw["metadata"]["managedFields"].as_array().into_iter().flatten();
    entries.filter_map(|entry| entry["manager"].as_str().map(str::to_owned)).collect()
}

/// What is broken of all plans that were played together: of objects Etch asks nothing but to read and to
/// patch them, and never by force.
pub(crate) fn of_all(scene: &Scene) -> Result<Vec<String>> {
    let unasked = scene.requests(|event| {
        let is_ours = event["objectRef"]["apiGroup"] == GROUP;
        let is_apt = ["get", "list", "watch", "patch"].iter().any(|verb| event["verb"] == *verb);
        let is_forced = event["requestURI"].as_str().unwrap_or_default().contains("force=");
        let is_above = !event["objectRef"]["subresource"].is_null();
        is_ours && (!is_apt || is_forced || is_above)
    })?;
    Ok(unasked
        .iter()
        .map(|event| format!("Etch asked for {} {}", event["verb"], event["requestURI"]))
        .collect())
}
