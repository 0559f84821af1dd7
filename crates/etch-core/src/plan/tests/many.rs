//! Objects with tens of thousands of places: the steps of a decision grow linearly with them. The tests
//! measure no time: a quadratic decision does not end before the test's timeout.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::crd::Crd;
use crate::object::Object;
use crate::plan::{
    Hold, Ownership, Plan, Record, Since, Strategy, Terms, changes, decide, follow, likely, past_of,
};
use kube_structural_schema::json::Json;

/// Its square is too much for any machine.
const MANY: usize = 200_000;
const GUARD: Duration = Duration::from_secs(60);

/// Does this, which must come to an end.
#[allow(clippy::disallowed_methods, reason = "a test that must end")]
fn ends(work: fn()) {
    let (done, ended) = channel();
    let thread = thread::spawn(move || {
        work();
        let _ = done.send(());
    });
    match ended.recv_timeout(GUARD) {
        Ok(()) => {}
        Err(RecvTimeoutError::Timeout) => panic!("the steps grow faster than the object"),
        Err(RecvTimeoutError::Disconnected) => {
            std::panic::resume_unwind(thread.join().expect_err("it has panicked"));
        }
    }
}

#[test]
fn gaps() {
    ends(|| {
        let crd = crd(5);
        let items = (0..MANY).map(|number| json!({ "name": name(number) }));
        let object = object(items.collect(), &["v1"]);
        let Plan::Write(write) = decide(&object, &crd, &Terms::default(), &Record::default()) else {
            panic!("nothing to write");
        };
        // As many as there is room for.
        assert!((5_000..MANY).contains(&write.missing.len()), "{}", write.missing.len());
        let likely = likely(&object, &crd, &Terms::default(), &write, &Since::new());
        assert_eq!(likely.missing.len(), write.missing.len());
    });
}

#[test]
fn items_of_which_we_own_some() {
    ends(|| {
        let crd = crd(5);
        let items = (0..MANY)
            .map(|number| json!({ "name": name(number), "keep": if number % 2 == 0 { 5 } else { 1 } }));
        let object = object(items.collect(), &["v1"]);
        let terms = Terms { ownership: Ownership::Own, ..Terms::default() };
        let Plan::Write(write) = decide(&object, &crd, &terms, &Record::default()) else {
            panic!("nothing to write")
        };
        assert_eq!(write.strategy, Strategy::Apply);
        // Those that Etch owns already, and no others.
        assert_eq!(write.body.json()["spec"]["items"].as_array().map(Vec::len), Some(MANY / 2));
        let likely = likely(&object, &crd, &terms, &write, &Since::new());
        assert_eq!(likely.missing.len(), write.missing.len());
    });
}

#[test]
fn items_that_follow_or_are_owned() {
    ends(|| {
        let (old, new) = (crd(3), crd(5));
        let changes = changes(&past_of(&old), &new, &[".spec.items[].keep".parse().expect("a path")]);
        let items = (0..MANY).map(|number| json!({ "name": name(number), "keep": 3 }));
        let following =
            follow(&object(items.collect(), &["v1"]), &new, &Terms::default(), &changes, &Record::default());
        assert!(following.kept.len() + following.moved.len() < MANY, "as many as there is room for");
        assert!(following.moved.len() >= 5_000, "{}", following.moved.len());
    });
}

#[test]
fn the_last_of_many_items_is_the_only_one_that_follows() {
    ends(|| {
        let (old, new) = (crd(3), crd(5));
        let changes = changes(&past_of(&old), &new, &[".spec.items[].keep".parse().expect("a path")]);
        let keep = |number| if number == MANY - 1 { 3 } else { 4 };
        let items = (0..MANY).map(|number| json!({ "name": name(number), "keep": keep(number) }));
        let following =
            follow(&object(items.collect(), &["v1"]), &new, &Terms::default(), &changes, &Record::default());
        assert_eq!(following.moved.len(), 1);
    });
}

#[test]
fn the_last_of_many_items_is_the_only_one_that_its_default_breaks() {
    ends(|| {
        let crd = crd_of(
            json!({ "name": { "type": "string" }, "low": { "type": "integer" },
                    "keep": { "type": "integer", "default": 5 } }),
            json!([{ "rule": "!has(self.low) || self.low <= self.keep" }]),
        );
        // Just more than there is room for.
        let count = MANY / 12;
        let low = |number| if number == count - 1 { 9 } else { 1 };
        let items = (0..count).map(|number| json!({ "name": name(number), "low": low(number), "keep": 5 }));
        let object = object(items.collect(), &["v1"; 2]);
        match decide(&object, &crd, &Terms::default(), &Record::default()) {
            Plan::Hold(held) => assert_eq!(held.reason, Hold::InvalidDefaults),
            plan => panic!("{plan:?}"),
        }
    });
}

#[test]
fn owners_at_an_older_version() {
    ends(|| {
        let crd = crd(5);
        let items = (0..MANY / 50).map(|number| json!({ "name": name(number), "keep": 5 }));
        let object = object(items.collect(), &["v0"; 2_000]);
        let Plan::Write(write) = decide(&object, &crd, &Terms::default(), &Record::default()) else {
            panic!("nothing to write");
        };
        assert_eq!(write.strategy, Strategy::Rewrite);
        assert_eq!(write.body.json()["metadata"]["managedFields"].as_array().map(Vec::len), Some(2_000));
    });
}

fn name(number: usize) -> String {
    format!("item-{number}")
}

fn crd(keep: i64) -> Crd {
    let keep = json!({ "type": "integer", "default": keep });
    crd_of(json!({ "name": { "type": "string" }, "keep": keep }), json!([]))
}

/// With items of these fields, which obey these rules at the storage version.
fn crd_of(fields: Value, rules: Value) -> Crd {
    let schema = |fields: Value, rules: Value| {
        json!({ "type": "object", "properties": { "spec": { "type": "object", "properties": { "items": {
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": { "type": "object", "properties": fields, "x-kubernetes-validations": rules },
        } } } } })
    };
    let mut old = fields.clone();
    old["keep"] = json!({ "type": "string" });
    let (newer, older) = (schema(fields, rules), schema(old, json!([])));
    Crd::read(&Json::from(json!({
        "metadata": { "name": "things.example.com", "uid": "crd" },
        "spec": { "group": "example.com", "names": { "kind": "Thing", "plural": "things" }, "versions": [
            { "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": newer } },
            { "name": "v0", "served": true, "storage": false, "schema": { "openAPIV3Schema": older } } ] },
    })))
    .expect("a CRD")
}

/// An object whose items have their names from users, one for each version, and every other one its value
/// from Etch.
fn object(items: Vec<Value>, versions: &[&str]) -> Object {
    let fields = |fields: &Value, step| {
        let named = |number: usize| (format!("k:{{\"name\":\"{}\"}}", name(number)), fields.clone());
        json!({ "f:spec": { "f:items": (1..items.len()).step_by(step).map(named).collect::<Map<_, _>>() } })
    };
    let named = fields(&json!({ ".": {}, "f:name": {} }), if versions.len() > 1 { 100 } else { 1 });
    let mut owners: Vec<Value> = versions
        .iter()
        .enumerate()
        .map(|(number, version)| entry(&format!("user-{number}"), version, &named))
        .collect();
    if versions.len() == 1 {
        owners.push(entry("etch", "v1", &fields(&json!({ "f:keep": {} }), 2)));
    }
    Object::from(json!({
        "apiVersion": "example.com/v1", "kind": "Thing", "spec": { "items": items },
        "metadata": {
            "name": "a", "namespace": "ns", "uid": "u1", "resourceVersion": "10", "managedFields": owners,
        },
    }))
}

fn entry(manager: &str, version: &str, fields: &Value) -> Value {
    json!({ "manager": manager, "operation": "Apply", "apiVersion": format!("example.com/{version}"),
        "fieldsType": "FieldsV1", "fieldsV1": fields })
}
