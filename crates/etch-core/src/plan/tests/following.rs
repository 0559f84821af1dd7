//! What changed defaults mean for the object of a case, and what must hold for it whatever the case was made
//! to show.

use serde_json::{Value, json};

use super::case::Case;
use super::{texts, with_metadata};
use crate::crd::Crd;
use crate::object::Object;
use crate::plan::{Change, Following, Held, Plan, Record, Strategy, Terms, Write, follow, has_followed};
use kube_structural_schema::json::same;
use kube_structural_schema::path::{Path, Step};

pub(super) fn assert_case(case: &Case, crd: &Crd, changes: &[Change]) {
    let (object, terms, name) = (case.object(), case.terms(), &case.name);
    let Following { moved, kept, plan } = follow(&object, crd, &terms, changes, &Record::default());
    let expected = &case.following;
    assert_eq!(texts(&moved), expected.moved.keys().cloned().collect::<Vec<_>>(), "{name}: moved");
    assert_eq!(texts(&kept), expected.kept, "{name}: kept");
    match (&expected.hold, plan) {
        (None, None) => assert!(moved.is_empty(), "{name}: moves without a write"),
        (Some((reason, places)), Some(Plan::Hold(Held { reason: hold, paths, .. }))) => {
            assert_eq!((&format!("{hold:?}"), &texts(&paths)), (reason, places), "{name}: held");
        }
        (None, Some(Plan::Write(write))) => {
            assert_eq!(write.strategy, Strategy::Follow, "{name}");
            let operations = &write.body.operations()[2..];
            let wanted: Vec<Value> = expected.moved.values().cloned().collect();
            assert_eq!(operations, wanted, "{name}: operations");
            assert_laws(name, crd, &object, &terms, changes, &write);
        }
        (expected, plan) => panic!("{name}: expected {expected:?}, decided {plan:?}"),
    }
}

fn assert_laws(case: &str, crd: &Crd, object: &Object, terms: &Terms, changes: &[Change], write: &Write) {
    let identity =
        [("/metadata/uid", object.uid()), ("/metadata/resourceVersion", object.resource_version())];
    for (operation, (path, value)) in write.body.operations().iter().zip(identity) {
        assert_eq!(
            *operation,
            json!({ "op": "replace", "path": path, "value": value }),
            "{case}: conditions"
        );
    }
    let after = patched(object, write.body.json());
    moves_nothing_else(case, object, &after, write);
    assert!(has_followed(object, &after, write), "{case}: done");
    assert!(!has_followed(object, object, write), "{case}: not done yet");
    assert_eq!(follow(&after, crd, terms, changes, &Record::default()).plan, None, "{case}: once done");
    for (field, value) in [
        ("deletionTimestamp", json!("2026-01-01T00:00:00Z")),
        ("annotations", json!({ "etch-operator.io/ignore": "true" })),
    ] {
        let spared = with_metadata(object, field, value);
        assert_eq!(
            follow(&spared, crd, terms, changes, &Record::default()),
            Following::default(),
            "{case}: {field}"
        );
    }
    for cleared in [Value::Null, json!([])] {
        let cleared = with_metadata(object, "managedFields", cleared);
        assert_eq!(
            follow(&cleared, crd, terms, changes, &Record::default()).moved,
            [],
            "{case}: nobody knows the owners"
        );
    }
    for place in &write.missing {
        let claimed = follow(&claimed(object, crd, place), crd, terms, changes, &Record::default());
        assert!(!claimed.moved.contains(place), "{case}: {place} has an owner");
    }
}

/// Law 1: only the moved values are others, and they are not what they were.
fn moves_nothing_else(case: &str, before: &Object, after: &Object, write: &Write) {
    let without = |object: &Object| {
        let mut document = object.json().clone();
        for place in write.missing.iter().rev() {
            let (last, parents) = place.steps().split_last().expect("no root");
            let parent = parents.iter().fold(&mut *document, |value, step| match step {
                Step::Index(index) => &mut value[index],
                Step::Field(name) | Step::Key(name) => &mut value[name],
                other => panic!("{case}: {other:?} in a place"),
            });
            let Step::Field(name) = last else { panic!("{case}: {place} is no field") };
            parent.as_object_mut().expect("an object").remove(name);
        }
        document
    };
    assert!(same(&without(before), &without(after)), "{case}: more than was to be moved");
}

/// The object with one more owner, of this place alone.
fn claimed(object: &Object, crd: &Crd, place: &Path) -> Object {
    let mut value: &Value = object.json();
    let mut elements = Vec::new();
    for step in place.steps() {
        match step {
            Step::Index(index) => {
                value = &value[index];
                elements.push(format!("k:{}", json!({ "name": value["name"] })));
            }
            Step::Field(name) | Step::Key(name) => {
                value = &value[name];
                elements.push(format!("f:{name}"));
            }
            Step::Items | Step::Values => {}
        }
    }
    let fields = elements.into_iter().rfold(json!({}), |inner, element| json!({ element: inner }));
    let mut entries = object.json()["metadata"]["managedFields"].clone();
    entries.as_array_mut().expect("owners").push(json!({
        "manager": "claimant", "operation": "Apply", "fieldsType": "FieldsV1",
        "apiVersion": crd.api_version(), "fieldsV1": fields,
    }));
    with_metadata(object, "managedFields", entries)
}

/// What a server makes of the JSON patch, as far as it is used.
fn patched(object: &Object, body: &Value) -> Object {
    let mut document = object.json().clone();
    for operation in body.as_array().into_iter().flatten() {
        let pointer = operation["path"].as_str().expect("a path");
        if operation["op"] == "replace" {
            *document.pointer_mut(pointer).expect("it is there") = operation["value"].clone();
        } else {
            let (parent, name) = pointer.rsplit_once('/').expect("a field");
            let name = name.replace("~1", "/").replace("~0", "~");
            let parent = document.pointer_mut(parent).and_then(Value::as_object_mut).expect("an object");
            parent.remove(&name).expect("it is there");
        }
    }
    Object::from(document)
}
