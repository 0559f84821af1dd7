//! The decision about one object whose embedded extensions lack defaults, and the write that stores them.
//! `etch_admission` finds what is missing.
//!
//! Such defaults are in no CRD, so no server fills them in: the write carries the values. A dry run comes
//! first, because where the schema of a CRD is silent only the API server knows which manager owns what (fact
//! W22).

use serde_json::{Value, json};

use super::{Body, FormerDefault, Skip, Strategy, Write, body, hidden, misfit, skip};
use crate::crd::Crd;
use crate::object::Object;
use crate::ownership::{Claimants, Owner, others};
use crate::patch::Change;
use crate::words::words;
use kube_structural_schema::json::Json;
use kube_structural_schema::path::{Path, Step};

/// What to do about one object whose embedded extensions may lack defaults.
#[derive(Clone, Debug, PartialEq)]
pub enum Embedding {
    /// Etch must not write it.
    Skip(Skip),
    /// Nothing is missing.
    Stored,
    /// Something is missing, and writing would do harm.
    Hold(Withheld),
    /// Something is missing.
    Write(Write),
}

words! {
    /// Why such defaults are not written: what harm that would do, or that a write would not store them.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Withheld {
        /// It would destroy fields that etcd still holds and the CRD's schema no longer knows (facts R4,
        /// W12).
        HiddenFields,
        /// The object does not fit the storage version's schema by type, and the server would forget its
        /// owners (fact W16).
        Misfit,
        /// It would take a field from its owner: an empty value, or a list that is owned as a whole.
        Owned,
        /// The object would break a rule only with its defaults.
        InvalidDefaults,
        /// The object lacks some of them only together with defaults of others, which it does not hold.
        Dependent,
    }
}

/// Decides about one object by the changes that its defaults make: removals do not count.
///
/// Rows of the table, in order; the first that holds decides:
/// 1. terminating, ignored or nested too deeply: skip;
/// 2. nothing is missing: stored;
/// 3. it may have fields that only etcd still holds: hold;
/// 4. it does not fit the storage version by type: hold;
/// 5. a default would replace a value that a manager owns, or stand in a list that a manager owns as a whole:
///    hold;
/// 6. otherwise: a JSON patch of this very object, in its resource version.
pub fn embed(object: &Object, crd: &Crd, changes: &[Change], former: &[FormerDefault]) -> Embedding {
    if let Some(why) = skip(object) {
        return Embedding::Skip(why);
    }
    let set: Vec<(&str, bool, &Json)> = changes
        .iter()
        .filter_map(|change| match change {
            Change::Add { path, value } => Some((path.as_str(), false, value)),
            Change::Replace { path, value } => Some((path.as_str(), true, value)),
            Change::Remove { .. } => None,
        })
        .collect();
    if set.is_empty() {
        return Embedding::Stored;
    }
    if !hidden::hidden(object, crd, former).is_empty() {
        return Embedding::Hold(Withheld::HiddenFields);
    }
    let schema = &crd.storage().schema;
    if !misfit::misfits(object.json(), schema).is_empty() {
        return Embedding::Hold(Withheld::Misfit);
    }
    let mut others = Claimants::of(others(object));
    let missing: Vec<Path> = set.iter().map(|(pointer, ..)| place(object.json(), pointer)).collect();
    let is_taken = set.iter().zip(&missing).any(|((_, replaced, _), place)| {
        let is_in_list = place.steps().iter().any(|step| matches!(step, Step::Index(_)));
        (*replaced || is_in_list) && others.claim(object.json(), schema, place.steps())
    });
    if is_taken {
        return Embedding::Hold(Withheld::Owned);
    }
    let mut operations = body::of_this(object);
    operations.extend(set.iter().map(|(path, replaced, value)| {
        let op = if *replaced { "replace" } else { "add" };
        json!({ "op": op, "path": path, "value": value })
    }));
    let body = Body::Operations(Value::from(operations).into());
    Embedding::Write(Write::new(Strategy::Embed, body, missing))
}

/// The owners of `before`, but for Etch, of whose fields `after` has others, and those that only `after` has.
pub fn harmed(before: &Object, after: &Object) -> Vec<String> {
    let same = |a: &Owner<'_>, b: &Owner<'_>| {
        a.is_same_writer(b) && a.api_version == b.api_version && a.fields == b.fields
    };
    let is_in = |owner: &Owner<'_>, object| others(object).any(|other| same(owner, &other));
    let lost = others(before).filter(|owner| !is_in(owner, after));
    let gained = others(after).filter(|owner| !is_in(owner, before));
    let mut managers: Vec<String> = lost.chain(gained).map(|owner| owner.manager.to_owned()).collect();
    managers.sort();
    managers.dedup();
    managers
}

/// The place that a JSON pointer leads to.
fn place(object: &Value, pointer: &str) -> Path {
    let mut value = Some(object);
    let steps = pointer.split('/').skip(1).map(|token| {
        let token = token.replace("~1", "/").replace("~0", "~");
        let index = value.filter(|value| value.is_array()).and_then(|_| token.parse().ok());
        value = match (value, index) {
            (Some(value), Some(index)) => value.get::<usize>(index),
            (Some(value), None) => value.get(&token),
            (None, _) => None,
        };
        index.map_or(Step::Field(token), Step::Index)
    });
    Path::from(steps.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::super::{Outcome, PatchKind, Step as Next, Terms, WriteMachine};
    use super::*;
    use crate::crd::sample::{things, with_spec};
    use crate::patch::patch;

    fn crd() -> Crd {
        things(with_spec(json!({
            "ext": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
            "size": { "type": "integer" },
        })))
    }

    /// An object of which `author` owns these fields below `spec`.
    fn object(spec: Value, fields: Value) -> Object {
        Object::from(json!({
            "metadata": { "name": "a", "uid": "u", "resourceVersion": "7", "managedFields": [{
                "manager": "author", "operation": "Update", "fieldsType": "FieldsV1",
                "apiVersion": "example.com/v1",
                "fieldsV1": { "f:spec": fields },
            }] },
            "spec": spec,
        }))
    }

    fn planned(object: &Object, spec: Value) -> Embedding {
        let mut with = object.json().clone();
        with["spec"] = spec;
        embed(object, &crd(), &patch(object.json(), &with), &[])
    }

    fn sent(plan: &Embedding) -> Vec<Value> {
        let Embedding::Write(write) = plan else { panic!("{plan:?}") };
        let operations = write.body.json().as_array().expect("operations");
        operations.iter().skip(2).cloned().collect()
    }

    #[test]
    fn what_is_missing_is_added_to_the_very_object_that_was_read() {
        let object = object(json!({ "ext": { "a": 1 } }), json!({ "f:ext": { "f:a": {} } }));
        let plan = planned(&object, json!({ "ext": { "a": 1, "b": { "c/d": 2 } } }));
        assert_eq!(sent(&plan), [json!({ "op": "add", "path": "/spec/ext/b", "value": { "c/d": 2 } })]);
        let Embedding::Write(write) = plan else { panic!("no write") };
        assert_eq!(
            (&write.body.json()[0]["value"], &write.body.json()[1]["value"], &write.missing[0].to_string()),
            (&json!("u"), &json!("7"), &".spec.ext.b".to_owned())
        );
        assert_eq!(planned(&object, json!({ "ext": { "a": 1 } })), Embedding::Stored);
        assert_eq!(planned(&object, json!({ "ext": {} })), Embedding::Stored, "nothing is removed");
    }

    #[test]
    fn what_somebody_owns_is_neither_replaced_nor_taken_with_its_list() {
        let empty = json!({ "ext": { "a": "" } });
        let list = json!({ "ext": { "l": [{ "x": 1 }] } });
        let cases = [
            (&empty, json!({ "f:ext": { "f:a": {} } }), json!({ "ext": { "a": "b" } }), true),
            (&empty, json!({ "f:size": {} }), json!({ "ext": { "a": "b" } }), false),
            (&list, json!({ "f:ext": { "f:l": {} } }), json!({ "ext": { "l": [{ "x": 1, "y": 2 }] } }), true),
            (&list, json!({ "f:size": {} }), json!({ "ext": { "l": [{ "x": 1, "y": 2 }] } }), false),
            (
                &list,
                json!({ "f:ext": { "f:l": {} } }),
                json!({ "ext": { "l": [{ "x": 1 }], "m": 1 } }),
                false,
            ),
        ];
        for (spec, fields, with, is_held) in cases {
            let plan = planned(&object(spec.clone(), fields), with);
            assert_eq!(plan == Embedding::Hold(Withheld::Owned), is_held, "{plan:?}");
        }
    }

    #[test]
    fn who_is_going_is_skipped_and_who_would_lose_something_is_held() {
        let with = json!({ "ext": { "b": 1 } });
        let mut going = object(json!({ "ext": {} }), json!({})).json().clone();
        going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert_eq!(planned(&going.into(), with.clone()), Embedding::Skip(Skip::Terminating));
        let hidden = object(json!({ "ext": {} }), json!({ "f:gone": {} }));
        assert_eq!(planned(&hidden, with), Embedding::Hold(Withheld::HiddenFields));
        let misfit = object(json!({ "ext": {}, "size": "x" }), json!({}));
        let with = json!({ "ext": { "b": 1 }, "size": "x" });
        assert_eq!(planned(&misfit, with), Embedding::Hold(Withheld::Misfit));
    }

    /// The answer of a server that gives `author` these fields and Etch its own.
    fn answer(revision: &str, author: Value, with_etch: bool) -> Object {
        let object = object(json!({ "ext": { "a": 1, "b": 1 } }), author);
        let mut json = object.json().clone();
        json["metadata"]["resourceVersion"] = json!(revision);
        if with_etch {
            let entry = json!({
                "manager": "etch", "operation": "Update", "fieldsType": "FieldsV1",
                "apiVersion": "example.com/v1",
                "fieldsV1": { "f:spec": { "f:ext": { "f:b": {} } } },
            });
            json["metadata"]["managedFields"].as_array_mut().expect("owners").push(entry);
        }
        json.into()
    }

    #[test]
    fn a_dry_run_comes_before_a_write_and_what_it_leaves_of_ours_is_removed() {
        let own = json!({ "f:ext": { "f:a": {} } });
        let object = object(json!({ "ext": { "a": 1 } }), own.clone());
        let (crd, terms) = (crd(), Terms::default());
        let Embedding::Write(write) = planned(&object, json!({ "ext": { "a": 1, "b": 1 } })) else {
            panic!("no write")
        };
        let (mut machine, first) = WriteMachine::begin(&crd, &object, &write, &terms);
        assert_eq!(first.kind, PatchKind::DryRun);
        let Next::Send(second) = machine.answered(answer("7", own.clone(), true)) else { panic!("no write") };
        let (sent, planned) =
            (second.body.as_array().expect("a list"), write.body.json().as_array().expect("a list"));
        assert!(second.keeps_fields && sent.ends_with(planned), "{sent:?}");
        let Next::Send(third) = machine.answered(answer("8", own.clone(), true)) else {
            panic!("no release")
        };
        assert_eq!(
            third.body.as_array().and_then(|all| all.last()).map(|last| &last["op"]),
            Some(&json!("remove"))
        );
        let Next::Done(outcome) = machine.answered(answer("9", own, false)) else { panic!("no end") };
        assert!(matches!(outcome, Outcome::Written { resource_version, .. } if resource_version == "9"));
    }

    #[test]
    fn a_dry_run_that_costs_an_owner_a_field_ends_it() {
        let own = json!({ "f:ext": { "f:a": {} } });
        let object = object(json!({ "ext": { "a": 1 } }), own);
        let (crd, terms) = (crd(), Terms::default());
        let Embedding::Write(write) = planned(&object, json!({ "ext": { "a": 1, "b": 1 } })) else {
            panic!("no write")
        };
        for theirs in [json!({}), json!({ "f:ext": { "f:a": {}, "f:b": {} } })] {
            let (mut machine, _) = WriteMachine::begin(&crd, &object, &write, &terms);
            let Next::Done(outcome) = machine.answered(answer("7", theirs, true)) else { panic!("no end") };
            assert!(matches!(outcome, Outcome::Harmful { managers } if managers == ["author"]));
        }
    }
}
