//! JSON patches that change nothing, and that a server refuses if its schema lacks a field that the object
//! shows.
//!
//! A write stores what the server decodes by its own schema, and a field that a newer schema no longer has is
//! lost by that (fact W12). Moving a field onto itself fails where there is none (fact W30), so such a server
//! stores nothing.

use serde_json::{Value, json};

use super::room::Room;
use super::{Body, Write, has_gap};
use crate::crd::Crd;
use crate::object::Object;
use crate::ownership::{are_readable, owners};
use crate::patch::within;
use kube_structural_schema::json::Json;

/// How many operations a patch may have. A server takes 10,000, and a few are about the metadata.
const OPERATIONS: usize = 9_900;
/// How many bytes the checks of a patch may take: paths are repeated in each, so that they may be many times
/// the object. A server takes 3 MiB, and Etch holds several patches at once.
const BYTES: usize = 1 << 20;
/// What a check takes beside its two paths.
const FRAME: usize = r#"{"from":"","op":"move","path":""},"#.len();
/// If more than this many managers own fields by `Update`, the server merges the oldest entries with every
/// write that is not an apply (fact W20).
const UPDATERS: usize = 10;

/// The patch that is sent in place of `write`, which is planned for `object`. `None` if only the write itself
/// has the right effect:
///
/// - an apply that makes Etch an owner of fields, or that changes an object whose owners have another
///   version: as an update it could cost them their fields on a server that lags behind (fact W8);
/// - an apply to an object whose owners the server cannot read: it refuses an apply, and forgets all owners
///   with a patch (fact W31);
/// - an apply to an object of more than [`UPDATERS`] managers;
/// - an apply to an object whose view lacks a default: the server fills it in with the patch, and makes Etch
///   its owner (fact W30);
/// - an object with more fields than a server accepts operations, or whose paths are too long together.
pub(super) fn checked(write: &Write, object: &Object, crd: &Crd) -> Option<Json> {
    let mut owners = owners(object);
    let is_update = match write.body {
        Body::Identity(_) => {
            let version = crd.api_version();
            are_readable(object.json())
                && !has_gap(object, crd)
                && owners.clone().all(|owner| owner.api_version == version)
                && owners.by_ref().filter(|owner| owner.operation == "Update").count() <= UPDATERS
        }
        Body::Metadata(_) => true,
        Body::Values(_) | Body::Operations(_) => false,
    };
    let metadata = write.body.json().pointer("/metadata").and_then(Value::as_object).filter(|_| is_update)?;
    let put = |name: &str| {
        let value = metadata.get(name)?;
        Some(json!({ "op": "replace", "path": format!("/metadata/{name}"), "value": value }))
    };
    let operations: Vec<Value> =
        ["uid", "resourceVersion", "managedFields"].into_iter().filter_map(put).collect();
    with_checks(operations, object)
}

/// Operations, and ahead of them one for each field of the object; `None` if these are too many or too long.
pub(super) fn with_checks(changes: Vec<Value>, object: &Object) -> Option<Json> {
    let fields = object.json().as_object()?;
    let (mut path, mut checks) = (String::new(), Checks { operations: Vec::new(), room: Room::of(BYTES) });
    for (name, value) in fields {
        if !matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
            within(&mut path, name, |path| checks.check(value, path))?;
        }
    }
    let Checks { mut operations, .. } = checks;
    operations.extend(changes);
    (operations.len() <= OPERATIONS).then(|| Value::from(operations).into())
}

/// The checks so far. Building them ends with the first that is too much.
struct Checks {
    operations: Vec<Value>,
    room: Room,
}

impl Checks {
    /// Adds an operation for each field at or below a place which holds no other: one that holds others is
    /// there if they are.
    fn check(&mut self, value: &Value, path: &mut String) -> Option<()> {
        let before = self.operations.len();
        self.below(value, path)?;
        if self.operations.len() == before {
            if !self.room.take(2 * in_json(path) + FRAME) || before == OPERATIONS {
                return None;
            }
            self.operations.push(json!({ "op": "move", "from": &*path, "path": &*path }));
        }
        Some(())
    }

    /// Does so for everything below a value. Items of a list are not fields: no schema removes one.
    fn below(&mut self, value: &Value, path: &mut String) -> Option<()> {
        match value {
            Value::Object(fields) => {
                fields.iter().try_for_each(|(name, value)| within(path, name, |path| self.check(value, path)))
            }
            Value::Array(items) => items.iter().enumerate().try_for_each(|(index, item)| {
                within(path, &index.to_string(), |path| self.below(item, path))
            }),
            _ => Some(()),
        }
    }
}

/// At most how many bytes a text takes between quotes in JSON.
fn in_json(text: &str) -> usize {
    let escaped = text.bytes().filter(|byte| matches!(byte, 0..0x20 | b'"' | b'\\'));
    text.len() + escaped.count() * (r"\u0000".len() - 1)
}

#[cfg(test)]
mod tests {
    use super::super::{Outcome, PatchKind, Request, Step, Strategy, Terms, WriteMachine};
    use super::*;
    use crate::crd::sample::{things, with_spec};

    fn object(spec: Value, managed_fields: Value) -> Object {
        Object::from(json!({
            "apiVersion": "example.com/v1", "kind": "Thing",
            "metadata": { "name": "a", "uid": "u", "resourceVersion": "7", "managedFields": managed_fields },
            "spec": spec,
        }))
    }

    fn paths(body: fn(Json) -> Body, object: &Object) -> Option<Vec<String>> {
        let body = body(json!({ "metadata": { "name": "a", "uid": "u", "resourceVersion": "7" } }).into());
        let strategy = Strategy::Apply;
        let write = Write::new(strategy, body, Vec::new());
        let crd = things(with_spec(json!({ "size": { "type": "integer", "default": 5 } })));
        let patch = checked(&write, object, &crd)?;
        let operations = patch.as_array().expect("operations").iter();
        Some(operations.map(|operation| operation["path"].as_str().unwrap_or_default().to_owned()).collect())
    }

    fn owned_by(count: usize, version: &str) -> Value {
        let entry = |index| {
            json!({
                "manager": format!("user-{index}"), "operation": "Update", "fieldsType": "FieldsV1",
                "apiVersion": format!("example.com/{version}"),
                "fieldsV1": { "f:spec": { "f:size": {} } },
            })
        };
        (0..count).map(entry).collect()
    }

    #[test]
    fn each_field_that_holds_no_other_is_moved_onto_itself() {
        let spec = json!({
            "size": 1, "none": null, "empty": {}, "list": [1, 2], "rows": [
                { "a/b": 1 }, {}, { "c~d": [[{ "e": 1 }]] },
            ],
        });
        let paths = paths(Body::Metadata, &object(spec, json!([]))).expect("a patch");
        let expected = [
            "/spec/empty",
            "/spec/list",
            "/spec/none",
            "/spec/rows/0/a~1b",
            "/spec/rows/2/c~0d/0/0/e",
            "/spec/size",
            "/metadata/uid",
            "/metadata/resourceVersion",
        ];
        assert_eq!(paths, expected);
    }

    #[test]
    fn an_apply_is_sent_as_it_is_where_an_update_could_do_harm() {
        for (owners, version, body, is_patch) in [
            (1, "v1", Body::Identity as fn(Json) -> Body, true),
            (10, "v1", Body::Identity, true),
            (11, "v1", Body::Identity, false),
            (1, "v0", Body::Identity, false),
            (1, "v1", Body::Values, false),
            (11, "v0", Body::Metadata, true),
        ] {
            let sent = paths(body, &object(json!({ "size": 1 }), owned_by(owners, version)));
            assert_eq!(sent.is_some(), is_patch, "{owners} owners at {version}");
        }
    }

    #[test]
    fn what_the_view_lacks_is_applied_and_an_entry_that_is_left_all_the_same_is_removed() {
        let crd = things(with_spec(json!({ "size": { "type": "integer", "default": 5 } })));
        let apply = |object: &Object| {
            let body = json!({ "metadata": { "name": object.name(), "uid": "u" } });
            Write::new(Strategy::Apply, Body::Identity(body.into()), Vec::new())
        };
        let begin = |object: &Object| {
            let (write, terms) = (apply(object), Terms::default());
            let (mut machine, request) = WriteMachine::begin(&crd, object, &write, &terms);
            let mut ours = owned_by(2, "v1");
            (ours[1]["manager"], ours[1]["operation"]) = (json!("etch"), json!("Update"));
            let step = machine.answered(super::tests::object(json!({ "size": 5 }), ours));
            (request.kind, step)
        };
        let (sent, step) = begin(&object(json!({}), owned_by(1, "v1")));
        assert_eq!(sent, PatchKind::Apply);
        assert!(matches!(step, Step::Done(_)), "{step:?}");
        let (sent, step) = begin(&object(json!({ "size": 5 }), owned_by(1, "v1")));
        assert_eq!(sent, PatchKind::Json);
        let Step::Send(Request { kind: PatchKind::Json, body, .. }) = step else { panic!("{step:?}") };
        assert_eq!(body[body.as_array().map_or(0, Vec::len) - 1]["path"], "/metadata/managedFields/1");
    }

    #[test]
    fn an_object_of_more_fields_than_operations_is_written_without() {
        for (fields, is_patch) in [(OPERATIONS - 2, true), (OPERATIONS - 1, false)] {
            let spec: serde_json::Map<_, _> =
                (0..fields).map(|field| (field.to_string(), json!(1))).collect();
            let sent = paths(Body::Metadata, &object(spec.into(), json!([])));
            assert_eq!(sent.is_some(), is_patch, "{fields} fields");
        }
    }

    #[test]
    fn an_object_whose_checks_are_many_times_its_size_is_written_without() {
        // A path is a key, and `/spec/` and a name of four digits around it.
        let with_key = |key: &str| {
            let below: serde_json::Map<_, _> =
                (1000..3000).map(|index| (index.to_string(), json!(1))).collect();
            let spec = json!({ key: below });
            paths(Body::Metadata, &object(spec, json!([]))).is_some()
        };
        let most = (BYTES / 2000 - FRAME) / 2 - "/spec//1000".len();
        assert!(with_key(&"k".repeat(most)));
        assert!(!with_key(&"k".repeat(most + 1)));
        assert!(!with_key(&"\u{1}".repeat(most / 6 + 10)), "an escape of six bytes");
    }

    #[test]
    fn a_field_that_was_there_when_the_patch_was_carried_out_was_removed_by_admission() {
        let versions = |others: &[&str]| {
            let mut document = crate::crd::sample::things_document(with_spec(json!({
                "size": { "type": "integer", "default": 5 }, "old": { "type": "string" },
            })));
            let first = document["spec"]["versions"][0].clone();
            for name in others {
                let mut version = first.clone();
                (version["name"], version["storage"]) = (json!(name), json!(false));
                document["spec"]["versions"].as_array_mut().expect("versions").push(version);
            }
            Crd::read(&document.into()).expect("a CRD")
        };
        let spec = json!({ "size": 5, "old": "a" });
        for (others, owners, is_by_admission) in [(&[][..], 1, true), (&["v2"], 1, false), (&[], 11, false)] {
            let (crd, object) = (versions(others), object(spec.clone(), owned_by(owners, "v1")));
            let body = Body::Identity(json!({ "metadata": { "name": "a", "uid": "u" } }).into());
            let write = Write::new(Strategy::Apply, body, Vec::new());
            let terms = Terms::default();
            let (mut machine, _) = WriteMachine::begin(&crd, &object, &write, &terms);
            let step = machine.answered(super::tests::object(json!({ "size": 5 }), owned_by(owners, "v1")));
            let Step::Done(outcome) = step else { panic!("{step:?}") };
            assert_eq!(matches!(outcome, Outcome::Unproved), is_by_admission, "{outcome:?}");
            assert_eq!(matches!(outcome, Outcome::FieldsDropped { .. }), !is_by_admission, "{outcome:?}");
        }
    }
}
