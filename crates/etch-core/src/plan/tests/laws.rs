//! What must hold for every decision, whatever the case was made to show.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{model, with_metadata};
use crate::crd::Crd;
use crate::object::Object;
use crate::ownership::{MANAGER, Owner, owners};
use crate::plan::{
    Exceptions, Held, HiddenFields, Hold, Ownership, Plan, Record, Skip, Strategy, Terms, Write,
    ahead_of_rewrite, decide, release, repeat, unproved,
};
use kube_structural_schema::json::same;
use kube_structural_schema::path::Path;

/// Asserts the laws on the decision about one object.
pub(super) fn assert_hold(
    case: &str,
    crd: &Crd,
    object: &Object,
    terms: &Terms,
    record: &Record,
    plan: &Plan,
) {
    leaves_the_terminating_alone(case, crd, object, terms, record);
    leaves_the_deep_alone(case, crd, object, terms, record);
    let Plan::Write(write) = plan else { return };
    assert!(terms.skip(object).is_none(), "{case}: not ours to touch");
    holds_hidden_fields(case, crd, object, terms, record);
    names_the_uid(case, object, write.body.json());
    says_nothing_new(case, crd, object, write.body.json());
    match terms.ownership {
        Ownership::None => takes_nothing(case, write),
        Ownership::Own => proves_what_it_owns(case, crd, object, write),
    }
    if write.strategy == Strategy::Rewrite {
        keeps_the_owners(case, crd, object, terms, write.body.json());
        stores_ahead_without_loss(case, crd, object);
    }
    let after = performed(crd, object, write);
    assert_kept(case, "the write", object.json(), &after);
    is_stored_then(case, crd, terms, record, &after);
    proves_without_loss(case, crd, write, &after);
}

fn leaves_the_deep_alone(case: &str, crd: &Crd, object: &Object, terms: &Terms, record: &Record) {
    let deep = Object::too_deep(object.json().clone());
    let plan = decide(&deep, crd, terms, record);
    assert!(
        matches!(plan, Plan::Skip(_)) && unproved(&deep, crd) == [Path::root()],
        "{case}: too deep: {plan:?}"
    );
}

fn leaves_the_terminating_alone(case: &str, crd: &Crd, object: &Object, terms: &Terms, record: &Record) {
    let terminating = with_metadata(object, "deletionTimestamp", json!("2026-01-01T00:00:00Z"));
    let plan = decide(&terminating, crd, terms, record);
    let why = if terms.selection.selects(&terminating) { Skip::Terminating } else { Skip::NotSelected };
    assert_eq!(plan, Plan::Skip(why), "{case}: terminating");
    let annotations = json!({ "etch-operator.io/ignore": "true" });
    let plan = decide(&with_metadata(object, "annotations", annotations), crd, terms, record);
    assert!(matches!(plan, Plan::Skip(_)), "{case}: ignored");
}

/// Law 4: one owner of an unknown field is enough to hold any write.
fn holds_hidden_fields(case: &str, crd: &Crd, object: &Object, terms: &Terms, record: &Record) {
    let mut entries: Vec<Value> = entries(object.json()).cloned().collect();
    entries.push(json!({
        "manager": "legacy", "operation": "Update", "apiVersion": crd.api_version(), "fieldsType": "FieldsV1",
        "fieldsV1": { "f:neverKnown": {} },
    }));
    let object = with_metadata(object, "managedFields", entries.into());
    let terms = Terms { ownership: Ownership::None, hidden_fields: HiddenFields::Hold, ..terms.clone() };
    let plan = decide(&object, crd, &terms, record);
    assert!(
        matches!(plan, Plan::Hold(Held { reason: Hold::HiddenFields, .. })),
        "{case}: hidden field, yet {plan:?}"
    );
}

/// Law 2: with the uid, a write can neither create nor bring back an object (W4).
fn names_the_uid(case: &str, object: &Object, body: &Value) {
    let metadata = &body["metadata"];
    assert!(!object.uid().is_empty() && metadata["uid"] == object.uid(), "{case}: uid");
    assert_eq!(metadata["resourceVersion"], object.resource_version(), "{case}: no race is won");
}

/// No body names a value that the object does not show and its default would not give.
fn says_nothing_new(case: &str, crd: &Crd, object: &Object, body: &Value) {
    let mut filled = object.json().clone().into_inner();
    crd.compiled().fill(&mut filled);
    let (mut payload, mut wording) = (filled.clone(), body.clone());
    for document in [&mut payload, &mut wording] {
        for field in ["apiVersion", "kind", "metadata"] {
            document.as_object_mut().map(|fields| fields.remove(field));
        }
    }
    let shown = Object::from(payload.clone());
    let with_body = model::applied(&shown, crd, &wording);
    assert!(same(&with_body, &payload), "{case}: the body says {wording}, the object {payload}");
}

/// Law 3: who the object is, and nothing that would make a field ours.
fn takes_nothing(case: &str, write: &Write) {
    let fields = |value: &Value| -> BTreeSet<String> {
        value.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect()
    };
    let (allowed, identity): (&[&str], &[&str]) = match write.strategy {
        Strategy::Apply => {
            (&["apiVersion", "kind", "metadata"], &["name", "namespace", "uid", "resourceVersion"])
        }
        Strategy::Merge => (&["metadata"], &["uid", "resourceVersion"]),
        Strategy::Rewrite => (&["metadata"], &["uid", "resourceVersion", "managedFields"]),
        Strategy::Follow | Strategy::Embed | Strategy::Status => panic!("{case}: that is another decision"),
    };
    assert!(
        fields(write.body.json()).iter().all(|name| allowed.contains(&name.as_str())),
        "{case}: {:?}",
        write.body.json()
    );
    let metadata = fields(&write.body.json()["metadata"]);
    assert!(metadata.iter().all(|name| identity.contains(&name.as_str())), "{case}: {metadata:?}");
}

/// Law 3: after a rewrite every writer owns exactly what its entries owned before, at the storage version.
fn keeps_the_owners(case: &str, crd: &Crd, object: &Object, terms: &Terms, body: &Value) {
    let writers = |document: &Value| -> BTreeSet<(String, String, String)> {
        let all = entries(document).filter(|entry| **entry != json!({})).map(Owner::from_entry);
        let kept = all.filter(|owner| owner.manager != MANAGER || terms.ownership == Ownership::Own);
        kept.map(|owner| (owner.manager.into(), owner.operation.into(), owner.subresource.into())).collect()
    };
    assert_eq!(writers(object.json()), writers(body), "{case}: writers");
    let mut seen = BTreeSet::new();
    for entry in entries(body).filter(|entry| **entry != json!({})) {
        let owner = Owner::from_entry(entry);
        assert_eq!(owner.api_version, crd.api_version(), "{case}: {}", owner.manager);
        assert!(seen.insert((owner.manager, owner.operation, owner.subresource)), "{case}: twins");
        let mut before = BTreeSet::new();
        for twin in owners(object).filter(|other| other.is_same_writer(&owner)) {
            paths(twin.fields, "", &mut before);
        }
        let mut after = BTreeSet::new();
        paths(owner.fields, "", &mut after);
        assert_eq!(before, after, "{case}: the fields of {}", owner.manager);
    }
}

fn stores_ahead_without_loss(case: &str, crd: &Crd, object: &Object) {
    let Some(body) = ahead_of_rewrite(object, crd) else { return };
    names_the_uid(case, object, &body);
    assert_kept(case, "the apply ahead of a rewrite", object.json(), &model::applied(object, crd, &body));
}

/// An apply gives up what it leaves out, so the repeat sends what the first write sent.
fn proves_what_it_owns(case: &str, crd: &Crd, object: &Object, write: &Write) {
    if write.strategy != Strategy::Apply {
        return;
    }
    let again = repeat(object, crd, write);
    assert!(
        same(again.body.json(), write.body.json()),
        "{case}: {:?} after {:?}",
        again.body.json(),
        write.body.json()
    );
}

/// Law 10: what was written and is on record needs no further request.
fn is_stored_then(case: &str, crd: &Crd, terms: &Terms, record: &Record, after: &Value) {
    let mut object = with_metadata(&Object::from(after.clone()), "resourceVersion", json!("11"));
    if let Some(body) = release(&object) {
        // The rewrite's last request.
        assert_eq!(body[0]["value"], object.uid(), "{case}: release names the uid");
        let entries = entries(object.json()).filter(|entry| entry["manager"] != MANAGER).cloned().collect();
        object = with_metadata(&object, "managedFields", entries);
    }
    // A pass proves it from then on, whatever was open or selected before.
    let record = Record {
        through: Some(11),
        exceptions: Exceptions::default(),
        storage_changed: false,
        selection: terms.selection.clone(),
        ..record.clone()
    };
    assert!(matches!(decide(&object, crd, terms, &record), Plan::Stored(_)), "{case}: once written");
}

fn proves_without_loss(case: &str, crd: &Crd, write: &Write, after: &Value) {
    let after = with_metadata(&Object::from(after.clone()), "resourceVersion", json!("11"));
    let again = repeat(&after, crd, write);
    assert!(!again.prove, "{case}: a repeat is not repeated");
    names_the_uid(case, &after, again.body.json());
    let left = performed(crd, &after, &again);
    assert_kept(case, "the repeat", after.json(), &left);
}

fn performed(crd: &Crd, object: &Object, write: &Write) -> Value {
    match write.strategy {
        Strategy::Apply => model::applied(object, crd, write.body.json()),
        Strategy::Merge | Strategy::Rewrite => model::merged(object, crd, write.body.json()),
        Strategy::Follow | Strategy::Embed | Strategy::Status => panic!("that is another decision"),
    }
}

/// Law 1: every value of `before` that is no unwanted null is in `after`.
fn assert_kept(case: &str, what: &str, before: &Value, after: &Value) {
    if let Some(lost) = lost(before, after, &mut String::new()) {
        panic!("{case}: {what} changes {lost}: {before} becomes {after}");
    }
}

fn lost(before: &Value, after: &Value, at: &mut String) -> Option<String> {
    match (before, after) {
        (Value::Null, _) => None,
        (Value::Object(before), Value::Object(after)) => before.iter().find_map(|(name, value)| {
            if at == "/metadata" && matches!(name.as_str(), "managedFields" | "resourceVersion") {
                return None;
            }
            let length = at.len();
            at.push('/');
            at.push_str(name);
            let found = lost(value, after.get(name).unwrap_or(&Value::Null), at);
            at.truncate(length);
            found
        }),
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            before.iter().zip(after).find_map(|(before, after)| lost(before, after, at))
        }
        _ => (!same(before, after)).then(|| at.clone()),
    }
}

fn paths(fields: &Value, at: &str, found: &mut BTreeSet<String>) {
    let Some(elements) = fields.as_object() else { return };
    if elements.is_empty() {
        found.insert(at.to_owned());
    }
    for (element, inner) in elements {
        match element.as_str() {
            "." => drop(found.insert(at.to_owned())),
            element => paths(inner, &format!("{at}/{element}"), found),
        }
    }
}

fn entries(document: &Value) -> impl Iterator<Item = &Value> {
    document["metadata"]["managedFields"].as_array().into_iter().flatten()
}
