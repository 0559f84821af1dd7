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
    let metadata = json!({
        "uid": "crd", "generation": 1, "resourceVersion": version.to_string(), "managedFields": [entry],
    });
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
    writes_of(message::unreadable(&Default::default()))
}

fn writes_of(crd_status: CrdStatus) -> (Status, Arc<[Condition]>) {
    let (name, uid) = ("things.example.com".to_owned(), "crd".to_owned());
    let subject = Subject { name, uid, generation: 1, objects: None };
    let mut status = Status::new(subject, Vec::new(), at(7, 7), 0);
    status.set_conditions(crd_status);
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
    status.crd_shown(start(), at(8, 8));
    assert_eq!(status.recheck_due(), None);
    let (mut status, _) = writes();
    status.crd_shown(start(), at(8, 8));
    assert!(status.recheck_due().is_some());
    status.written(start(), Ok(at(8, 8)));
    assert_eq!(status.recheck_due(), None);
    // What the watch shows late is followed by what it shows last.
    status.crd_shown(start(), at(7, 7));
    assert!(status.recheck_due().is_some());
    status.crd_shown(start(), at(8, 8));
    assert_eq!(status.recheck_due(), None);
}

#[test]
fn a_crd_from_before_asks_for_a_recheck_even_if_our_conditions_look_alike() {
    let (mut status, _) = writes();
    status.written(start(), Ok(at(8, 7)));
    status.crd_shown(start(), at(6, 7));
    assert!(status.recheck_due().is_some(), "etcd was restored, and both were written within a second");
}

#[test]
fn any_other_revision_of_the_crd_may_carry_other_conditions() {
    let (mut status, _) = writes();
    status.crd_shown(start(), at(8, 7));
    assert!(status.recheck_due().is_some(), "a write from before a restart may have arrived");
    status.written(start(), Ok(at(9, 8)));
    status.crd_shown(start(), at(10, 8));
    assert!(status.recheck_due().is_some(), "a process that does not lead any more may have read our write");
    status.recheck();
    assert!(std::iter::from_fn(|| status.poll(now())).any(|command| matches!(command, Command::ReadCrd)));
    status.crd_read(start(), Ok(Some(crd(10, 8, &[]))));
    assert_eq!(status.recheck_due(), None);
}

#[test]
fn a_restored_etcd_may_show_another_crd_at_the_same_resource_version() {
    let (mut status, _) = writes();
    status.written(start(), Ok(at(8, 8)));
    status.crd_shown(start(), at(8, 9));
    assert!(status.recheck_due().is_some());
}

#[test]
fn another_write_in_our_name_asks_for_a_recheck() {
    let (mut status, _) = writes();
    status.written(start(), Ok(at(8, 8)));
    status.crd_shown(start(), at(9, 9));
    assert!(status.recheck_due().is_some());
}

/// The write was answered with a conflict.
fn meets_a_change() -> (Status, Arc<[Condition]>) {
    meets_a_change_of(message::unreadable(&Default::default()))
}

fn meets_a_change_of(crd_status: CrdStatus) -> (Status, Arc<[Condition]>) {
    let (mut status, wanted) = writes_of(crd_status);
    let conflict = CallError::Refused(Box::new(Refusal::read(409, None, b"{}")));
    status.written(start(), Err(conflict));
    assert!(matches!(status.poll(now()), Some(Command::ReadCrd)));
    (status, wanted)
}

/// The version for which conditions are sent at once; `None` if they are not.
fn sent_at_once(status: &mut Status) -> Option<String> {
    std::iter::from_fn(|| status.poll(now())).find_map(|command| match command {
        Command::SetConditions(_, version) => Some(version),
        _ => None,
    })
}

#[test]
fn a_write_that_meets_a_change_is_repeated_at_once_for_the_crd_as_it_is_then() {
    for was_carried_out in [true, false] {
        let (mut status, wanted) = meets_a_change();
        let conditions = if was_carried_out { &wanted[..] } else { &[] };
        status.crd_read(start(), Ok(Some(crd(9, 9, conditions))));
        let sent = sent_at_once(&mut status);
        assert_eq!(sent.as_deref(), (!was_carried_out).then_some("9"), "the answer was lost");
    }
}

#[test]
fn a_crd_that_changes_before_each_write_is_left_alone_after_a_few() {
    let (mut status, _) = meets_a_change();
    for version in 9.. {
        status.crd_read(start(), Ok(Some(crd(version, 9, &[]))));
        if sent_at_once(&mut status).is_none() {
            break;
        }
        let conflict = CallError::Refused(Box::new(Refusal::read(409, None, b"{}")));
        status.written(start(), Err(conflict));
        assert!(matches!(status.poll(now()), Some(Command::ReadCrd)));
    }
    assert!(status.recheck_due().is_some());
}

#[test]
fn what_another_writer_has_put_there_in_between_is_not_overwritten_at_once() {
    let (mut status, wanted) = meets_a_change();
    let others: Vec<Condition> =
        wanted.iter().map(|wanted| Condition { reason: "Paused".to_owned(), ..wanted.clone() }).collect();
    status.crd_read(start(), Ok(Some(crd(9, 9, &others))));
    assert_eq!(sent_at_once(&mut status), None);
    assert!(status.recheck_due().is_some());
    status.crd_shown(start(), at(9, 9));
    assert!(status.recheck_due().is_some(), "the event of that change comes late, and takes nothing back");
    status.recheck();
    assert!(matches!(status.poll(now()), Some(Command::ReadCrd)));
    status.crd_read(start(), Ok(Some(crd(9, 9, &others))));
    assert_eq!(sent_at_once(&mut status).as_deref(), Some("9"));
}

#[test]
fn what_is_stored_at_one_generation_is_not_claimed_of_another() {
    let stored = || {
        let message = "all 1 objects store their defaults".to_owned();
        message::crd_status(&Default::default(), Some(true), Reason::AllPersisted, message)
    };
    let upgraded = || {
        let mut document = crd(9, 9, &[]).into_inner();
        document["metadata"]["generation"] = 2.into();
        Json::from(document)
    };
    let (mut status, _) = meets_a_change();
    status.crd_read(start(), Ok(Some(upgraded())));
    assert_eq!(sent_at_once(&mut status).as_deref(), Some("9"), "that claims nothing");
    let (mut status, _) = meets_a_change_of(stored());
    status.crd_read(start(), Ok(Some(upgraded())));
    assert_eq!(sent_at_once(&mut status), None);
    assert!(status.recheck_due().is_some(), "nothing else shows that the change is not noticed");
    status.recheck();
    assert!(matches!(status.poll(now()), Some(Command::ReadCrd)));
    status.crd_read(start(), Ok(Some(upgraded())));
    assert_eq!(sent_at_once(&mut status), None);
}
