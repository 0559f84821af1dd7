//! Objects, the bytes behind them, and what they show about their defaults.

use serde_json::{Value, json};

use super::*;
use crate::crd::Crd;
use crate::crd::sample::with_spec;
use crate::decode::{Decoder, Undecodable};
use crate::object::Object;
use crate::plan::{
    Change, Clock, HiddenFields, History, OldDefault, Ownership, Plan, Record, Skip, Terms, changes, decide,
};
use kube_structural_schema::json::{DEPTH, Json};

const CHANGED: &str = "2026-01-01T12:00:00Z";

fn document(versions: &[(&str, bool, Value)]) -> Json {
    let versions: Vec<Value> = versions
        .iter()
        .map(|(name, storage, schema)| {
            json!({
                "name": name, "served": true, "storage": storage, "schema": { "openAPIV3Schema": schema },
            })
        })
        .collect();
    json!({
        "metadata": {
            "name": "tabs.example.com", "creationTimestamp": "2025-01-01T00:00:00Z",
            "managedFields": [
                { "manager": "author", "time": CHANGED, "fieldsV1": { "f:spec": { "f:versions": {} } } },
                { "manager": "server", "time": "2027-01-01T00:00:00Z", "fieldsV1": { "f:status": {} } },
            ],
        },
        "spec": {
            "group": "example.com", "names": { "kind": "Tab", "plural": "tabs" }, "versions": versions,
        },
    })
    .into()
}

fn one_version() -> Crd {
    let schema =
        with_spec(json!({ "a": { "type": "integer", "default": 1 }, "l": { "type": "array", "items": {
        "type": "object", "properties": { "p": { "type": "string", "default": "TCP" } } } } }));
    Crd::read(&document(&[("v1", true, schema)])).expect("a CRD")
}

fn object(spec: Value, fields: Value, written: &str) -> Object {
    json!({
        "apiVersion": "example.com/v1", "kind": "Tab",
        "metadata": {
            "name": "a", "uid": "1", "resourceVersion": "7", "creationTimestamp": "2025-06-01T00:00:00Z",
            "managedFields": [{
                "manager": "user", "operation": "Update", "fieldsType": "FieldsV1",
                "apiVersion": "example.com/v1", "time": written,
                "fieldsV1": { "f:spec": fields },
            }],
        },
        "spec": spec,
    })
    .into()
}

/// Nothing is on record but when the schema changed.
fn record() -> Record {
    Record { clock: Clock::of(&document(&[]), jiff::Timestamp::MAX), ..Record::default() }
}

fn reported(missing: &[Missing]) -> Vec<String> {
    missing.iter().map(|missing| format!("{} {}", missing.path, missing.state)).collect()
}

#[test]
fn an_owner_is_no_proof_unless_owners_are_trusted() {
    let owned = object(json!({ "a": 1 }), json!({ "f:a": {} }), "2025-12-01T00:00:00Z");
    assert_eq!(reported(&by_view(&owned, &one_version(), &record(), false)), [".spec.a unknown"]);
    assert_eq!(reported(&by_view(&owned, &one_version(), &record(), true)), [""; 0]);
    let other = object(json!({ "a": 1 }), json!({ "f:b": {} }), "2025-12-01T00:00:00Z");
    assert_eq!(reported(&by_view(&other, &one_version(), &record(), true)), [".spec.a unknown"]);
}

#[test]
fn a_write_after_the_schema_was_served_everywhere_is_proof() {
    for (written, expected) in [
        ("2026-01-01T11:59:00Z", "[\".spec.a unknown\"]"),
        ("2026-01-01T12:11:00Z", "[\".spec.a unknown\"]"),
        ("2026-01-01T12:11:01Z", "[]"),
    ] {
        let object = object(json!({ "a": 1 }), json!({}), written);
        let found = by_view(&object, &one_version(), &record(), false);
        assert_eq!(format!("{:?}", reported(&found)), expected, "{written}");
    }
    let late = object(json!({ "a": 1 }), json!({}), "2026-02-01T00:00:00Z");
    assert_eq!(reported(&by_view(&late, &one_version(), &Record::default(), false)), [".spec.a unknown"]);
}

#[test]
fn a_write_proves_nothing_where_versions_disagree() {
    let (plain, color) = (with_spec(json!({ "a": {} })), with_spec(json!({ "a": { "default": 1 } })));
    let crd = Crd::read(&document(&[("v1beta1", false, plain), ("v1", true, color)])).expect("a CRD");
    let late = object(json!({ "a": 1 }), json!({}), "2026-02-01T00:00:00Z");
    assert_eq!(reported(&by_view(&late, &crd, &record(), false)), [".spec.a unknown"]);
    let gap = object(json!({}), json!({}), "2026-02-01T00:00:00Z");
    assert_eq!(reported(&by_view(&gap, &crd, &record(), false)), [".spec.a gap"]);
}

#[test]
fn what_is_on_record_is_proved() {
    let record = Record { through: Some(7), ..record() };
    let old = object(json!({ "a": 1 }), json!({}), "2025-12-01T00:00:00Z");
    let found = by_view(&old, &one_version(), &record, false);
    assert_eq!(reported(&found), [""; 0]);
}

#[test]
fn a_write_is_due_only_where_a_default_is_known_to_be_missing_or_owners_change() {
    let older = document(&[("v1", true, with_spec(json!({ "l": { "type": "array" } })))]);
    let state = |document: &Json, revision: u64, generation: i64| {
        let mut document = document.clone();
        document["metadata"]["generation"] = json!(generation);
        (revision, Crd::read(&document).expect("a CRD"))
    };
    let now = one_version();
    let history = History::of_states([state(&older, 5, 1), (9, one_version())]);
    let known = Record { history, ..record() };
    let own = Terms { ownership: Ownership::Own, ..Terms::default() };
    let shown = object(json!({ "a": 1 }), json!({}), "2025-12-01T00:00:00Z");
    let ours = {
        let mut document = shown.json().clone();
        document["metadata"]["managedFields"][0]["manager"] = json!("etch");
        document["metadata"]["managedFields"][0]["operation"] = json!("Apply");
        document["metadata"]["managedFields"][0]["fieldsV1"] = json!({ "f:spec": { "f:a": {} } });
        Object::from(document)
    };
    let gap = object(json!({}), json!({}), "2025-12-01T00:00:00Z");
    for (object, terms, record, expected) in [
        (&shown, &Terms::default(), &record(), false),
        (&shown, &Terms::default(), &known, true),
        (&gap, &Terms::default(), &record(), true),
        (&shown, &own, &record(), true),
        (&ours, &own, &record(), false),
        (&ours, &Terms::default(), &record(), true),
    ] {
        let Plan::Write(write) = decide(object, &now, terms, record) else { panic!("no write") };
        assert_eq!(is_due(object, &now, terms, record, &write), expected, "{write:?}");
    }
}

#[test]
fn nothing_on_record_covers_what_was_skipped() {
    let record = Record { through: Some(7), ..record() };
    let skipped = [
        ("annotations", json!({ "etch-operator.io/ignore": "true" })),
        ("deletionTimestamp", json!("2025-12-02T00:00:00Z")),
    ];
    for (field, value) in skipped {
        for through in [5, 7] {
            let mut document = object(json!({ "a": 1 }), json!({}), "2025-12-01T00:00:00Z").json().clone();
            document["metadata"][field] = value.clone();
            let record = Record { through: Some(through), ..record.clone() };
            let found = by_view(&document.into(), &one_version(), &record, false);
            assert_eq!(reported(&found), [".spec.a unknown"], "{field}, through {through}");
        }
    }
    // The pass was before the annotation was taken away, and every write after it stores what its writer
    // sees.
    let freed = object(json!({ "a": 1 }), json!({}), "2025-12-01T00:00:00Z");
    let record = Record { through: Some(5), ..record };
    assert_eq!(reported(&by_view(&freed, &one_version(), &record, false)), [""; 0]);
}

#[test]
fn a_write_proves_nothing_where_an_owner_speaks_at_a_version_without_the_default() {
    let (plain, color) =
        (with_spec(json!({ "a": {} })), with_spec(json!({ "b": {}, "a": { "default": 1 } })));
    let mut document = document(&[("v1beta1", false, with_spec(json!({ "b": {} }))), ("v1", true, color)]);
    document["spec"]["versions"][0]["served"] = json!(false);
    let crd = Crd::read(&document).expect("a CRD");
    let mut late = object(json!({ "a": 1 }), json!({}), "2026-02-01T00:00:00Z").json().clone();
    late["metadata"]["managedFields"][0]["apiVersion"] = json!("example.com/v1beta1");
    let record = Record { through: Some(5), ..record() };
    assert_eq!(reported(&by_view(&late.clone().into(), &crd, &record, false)), [".spec.a unknown"], "W6");
    document["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = plain;
    let crd = Crd::read(&document).expect("a CRD");
    assert_eq!(
        reported(&by_view(&late.into(), &crd, &record, false)),
        [""; 0],
        "both versions know the field"
    );
}

#[test]
fn skipped_objects_are_counted_apart_and_never_stored_by_the_record() {
    let mut totals = Totals::default();
    let missing = [Missing { path: Path::root(), state: State::Unknown }];
    totals.add(&missing, false, Some(Skip::Ignored));
    totals.add(&missing, false, Some(Skip::Terminating));
    totals.add(&[], false, None);
    assert_eq!((totals.objects, totals.stored, totals.unknown), (3, 1, 2));
    assert_eq!((totals.ignored, totals.terminating), (1, 1));
    assert!(!totals.is_clean());
}

#[test]
fn what_is_skipped_is_explained() {
    let crd = one_version();
    let mut document = object(json!({ "a": 1 }), json!({}), "2025-12-01T00:00:00Z").json().clone();
    document["metadata"]["annotations"] = json!({ "etch-operator.io/ignore": "true" });
    let object = Object::from(document);
    let record = Record { through: Some(7), ..record() };
    let missing = by_view(&object, &crd, &record, false);
    let reason = "the API does not show whether etcd holds it; Etch skips the object: it has the annotation \
                  etch-operator.io/ignore";
    assert_eq!(
        explained(&object, &crd, &Terms::default(), &[], None, &missing),
        [format!(".spec.a unknown: {reason}")]
    );
}

#[test]
fn what_is_stored_says_whether_etch_stored_it() {
    let crd = one_version();
    let stored = |own: bool, revision: u64, through: Option<u64>, exact: bool| {
        let mut document = object(json!({ "a": 1 }), json!({}), "2025-12-01T00:00:00Z").json().clone();
        document["metadata"]["resourceVersion"] = json!(revision.to_string());
        if own {
            let owner = json!({ "manager": "etch", "operation": "Apply", "apiVersion": "example.com/v1",
                "fieldsType": "FieldsV1", "fieldsV1": { "f:spec": { "f:a": {} } } });
            document["metadata"]["managedFields"].as_array_mut().expect("owners").push(owner);
        }
        let record = Record { through, ..Record::default() };
        let (terms, deciding) = (Terms::default(), Record::default());
        let rules = Rules { terms: &terms, record: &record, deciding: &deciding, changes: &[], idle: None };
        let explanations = explain(&Object::from(document), &crd, &rules, &[], exact);
        let [explanation] = &explanations[..] else { panic!("{explanations:?}") };
        explanation.reason.clone()
    };
    let by_pass = "Etch's pass stored it or found it stored; the object was not written since";
    assert_eq!(stored(false, 5, Some(5), false), by_pass);
    assert_eq!(stored(false, 5, Some(5), true), format!("etcd holds it: {by_pass}"));
    assert_eq!(stored(false, 6, Some(5), false), "the object was written after Etch's pass, which stores it");
    assert_eq!(stored(false, 6, None, false), "the object was written after the schema had the default");
    assert_eq!(stored(false, 6, None, true), "etcd holds it");
    assert_eq!(stored(true, 6, None, false), "Etch stored it, and owns it");
}

/// What `explain` reports about each default under these rules.
fn explained(
    object: &Object,
    crd: &Crd,
    terms: &Terms,
    changes: &[Change],
    idle: Option<&str>,
    missing: &[Missing],
) -> Vec<String> {
    let record = Record::default();
    let rules = Rules { terms, record: &record, deciding: &record, changes, idle };
    let explanations = explain(object, crd, &rules, missing, false);
    explanations
        .iter()
        .map(|explanation| format!("{} {}: {}", explanation.path, explanation.state, explanation.reason))
        .collect()
}

#[test]
fn what_is_done_depends_on_the_policy() {
    let crd = one_version();
    let mut document =
        object(json!({ "a": 1 }), json!({ "f:gone": {} }), "2025-12-01T00:00:00Z").json().clone();
    let missing = [Missing { path: ".spec.a".parse().expect("a path"), state: State::Phantom }];
    let wording = |document: &Json, terms: Terms, idle: Option<&str>| {
        let object = Object::from(document.clone());
        let wording = explained(&object, &crd, &terms, &[], idle, &missing);
        wording[0].strip_prefix(".spec.a phantom: etcd does not hold it; ").expect("what is known").to_owned()
    };
    let drop = Terms { hidden_fields: HiddenFields::Drop, ..Terms::default() };
    let own = Terms { ownership: Ownership::Own, ..drop.clone() };
    let held = wording(&document, Terms::default(), None);
    assert!(
        held.starts_with("Etch holds the object: a write may destroy fields")
            && held.ends_with("(.spec.gone)"),
        "{held}"
    );
    assert_eq!(
        wording(&document, drop.clone(), None),
        "Etch stores it with a write that changes nothing that a read shows, and drops .spec.gone \
         (hiddenFields: Drop)"
    );
    assert!(wording(&document, own, None).contains("and owns it (ownership: Own), and drops .spec.gone"));
    let idle = "DefaultsPolicy default has mode: Audit";
    assert_eq!(wording(&document, drop, Some(idle)), format!("Etch does not write: {idle}"));
    document["metadata"]["managedFields"] = json!([]);
    assert!(wording(&document, Terms::default(), None).ends_with("because the object has no managedFields"));
}

#[test]
fn of_an_object_that_is_nested_too_deeply_nothing_is_known() {
    let crd = one_version();
    let bytes = format!(r#"{{"metadata":{{"name":"n"}},"spec":{}{}}}"#, "[".repeat(DEPTH), "]".repeat(DEPTH));
    let object = Object::read(bytes.as_bytes()).expect("JSON");
    let missing = by_view(&object, &crd, &Record::default(), false);
    assert_eq!(missing, [Missing::anywhere()]);
    let wording = explained(&object, &crd, &Terms::default(), &[], None, &missing).join("\n");
    assert!(
        wording.contains("unknown") && wording.ends_with("alone: it is nested more than 1000 levels deep"),
        "{wording}"
    );
    let exact = Exact::too_deep(&object.identity(), bytes.as_bytes());
    assert_eq!((&exact.missing, exact.object.name()), (&missing, "n"));
    let exact = Exact::too_deep(&object.identity(), b"no JSON");
    assert!(exact.object.is_too_deep() && exact.object.name() == "n");
}

#[test]
fn an_old_default_is_explained_where_it_follows_and_where_it_stays() {
    let crd = one_version();
    let path: Path = ".spec.a".parse().expect("a path");
    let past = [OldDefault { path: path.clone(), values: vec![json!(7).into()] }];
    let free = object(json!({ "a": 7 }), json!({ "f:l": {} }), "2026-02-01T00:00:00Z");
    let owned = object(json!({ "a": 7 }), json!({ "f:a": {} }), "2026-02-01T00:00:00Z");
    let followed = changes(&past, &crd, std::slice::from_ref(&path));
    let wording = |object: &Object, changes: &[Change], idle: Option<&str>| {
        explained(object, &crd, &Terms::default(), changes, idle, &[]).join("\n")
    };
    let known = ".spec.a stored: the value is what the default was before it changed";
    assert_eq!(
        wording(&free, &followed, None),
        format!("{known}, and it has no owner; Etch replaces it with the new default (onChange: Follow)")
    );
    let idle = "DefaultsPolicy default (paused) has paused writes";
    assert_eq!(
        wording(&free, &followed, Some(idle)),
        format!("{known}, and it has no owner; Etch does not write: {idle}")
    );
    assert_eq!(wording(&owned, &followed, None), format!("{known}; Etch keeps it"));
    assert_eq!(wording(&free, &changes(&past, &crd, &[]), None), format!("{known}; Etch keeps it"));
    assert_eq!(
        wording(&free, &[], None),
        ".spec.a stored: the value differs from the default: a client wrote it, or it is an earlier default"
    );
    let past = [OldDefault { path: ".spec.gone".parse().expect("a path"), values: vec![json!(7).into()] }];
    let gone = changes(&past, &crd, &[".spec.gone".parse().expect("a path")]);
    let object = object(json!({ "a": 2, "gone": 7 }), json!({ "f:l": {} }), "2026-02-01T00:00:00Z");
    assert!(
        wording(&object, &gone, None).ends_with("Etch removes it (onChange: Follow)"),
        "{}",
        wording(&object, &gone, None)
    );
}

#[test]
fn bytes_leave_nothing_open() {
    let crd = one_version();
    let decoder = Decoder::new(&crd);
    let stored =
        |spec: Value| Json::from(json!({ "apiVersion": "example.com/v1", "metadata": {}, "spec": spec }));
    let cases = [
        (json!({ "a": 1, "l": [{ "p": "TCP" }] }), "[] []"),
        (json!({ "l": [{ "p": "TCP" }, {}] }), "[\".spec.a phantom\", \".spec.l[1].p phantom\"] []"),
        (json!({ "a": null }), "[\".spec.a phantom\"] []"),
        (json!({ "a": 2, "old": 1 }), "[] [\".spec.old\"]"),
    ];
    for (spec, expected) in cases {
        let exact = by_bytes(&stored(spec.clone()), &crd, &decoder).expect("readable");
        let hidden: Vec<_> = exact.hidden.iter().map(Path::to_string).collect();
        assert_eq!(format!("{:?} {hidden:?}", reported(&exact.missing)), expected, "{spec}");
    }
    assert_eq!(
        by_bytes(&json!({ "apiVersion": "example.com/v0" }).into(), &crd, &decoder).err(),
        Some(Undecodable::VersionGone("v0".to_owned()))
    );
}

#[test]
fn bytes_at_another_version_show_that_versions_defaults_and_lack_the_others() {
    let beta = with_spec(json!({ "a": { "default": 1 }, "only": {} }));
    let stable = with_spec(json!({ "a": { "default": 1 }, "color": { "default": "red" } }));
    let crd = Crd::read(&document(&[("v1beta1", false, beta), ("v1", true, stable)])).expect("a CRD");
    let stored = json!({ "apiVersion": "example.com/v1beta1", "spec": { "only": 1, "color": "blue" } });
    let exact = by_bytes(&stored.into(), &crd, &Decoder::new(&crd)).expect("readable");
    assert_eq!(reported(&exact.missing), [".spec.a phantom", ".spec.color gap"]);
    let hidden: Vec<_> = exact.hidden.iter().map(Path::to_string).collect();
    assert_eq!(hidden, [".spec.color", ".spec.only"]);
    assert_eq!(exact.object.json()["apiVersion"], "example.com/v1");
}

#[test]
fn a_default_of_another_version_is_seen_through_the_pruning_for_the_storage_version() {
    let map = json!({
        "type": "object", "default": { "k": {} }, "additionalProperties": {
            "properties": { "n": { "default": 1 } },
        },
    });
    let mut crd = document(&[
        ("v1", false, with_spec(json!({ "f": map, "a": {} }))),
        ("v2", true, with_spec(json!({ "f": { "type": "string" }, "a": { "default": 1 } }))),
    ]);
    crd["status"]["storedVersions"] = json!(["v1", "v2"]);
    let crd = Crd::read(&crd).expect("a CRD");
    let stored = json!({ "apiVersion": "example.com/v1", "spec": { "a": 1 } });
    let exact = by_bytes(&stored.into(), &crd, &Decoder::new(&crd)).expect("readable");
    assert_eq!(exact.object.json()["spec"], json!({ "a": 1, "f": {} }));
    assert_eq!(reported(&exact.missing), [".spec.f phantom"]);
    let seen = reported(&by_view(&exact.object, &crd, &Record::empty(&crd), false));
    assert_eq!(seen, [".spec.a unknown", ".spec.f unknown"]);
}

#[test]
fn a_default_that_only_another_version_has_is_explained() {
    let size = |default: Value| with_spec(json!({ "a": { "type": "integer" }, "b": default }));
    let mut crd = document(&[
        ("v1", false, size(json!({ "type": "integer", "default": 1 }))),
        ("v2", true, size(json!({ "type": "integer" }))),
    ]);
    crd["status"]["storedVersions"] = json!(["v1", "v2"]);
    let crd = Crd::read(&crd).expect("a CRD");
    let view = object(json!({ "a": 1, "b": 1 }), json!({}), CHANGED);
    let missing = by_view(&view, &crd, &Record::empty(&crd), false);
    let wording = explained(&view, &crd, &Terms::default(), &[], None, &missing);
    let [wording] = &wording[..] else { panic!("{wording:?}") };
    assert!(wording.starts_with(".spec.b unknown: ") && wording.contains("Etch stores it"), "{wording}");
}

#[test]
fn what_a_webhook_made_of_the_bytes_closes_what_they_leave_open() {
    let beta = with_spec(json!({ "host": {}, "port": { "default": 80 } }));
    let stable = with_spec(json!({ "address": {}, "port": {}, "retries": { "default": 3 } }));
    let mut converted = document(&[("v1beta1", false, beta), ("v1", true, stable)]);
    converted["spec"]["conversion"] = json!({ "strategy": "Webhook" });
    let crd = Crd::read(&converted).expect("a CRD");
    let looked = |spec: Value, view: Value| {
        let stored = json!({ "apiVersion": "example.com/v1beta1", "spec": spec });
        let exact = by_bytes(&stored.into(), &crd, &Decoder::new(&crd)).expect("readable");
        assert!(exact.unconverted);
        let open = reported(&exact.missing);
        (open, reported(&exact.seen(object(view, json!({}), CHANGED), &crd).missing))
    };
    let texts = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(
        looked(json!({ "host": "h" }), json!({ "address": "h", "port": 80 })),
        (texts(&[".spec.port phantom"]), texts(&[".spec.port phantom", ".spec.retries gap"]))
    );
    let whole = json!({ "host": "h", "port": 80 });
    assert_eq!(looked(whole.clone(), json!({ "address": "h", "port": 80 })).1, texts(&[".spec.retries gap"]));
    let (open, seen) = looked(whole, json!({ "address": "h", "port": 80, "retries": 7 }));
    assert_eq!((open.len(), seen), (1, texts(&[])), "{open:?}");
}

#[test]
fn a_place_that_lacks_the_default_of_both_versions_is_listed_once() {
    let schema = || with_spec(json!({ "mode": { "type": "string", "default": "fast" } }));
    let mut converted = document(&[("v1beta1", false, schema()), ("v1", true, schema())]);
    converted["spec"]["conversion"] = json!({ "strategy": "Webhook" });
    let crd = Crd::read(&converted).expect("a CRD");
    let stored = json!({ "apiVersion": "example.com/v1beta1", "spec": {} });
    let exact = by_bytes(&stored.into(), &crd, &Decoder::new(&crd)).expect("readable");
    assert_eq!(reported(&exact.missing), [".spec.mode phantom"]);
    let seen = exact.seen(object(json!({}), json!({}), CHANGED), &crd);
    assert_eq!(reported(&seen.missing), [".spec.mode phantom"]);
}

#[test]
fn places_are_where_a_default_applies() {
    let found = places(&json!({ "spec": { "l": [{}, { "p": "UDP" }] } }), &one_version());
    let found: Vec<_> = found.iter().map(Path::to_string).collect();
    assert_eq!(found, [".spec.a", ".spec.l[0].p", ".spec.l[1].p"]);
}
