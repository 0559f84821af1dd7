//! Passes that write a few objects before all others.

use super::*;
use crate::engine::canary::{CanaryCounts, CanaryLimit};

const ALL: [&str; 5] = ["a", "b", "c", "d", "e"];

fn limits(objects: u32, written: u64) -> Limits {
    let canary = Some(CanaryLimit { objects: Amount::Objects(objects), written });
    Limits { canary, verifies: true, moves_record: true, ..Limits::default() }
}

fn run(
    server: &mut Server,
    limits: Limits,
    checkpoint: Checkpoint,
    ends: impl FnMut(&str) -> Option<Result<Reconciled, StopReason>>,
) -> Result<Box<Verified>, Box<Interrupted>> {
    server.drive(Pass::begin(rules(), limits, checkpoint, Ledger::default()), ends)
}

fn empty() -> Checkpoint {
    Checkpoint::empty(&rules().crd)
}

fn refused() -> Option<Result<Reconciled, StopReason>> {
    let rejection =
        Rejection { kind: RejectionKind::Admission, message: "not now".to_owned(), fields: Vec::new() };
    Some(Ok(Reconciled::of(ObjectState::Rejected(rejection), Vec::new())))
}

#[test]
fn only_the_first_objects_are_written_and_verified_and_the_next_pass_writes_the_others() {
    let mut server = Server { in_order: true, ..Server::of(&ALL) };
    let verified = run(&mut server, limits(2, 0), empty(), |_| None).expect("it comes to its end");
    assert_eq!(server.written, ["a", "b"]);
    let expected = CanaryCounts { written: 2, withheld: 3, ..CanaryCounts::default() };
    assert_eq!(verified.canary, Some(expected));
    let counts = verified.last.tally.counts();
    assert_eq!((counts.objects, counts.written, counts.due + counts.unproved), (5, 2, 3));
    assert_eq!(
        (verified.through, verified.checkpoint.record.through),
        (None, None),
        "the others are on no record"
    );
    let whole = server.run(verified.before, |_| None).expect("it comes to its end");
    assert_eq!(server.written, ALL, "each of them once");
    assert_eq!(whole.last.tally.counts().written, 5);
    assert!(whole.canary.is_none() && whole.through.is_some());
}

#[test]
fn an_object_that_is_stored_takes_no_place_and_a_canary_that_is_all_objects_is_an_ordinary_pass() {
    let mut server = Server { in_order: true, ..Server::of(&ALL) };
    let stored =
        |name: &str| (name == "a").then(|| Ok(Reconciled::of(ObjectState::AlreadyStored, Vec::new())));
    run(&mut server, limits(2, 0), empty(), stored).expect("it comes to its end");
    assert_eq!(server.written, ["b", "c"]);
    let mut server = Server::of(&ALL);
    let verified = run(&mut server, limits(9, 0), empty(), |_| None).expect("it comes to its end");
    assert_eq!((verified.canary, verified.through), (None, Some(15)));
    assert!(verified.is_verified && verified.checkpoint.record.through.is_some());
}

#[test]
fn a_refusal_ends_it_and_is_still_known_when_it_is_verified() {
    let mut server = Server { in_order: true, ..Server::of(&ALL) };
    let refuses = |name: &str| if name == "b" { refused() } else { None };
    let verified = run(&mut server, limits(2, 0), empty(), refuses).expect("it comes to its end");
    assert_eq!(server.written, ["a"]);
    let expected = CanaryCounts { written: 1, refused: 1, unanswered: 0, withheld: 3 };
    assert_eq!(verified.canary, Some(expected));
    let problems: Vec<&str> = verified.last.tally.problems().map(|(identity, _)| &*identity.name).collect();
    assert_eq!(problems, ["b"]);
    assert_eq!(verified.last.tally.counts().rejected, 1);
}

#[test]
fn an_interruption_leaves_what_was_written_and_nothing_on_record() {
    let mut server = Server { in_order: true, ..Server::of(&ALL) };
    let stop = |name: &str| (name == "b").then_some(Err(StopReason::Pause));
    let interrupted = run(&mut server, limits(3, 0), empty(), stop).expect_err("it is interrupted");
    assert_eq!(interrupted.canary.map(|counts| counts.written), Some(1));
    let checkpoint = interrupted.checkpoint;
    assert_eq!((checkpoint.record.through, checkpoint.upto.as_deref()), (None, None));
    let verified = run(&mut server, limits(3, 1), checkpoint, |_| None).expect("it comes to its end");
    assert_eq!(server.written, ["a", "b", "c"], "two more, and none of them twice");
    assert_eq!(verified.last.tally.counts().written, 3, "as it is reported");
}

#[test]
fn what_a_canary_was_refused_is_neither_tried_again_nor_forgotten_while_nothing_is_written() {
    let mut server = Server { in_order: true, ..Server::of(&ALL) };
    let refuses = |name: &str| if name == "a" { refused() } else { None };
    let verified = run(&mut server, limits(1, 0), empty(), refuses).expect("it comes to its end");
    for writes in [false, true] {
        let state = PassState {
            tally: verified.last.tally.clone(),
            record: Record::empty(&rules().crd),
            proved: ObjectVersions::default(),
            watch_from: "10".to_owned(),
            counted: CountedObjects::default(),
            times: Times::default(),
            finished_through: None,
            watch_failure: None,
        };
        let watching: Watching<()> =
            Watching::begin(rules(), state, Ledger::default(), Retries::new(0), None, writes, start());
        assert_eq!(watching.timeout().is_some(), writes);
    }
}
