//! Conditions that others write too, and how the watch of CRDs shows it.

use jiff::Timestamp;
use serde_json::json;

use super::*;
use crate::engine::tests::start;
use crate::message;
use crate::refusal::Refusal;

/// A CRD at this revision, whose conditions were last set at this second.
fn crd(version: u64, second: u8, conditions: &[Condition]) -> Json {
    let time = format!("2026-01-01T00:00:{second:02}Z");
    let entry = json!({ "manager": "etch", "subresource": "status", "time": time, "fieldsV1": {} });
    let metadata = json!({ "uid": "crd", "resourceVersion": version.to_string(), "managedFields": [entry] });
    Json::from(json!({ "metadata": metadata, "status": { "conditions": conditions } }))
}

fn at(version: u64, second: u8) -> CrdRevision {
    CrdRevision::of(&crd(version, second, &[]))
}

fn now() -> Now {
    Now { at: start(), date: Timestamp::UNIX_EPOCH }
}

/// A CRD at revision 7, and the conditions that are about to be written.
fn writes() -> (Status, Arc<[Condition]>) {
    let (name, uid) = ("things.example.com".to_owned(), "crd".to_owned());
    let subject = Subject { name, uid, generation: 1, objects: None };
    let mut status = Status::new(subject, Vec::new(), at(7, 7), 0);
    status.set_conditions(message::unreadable(&Default::default()));
    let wanted = loop {
        if let Command::SetConditions(conditions, version) = status.poll(now()).expect("a write") {
            assert_eq!(version, "7");
            break conditions;
        }
    };
    (status, wanted)
}

#[test]
fn what_the_watch_shows_of_our_own_write_asks_for_no_recheck_whichever_comes_first() {
    let (mut status, _) = writes();
    status.written(start(), Ok(at(8, 8)));
    status.conditions_changed(start(), at(8, 8).entry);
    assert_eq!(status.recheck_due(), None);
    let (mut status, _) = writes();
    status.conditions_changed(start(), at(8, 8).entry);
    assert!(status.recheck_due().is_some());
    status.written(start(), Ok(at(8, 8)));
    assert_eq!(status.recheck_due(), None);
    // What the watch shows late is followed by what it shows last.
    status.conditions_changed(start(), at(7, 7).entry);
    assert!(status.recheck_due().is_some());
    status.conditions_changed(start(), at(8, 8).entry);
    assert_eq!(status.recheck_due(), None);
}

#[test]
fn another_write_in_our_name_asks_for_a_recheck() {
    let (mut status, _) = writes();
    status.written(start(), Ok(at(8, 8)));
    status.conditions_changed(start(), at(9, 9).entry);
    assert!(status.recheck_due().is_some());
}

#[test]
fn a_write_that_meets_a_change_is_repeated_for_the_crd_as_it_is_then() {
    for was_carried_out in [true, false] {
        let (mut status, wanted) = writes();
        let conflict = CallError::Refused(Box::new(Refusal::read(409, None, b"{}")));
        status.written(start(), Err(conflict));
        assert!(matches!(status.poll(now()), Some(Command::ReadCrd)));
        let conditions = if was_carried_out { &wanted[..] } else { &[] };
        status.crd_read(start(), Ok(Some(crd(9, 9, conditions))));
        let again_at = status.timeout();
        assert_eq!(again_at.is_none(), was_carried_out, "the answer was lost");
        let Some(again_at) = again_at else { continue };
        match status.poll(Now { at: again_at, ..now() }) {
            Some(Command::SetConditions(_, version)) => assert_eq!(version, "9"),
            command => panic!("{command:?}"),
        }
    }
}
