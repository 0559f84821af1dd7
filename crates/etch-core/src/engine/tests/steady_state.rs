//! What happens after a pass: changes, reads, the end of a watch.

use super::*;

fn watch() -> Watching<()> {
    Watching::begin(rules(), pass_state(), Ledger::default(), Retries::new(0), None, true, start())
}

fn received(name: &str, revision: u64) -> Received<()> {
    Received { object: object(name, revision), hold: () }
}

fn is_end(command: Option<watching::Command<()>>, end: &End) -> bool {
    matches!(command, Some(watching::Command::End(found)) if found == *end)
}

#[test]
fn what_changes_is_reconciled_and_counted_and_our_own_write_is_not_news() {
    let (mut watching, mut now) = (watch(), start());
    assert!(watching.poll(now).is_none() && watching.timeout().is_none(), "an idle CRD costs nothing");
    watching.changed(now, Change::Created(received("b", 11)));
    let Some(watching::Command::Reconcile(work)) = watching.poll(now) else { panic!("not reconciled") };
    assert_eq!(watching.objects_at_rest(), None);
    watching.reconciled(now, &work.identity, written(12).into());
    assert!(watching.poll(now).is_none());
    now = watching.timeout().expect("the totals are to be published");
    watching.changed(now, Change::Applied(received("b", 12)));
    assert!(matches!(watching.poll(now), Some(watching::Command::Publish)));
    assert!(watching.poll(now).is_none(), "one update at a time, and our own write is no news");
    watching.published(now);
    assert_eq!(watching.pass().tally.counts().objects, 2);
    assert_eq!(watching.objects_at_rest(), Some(2));
    assert!(!watching.has_unreported());
    watching.changed(now, Change::Applied(received("b", 13)));
    let Some(watching::Command::Reconcile(work)) = watching.poll(now) else { panic!("not reconciled") };
    watching.reconciled(now, &work.identity, written(14).into());
    assert!(watching.has_unreported(), "a report from before this write is not the last one");
    assert!(watching.poll(now).is_none());
    now = watching.timeout().expect("the write is to be reported");
    assert!(matches!(watching.poll(now), Some(watching::Command::Publish)));
    watching.published(now);
    watching.changed(now, Change::Deleted(object("b", 15)));
    assert_eq!(watching.pass().tally.counts().objects, 1);
}

#[test]
fn an_object_that_admission_changes_is_read_again_though_nobody_answered_the_last_time() {
    let (mut watching, mut now) = (watch(), start());
    watching.changed(now, Change::Applied(received("a", 11)));
    let Some(watching::Command::Reconcile(work)) = watching.poll(now) else { panic!("not reconciled") };
    let mutated =
        Rejection { kind: RejectionKind::Mutated, message: "it changes".to_owned(), fields: Vec::new() };
    let mutated = Reconciled::of(ObjectState::Rejected(mutated), Vec::new());
    watching.reconciled(now, &work.identity, Ok(mutated).into());
    for _ in 0..3 {
        let identity = next_read(&mut watching, &mut now);
        watching.reconciled(now, &identity, unknown());
    }
}

/// The next object that is read again, after as long as it takes.
fn next_read(watching: &mut Watching<()>, now: &mut Instant) -> Identity {
    loop {
        match watching.poll(*now) {
            Some(watching::Command::Read(identity)) => return identity,
            Some(watching::Command::Publish) => watching.published(*now),
            Some(command) => panic!("{command:?}"),
            None => *now = watching.timeout().expect("it is read again"),
        }
    }
}

fn unknown() -> Ended {
    Ok(Reconciled::of(ObjectState::Unknown, Vec::new())).into()
}

#[test]
fn a_held_object_that_changes_is_read_again_if_nobody_answers() {
    let mut pass = pass_state();
    let paths = vec![".spec.legacy".parse().expect("a path")];
    let held = Held { reason: Hold::HiddenFields, paths, broken: Vec::new() };
    pass.tally.add(object("h", 7).identity(), ObjectState::Held(held), &[]);
    let retries = Retries::new(0);
    let mut watching: Watching<()> =
        Watching::begin(rules(), pass, Ledger::default(), retries, None, true, start());
    let mut now = start();
    watching.changed(now, Change::Applied(received("h", 11)));
    let Some(watching::Command::Reconcile(work)) = watching.poll(now) else { panic!("not reconciled") };
    watching.reconciled(now, &work.identity, unknown());
    assert_eq!(watching.pass().tally.counts().held, 0, "it may be held no more");
    assert_eq!(next_read(&mut watching, &mut now).name, "h");
}

#[test]
fn an_object_that_another_client_rewrites_is_read_again_if_nobody_answers() {
    let (mut watching, mut now) = (watch(), start());
    for revision in [11, 13, 15] {
        watching.changed(now, Change::Applied(received("a", revision)));
        let Some(watching::Command::Reconcile(work)) = watching.poll(now) else { panic!("not reconciled") };
        watching.reconciled(now, &work.identity, written(revision + 1).into());
    }
    watching.changed(now, Change::Applied(received("a", 17)));
    for _ in 0..3 {
        let identity = next_read(&mut watching, &mut now);
        watching.reconciled(now, &identity, unknown());
    }
}

#[test]
fn a_pause_that_only_an_object_has_seen_ends_the_watch() {
    let (mut watching, now) = (watch(), start());
    watching.changed(now, Change::Applied(received("a", 11)));
    let Some(watching::Command::Reconcile(work)) = watching.poll(now) else { panic!("not reconciled") };
    watching.reconciled(now, &work.identity, Err(StopReason::Pause).into());
    assert!(is_end(watching.poll(now), &End::Stop(StopReason::Pause)));
}

/// The next object that is reconciled, as stored.
fn reconcile(watching: &mut Watching<()>, now: Instant) {
    let Some(watching::Command::Reconcile(work)) = watching.poll(now) else { panic!("not reconciled") };
    watching.reconciled(now, &work.identity, Ok(Reconciled::of(ObjectState::Stored, Vec::new())).into());
}

#[test]
fn what_happens_while_a_list_is_read_in_parts_counts_once() {
    let mut sweep = Sweep::default();
    sweep.counted.page(Some(10));
    sweep.counted.page(Some(20));
    ["a", "b"].iter().for_each(|uid| sweep.counted.add(uid));
    let mut pass = pass_state();
    pass.tally.add(object("b", 15).identity(), ObjectState::Stored, &[]);
    pass.counted = sweep.counted.for_watch();
    let mut watching: Watching<()> =
        Watching::begin(rules(), pass, Ledger::default(), Retries::new(0), None, true, start());
    let count = |watching: &Watching<()>| watching.pass().tally.counts().objects;
    let now = start();
    // The second part showed it.
    watching.changed(now, Change::Created(received("b", 15)));
    reconcile(&mut watching, now);
    assert_eq!(count(&watching), 2);
    // It came and went before the second part was read.
    watching.changed(now, Change::Deleted(object("gone", 16)));
    assert_eq!(count(&watching), 2);
    // These came before and after, where the first part was read already.
    for (name, revision) in [("c", 17), ("d", 30)] {
        watching.changed(now, Change::Created(received(name, revision)));
        reconcile(&mut watching, now);
    }
    assert_eq!(count(&watching), 4);
    for (name, revision) in [("a", 18), ("c", 19), ("d", 31)] {
        watching.changed(now, Change::Deleted(object(name, revision)));
    }
    assert_eq!(count(&watching), 1);
}

#[test]
fn what_happens_between_the_lists_of_one_page_counts_once() {
    let limits = Limits { verifies: true, moves_record: true, ..Limits::default() };
    let mut pass: Pass<()> = Pass::begin(rules(), limits, Checkpoint::empty(&rules().crd), Ledger::default());
    let verified = loop {
        match pass.poll().expect("something to do") {
            // Other namespaces were empty at 10.
            pass::Command::List(_) => {
                let page = Page { latest: "20".to_owned(), ..page(vec![object("b", 15)], 10, None) };
                pass.page(Ok(page));
            }
            pass::Command::Admit(_) => pass.admitted(()),
            pass::Command::Reconcile(work) => {
                let stored = Ok(Reconciled::of(ObjectState::Stored, Vec::new()));
                pass.reconciled(work.index, work.identity, stored.into());
            }
            pass::Command::End(ended) => break ended.expect("it comes to its end"),
            _ => {}
        }
    };
    assert_eq!((verified.last.watch_from.as_str(), verified.through), ("10", Some(10)));
    let mut counted = verified.last.counted.for_watch();
    assert!(counted.has_created(&object("b", 15)) && counted.never_had(&object("gone", 16)));
}

#[test]
fn what_has_begun_is_waited_for_and_what_has_not_is_not() {
    let (mut watching, now) = (watch(), start());
    watching.changed(now, Change::Applied(received("a", 11)));
    let Some(watching::Command::Reconcile(begun)) = watching.poll(now) else { panic!("not reconciled") };
    watching.changed(now, Change::Created(received("b", 12)));
    watching.end(End::Stop(StopReason::Pause));
    assert!(!watching.wants_changes() && watching.poll(now).is_none() && watching.timeout().is_none());
    watching.reconciled(now, &begun.identity, written(13).into());
    assert!(is_end(watching.poll(now), &End::Stop(StopReason::Pause)));
    assert_eq!(watching.pass().tally.counts().written, 0, "it is not counted: the next pass finds it");
}

#[test]
fn a_stop_that_forbids_every_write_waits_for_none() {
    let (mut watching, now) = (watch(), start());
    watching.changed(now, Change::Applied(received("a", 11)));
    watching.changed(now, Change::Created(received("b", 12)));
    let begun = [watching.poll(now), watching.poll(now)];
    assert!(begun.iter().all(|command| matches!(command, Some(watching::Command::Reconcile(_)))));
    let lost = StopReason::OwnersLost { object: "a".to_owned(), managers: Vec::new() };
    watching.reconciled(now, &object("a", 11).identity(), Err(lost.clone()).into());
    assert!(is_end(watching.poll(now), &End::Stop(lost)));
}

#[test]
fn after_a_failure_that_was_reported_all_objects_are_verified() {
    let (mut watching, mut now) = (watch(), start());
    watching.changed(now, Change::Failed(Timestamp::UNIX_EPOCH, "refused".to_owned()));
    now = watching.timeout().expect("the failure is to be reported");
    assert!(watching.poll(now).is_none());
    now = watching.timeout().expect("an update is due");
    assert!(matches!(watching.poll(now), Some(watching::Command::Publish)));
    assert!(watching.pass().watch_failure.is_some());
    watching.published(now);
    watching.changed(now, Change::Created(received("b", 12)));
    assert!(is_end(watching.poll(now), &End::Verify), "what has not begun is not waited for");
}

#[test]
fn what_was_written_is_verified_when_it_is_time_and_not_while_changes_are_missed() {
    let (now, later) = (start(), start() + Duration::from_secs(60));
    let begin = |writes| {
        Watching::begin(rules(), pass_state(), Ledger::default(), Retries::new(0), Some(later), writes, now)
    };
    let mut watching: Watching<()> = begin(true);
    assert!(watching.poll(now).is_none());
    assert_eq!(watching.timeout(), Some(later));
    watching.changed(now, Change::Failed(Timestamp::UNIX_EPOCH, "refused".to_owned()));
    assert!(!is_end(watching.poll(later), &End::Verify));
    let mut watching: Watching<()> = begin(true);
    assert!(is_end(watching.poll(later), &End::Verify));
    let mut watching: Watching<()> = begin(false);
    assert_eq!(watching.timeout(), None, "who writes nothing verifies nothing");
    assert!(watching.poll(later).is_none());
}

/// The API server that answers serves an earlier schema, which has no `net`.
#[test]
fn what_a_server_may_leave_out_is_asked_about_once_each_server_serves_the_schema() {
    let port = json!({ "type": "integer", "default": 80 });
    let net = json!({ "type": "object", "properties": { "host": { "type": "string" }, "port": port } });
    let crd = Arc::new(things(with_spec(json!({ "net": net }))));
    let rules = Rules { crd: Arc::clone(&crd), ..rules() };
    let shown = |spec: serde_json::Value| {
        let mut shown = (**object("a", 7).json()).clone();
        shown["spec"] = spec;
        Object::from(shown)
    };
    let pass = |checkpoint, ledger, shown: &Object| {
        let limits = Limits { verifies: true, moves_record: true, ..Limits::default() };
        let mut pass = Pass::begin(rules.clone(), limits, checkpoint, ledger);
        let mut asked = 0;
        loop {
            match pass.poll().expect("something to do") {
                pass::Command::List(_) => pass.page(Ok(page(vec![shown.clone()], 10, None))),
                pass::Command::Admit(_) => pass.admitted(()),
                pass::Command::Reconcile(work) => {
                    let Work { index, identity, step, machine, .. } = *work;
                    let result = match step {
                        Step::Done(reconciled) => Ok(reconciled),
                        _ => Ok(Reconciled::of(ObjectState::AlreadyStored, Vec::new())),
                    };
                    asked += usize::from(result.as_ref().is_ok_and(|ended| ended.state.took_request()));
                    pass.reconciled(index, identity, Ended { result, found: machine.into_found() });
                }
                pass::Command::CheckServer => pass.server_checked(Ok(())),
                pass::Command::End(ended) => {
                    return (ended.expect("it comes to its end").checkpoint, pass.take_ledger(), asked);
                }
                _ => {}
            }
        }
    };
    let mut ledger = Ledger::default();
    ledger.changes.watch_suspects();
    let (checkpoint, mut ledger, asked) = pass(Checkpoint::empty(&crd), ledger, &shown(json!({})));
    assert_eq!((asked, checkpoint.record.through), (0, Some(10)));
    ledger.changes.servers_have_caught_up();
    let (_, _, asked) = pass(checkpoint, ledger, &shown(json!({ "net": { "host": "h", "port": 80 } })));
    assert_eq!(asked, 1);
}
