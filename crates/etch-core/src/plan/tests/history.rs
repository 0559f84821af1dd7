//! Which defaults the history of a CRD shows to be absent.

use serde_json::{Value, json};

use crate::crd::Crd;
use crate::object::Object;
use crate::plan::{History, HistoryBuilder};
use kube_structural_schema::json::Json;
use kube_structural_schema::path::{Path, Step};

const CREATED: &str = "2026-01-01T12:00:00Z";

/// A CRD with these properties in `spec`, and what else its spec has.
fn document(generation: i64, properties: &Value, more: Value) -> Json {
    let spec = json!({ "type": "object", "properties": properties });
    let mut document = json!({
        "metadata": { "name": "tabs.example.com", "uid": "crd", "generation": generation },
        "spec": {
            "group": "example.com", "names": { "kind": "Tab", "plural": "tabs" },
            "versions": [{ "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": spec } } } }],
        },
    });
    more.as_object().into_iter().flatten().for_each(|(name, value)| document["spec"][name] = value.clone());
    document.into()
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn red() -> Value {
    json!({ "type": "string", "default": "red" })
}

/// A CRD that had these properties from resource version 10 on, and `color: red` from 20 on.
fn history(first: &Value, more: Value) -> (History, Crd) {
    let last = json!({ "a": text(), "color": red() });
    let (first, last) = (document(1, first, more), document(2, &last, json!({})));
    let crd = Crd::read(&last).expect("a CRD");
    let mut builder = HistoryBuilder::default();
    builder.add(10, &first);
    builder.add(12, &first);
    builder.add(20, &last);
    (builder.of(&crd).expect("a history"), crd)
}

/// An object that shows `color: red`, at a resource version; its creator owns these fields.
fn object(revision: u64, owned: Value, rest: Value) -> Object {
    let entry = json!({
        "manager": "user", "operation": "Update", "fieldsType": "FieldsV1", "apiVersion": "example.com/v1",
        "time": CREATED, "fieldsV1": owned,
    });
    let mut metadata = json!({
        "name": "a", "uid": "u", "resourceVersion": revision.to_string(), "generation": 1,
        "creationTimestamp": CREATED,
        "managedFields": [entry],
    });
    rest.as_object().into_iter().flatten().for_each(|(name, value)| metadata[name] = value.clone());
    Object::from(json!({ "metadata": metadata, "spec": { "a": "x", "color": "red" } }))
}

fn of_a() -> Value {
    json!({ "f:spec": { "f:a": {} } })
}

fn color() -> Path {
    [Step::Field("spec".to_owned()), Step::Field("color".to_owned())].into_iter().collect()
}

fn lacks((history, _): &(History, Crd), object: &Object) -> bool {
    history.lacks(object, &color())
}

#[test]
fn no_write_before_a_field_was_declared_stores_it() {
    let history = history(&json!({ "a": text() }), json!({}));
    let nobodys = |revision| object(revision, of_a(), json!({ "managedFields": [], "generation": 7 }));
    assert!(lacks(&history, &nobodys(19)));
    assert!(!lacks(&history, &nobodys(20)), "written under the default");
    assert!(!lacks(&history, &nobodys(9)), "older than all that is known");
}

#[test]
fn a_field_without_a_default_holds_what_somebody_gave_it() {
    let history = history(&json!({ "a": text(), "color": text() }), json!({}));
    assert!(lacks(&history, &object(15, of_a(), json!({}))));
    let both = json!({ "f:spec": { "f:a": {}, "f:color": {} } });
    let given = object(15, both.clone(), json!({}));
    assert!(!lacks(&history, &given) && history.0.gives(&given, &color()));
    assert!(!history.0.gives(&object(15, of_a(), json!({})), &color()));
    assert!(!history.0.gives(&object(20, both.clone(), json!({})), &color()), "written under the default");
    assert!(!history.0.gives(&object(15, both, json!({ "generation": 2 })), &color()));
    for (rest, why) in [
        (json!({ "generation": 2 }), "changed since, by somebody whose entry may be gone"),
        (json!({ "managedFields": [] }), "nobody owns anything"),
        (
            json!({ "creationTimestamp": "2026-01-01T11:59:59Z" }),
            "the creator's entry is gone, or another one",
        ),
    ] {
        assert!(!lacks(&history, &object(15, of_a(), rest)), "{why}");
    }
}

/// Its owner set it, and etcd holds the null; the default shows since the field is no longer nullable.
#[test]
fn a_field_that_may_be_null_is_not_known_to_have_a_value() {
    let nullable = json!({ "type": "string", "nullable": true });
    let history = history(&json!({ "a": text(), "color": nullable }), json!({}));
    let both = json!({ "f:spec": { "f:a": {}, "f:color": {} } });
    let given = object(15, both, json!({}));
    assert!(!history.0.gives(&given, &color()) && !lacks(&history, &given));
    assert!(history.0.may_be_null(&given, &color()));
    assert!(lacks(&history, &object(15, of_a(), json!({}))));
}

#[test]
fn a_null_above_a_field_is_owned_as_it_is() {
    let inner = |color: Value| json!({ "type": "object", "properties": { "color": color } });
    let with = |mut inner: Value, name: &str, value: Value| {
        inner[name] = value;
        inner
    };
    let gives = |first: Value| {
        let last = with(inner(red()), "default", json!({}));
        let (first, last) =
            (document(1, &json!({ "in": first }), json!({})), document(2, &json!({ "in": last }), json!({})));
        let crd = Crd::read(&last).expect("a CRD");
        let mut builder = HistoryBuilder::default();
        builder.add(10, &first);
        builder.add(20, &last);
        let given = object(15, json!({ "f:spec": { "f:in": { "f:color": {} } } }), json!({}));
        let mut given = given.json().clone();
        given["spec"] = json!({ "in": { "color": "red" } });
        let place = ["spec", "in", "color"].map(|name| Step::Field(name.to_owned())).into_iter().collect();
        builder.of(&crd).expect("a history").gives(&Object::from(given), &place)
    };
    assert!(gives(inner(text())));
    assert!(!gives(with(inner(text()), "nullable", json!(true))));
}

#[test]
fn a_write_through_a_version_without_the_field_may_have_dropped_it() {
    let version = |name: &str, properties: Value| {
        let spec = json!({ "type": "object", "properties": properties });
        json!({ "name": name, "served": true, "storage": name == "v1",
            "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": spec } } } })
    };
    let both = json!({ "a": text(), "color": text() });
    let versions = json!([version("v1beta1", json!({ "a": text() })), version("v1", both.clone())]);
    let owned = json!({ "f:spec": { "f:a": {}, "f:color": {} } });
    let (history, _) = history(&both, json!({ "versions": versions }));
    assert!(!history.gives(&object(15, owned, json!({})), &color()));
    assert!(history.lacks(&object(15, of_a(), json!({})), &color()));
}

#[test]
fn what_had_a_default_or_cannot_be_told_is_not_known_to_be_absent() {
    let early = || object(15, of_a(), json!({}));
    let spec_default = json!({ "a": text(), "color": red() });
    assert!(!lacks(&history(&spec_default, json!({})), &early()));
    let version = |name: &str| json!({ "name": name, "served": true, "storage": name == "v1", "schema": {} });
    let webhook =
        json!({ "conversion": { "strategy": "Webhook" }, "versions": [version("v1beta1"), version("v1")] });
    for more in [json!({ "preserveUnknownFields": true }), webhook] {
        assert!(!lacks(&history(&json!({ "a": text() }), more.clone()), &early()), "{more}");
    }
}

#[test]
fn what_owners_name_as_a_whole_tells_nothing_of_its_parts() {
    let items = |list: &str, x: Value| {
        let x = json!({ "type": "object", "required": ["name"], "properties": { "name": text(), "x": x } });
        json!({
            "l": {
                "type": "array", "x-kubernetes-list-type": list, "x-kubernetes-list-map-keys": ["name"],
                "items": x,
            },
        })
    };
    let key = r#"k:{"name":"a"}"#;
    let of_items = |owned: Value| {
        let object = object(15, json!({ "f:spec": { "f:l": owned } }), json!({}));
        let mut object = object.json().clone();
        object["spec"] = json!({ "l": [{ "name": "a", "x": "red" }] });
        Object::from(object)
    };
    let at = |inside: [Step; 2]| -> Path {
        let list = ["spec", "l"].map(|name| Step::Field(name.to_owned()));
        list.into_iter().chain(inside).collect()
    };
    let known = |list: &str, before: Value, owned: Value| {
        let last = document(2, &items("map", red()), json!({}));
        let crd = Crd::read(&last).expect("a CRD");
        let mut builder = HistoryBuilder::default();
        builder.add(10, &document(1, &items(list, before), json!({})));
        builder.add(20, &last);
        let history = builder.of(&crd).expect("a history");
        let (object, place) = (of_items(owned), at([Step::Index(0), Step::Field("x".to_owned())]));
        (history.lacks(&object, &place), history.gives(&object, &place))
    };
    let named = || json!({ key: { ".": {}, "f:name": {} } });
    assert_eq!(known("map", text(), named()), (true, false));
    assert_eq!(known("map", text(), json!({ key: { ".": {}, "f:name": {}, "f:x": {} } })), (false, true));
    assert_eq!(
        known("atomic", text(), json!({})),
        (false, false),
        "the list was one value when it was written"
    );
}

#[test]
fn a_history_with_a_state_missing_is_none() {
    let first = document(1, &json!({ "a": text() }), json!({}));
    let last = document(3, &json!({ "a": text(), "color": red() }), json!({}));
    let crd = Crd::read(&last).expect("a CRD");
    let of = |states: &[&Json]| {
        let mut builder = HistoryBuilder::default();
        states.iter().zip(10..).for_each(|(state, revision)| builder.add(revision, state));
        builder.of(&crd).is_some()
    };
    assert!(!of(&[]) && !of(&[&last]) && !of(&[&first]) && !of(&[&first, &last]));
    let between = document(2, &json!({ "a": text() }), json!({}));
    assert!(of(&[&first, &between, &last]));
}
