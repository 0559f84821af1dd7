//! What Etch reports of a life at rest, compared with raw etcd.

use std::collections::{BTreeMap, BTreeSet};

use e2e::paths::is_below;
use e2e::process::Printed;
use serde_json::Value;

use crate::model;
use crate::notes::{number, sum};
use crate::schema::Conversion;
use crate::stage::{Living, Said, Snapshot};
use crate::webhooks::STRIPPED;

/// The numbers that the objects of a report come apart into.
const PARTS: [&str; 9] =
    ["written", "alreadyStored", "due", "unproved", "held", "rejected", "ignored", "terminating", "unknown"];

/// What is so of one object.
#[derive(Debug)]
pub(crate) struct Truth {
    /// The topmost defaults that the bytes lack.
    pub(crate) missing: Vec<String>,
    pub(crate) ignored: bool,
    pub(crate) terminating: bool,
    /// Whether it is stored at another version than the storage version.
    elsewhere: bool,
}

impl Truth {
    fn of(living: &Living, raw: &Value, view: &Value) -> Self {
        let storage = living.crd.storage();
        let schema = storage.schema();
        let (bytes, shown) = (model::parts(raw), model::parts(view));
        let mut filled = shown.clone();
        model::fill(&schema, &mut filled);
        let mut missing = Vec::new();
        // What readers do not see at the storage version is not stored there, whatever the bytes hold at
        // another one.
        model::lacking(&schema, &filled, &bytes, "", &mut missing);
        model::lacking(&schema, &filled, &shown, "", &mut missing);
        missing.sort();
        missing.dedup();
        let metadata = &raw["metadata"];
        Self {
            missing,
            ignored: metadata["annotations"]["etch-operator.io/ignore"] == "true",
            terminating: metadata["deletionTimestamp"].is_string(),
            elsewhere: raw["apiVersion"].as_str().and_then(|text| text.rsplit('/').next())
                != Some(storage.name),
        }
    }

    pub(crate) fn is_stored(&self) -> bool {
        self.missing.is_empty()
    }

    fn is_left_alone(&self) -> bool {
        self.ignored || self.terminating
    }
}

/// What is so of each object of a life.
pub(crate) fn truths(living: &Living, snapshot: &Snapshot) -> BTreeMap<String, Truth> {
    let plural = &living.life.plural;
    let views = &snapshot.views[plural];
    let all = snapshot.raw[plural].iter();
    all.filter_map(|(name, raw)| Some((name.clone(), Truth::of(living, raw, views.get(name)?)))).collect()
}

/// The condition and the report.
pub(crate) fn wording(
    living: &Living,
    wording: &Said,
    truths: &BTreeMap<String, Truth>,
    note: &dyn Fn(String),
) {
    let Said { status, condition } = wording;
    let counts = &status["counts"];
    let named = |list: &str| -> BTreeSet<&str> {
        let list = status[list].as_array().into_iter().flatten();
        list.filter_map(|problem| problem["name"].as_str()).collect()
    };
    let (held, rejected) = (named("held"), named("rejected"));
    let is_named = |name: &String| held.contains(name.as_str()) || rejected.contains(name.as_str());
    let lacking: Vec<_> =
        truths.iter().filter(|(_, truth)| !truth.is_left_alone() && !truth.is_stored()).collect();
    if condition.status == "True" && !lacking.is_empty() {
        note(format!("{} is True, and etcd lacks {}", condition.reason, shown(&lacking)));
    }
    let count = |wanted: &dyn Fn(&String, &Truth) -> bool| {
        i64::try_from(truths.iter().filter(|(name, truth)| wanted(name, truth)).count()).unwrap_or(-1)
    };
    for (key, expected) in [
        ("objects", count(&|_, _| true)),
        ("ignored", count(&|_, truth| truth.ignored && !truth.terminating)),
        ("terminating", count(&|_, truth| truth.terminating)),
    ] {
        if number(counts, key) != expected {
            note(format!("the report's {key} is {}, not {expected}", counts[key]));
        }
    }
    if number(counts, "objects") != sum(counts, &PARTS) {
        note(format!("the report's sum is not that of its parts: {counts}"));
    }
    let stored = count(&|name, truth| !truth.is_left_alone() && !is_named(name) && truth.is_stored());
    let claimed = sum(counts, &["written", "alreadyStored"]);
    if claimed > stored {
        note(format!(
            "the report calls {claimed} stored, and {stored} are: {counts}, lacking: {}",
            shown(&lacking)
        ));
    }
    let unnamed: Vec<_> = lacking.into_iter().filter(|(name, _)| !is_named(name)).collect();
    if living.is_written() && number(counts, "unknown") == 0 && !unnamed.is_empty() {
        note(format!("the report names neither of: {} ({})", shown(&unnamed), condition.reason));
    }
    let is_fine = sum(counts, &["held", "rejected", "unknown", "due", "unproved"]) == 0;
    if is_fine && living.is_written() && condition.status != "True" {
        note(format!("nothing is wrong, and it is not True: {condition:?}"));
    }
    for left in
        ["ignored", "terminating"].iter().flat_map(|list| status[list].as_array().into_iter().flatten())
    {
        let says_nothing = left["message"].as_str().is_some_and(|text| text.ends_with("no default missing"));
        let name = left["name"].as_str().unwrap_or_default();
        if says_nothing && truths.get(name).is_some_and(|truth| !truth.is_stored()) {
            note(format!("{name} is said to lack no default: {left}, {:?}", truths.get(name)));
        }
    }
}

fn shown(truths: &[(&String, &Truth)]) -> String {
    let all = truths.iter().map(|(name, truth)| {
        format!(
            "{name} {}{}",
            truth.missing.join(" "),
            if truth.elsewhere { " (stored elsewhere)" } else { "" }
        )
    });
    all.collect::<Vec<_>>().join(", ")
}

/// What an audit reports of a CRD.
pub(crate) fn audited(
    living: &Living,
    reported: &Value,
    truths: &BTreeMap<String, Truth>,
    exact: bool,
    note: &dyn Fn(String),
) {
    if number(reported, "objects") != i64::try_from(truths.len()).unwrap_or(-1) {
        note(format!("objects is {}, not {}", reported["objects"], truths.len()));
    }
    if number(reported, "objects") != sum(reported, &["stored", "phantom", "unknown", "unreadable"]) {
        note(format!("the sum is not that of its parts: {reported}"));
    }
    let details: BTreeMap<&str, &Value> = reported["details"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|detail| Some((detail["name"].as_str()?, detail)))
        .collect();
    for (name, truth) in truths {
        let detail = details.get(name.as_str()).copied().unwrap_or(&Value::Null);
        let state = detail["state"].as_str().unwrap_or("stored");
        let left = if truth.is_left_alone() { " (ignored or terminating)" } else { "" };
        if state == "stored" && !truth.is_stored() {
            note(format!("{name}{left} is called stored, and lacks {:?}", truth.missing));
        }
        let defaults = detail["defaults"].as_array().into_iter().flatten();
        let paths: Vec<&str> = defaults.filter_map(|default| default["path"].as_str()).collect();
        for missing in truth.missing.iter().filter(|_| state != "stored") {
            let names = |path: &&str| *path == "." || is_below(missing, path) || is_below(path, missing);
            if !paths.iter().any(names) {
                note(format!("{name} is told to store {missing}: {detail}"));
            }
        }
        // What a webhook would make of the bytes at another version only the server knows.
        let is_known = !truth.elsewhere || living.crd.conversion == Conversion::None;
        if state == "phantom" && truth.is_stored() && is_known {
            note(format!("{name}{left} is called phantom, and is stored: {detail}"));
        }
        if exact && state == "unknown" && is_known {
            note(format!("{name}{left} is called unknown with access to etcd: {detail}"));
        }
    }
}

/// What is explained of one object.
pub(crate) fn explained(truth: &Truth, printed: &Printed, note: &dyn Fn(String)) {
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
    }
    if printed.code == Some(0) && !truth.is_stored() {
        note(format!("exit status 0, and {:?} are missing", truth.missing));
    }
}

/// What `etch persist` reports of a CRD that it has just processed.
pub(crate) fn persisted(reported: &Value, truths: &BTreeMap<String, Truth>, note: &dyn Fn(String)) {
    let problems = reported["problems"].as_array().into_iter().flatten();
    let problems: BTreeSet<&str> = problems.filter_map(|problem| problem["name"].as_str()).collect();
    for (name, truth) in truths {
        if !truth.is_left_alone() && !problems.contains(name.as_str()) && !truth.is_stored() {
            note(format!("{name} still lacks {:?}, and is not named", truth.missing));
        }
    }
}

/// What no write of Etch's may do.
pub(crate) fn kept(living: &Living, before: &Snapshot, after: &Snapshot, note: &dyn Fn(String)) {
    let plural = &living.life.plural;
    let schema = living.crd.storage().schema();
    let (raw, views) = (&before.raw[plural], &before.views[plural]);
    for (name, now) in &after.raw[plural] {
        let Some(was) = raw.get(name) else {
            if !name.starts_with("marker-") {
                note(format!("{name} was created"));
            }
            continue;
        };
        if was["metadata"]["uid"] != now["metadata"]["uid"] {
            note(format!("{name} is another object"));
        }
        if let (Some(old), Some(new)) = (views.get(name), after.views[plural].get(name)) {
            let (old, new) = (model::parts(old), model::parts(new));
            let difference = model::Difference::between((&schema, &old), (&schema, &new));
            // What users have others do to each write is done to Etch's as well.
            let stripped = |path: &&String| living.strips && STRIPPED.iter().any(|field| is_at(path, field));
            for path in difference.changes.iter().chain(&difference.goes).filter(|path| !stripped(path)) {
                note(format!("{name}: the value at {path} was changed: {was}, then {now}"));
            }
        }
        hidden(living, &schema, name, was, now, note);
        let (had, has) = (model::managers(was), model::managers(now));
        let others = |managers: &[String]| -> Vec<String> {
            managers.iter().filter(|manager| !manager.starts_with("etch ")).cloned().collect()
        };
        let owns = living.policy["ownership"] == "Own";
        if others(&had) != others(&has) && !(had.is_empty() && owns) {
            let entries = |object: &Value| object["metadata"]["managedFields"].clone();
            note(format!(
                "{name}: its owners were {had:?}, and are {has:?}: {}, then {}, of {}",
                entries(was),
                entries(now),
                model::parts(was)
            ));
        }
        let ours = |managers: &[String]| managers.iter().filter(|name| name.starts_with("etch ")).count();
        if !owns && ours(&has) > ours(&had) {
            note(format!("{name}: Etch owns a part of it: {has:?}"));
        }
        if is_left_alone(was) && (was["spec"] != now["spec"] || was["status"] != now["status"]) {
            note(format!("{name} was written, although it is to be left alone"));
        }
        if !living.is_written() && was != now {
            note(format!("{name} was written under {}", living.policy));
        }
    }
    for name in raw.keys().filter(|name| !after.raw[plural].contains_key(*name)) {
        note(format!("{name} was deleted"));
    }
}

/// Whether a path is that of a field of the spec, or within it.
fn is_at(path: &str, field: &str) -> bool {
    path.strip_prefix(".spec.")
        .and_then(|path| path.strip_prefix(field))
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

fn is_left_alone(raw: &Value) -> bool {
    raw["metadata"]["annotations"]["etch-operator.io/ignore"] == "true"
        || raw["metadata"]["deletionTimestamp"].is_string()
}

/// Fields that only etcd holds, and that some other manager names.
fn hidden(living: &Living, schema: &Value, name: &str, was: &Value, now: &Value, note: &dyn Fn(String)) {
    let version = |raw: &Value| raw["apiVersion"].as_str().unwrap_or_default().to_owned();
    // Only the conversion webhook knows what it drops on the way to the storage version.
    let is_converted = living.crd.conversion != Conversion::None && version(was) != version(now);
    if living.policy["hiddenFields"] == "Drop" || is_converted {
        return;
    }
    let of = |raw: &Value| {
        let mut hidden = Vec::new();
        model::prune(schema, &mut model::parts(raw), "", &mut hidden);
        hidden
    };
    let left = of(now);
    // What an owner at another version names, a webhook may have renamed.
    let at_storage = version(was);
    let is_alike = |version: &str| living.crd.conversion == Conversion::None || version == at_storage;
    let is_meant = |manager: &str, version: &str| manager != "etch" && is_alike(version);
    let is_lost = |path: &&String| !left.contains(path) && model::is_claimed(was, path, is_meant);
    let had = of(was);
    let lost: Vec<_> = had.iter().filter(is_lost).collect();
    if !lost.is_empty() {
        note(format!("{name}: {lost:?} were destroyed"));
    }
}
