//! Runs the cases of the guard, and asserts its laws on every one of them. The cases are data, in
//! `src/upgrade/cases`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use super::*;
use crate::crd::Crd;
use crate::findings::SchemaFindings;
use crate::impact::{Kind, Upgrade};
use crate::object::Object;
use crate::plan::{Clock, Record, Terms};
use kube_structural_schema::json::Json;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    /// The fields of `spec`, or versions by name.
    old: Value,
    new: Value,
    /// Whether a webhook converts the objects before, and after.
    #[serde(default)]
    webhook: (bool, bool),
    objects: Vec<InShort>,
    /// Whether the update can touch an object.
    #[serde(default = "yes")]
    matters: bool,
    /// The check was cut short, and there are so many.
    cut: Option<u64>,
    #[serde(default)]
    harm: bool,
    #[serde(default)]
    warnings: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InShort {
    name: String,
    spec: Value,
    #[serde(default)]
    owns: Value,
    /// The version of its owner; v1 otherwise.
    at: Option<String>,
}

fn yes() -> bool {
    true
}

#[test]
fn effects_on_objects_are_warned_of() {
    run(include_str!("cases/effects.yaml"));
}

#[test]
fn versions_come_and_go() {
    run(include_str!("cases/versions.yaml"));
}

fn run(file: &str) {
    let cases: Vec<Case> = serde_yaml_ng::from_str(file).expect("cases");
    for case in &cases {
        check(case);
    }
}

fn check(case: &Case) {
    let name = &case.name;
    let (old, new) = (document(&case.old, case.webhook.0), document(&case.new, case.webhook.1));
    assert_eq!(matters(&old, &new), case.matters, "{name}");
    let (before, after) = (Crd::read(&old).expect("the old CRD"), Crd::read(&new).expect("the new CRD"));
    let upgrade = Upgrade::new(&before, &after);
    let (mut builder, mut harmed) = (FindingsBuilder::new(&before, &after, Terms::default()), 0);
    for object in case.objects.iter().map(object) {
        let (effect, _) = upgrade.on_record(&object, &Record::default());
        harmed += u64::from(effect.kinds().iter().any(|kind| matches!(kind, Kind::Change | Kind::Loss)));
        builder.add(&object, &before, &Record::default(), effect);
    }
    assert_eq!(builder.objects(), case.objects.len() as u64, "{name}");
    let violations = new_violations((&old, Some(&before)), (&new, Some(&after)));
    let extent = match case.cut {
        Some(of) => Extent::Part { why: "cut short".to_owned(), of: Some(of) },
        None => Extent::Whole,
    };
    let findings = builder.findings(&violations, &extent);
    assert_eq!(findings.does_harm, case.harm, "{name}");
    assert!(findings.does_harm || harmed == 0, "{name}: what impact finds is found");
    laws(case, &findings, &digest(&old, &new));
}

fn laws(case: &Case, findings: &Findings, digest: &str) {
    let name = &case.name;
    let decision = |guard_mode, allowed| {
        decide("tabs.example.com", Guarded::Upgrade { digest }, guard_mode, findings, allowed)
    };
    let warned = decision(GuardMode::Warn, None);
    assert_eq!((&warned.refusal, &warned.warnings), (&None, &case.warnings), "{name}");
    assert!(
        warned.warnings.iter().all(|warning| warning.len() <= 256 && !warning.contains("canary")),
        "{name}"
    );
    assert!(case.matters || warned.warnings.is_empty(), "{name}: what does not matter is not warned of");
    assert_eq!(decision(GuardMode::Off, None), GuardDecision::default(), "{name}");
    assert_eq!(decision(GuardMode::Deny, Some(digest)), warned, "{name}: exactly this upgrade");
    let refused = decision(GuardMode::Deny, None);
    assert_eq!(refused.refusal.is_some(), case.harm, "{name}");
    assert_eq!(decision(GuardMode::Deny, Some("another")), refused, "{name}");
    let Some(refusal) = refused.refusal else {
        assert_eq!(refused.warnings, warned.warnings, "{name}");
        return;
    };
    assert!(refusal.contains(&format!("{ALLOW_ANNOTATION}: {digest}")), "{name}: {refusal}");
    let mut lines = findings.lines.iter().chain(&findings.unchecked);
    assert!(lines.all(|line| refusal.contains(line)), "{name}: {refusal}");
}

fn document(short: &Value, webhook: bool) -> Json {
    let schema = |fields: &Value| {
        json!({ "openAPIV3Schema": { "type": "object", "properties": {
            "spec": { "type": "object", "properties": fields },
        } } })
    };
    let of_versions = || serde_json::from_value::<BTreeMap<String, Value>>(short.clone()).ok();
    let versions: Vec<Value> = match of_versions().filter(|versions| versions.contains_key("v1")) {
        Some(versions) => versions
            .iter()
            .map(|(name, version)| {
                json!({ "name": name, "served": version["served"], "storage": version["storage"] == true,
                        "schema": schema(&version["schema"]) })
            })
            .collect(),
        None => vec![json!({ "name": "v1", "served": true, "storage": true, "schema": schema(short) })],
    };
    let strategy = if webhook { "Webhook" } else { "None" };
    json!({
        "metadata": { "name": "tabs.example.com" },
        "spec": {
            "group": "example.com", "names": { "kind": "Tab", "plural": "tabs" }, "versions": versions,
            "conversion": { "strategy": strategy },
        },
    })
    .into()
}

fn object(short: &InShort) -> Object {
    let owns = if short.owns.is_null() { json!({}) } else { short.owns.clone() };
    let at = short.at.as_deref().unwrap_or("v1");
    json!({
        "apiVersion": "example.com/v1", "kind": "Tab",
        "metadata": {
            "name": short.name, "namespace": "ns", "uid": short.name,
            "managedFields": [{
                "manager": "user", "operation": "Apply", "fieldsType": "FieldsV1",
                "apiVersion": format!("example.com/{at}"),
                "fieldsV1": { "f:spec": owns },
            }],
        },
        "spec": short.spec,
    })
    .into()
}

#[test]
fn what_is_for_people_or_injectors_does_not_matter() {
    let crd = document(&json!({ "a": { "type": "string" } }), true);
    let mut other = crd.clone().into_inner();
    other["metadata"]["labels"] = json!({ "a": "b" });
    other["metadata"]["finalizers"] = json!(["a"]);
    other["status"] = json!({ "storedVersions": ["v1"] });
    other["spec"]["names"]["shortNames"] = json!(["t"]);
    other["spec"]["conversion"]["webhook"] = json!({ "clientConfig": { "caBundle": "UEVN" } });
    other["spec"]["versions"][0]["additionalPrinterColumns"] = json!([{ "name": "A" }]);
    assert!(!matters(&crd, &other));
    assert_eq!(digest(&crd, &crd), digest(&crd, &other));
    other["spec"]["conversion"]["strategy"] = json!("None");
    assert!(matters(&crd, &other));
    assert_ne!(digest(&crd, &crd), digest(&crd, &other));
    other["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert!(!matters(&crd, &other), "it is being deleted");
}

#[test]
fn the_digest_is_that_of_one_upgrade() {
    let crd = |fields: Value| document(&fields, false);
    let with = |longest: u64| crd(json!({ "a": { "type": "string", "maxLength": longest } }));
    let one = digest(&with(9), &with(3));
    let described = crd(json!({ "a": { "maxLength": 3, "type": "string", "description": "words" } }));
    assert_eq!(one, digest(&with(9), &described));
    assert_ne!(one, digest(&with(9), &with(4)), "to another schema");
    assert_ne!(one, digest(&with(8), &with(3)), "from another schema");
    assert_ne!(one, digest(&with(3), &with(9)), "back");
    assert_eq!(one.len(), 64);
}

#[test]
fn many_places_are_counted_not_listed() {
    let fields = |default: u64| -> Value {
        (0..30)
            .map(|n| (format!("f{n:02}"), json!({ "type": "integer", "default": default })))
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    let (old, new) = (document(&fields(1), false), document(&fields(2), false));
    let (before, after) = (Crd::read(&old).expect("a CRD"), Crd::read(&new).expect("a CRD"));
    let spec: serde_json::Map<_, _> = (0..30).map(|n| (format!("f{n:02}"), json!(1))).collect();
    let object = object(&InShort { name: "a".to_owned(), spec: spec.into(), owns: Value::Null, at: None });
    let mut builder = FindingsBuilder::new(&before, &after, Terms::default());
    let effect = Upgrade::new(&before, &after).object(&object);
    builder.add(&object, &before, &Record::default(), effect);
    let lines = builder.findings(&SchemaFindings::default(), &Extent::Whole).lines;
    assert_eq!(lines.len(), 10);
    assert_eq!(lines[9], "and 21 more places; `etch impact -f FILE --live` lists all");
}

#[test]
fn an_object_that_is_nested_too_deeply_is_named_and_no_harm() {
    let (old, new) =
        (document(&json!({ "a": { "type": "string" }, "b": {} }), false), document(&json!({}), false));
    let (before, after) = (Crd::read(&old).expect("a CRD"), Crd::read(&new).expect("a CRD"));
    let changed = "2026-01-01T00:00:00Z";
    let served = json!({ "metadata": { "creationTimestamp": changed,
        "managedFields": [{ "time": changed, "fieldsV1": { "f:spec": {} } }] } });
    let record = Record { clock: Clock::of(&served.into(), jiff::Timestamp::MAX), ..Record::default() };
    let outline = json!({ "apiVersion": "example.com/v1", "metadata": { "name": "deep", "namespace": "ns",
        "uid": "1", "resourceVersion": "5", "creationTimestamp": "2026-01-02T00:00:00Z" } });
    let object = Object::too_deep(outline.into());
    let mut builder = FindingsBuilder::new(&before, &after, Terms::default());
    let (effect, _) = Upgrade::new(&before, &after).on_record(&object, &record);
    builder.add(&object, &before, &record, effect);
    let findings = builder.findings(&SchemaFindings::default(), &Extent::Whole);
    let line = "1 of 1 object: not checked: it is nested more than 1000 levels deep: ns/deep";
    assert_eq!((&*findings.lines, findings.does_harm), (&[line.to_owned()][..], false));
}

/// A CRD with objects of these names, of which the first is at the storage version for certain, the second at
/// another one; those that end in `f` have a finalizer, in `t` are being deleted.
fn deleted(names: &[&str], extent: &Extent) -> Findings {
    let mut document = document(
        &json!({
            "v1beta1": { "served": true, "schema": {} },
            "v1": {
                "served": true, "storage": true, "schema": { "size": { "type": "integer", "default": 1 } },
            },
        }),
        false,
    )
    .into_inner();
    document["status"] = json!({ "storedVersions": ["v1beta1", "v1"] });
    let crd = Crd::read(&document.into()).expect("a CRD");
    let mut builder = DeletionBuilder::default();
    for (index, name) in names.iter().enumerate() {
        // No pass asks about an object that shows no default.
        let spec = if index == 1 { json!({}) } else { json!({ "size": 2 }) };
        let short = InShort { name: (*name).to_owned(), spec, owns: Value::Null, at: None };
        let mut object = object(&short).json().clone().into_inner();
        object["metadata"]["resourceVersion"] = json!((10 - index).to_string());
        if name.ends_with('f') {
            object["metadata"]["finalizers"] = json!(["example.com/canary"]);
        }
        if name.ends_with('t') {
            object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        let record = Record { through: Some(9), ..Record::default() };
        builder.add(&Json::from(object).into(), &crd, &record);
    }
    builder.findings(&crd, extent)
}

#[test]
fn a_deletion_takes_objects_along() {
    let findings = deleted(&["a", "b", "cf", "d", "et"], &Extent::Whole);
    let lines = [
        "4 objects are deleted with it: ns/a, ns/b, ns/cf and 1 more",
        "stored at v1: 1, another version: 1, a version that nothing shows: 2",
        "1 of them with finalizers, which the deletion waits for: ns/cf",
    ];
    assert_eq!(
        (findings.lines.as_slice(), findings.unchecked.as_deref()),
        (&lines.map(str::to_owned)[..], None)
    );
    let guarded = Guarded::Deletion { uid: "u" };
    let decision = |mode, allowed| decide("tabs.example.com", guarded, mode, &findings, allowed);
    assert_eq!(decision(GuardMode::Off, None), GuardDecision::default());
    let warned = decision(GuardMode::Warn, None);
    assert_eq!(warned.warnings, lines.map(|line| format!("etch: {line}")));
    assert_eq!(decision(GuardMode::Deny, Some("u")), warned);
    let refusal = decision(GuardMode::Deny, Some("another")).refusal.expect("a refusal");
    assert!(lines.iter().all(|line| refusal.contains(line)), "{refusal}");
    let help = "kubectl annotate crd tabs.example.com etch-operator.io/allow-deletion=u";
    assert!(refusal.ends_with(help), "{refusal}");
}

#[test]
fn what_is_not_counted_refuses_no_deletion() {
    let part = Extent::Part { why: "the time limit expired".to_owned(), of: Some(400) };
    let unchecked = "not all objects counted, 1 of about 400: the time limit expired; `kubectl get \
                     tabs.example.com -A` lists them";
    let some = deleted(&["a"], &part);
    assert_eq!(
        (some.lines[0].as_str(), some.does_harm),
        ("at least 1 object is deleted with it: ns/a", true)
    );
    assert_eq!(some.unchecked.as_deref(), Some(unchecked));
    for (names, extent) in [(&[][..], &part), (&[], &Extent::Whole), (&["at"], &Extent::Whole)] {
        let none = deleted(names, extent);
        assert!(none.lines.is_empty() && !none.does_harm, "{none:?}");
    }
}
