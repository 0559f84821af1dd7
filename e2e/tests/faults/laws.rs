//! What no single write may do, found by going through the history of etcd write by write.
//! It must know only who wrote what, not what was to happen.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use crate::history::{Event, History};
use crate::schema::is_filled;
use crate::workload::{State, Subject, Workload, persisted};

/// What Etch's writes of objects have broken, and how often it has written each.
pub(crate) fn of_objects(
    history: &History,
    subject: &Subject,
    state: &State,
    begun: i64,
) -> (Vec<String>, BTreeMap<String, usize>) {
    let (mut broken, mut writes) = (Vec::new(), BTreeMap::new());
    let keys = subject.keys();
    let mut before: BTreeMap<String, Arc<Value>> = BTreeMap::new();
    for Event { key, revision, value } in history.of(|key| key.starts_with(&keys)) {
        let name = key[keys.len()..].to_owned();
        let Some(value) = value else {
            before.remove(&name);
            if revision > begun && !state.deleted.contains(&name) {
                broken.push(format!("{name} is deleted at {revision}"));
            }
            continue;
        };
        let last = before.insert(name.clone(), Arc::clone(&value));
        if revision <= begun || state.revisions.contains(&revision) {
            continue;
        }
        *writes.entry(name.clone()).or_default() += 1;
        match last {
            None => broken.push(format!("{name} is created at {revision}")),
            Some(last) => {
                let wrong = changed(subject, &last, &value);
                broken.extend(
                    wrong.map(|wrong| format!("{name} at {revision}: {wrong}: {last} becomes {value}")),
                );
            }
        }
    }
    (broken, writes)
}

/// The part of an object that a write has changed and that Etch must not change.
fn changed(subject: &Subject, last: &Value, value: &Value) -> Option<&'static str> {
    let without = |object: &Value, fields: &[&str]| {
        let mut fields_left = object.as_object().cloned().unwrap_or_default();
        fields_left.retain(|name, _| !fields.contains(&name.as_str()));
        fields_left
    };
    if !owners(last).is_subset(&owners(value)) {
        return Some("an owner is gone");
    }
    // Uid, labels, annotations, finalizers, owner references, deletionTimestamp and whatever else there is.
    let own = ["managedFields", "generation"];
    if without(&last["metadata"], &own) != without(&value["metadata"], &own) {
        return Some("metadata changes");
    }
    let own = ["apiVersion", "metadata", "spec"];
    if without(last, &own) != without(value, &own) {
        return Some("status, or another part, changes");
    }
    let mut kept = last["spec"].clone();
    // The old default of what a policy has follow.
    if subject.workload == Workload::Follow && kept["size"] == 1 && value["spec"]["size"] == 5 {
        kept["size"] = Value::from(5);
    }
    (!covers(&kept, &value["spec"])).then_some("a value changes or is gone")
}

/// The managers in `managedFields`, but Etch itself.
fn owners(object: &Value) -> BTreeSet<&str> {
    let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    entries.filter_map(|entry| entry["manager"].as_str()).filter(|manager| *manager != "etch").collect()
}

/// Whether everything of a value is there in another one, unchanged.
pub(crate) fn covers(kept: &Value, value: &Value) -> bool {
    match (kept, value) {
        (Value::Object(kept), Value::Object(value)) => {
            kept.iter().all(|(name, kept)| value.get(name).is_some_and(|value| covers(kept, value)))
        }
        (kept, value) => kept == value,
    }
}

/// What Etch reported of a CRD before it was true, and what else Etch has changed in it.
pub(crate) fn of_crd(history: &History, subject: &Subject, state: &State, begun: i64) -> Vec<String> {
    let mut broken = Vec::new();
    let (keys, crd_key) = (subject.keys(), subject.crd_key());
    let mut objects: BTreeMap<String, (i64, Arc<Value>)> = BTreeMap::new();
    // Each generation as users have written it.
    let mut generations: BTreeMap<i64, Arc<Value>> = BTreeMap::new();
    let mut last: Option<Arc<Value>> = None;
    for Event { key, revision, value } in history.of(|key| key == crd_key || key.starts_with(&keys)) {
        let Some(value) = value else {
            objects.remove(&key);
            continue;
        };
        if key != crd_key {
            objects.insert(key, (revision, value));
            continue;
        }
        let generation = value["metadata"]["generation"].as_i64().unwrap_or_default();
        generations.entry(generation).or_insert_with(|| Arc::clone(&value));
        let last = last.replace(Arc::clone(&value));
        if revision <= begun || state.revisions.contains(&revision) {
            continue;
        }
        let untouched = |crd: &Value| {
            let mut metadata = crd["metadata"].clone();
            metadata.as_object_mut().map(|fields| fields.remove("managedFields"));
            let status = &crd["status"];
            let stored = [&status["storedVersions"], &status["acceptedNames"]].map(Clone::clone);
            (metadata, crd["spec"].clone(), stored)
        };
        if last.is_some_and(|last| untouched(&last) != untouched(&value)) {
            broken.push(format!("the CRD's own fields change at {revision}"));
        }
        let wording = persisted(&value);
        // Servers before 1.35 do not keep it (fact C3): nothing shows then which schema is meant.
        let Some(judged) = wording["observedGeneration"].as_i64().and_then(|judged| generations.get(&judged))
        else {
            continue;
        };
        if wording["status"] != "True" || wording["reason"] != "AllPersisted" {
            continue;
        }
        for (key, (written, raw)) in &objects {
            let is_terminating = !raw["metadata"]["deletionTimestamp"].is_null();
            // The operator cannot see such a write before the watch delivers it.
            let is_excused = is_terminating || state.setbacks.contains(written);
            if !is_excused && !is_filled(judged, raw) {
                broken.push(format!("AllPersisted is said at {revision}, and {key} is {raw}"));
            }
        }
    }
    broken
}

#[test]
fn a_write_that_takes_anything_from_users_is_found() {
    use serde_json::json;
    let metadata = json!({
        "uid": "a", "labels": { "empty": "" }, "finalizers": ["wait"], "deletionTimestamp": "now",
        "generation": 1,
        "managedFields": [{ "manager": "owner" }],
    });
    let spec =
        json!({ "empty": "", "zero": 0, "off": false, "list": [], "map": {}, "nothing": null, "size": 1 });
    let last = json!({ "metadata": metadata, "spec": spec, "status": { "phase": "" } });
    let upgrade = Subject::new(0, Workload::Upgrade);
    let with = |pointer: &str, value: Option<Value>| {
        let mut object = last.clone();
        let (parent, name) = pointer.rsplit_once('/').unwrap_or_default();
        let parent = object.pointer_mut(parent).and_then(Value::as_object_mut).expect("a parent");
        match value {
            Some(value) => parent.insert(name.to_owned(), value),
            None => parent.remove(name),
        };
        changed(&upgrade, &last, &object)
    };
    for lost in [
        "/metadata/uid",
        "/metadata/labels/empty",
        "/metadata/finalizers",
        "/metadata/deletionTimestamp",
        "/metadata/managedFields",
        "/spec/empty",
        "/spec/zero",
        "/spec/off",
        "/spec/list",
        "/spec/map",
        "/spec/nothing",
        "/status/phase",
        "/status",
    ] {
        assert!(with(lost, None).is_some(), "{lost}");
    }
    assert!(with("/spec/size", Some(json!(5))).is_some());
    assert!(with("/metadata/finalizers", Some(json!([]))).is_some());
    assert!(with("/status/count", Some(json!(1))).is_some());
    assert_eq!(with("/spec/late", Some(json!(4))), None);
    assert_eq!(with("/metadata/generation", Some(json!(2))), None);
    assert_eq!(changed(&Subject::new(0, Workload::Follow), &last, &last), None);
}
