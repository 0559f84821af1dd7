//! The write of an object whose own write admission refuses: the identity alone, applied to its status.
//!
//! A request to a subresource rewrites the whole object, the defaults of its spec included (fact W11), and
//! runs only the admission that matches the subresource. What it stores is proved as of any other write: by a
//! repeat that changes nothing.

use super::places::has_gap;
use super::{Body, Ownership, Strategy, Terms, Write, body};
use crate::crd::Crd;
use crate::object::Object;
use crate::ownership::{are_readable, owners};

/// The write in place of `refused`, which admission did not let pass; `None` if the policy does not ask for
/// it, if the CRD's storage version has no status subresource, and if the identity alone would not do the
/// same:
///
/// - the write rewrites owners, moves values, or has to name values: a request to the status changes none of
///   them;
/// - the view of the object lacks a default, or an owner speaks in the terms of another version (facts W6,
///   W29);
/// - it has no owners, and an apply would give it some (fact W5).
pub fn through_status(object: &Object, crd: &Crd, terms: &Terms, refused: &Write) -> Option<Write> {
    let version = crd.api_version();
    let is_identity = refused.strategy == Strategy::Apply
        && matches!(refused.body, Body::Identity(_))
        && refused.doubtful.is_empty();
    let may = terms.writes_status
        && terms.ownership == Ownership::None
        && is_identity
        && crd.storage().status_subresource
        && are_readable(object.json())
        && owners(object).next().is_some()
        && owners(object).all(|owner| owner.api_version == version)
        && !has_gap(object, crd);
    may.then(|| {
        let body = Body::Identity(body::identity(object, crd));
        Write { prove: true, ..Write::new(Strategy::Status, body, refused.missing.clone()) }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::{
        Doubt, HiddenFields, Outcome, PatchKind, Plan, Proof, Record, Step, WriteMachine, decide,
    };
    use super::*;
    use crate::crd::sample::{things_document, with_spec};

    fn crd(has_status: bool) -> Crd {
        let mut document = things_document(with_spec(json!({ "size": { "type": "integer", "default": 5 } })));
        if has_status {
            document["spec"]["versions"][0]["subresources"] = json!({ "status": {} });
        }
        Crd::read(&document.into()).expect("a CRD")
    }

    fn object(revision: &str, spec: Value, version: &str) -> Object {
        let owner = json!({
            "manager": "user", "operation": "Apply", "fieldsType": "FieldsV1",
            "apiVersion": format!("example.com/{version}"),
            "fieldsV1": { "f:spec": {} },
        });
        Object::from(json!({
            "apiVersion": "example.com/v1", "kind": "Thing",
            "metadata": {
                "name": "a", "namespace": "n", "uid": "u", "resourceVersion": revision, "managedFields": [
                    owner,
                ],
            },
            "spec": spec,
        }))
    }

    fn terms() -> Terms {
        Terms { writes_status: true, hidden_fields: HiddenFields::Hold, ..Terms::default() }
    }

    fn planned(object: &Object, crd: &Crd) -> Write {
        match decide(object, crd, &terms(), &Record::default()) {
            Plan::Write(write) => write,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_an_identity_is_applied_to_the_status_and_only_where_the_policy_asks_for_it() {
        let shown = object("7", json!({ "size": 5 }), "v1");
        let refused = planned(&shown, &crd(true));
        let through = |object: &Object, has_status, terms: &Terms, refused: &Write| {
            through_status(object, &crd(has_status), terms, refused)
        };
        assert!(through(&shown, true, &terms(), &refused).is_some());
        assert_eq!(through(&shown, true, &Terms::default(), &refused), None, "nobody has asked");
        assert_eq!(through(&shown, false, &terms(), &refused), None, "no subresource");
        let own = Terms { ownership: Ownership::Own, ..terms() };
        assert_eq!(through(&shown, true, &own, &refused), None, "values are to be ours");
        let lacking = object("7", json!({}), "v1");
        assert_eq!(through(&lacking, true, &terms(), &refused), None, "a gap");
        let foreign = object("7", json!({ "size": 5 }), "v0");
        assert_eq!(through(&foreign, true, &terms(), &refused), None, "an owner at another version");
        for strategy in [Strategy::Merge, Strategy::Rewrite, Strategy::Follow, Strategy::Embed] {
            let other = Write { strategy, ..refused.clone() };
            assert_eq!(through(&shown, true, &terms(), &other), None, "{strategy:?}");
        }
        let doubt = Doubt { place: ".spec.size".parse().expect("a path"), default: None };
        let doubtful = Write { doubtful: vec![doubt], ..refused };
        assert_eq!(
            through(&shown, true, &terms(), &doubtful),
            None,
            "a value that servers may disagree about"
        );
    }

    #[test]
    fn it_and_its_proof_are_applies_to_the_status() {
        let (crd, shown) = (crd(true), object("7", json!({ "size": 5 }), "v1"));
        let write = through_status(&shown, &crd, &terms(), &planned(&shown, &crd)).expect("a write");
        let terms = terms();
        let (mut machine, first) = WriteMachine::begin(&crd, &shown, &write, &terms);
        assert_eq!((first.kind, first.to_status, first.keeps_fields), (PatchKind::Apply, true, false));
        let identity = json!({
            "apiVersion": "example.com/v1", "kind": "Thing",
            "metadata": { "name": "a", "namespace": "n", "uid": "u", "resourceVersion": "7" },
        });
        assert_eq!(*first.body, identity);
        let Step::Send(again) = machine.answered(object("8", json!({ "size": 5 }), "v1")) else {
            panic!("it has to be proved");
        };
        assert_eq!((again.kind, again.to_status), (PatchKind::Apply, true));
        assert_eq!(again.body["metadata"]["resourceVersion"], "8");
        let step = machine.answered(object("8", json!({ "size": 5 }), "v1"));
        let Step::Done(Outcome::Written { proof: Proof::RepeatChangedNothing, .. }) = step else {
            panic!("{step:?}");
        };
    }
}
