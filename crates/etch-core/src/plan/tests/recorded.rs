//! Which objects a record covers that were written after it began.

use serde_json::{Value, json};

use crate::crd::Crd;
use crate::object::Object;
use crate::plan::{
    Coverage, Exceptions, Outcome, Ownership, PatchKind, Plan, Proof, Record, Request, Step, Terms,
    WriteMachine, decide,
};
use kube_structural_schema::json::Json;

const WRITTEN_SINCE: Plan = Plan::Stored(Proof::WrittenSince);

/// A CRD with a default in `spec` and one in `status`, both in `v1` alone; `v1beta1` is no longer served.
fn crd(conversion: &str) -> Crd {
    stored_at(conversion, json!({ "type": "integer", "default": 1 }), &["v1"])
}

/// That CRD with another property `size` of `v1`, and other versions at which objects may be stored.
fn stored_at(conversion: &str, size: Value, stored: &[&str]) -> Crd {
    let version = |name: &str, is_new: bool, mut properties: Value| {
        properties["name"] = json!({ "type": "string" });
        properties["tags"] = json!({ "type": "object", "additionalProperties": { "type": "string" } });
        let both = json!({ "type": "object", "properties": properties });
        json!({ "name": name, "served": is_new, "storage": is_new, "subresources": { "status": {} },
            "schema": { "openAPIV3Schema": { "type": "object",
                "properties": { "spec": both, "status": both } } } })
    };
    Crd::read(&Json::from(json!({
        "metadata": { "name": "things.example.com", "uid": "crd" },
        "spec": {
            "group": "example.com", "names": { "kind": "Thing", "plural": "things" },
            "conversion": { "strategy": conversion },
            "versions": [
                version("v1beta1", false, json!({})),
                version("v1", true, json!({ "size": size })),
            ],
        },
        "status": { "storedVersions": stored },
    })))
    .expect("a CRD")
}

fn object(owner: Value, rest: Value) -> Object {
    let mut object = json!({
        "metadata": {
            "name": "a", "namespace": "ns", "uid": "u", "resourceVersion": "11", "managedFields": [owner],
        },
        "spec": { "name": "n", "size": 1 },
    });
    rest.as_object().into_iter().flatten().for_each(|(field, value)| object[field] = value.clone());
    Object::from(object)
}

fn owner(operation: &str, version: &str) -> Value {
    let fields = json!({ "f:spec": { "f:name": {} } });
    json!({
        "manager": "user", "operation": operation, "fieldsType": "FieldsV1",
        "apiVersion": format!("example.com/{version}"), "fieldsV1": fields,
    })
}

/// Written since the record by an owner at the storage version.
fn written() -> Object {
    object(owner("Apply", "v1"), json!({}))
}

fn record() -> Record {
    Record { through: Some(10), ..Record::default() }
}

fn decided(object: &Object, crd: &Crd, record: &Record) -> Plan {
    decide(object, crd, &Terms::default(), record)
}

#[test]
fn a_write_at_the_storage_version_stores_what_it_shows() {
    assert_eq!(decided(&written(), &crd("None"), &record()), WRITTEN_SINCE);
}

#[test]
fn an_exception_is_covered_by_no_later_write() {
    let exceptions: Exceptions = [String::from("u")].into_iter().collect();
    let record = Record { exceptions, ..record() };
    assert!(matches!(decided(&written(), &crd("None"), &record), Plan::Write(_)));
}

#[test]
fn what_no_pass_has_moved_may_be_stored_at_another_version_though_no_default_is_missing() {
    let crd = stored_at("None", json!({ "type": "integer", "default": 1 }), &["v1beta1", "v1"]);
    let object =
        object(owner("Apply", "v1"), json!({ "spec": { "name": "n", "size": 2 }, "status": { "size": 2 } }));
    let exceptions: Exceptions = [String::from("u")].into_iter().collect();
    for record in [
        Record { exceptions: exceptions.clone(), ..record() },
        Record { servers_lag: true, ..record() },
        Record { storage_changed: true, versions_disagree: true, ..record() },
        Record { through: None, ..record() },
    ] {
        assert!(matches!(decided(&object, &crd, &record), Plan::Write(_)), "{record:?}");
    }
    let moved = Record { versions_disagree: true, ..record() };
    assert_eq!(decided(&object, &crd, &moved), Plan::Stored(Proof::NothingToFill));
    let nowhere_else = stored_at("None", json!({ "type": "integer", "default": 1 }), &["v1"]);
    let excepted = Record { exceptions, ..record() };
    assert_eq!(decided(&object, &nowhere_else, &excepted), Plan::Stored(Proof::NothingToFill));
}

/// A CRD whose storage version has no default, with or without one in the version that objects may be stored
/// at.
fn only_old_version_may_have_a_default(default: Option<i64>) -> Crd {
    let version = |name: &str, is_new: bool, default: Option<i64>| {
        let mut size = json!({ "type": "integer" });
        if let Some(default) = default {
            size["default"] = default.into();
        }
        let spec = json!({ "type": "object", "properties": { "name": { "type": "string" }, "size": size } });
        json!({ "name": name, "served": true, "storage": is_new,
            "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": spec } } } })
    };
    Crd::read(&Json::from(json!({
        "metadata": { "name": "things.example.com", "uid": "crd" },
        "spec": {
            "group": "example.com", "names": { "kind": "Thing", "plural": "things" },
            "versions": [version("v1beta1", false, default), version("v1", true, None)],
        },
        "status": { "storedVersions": ["v1beta1", "v1"] },
    })))
    .expect("a CRD")
}

/// It shows the old version's default, which a write at the storage version stores (fact R2).
#[test]
fn an_object_may_lack_a_default_that_only_another_version_has() {
    let (with, without) =
        (only_old_version_may_have_a_default(Some(1)), only_old_version_may_have_a_default(None));
    assert!(with.gives_defaults() && !without.gives_defaults());
    let unproved = Record { through: None, ..record() };
    assert!(matches!(decided(&written(), &with, &unproved), Plan::Write(_)));
    assert_eq!(decided(&written(), &without, &unproved), Plan::Stored(Proof::NothingToFill));
    let unchanged = Record { through: Some(11), ..record() };
    assert_eq!(decided(&written(), &with, &unchanged), Plan::Stored(Proof::UnchangedSincePass));
}

/// A pass before the default was there left the objects at the old version.
#[test]
fn a_pass_is_about_the_defaults_of_old_versions_where_the_storage_version_has_none() {
    let digest = |default| only_old_version_may_have_a_default(default).digest();
    let none = digest(None);
    assert!(digest(Some(1)) != none && digest(Some(2)) != none && digest(Some(1)) != digest(Some(2)));
    let crd = |stored| stored_at("None", json!({ "type": "integer", "default": 1 }), stored);
    assert_eq!(crd(&["v1beta1", "v1"]).digest(), crd(&["v1"]).digest(), "the storage version's count alone");
}

#[test]
fn where_versions_disagreed_or_servers_lag_no_later_write_counts() {
    for record in [
        Record { versions_disagree: true, ..record() },
        Record { servers_lag: true, ..record() },
        Record { through: None, ..record() },
    ] {
        assert!(matches!(decided(&written(), &crd("None"), &record), Plan::Write(_)), "{record:?}");
        let before = Record { through: Some(11), ..record.clone() };
        let expected = Plan::Stored(Proof::UnchangedSincePass);
        assert_eq!(decided(&written(), &crd("None"), &before), expected, "{before:?}");
    }
}

#[test]
fn a_create_stores_no_default_of_the_status() {
    let (crd, record) = (crd("None"), Record { creates_drop_status: true, ..record() });
    let filled = object(owner("Update", "v1"), json!({ "status": { "size": 1 } }));
    assert_eq!(record.coverage(&filled, &crd), Coverage::AllButStatus(Proof::WrittenSince));
    assert!(matches!(decided(&filled, &crd, &record), Plan::Write(_)));
    // A user has set another value, or nothing of the status is shown.
    for status in [json!({ "size": 2 }), Value::Null] {
        let other = object(owner("Update", "v1"), json!({ "status": status }));
        assert_eq!(decided(&other, &crd, &record), WRITTEN_SINCE, "{status}");
    }
    assert_eq!(decided(&filled, &crd, &record.of_known_object()), WRITTEN_SINCE);
    let unchanged = Record { through: Some(11), ..record };
    assert_eq!(decided(&filled, &crd, &unchanged), Plan::Stored(Proof::UnchangedSincePass));
}

#[test]
fn an_apply_goes_through_the_version_of_its_managers_last_one() {
    let cases = [
        // The version lacks the default, whatever the operation: the server moves the fields of all owners
        // (facts W6, W18).
        ("None", "Apply", "v1beta1", false),
        ("None", "Update", "v1beta1", false),
        ("None", "Apply", "v0", false),
        ("Webhook", "Apply", "v1", true),
        ("Webhook", "Apply", "v1beta1", false),
        ("Webhook", "Update", "v1beta1", true),
    ];
    for (conversion, operation, version, is_covered) in cases {
        let plan = decided(&object(owner(operation, version), json!({})), &crd(conversion), &record());
        assert_eq!(plan == WRITTEN_SINCE, is_covered, "{conversion} {operation} {version}: {plan:?}");
    }
}

#[test]
fn where_a_webhook_converts_for_other_owners_an_apply_over_our_own_fields_is_tried_first() {
    let terms = Terms { ownership: Ownership::Own, ..Terms::default() };
    let ours = json!({ "manager": "etch", "operation": "Apply", "fieldsType": "FieldsV1",
        "apiVersion": "example.com/v1",
        "fieldsV1": { "f:spec": { "f:size": {} } } });
    for (conversion, others, owns, kind) in [
        ("Webhook", "v1beta1", true, PatchKind::ApplyDryRun),
        ("Webhook", "v1beta1", false, PatchKind::Apply),
        ("Webhook", "v1", true, PatchKind::Apply),
    ] {
        let spec = json!({ "name": "n", "size": 1, "tags": { "user": "x" } });
        let mut object = object(owner("Update", others), json!({ "spec": spec })).json().clone();
        if owns {
            object["metadata"]["managedFields"].as_array_mut().expect("owners").push(ours.clone());
        }
        let (object, crd) = (Object::from(object), crd(conversion));
        let Plan::Write(write) = decide(&object, &crd, &terms, &Record::default()) else { panic!("a write") };
        let (mut machine, request) = WriteMachine::begin(&crd, &object, &write, &terms);
        assert_eq!(request.kind, kind, "{conversion} {others} {owns}");
        if kind == PatchKind::ApplyDryRun {
            let mut lost = object.json().clone();
            lost["spec"] = json!({ "size": 1, "tags": {} });
            let next = machine.answered(lost.into());
            let Step::Done(Outcome::Rejected(rejection)) = next else { panic!("{next:?}") };
            assert_eq!(
                rejection.fields,
                [".spec.name", ".spec.tags[\"*\"]"],
                "keys of maps are data of users"
            );
            let (mut machine, _) = WriteMachine::begin(&crd, &object, &write, &terms);
            let next = machine.answered(object.clone());
            assert!(matches!(next, Step::Send(Request { kind: PatchKind::Apply, .. })), "{next:?}");
        }
    }
}

#[test]
fn the_repeat_of_an_apply_that_took_ownership_is_tried_first_as_well() {
    let terms = Terms { ownership: Ownership::Own, ..Terms::default() };
    let (object, crd) = (object(owner("Update", "v1beta1"), json!({})), crd("Webhook"));
    let record = Record { versions_disagree: true, ..Record::default() };
    let Plan::Write(write) = decide(&object, &crd, &terms, &record) else { panic!("a write") };
    let mut answer = object.json().clone();
    answer["metadata"]["resourceVersion"] = json!("12");
    answer["metadata"]["managedFields"].as_array_mut().expect("owners").push(json!({ "manager": "etch",
        "operation": "Apply", "fieldsType": "FieldsV1", "apiVersion": "example.com/v1",
        "fieldsV1": { "f:spec": { "f:size": {} } } }));
    let answer = || Object::from(answer.clone());
    let without_others = || {
        let mut answer = answer().json().clone();
        answer["metadata"]["managedFields"].as_array_mut().expect("owners").remove(0);
        Object::from(answer)
    };
    let written = || {
        let (mut machine, request) = WriteMachine::begin(&crd, &object, &write, &terms);
        assert_eq!(request.kind, PatchKind::Apply);
        let next = machine.answered(answer());
        assert!(matches!(next, Step::Send(Request { kind: PatchKind::ApplyDryRun, .. })), "{next:?}");
        machine
    };
    let next = written().answered(without_others());
    assert!(matches!(next, Step::Done(Outcome::Rejected(_))), "{next:?}");
    let mut machine = written();
    let next = machine.answered(answer());
    assert!(matches!(next, Step::Send(Request { kind: PatchKind::Apply, .. })), "{next:?}");
    let mut lossy = without_others().json().clone();
    lossy["metadata"]["resourceVersion"] = json!("13");
    let next = machine.answered(lossy.into());
    assert!(matches!(next, Step::Done(Outcome::OwnersLost { .. })), "{next:?}");
}

#[test]
fn an_object_without_a_place_to_fill_may_be_stored_where_the_storage_version_was_meanwhile() {
    let default = json!({ "type": "integer", "default": 1 });
    let (crd, elsewhere) = (crd("None"), stored_at("None", default, &["v1beta1", "v1"]));
    let bare = object(owner("Update", "v1"), json!({ "spec": null }));
    let changed = Record { storage_changed: true, versions_disagree: true, ..record() };
    let unchanged = Record { storage_changed: false, ..changed.clone() };
    let nothing = Plan::Stored(Proof::NothingToFill);
    assert_eq!(decided(&bare, &crd, &changed), nothing);
    assert_eq!(decided(&bare, &elsewhere, &unchanged), nothing);
    assert!(matches!(decided(&bare, &elsewhere, &changed), Plan::Write(_)));
    let before = Record { through: Some(11), ..changed };
    assert_eq!(decided(&bare, &elsewhere, &before), Plan::Stored(Proof::UnchangedSincePass));
}

#[test]
fn a_pass_without_defaults_leaves_objects_at_the_version_that_they_are_in() {
    let none = json!({ "type": "integer" });
    let before = Record { through: Some(11), ..record() };
    let elsewhere = stored_at("None", none.clone(), &["v1beta1", "v1"]);
    assert_eq!(before.coverage(&written(), &elsewhere), Coverage::Nothing);
    let here = stored_at("None", none, &["v1"]);
    assert_eq!(before.coverage(&written(), &here), Coverage::All(Proof::UnchangedSincePass));
}
