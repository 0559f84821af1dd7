use serde_json::{Value, json};

use super::*;
use crate::crd::sample::{things, things_document, with_spec};
use crate::object_state::StateKind;
use crate::plan::RejectionKind;
use crate::rbac::Verb;

fn crd() -> Crd {
    things(with_spec(json!({ "size": { "type": "integer", "default": 5 } })))
}

fn object(resource_version: &str, spec: Value) -> Object {
    let owner = json!({
        "manager": "user", "operation": "Update", "apiVersion": "example.com/v1", "fieldsType": "FieldsV1",
        "fieldsV1": { "f:spec": {} },
    });
    Object::from(json!({
        "apiVersion": "example.com/v1", "kind": "Thing", "spec": spec,
        "metadata": {
            "name": "n", "uid": "u", "resourceVersion": resource_version, "managedFields": [owner],
        },
    }))
}

/// Hands a machine for an object without its default to a test.
fn run(mode: Mode, test: impl FnOnce(ObjectMachine, Step)) {
    let rules = Rules { crd: Arc::new(crd()), terms: Terms::default(), mode, since: Arc::default() };
    let read = object("7", json!({ "size": 5 }));
    let (machine, step) = ObjectMachine::begin(rules, ObjectLedger::default(), read, Arc::default(), false);
    test(machine, step);
}

fn kind(step: &Step) -> Option<StateKind> {
    match step {
        Step::Done(reconciled) => Some(reconciled.state.kind()),
        _ => None,
    }
}

fn read(resource_version: &str, spec: Value) -> Again {
    Again::Read(Box::new(object(resource_version, spec)))
}

#[test]
fn a_write_that_is_answered_ends_it_and_an_audit_writes_nothing() {
    run(Mode::Persist, |mut machine, step| {
        assert!(matches!(step, Step::Write) && machine.planned().is_some());
        let written = Outcome::Written { resource_version: "8".to_owned(), proof: Proof::WriteAnswered };
        assert_eq!(kind(&machine.wrote(Some(written))), Some(StateKind::Written));
    });
    run(Mode::Audit, |machine, step| {
        assert!(kind(&step).is_some() && machine.planned().is_none(), "{step:?}");
    });
}

#[test]
fn whoever_else_writes_has_precedence_and_after_some_tries_nothing_is_known() {
    run(Mode::Persist, |mut machine, mut step| {
        for attempt in 1..=ATTEMPTS {
            assert!(matches!(step, Step::Write), "{step:?}");
            assert_eq!(machine.attempts(), attempt);
            let outcome = (attempt % 2 == 0).then_some(Outcome::Conflict);
            assert!(matches!(machine.wrote(outcome), Step::ReadAgain { waits: true }));
            step = machine.read(read(&format!("{}", 7 + attempt), json!({ "size": 5 })));
        }
        assert_eq!(kind(&step), Some(StateKind::Unknown));
    });
}

#[test]
fn an_object_that_is_gone_is_done_and_one_that_cannot_be_read_is_decided_about_again() {
    run(Mode::Persist, |mut machine, _| {
        assert!(matches!(machine.wrote(None), Step::ReadAgain { waits: true }));
        assert!(matches!(machine.read(Again::Unanswered), Step::Write));
        machine.wrote(Some(Outcome::Conflict));
        let Step::Done(reconciled) = machine.read(Again::Gone) else { panic!("not done") };
        assert!(matches!(reconciled.state, ObjectState::Gone));
    });
}

#[test]
fn what_the_identity_ahead_of_a_rewrite_has_stored_counts_as_written() {
    let states = [(Outcome::IdentityWritten, StateKind::Written), (Outcome::Conflict, StateKind::Stored)];
    for (outcome, expected) in states {
        run(Mode::Persist, |mut machine, _| {
            assert!(matches!(machine.wrote(Some(outcome)), Step::ReadAgain { waits: true }));
            assert!(matches!(machine.read(read("8", json!({ "size": 5 }))), Step::Write));
            let step = machine.wrote(Some(Outcome::AlreadyStored(Proof::WriteChangedNothing)));
            assert_eq!(kind(&step), Some(expected));
        });
    }
}

#[test]
fn where_a_webhook_may_have_renamed_what_somebody_owns_the_owners_are_not_rewritten() {
    for (strategy, is_rewritten) in [("Webhook", false), ("None", true)] {
        let mut document = things_document(with_spec(json!({ "size": { "type": "integer", "default": 5 } })));
        let mut old = document["spec"]["versions"][0].clone();
        (old["name"], old["storage"]) = (json!("v1beta1"), json!(false));
        old["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] =
            json!({ "count": { "type": "integer" } });
        document["spec"]["versions"].as_array_mut().expect("versions").push(old);
        document["spec"]["conversion"] = json!({ "strategy": strategy });
        let crd = Arc::new(Crd::read(&document.into()).expect("a CRD"));
        let mut read = object("7", json!({ "size": 5 })).json().clone();
        let entry = &mut read["metadata"]["managedFields"][0];
        (entry["apiVersion"], entry["operation"]) = (json!("example.com/v1beta1"), json!("Apply"));
        entry["fieldsV1"] = json!({ "f:spec": { "f:count": {} } });
        let terms = Terms { hidden_fields: HiddenFields::Drop, ..Terms::default() };
        let rules = Rules { crd, terms, mode: Mode::Persist, since: Arc::default() };
        let again = || Again::Read(Box::new(Object::from(read.clone())));
        let (mut machine, mut step) =
            ObjectMachine::begin(rules, ObjectLedger::default(), read.clone().into(), Arc::default(), false);
        if !is_rewritten {
            assert!(matches!(step, Step::Write), "{step:?}");
            assert!(matches!(machine.wrote(Some(Outcome::NeedsRewrite)), Step::ReadAgain { .. }));
            step = machine.read(again());
        }
        match step {
            Step::Write => assert!(is_rewritten),
            Step::Done(Reconciled { state: ObjectState::Rejected(rejection), .. }) => {
                assert_eq!((is_rewritten, rejection.fields), (false, vec![".spec.count".to_owned()]));
            }
            step => panic!("{step:?}"),
        }
    }
}

#[test]
fn a_refusal_of_one_object_is_its_own_and_one_of_all_stops_the_crd() {
    for may in [Some(true), Some(false), None] {
        run(Mode::Persist, |mut machine, _| {
            let step = machine.wrote(Some(Outcome::Forbidden { verb: Verb::Patch }));
            assert!(matches!(step, Step::AskOthers(Verb::Patch)));
            match (machine.may_write_others(Verb::Patch, may), may) {
                (
                    Step::Done(Reconciled { state: ObjectState::Rejected(rejection), left_at, .. }),
                    Some(true),
                ) => {
                    assert_eq!((rejection.kind, left_at.as_deref()), (RejectionKind::Forbidden, Some("7")));
                }
                (Step::Stop(Stop::Forbidden(Verb::Patch)), Some(false)) => {}
                (Step::Done(Reconciled { state: ObjectState::Unknown, .. }), None) => {}
                (step, _) => panic!("{step:?}"),
            }
        });
    }
    let lost = Outcome::OwnersLost { managers: vec!["user".to_owned()] };
    for (outcome, stop) in [
        (lost, Stop::OwnersLost(vec!["user".to_owned()])),
        (Outcome::CrdChanged, Stop::CrdChanged),
        (Outcome::FieldsDropped { paths: Vec::new() }, Stop::FieldsDropped(Vec::new())),
    ] {
        run(Mode::Persist, |mut machine, _| match machine.wrote(Some(outcome)) {
            Step::Stop(found) => assert_eq!(found, stop),
            step => panic!("{step:?}"),
        });
    }
}

#[test]
fn admission_that_takes_the_default_away_each_time_is_found_out() {
    run(Mode::Persist, |mut machine, mut step| {
        for _ in 0..STRIPPED {
            assert!(matches!(step, Step::Write), "{step:?}");
            machine.wrote(Some(Outcome::Unproved));
            step = machine.read(read("9", json!({ "size": 5 })));
        }
        let Step::Done(Reconciled { state: ObjectState::Rejected(rejection), .. }) = step else {
            panic!("{step:?}")
        };
        assert_eq!(rejection.kind, RejectionKind::Mutated);
    });
}

#[test]
fn after_a_repeat_that_changed_the_object_a_repeat_that_does_not_is_a_proof() {
    for (proof, expected) in
        [(Proof::RepeatChangedNothing, StateKind::Written), (Proof::WriteAnswered, StateKind::Rejected)]
    {
        run(Mode::Persist, |mut machine, _| {
            assert!(matches!(machine.wrote(Some(Outcome::Altered)), Step::ReadAgain { .. }));
            assert!(matches!(machine.read(read("9", json!({ "size": 5 }))), Step::Write));
            let written = Outcome::Written { resource_version: "10".to_owned(), proof };
            assert_eq!(kind(&machine.wrote(Some(written))), Some(expected));
        });
    }
}
