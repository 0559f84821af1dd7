//! Writes to objects of which the server merges the oldest owners, because Etch's entry would be one too
//! many.

use serde_json::{Value, json};

use crate::crd::Crd;
use crate::object::Object;
use crate::plan::{
    Outcome, PatchKind, Plan, Record, Step, Strategy, Terms, WriteMachine, changes, decide, follow, past_of,
};
use kube_structural_schema::json::Json;

/// As many as the server keeps (fact W20).
const MOST: usize = 10;

#[test]
fn a_rewrite_that_makes_the_server_gather_the_oldest_loses_nobody() {
    let crd = crd("blue", &["v1beta1", "v1"]);
    let object = object("v1beta1", None);
    let Plan::Write(write) = decide(&object, &crd, &Terms::default(), &Record::default()) else {
        panic!("nothing to write");
    };
    assert_eq!(write.strategy, Strategy::Rewrite);
    let terms = Terms::default();
    let (mut machine, ahead) = WriteMachine::begin(&crd, &object, &write, &terms);
    assert_eq!(ahead.kind, PatchKind::Apply);
    machine.answered(with_revision(object.clone(), "11"));
    let mut after = with_revision(gathered("v1", Some("blue")), "12");
    let released = machine.answered(after.clone());
    assert!(matches!(released, Step::Send(_)), "{released:?}");
    without_ours(&mut after);
    let proof = machine.answered(with_revision(after.clone(), "13"));
    assert!(matches!(proof, Step::Send(_)), "{proof:?}");
    let done = machine.answered(with_revision(after, "13"));
    assert!(matches!(done, Step::Done(Outcome::Written { .. })), "{done:?}");
}

#[test]
fn a_followed_default_that_makes_the_server_gather_the_oldest_loses_nobody() {
    let (old, new) = (crd("red", &["v1"]), crd("blue", &["v1"]));
    let path = ".spec.color".parse().expect("a path");
    let changes = changes(&past_of(&old), &new, &[path]);
    let (object, terms) = (object("v1", Some("red")), Terms::default());
    let Some(Plan::Write(write)) = follow(&object, &new, &terms, &changes, &Record::default()).plan else {
        panic!("nothing to move")
    };
    let (mut machine, _) = WriteMachine::begin(&new, &object, &write, &terms);
    let mut after = with_revision(gathered("v1", Some("blue")), "11");
    machine.answered(after.clone());
    without_ours(&mut after);
    let done = machine.answered(with_revision(after, "12"));
    assert!(matches!(done, Step::Done(Outcome::Followed(_))), "{done:?}");
}

fn crd(color: &str, versions: &[&str]) -> Crd {
    let last = versions.len() - 1;
    let versions: Vec<Value> = versions
        .iter()
        .enumerate()
        .map(|(index, name)| {
            let mut fields: serde_json::Map<String, Value> =
                (0..MOST).map(|field| (format!("a{field}"), json!({ "type": "string" }))).collect();
            if index == last {
                fields.insert("color".to_owned(), json!({ "type": "string", "default": color }));
            }
            json!({ "name": name, "served": true, "storage": index == last, "schema": { "openAPIV3Schema": {
            "type": "object", "properties": { "spec": { "type": "object", "properties": fields } } } } })
        })
        .collect();
    Crd::read(&Json::from(json!({
        "metadata": { "name": "things.example.com", "uid": "crd" },
        "spec": {
            "group": "example.com", "names": { "kind": "Thing", "plural": "things" }, "versions": versions,
        },
    })))
    .expect("a CRD")
}

fn entry(manager: &str, version: &str, fields: &[String]) -> Value {
    let named: serde_json::Map<String, Value> =
        fields.iter().map(|field| (format!("f:{field}"), json!({}))).collect();
    json!({ "manager": manager, "operation": "Update", "apiVersion": format!("example.com/{version}"),
        "fieldsType": "FieldsV1", "fieldsV1": { "f:spec": named } })
}

/// An object with as many owners as the server keeps.
fn object(version: &str, color: Option<&str>) -> Object {
    let owners = (0..MOST).map(|owner| entry(&format!("m{owner}"), version, &[format!("a{owner}")]));
    of(owners.collect(), color)
}

/// The object after a write that made Etch an owner.
fn gathered(version: &str, color: Option<&str>) -> Object {
    let mut owners: Vec<Value> =
        (2..MOST).map(|owner| entry(&format!("m{owner}"), version, &[format!("a{owner}")])).collect();
    owners.push(entry("ancient-changes", version, &["a0".to_owned(), "a1".to_owned()]));
    owners.push(entry("etch", version, &["color".to_owned()]));
    of(owners, color)
}

fn of(owners: Vec<Value>, color: Option<&str>) -> Object {
    let mut spec: serde_json::Map<String, Value> =
        (0..MOST).map(|field| (format!("a{field}"), json!("x"))).collect();
    spec.extend(color.map(|color| ("color".to_owned(), json!(color))));
    Object::from(json!({
        "apiVersion": "example.com/v1", "kind": "Thing", "spec": spec,
        "metadata": {
            "name": "a", "namespace": "ns", "uid": "u1", "resourceVersion": "10", "managedFields": owners,
        },
    }))
}

fn with_revision(object: Object, revision: &str) -> Object {
    let mut document = object.json().clone();
    document["metadata"]["resourceVersion"] = revision.into();
    Object::from(document)
}

fn without_ours(object: &mut Object) {
    let mut document = object.json().clone();
    let owners = document["metadata"]["managedFields"].as_array_mut().expect("owners");
    owners.retain(|owner| owner["manager"] != "etch");
    *object = Object::from(document);
}
