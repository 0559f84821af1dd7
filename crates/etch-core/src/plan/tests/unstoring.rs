//! What is removed after a rollback, what stays, and why.

use serde_json::{Value, json};

use super::*;
use crate::crd::sample::{things, things_document, with_spec};
use crate::plan::{FormerDefault, Held, Hold};

const FINISHED: &str = "2026-01-02T00:00:00Z";
const BEFORE: &str = "2026-01-01T00:00:00Z";
const AFTER: &str = "2026-01-03T00:00:00Z";

/// The schema after the rollback: `size`, `parts{}.keep` and `ports[].keep` had defaults.
fn properties() -> Value {
    let part = json!({ "type": "object", "properties": { "keep": { "type": "integer" } } });
    json!({
        "size": { "type": "integer" },
        "policy": { "type": "object", "default": { "a": 1 }, "properties": {
            "a": { "type": "integer" }, "b": { "type": "integer" },
        } },
        "mode": { "type": "integer", "default": 1 },
        "parts": { "type": "object", "additionalProperties": part },
        "ports": {
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": { "type": "object", "required": ["name"], "properties": {
                "name": { "type": "string" }, "keep": { "type": "integer" },
            } },
        },
    })
}

fn crd() -> Crd {
    things(with_spec(properties()))
}

fn recorded(path: &str, value: Value) -> RecordedDefault {
    let stored = StoredDefault {
        value: value.into(),
        through: 10,
        finished: FINISHED.parse().expect("a time"),
        exceptions: ["held".to_owned()].into_iter().collect(),
    };
    RecordedDefault { path: path.parse().expect("a path"), stored: vec![stored], is_too_long: false }
}

fn object(spec: Value, fields: Value) -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Thing",
        "metadata": {
            "name": "a", "namespace": "default", "uid": "u", "resourceVersion": "7",
            "creationTimestamp": BEFORE,
            "managedFields": [{
                "manager": "user", "operation": "Apply", "apiVersion": "example.com/v1",
                "fieldsType": "FieldsV1",
                "fieldsV1": fields,
            }],
        },
        "spec": spec,
    })
}

fn with(mut object: Value, pointer: &str, value: Value) -> Value {
    let (parent, name) = pointer.rsplit_once('/').expect("a pointer");
    object.pointer_mut(parent).expect("a parent")[name] = value;
    object
}

fn decided(recorded: &[RecordedDefault], object: &Value) -> Unstoring {
    let unstorable = Unstorable::new(recorded.to_vec(), &crd());
    unstorable.decide(&Object::from(object.clone()), &crd(), &Terms::default())
}

fn removed(unstoring: &Unstoring) -> Vec<String> {
    unstoring.removed.iter().map(Path::to_string).collect()
}

fn kept(unstoring: &Unstoring) -> Vec<(String, KeptBecause)> {
    unstoring.kept.iter().map(|(path, why)| (path.to_string(), *why)).collect()
}

#[test]
fn what_nobody_owns_and_nobody_changed_goes_with_a_test_for_its_value() {
    let all = [
        recorded(".spec.size", json!(3)),
        recorded(".spec.parts{}.keep", json!(3)),
        recorded(".spec.ports[].keep", json!(3)),
    ];
    let spec = json!({
        "mode": 1, "size": 3, "parts": { "x/y": { "keep": 3 }, "z": { "keep": 4 } },
        "ports": [{ "name": "p", "keep": 3 }],
    });
    let fields = json!({ "f:spec": {
        "f:parts": { "f:x/y": { "f:keep": {} }, "f:z": { "f:keep": {} } },
        "f:ports": { "k:{\"name\":\"p\"}": { ".": {}, "f:name": {} } },
    } });
    let object = object(spec, fields);
    let unstoring = decided(&all, &object);
    assert_eq!(removed(&unstoring), [".spec.ports[0].keep", ".spec.size"]);
    let stays = [
        (".spec.parts[\"x/y\"].keep".to_owned(), KeptBecause::Owned),
        (".spec.parts[\"z\"].keep".to_owned(), KeptBecause::Changed),
    ];
    assert_eq!(kept(&unstoring), stays);
    assert!(unstoring.is_unchanged);
    let Some(Plan::Write(write)) = &unstoring.plan else { panic!("{unstoring:?}") };
    let expected = json!([
        { "op": "replace", "path": "/metadata/uid", "value": "u" },
        { "op": "replace", "path": "/metadata/resourceVersion", "value": "7" },
        { "op": "test", "path": "/spec/ports/0/keep", "value": 3 },
        { "op": "remove", "path": "/spec/ports/0/keep" },
        { "op": "test", "path": "/spec/size", "value": 3 },
        { "op": "remove", "path": "/spec/size" },
    ]);
    assert_eq!(**write.body.json(), expected);
    assert_eq!(write.strategy, Strategy::Follow);
    // After it there is nothing left to remove.
    let after = json!({
        "mode": 1, "parts": { "x/y": { "keep": 3 }, "z": { "keep": 4 } }, "ports": [{ "name": "p" }],
    });
    let again = decided(&all, &with(object, "/spec", after));
    assert_eq!((again.removed.len(), again.plan), (0, None));
}

#[test]
fn each_reason_to_keep_a_value_is_told() {
    let all = [recorded(".spec.size", json!(3))];
    let mine = object(json!({ "size": 3 }), json!({ "f:spec": {} }));
    let why = |object: &Value| {
        let unstoring = decided(&all, object);
        assert_eq!((removed(&unstoring).len(), &unstoring.plan), (0, &None), "{unstoring:?}");
        unstoring.kept.first().map(|(_, why)| *why)
    };
    assert_eq!(removed(&decided(&all, &mine)), [".spec.size"]);
    assert_eq!(why(&with(mine.clone(), "/spec/size", json!(4))), Some(KeptBecause::Changed));
    let owned = object(json!({ "size": 3 }), json!({ "f:spec": { "f:size": {} } }));
    assert_eq!(why(&owned), Some(KeptBecause::Owned));
    // An owner of a version that the CRD no longer has may have named it otherwise.
    let gone = with(mine.clone(), "/metadata/managedFields/0/apiVersion", json!("example.com/v0"));
    assert_eq!(why(&gone), Some(KeptBecause::OwnersUnknown));
    let cleared = with(mine.clone(), "/metadata/managedFields", json!([]));
    assert_eq!(why(&cleared), Some(KeptBecause::OwnersUnknown));
    let created_since = with(mine.clone(), "/metadata/creationTimestamp", json!(AFTER));
    assert_eq!(why(&created_since), Some(KeptBecause::NotByPass));
    let excepted = with(mine.clone(), "/metadata/uid", json!("held"));
    assert_eq!(why(&excepted), Some(KeptBecause::NotByPass));
    assert_eq!(why(&with(mine.clone(), "/spec", json!({ "mode": 1 }))), None);
    // What Etch itself owns counts as unowned.
    let etch = with(owned, "/metadata/managedFields/0/manager", json!("etch"));
    assert_eq!(removed(&decided(&all, &etch)), [".spec.size"]);
    let since = decided(&all, &with(mine, "/metadata/resourceVersion", json!("11")));
    assert_eq!((removed(&since), since.is_unchanged), (vec![".spec.size".to_owned()], false));
}

#[test]
fn a_part_of_what_another_default_still_gives_stays() {
    let all = [recorded(".spec.policy.a", json!(1)), recorded(".spec.policy.b", json!(2))];
    let fields = json!({ "f:spec": { "f:size": {} } });
    let same = decided(&all, &object(json!({ "policy": { "a": 1 }, "size": 1 }), fields.clone()));
    assert_eq!(kept(&same), [(".spec.policy.a".to_owned(), KeptBecause::StillDefault)]);
    let other = decided(&all, &object(json!({ "policy": { "a": 1, "b": 2 }, "size": 1 }), fields));
    assert_eq!(removed(&other), [".spec.policy.a", ".spec.policy.b"]);
}

#[test]
fn a_write_that_would_do_harm_is_held() {
    let all = [recorded(".spec.size", json!(3))];
    let mine = object(json!({ "size": 3 }), json!({ "f:spec": {} }));
    let hidden = object(json!({ "size": 3 }), json!({ "f:spec": { "f:gone": {} } }));
    let Some(Plan::Hold(Held { reason: Hold::HiddenFields, paths, .. })) = decided(&all, &hidden).plan else {
        panic!("a hidden field is destroyed")
    };
    assert_eq!(paths.iter().map(Path::to_string).collect::<Vec<_>>(), [".spec.gone"]);
    let misfit = with(mine.clone(), "/spec/mode", json!("text"));
    assert!(matches!(decided(&all, &misfit).plan, Some(Plan::Hold(Held { reason: Hold::Misfit, .. }))));
    let mut required = with_spec(properties());
    required["properties"]["spec"]["required"] = json!(["size"]);
    let required = things(required);
    let unstorable = Unstorable::new(all.to_vec(), &required);
    let plan = unstorable.decide(&Object::from(mine.clone()), &required, &Terms::default()).plan;
    assert!(matches!(plan, Some(Plan::Hold(Held { reason: Hold::InvalidDefaults, .. }))), "{plan:?}");
    for (field, value, why) in [
        ("annotations", json!({ "etch-operator.io/ignore": "true" }), Skip::Ignored),
        ("deletionTimestamp", json!(AFTER), Skip::Terminating),
    ] {
        let spared = with(mine.clone(), &format!("/metadata/{field}"), value);
        assert_eq!(decided(&all, &spared).plan, Some(Plan::Skip(why)));
    }
}

#[test]
fn a_former_default_that_no_read_shows_is_not_destroyed() {
    let mine = object(json!({ "size": 3 }), json!({ "f:spec": {} }));
    let former = vec![FormerDefault::of_any_time(".spec.gone".parse().expect("a path"))];
    let cleared = [("other".to_owned(), [".spec.gone".parse().expect("a path")].into())].into();
    let all = vec![recorded(".spec.gone", json!(3)), recorded(".spec.size", json!(3))];
    let unstorable = Unstorable::new(all, &crd()).knowing(HiddenEvidence { former, cleared }.into());
    let plan = |uid: &str| {
        let object = Object::from(with(mine.clone(), "/metadata/uid", json!(uid)));
        unstorable.decide(&object, &crd(), &Terms::default()).plan
    };
    let Some(Plan::Hold(Held { reason: Hold::HiddenFields, paths, .. })) = plan("u") else {
        panic!("a value is destroyed that may be a user's")
    };
    assert_eq!(paths.iter().map(Path::to_string).collect::<Vec<_>>(), [".spec.gone"]);
    assert!(matches!(plan("other"), Some(Plan::Write(_))), "it is known to be gone");
}

#[test]
fn a_place_is_removable_only_where_no_version_has_the_default_and_a_pass_stored_it() {
    let standing = |recorded: RecordedDefault, crd: &Crd| {
        let unstorable = Unstorable::new(vec![recorded], crd);
        let standings: Vec<Standing> = unstorable.defaults().map(|(_, standing)| standing.clone()).collect();
        standings
    };
    for (path, expected) in [
        (".spec.size", Standing::Removable),
        (".spec.parts{}.keep", Standing::Removable),
        (".spec.mode", Standing::StillDefault("v1".to_owned())),
        (".spec.gone", Standing::FieldGone),
        (".spec.parts{}.gone", Standing::FieldGone),
        (".spec.ports[].gone", Standing::FieldGone),
        (".spec.ports[].name", Standing::NotRemovable),
        (".metadata.name", Standing::NotRemovable),
    ] {
        assert_eq!(standing(recorded(path, json!(3)), &crd()), [expected], "{path}");
    }
    let mut scaled = things_document(with_spec(properties()));
    scaled["spec"]["versions"][0]["subresources"] = json!({ "scale": { "specReplicasPath": ".spec.size" } });
    let scaled = Crd::read(&scaled.into()).expect("a CRD");
    assert_eq!(standing(recorded(".spec.size", json!(3)), &scaled), [Standing::NotRemovable]);
    let unproved = RecordedDefault { stored: Vec::new(), ..recorded(".spec.size", json!(3)) };
    assert_eq!(standing(unproved.clone(), &crd()), [Standing::NoPass]);
    assert_eq!(standing(RecordedDefault { is_too_long: true, ..unproved }, &crd()), [Standing::NoValue]);
    let mut document = things_document(with_spec(properties()));
    let mut other = document["spec"]["versions"][0].clone();
    (other["name"], other["storage"]) = (json!("v2"), json!(false));
    other["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["size"]["default"] = json!(5);
    document["spec"]["versions"].as_array_mut().expect("versions").push(other);
    let both = Crd::read(&document.into()).expect("a CRD");
    assert_eq!(standing(recorded(".spec.size", json!(3)), &both), [Standing::StillDefault("v2".to_owned())]);
}
