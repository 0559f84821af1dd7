//! Passes: what they write, verify and record, and what stops them.

use super::*;
use crate::report::rejected::Rejected;

#[test]
fn what_a_pass_has_written_is_verified_by_a_sweep_over_metadata_that_writes_nothing() {
    let mut server = Server::of(&["a", "b", "c"]);
    let verified = server.run(while_servers_lag(), |_| None).expect("it comes to its end");
    assert!(verified.is_verified && verified.requests == 3);
    let counts = verified.last.tally.counts();
    assert_eq!((counts.objects, counts.written), (3, 3));
    assert_eq!(verified.through, Some(13));
    let asked: Vec<(Form, u64)> = server.pages.iter().map(|page| (page.form, page.number)).collect();
    let both = |form| [(form, 1), (form, 2)];
    assert_eq!(asked, [both(Form::Whole), both(Form::Metadata)].concat());
}

/// A later write of another client may be a create, which drops `status` (fact D11); Etch's own is none.
#[test]
fn what_a_pass_has_written_is_verified_where_a_create_drops_a_default_in_the_status() {
    let status =
        json!({ "type": "object", "properties": { "phase": { "type": "string", "default": "New" } } });
    let mut schema = with_spec(json!({ "size": { "type": "integer" } }));
    schema["properties"]["status"] = status;
    let mut crd = things_document(schema);
    crd["spec"]["versions"][0]["subresources"] = json!({ "status": {} });
    let crd = Crd::read(&crd.into()).expect("a CRD");
    assert!(crd.creates_drop_status());
    let mut server = Server::of(&["a", "b", "c"]);
    let limits = Limits { verifies: true, needs_every_answer: true, ..Limits::default() };
    let checkpoint = Checkpoint::empty(&crd);
    let pass = Pass::begin(Rules { crd: crd.into(), ..rules() }, limits, checkpoint, Ledger::default());
    let verified = server.drive(pass, |_| None).expect("it comes to its end");
    assert!(verified.is_verified);
    assert_eq!((verified.requests, server.written.len()), (3, 3), "each is asked about once");
}

#[test]
fn what_changes_in_the_course_of_a_pass_is_written_by_the_sweep_that_verifies_it() {
    let mut server = Server { intrudes: Some(99), in_order: true, ..Server::of(&["a", "b", "c"]) };
    let verified = server.run(while_servers_lag(), |_| None).expect("it comes to its end");
    assert_eq!(server.written, ["a", "b", "c", "a"]);
    assert!(verified.is_verified);
    let asked: Vec<(Form, u64)> = server.pages.iter().map(|page| (page.form, page.number)).collect();
    assert_eq!(
        asked[2..4],
        [(Form::Metadata, 1), (Form::Whole, 2)],
        "a page is read whole where it has to be"
    );
}

#[test]
fn a_page_of_which_an_object_was_not_processed_is_covered_by_no_record() {
    for (stops, covered, reached) in [("b", None, Some("/a")), ("d", Some("/b"), Some("/c"))] {
        let mut server = Server::of(&["a", "b", "c", "d"]);
        let stop = |name: &str| (name == stops).then_some(Err(StopReason::Pause));
        let interrupted = server.run(Checkpoint::empty(&rules().crd), stop).expect_err("it is interrupted");
        assert!(interrupted.in_first);
        assert!(matches!(interrupted.reason, PassError::Sweep(SweepError::Stop(StopReason::Pause))));
        assert_eq!(interrupted.last.reached.as_deref(), reached);
        let checkpoint = interrupted.checkpoint;
        assert_eq!(checkpoint.upto.as_deref(), covered);
        assert_eq!(checkpoint.record.through, covered.map(|_| 10));
        let before = server.written.clone();
        server.run(checkpoint, |_| None).expect("it comes to its end");
        let mut all = server.written.clone();
        all.sort();
        assert_eq!(all, ["a", "b", "c", "d"], "each once, {before:?} of them before");
    }
}

#[test]
fn a_pass_stops_after_a_number_of_rejected_objects_or_a_part_of_those_that_were_tried() {
    let refused = || {
        let rejection =
            Rejection { kind: RejectionKind::Admission, message: String::new(), fields: Vec::new() };
        Some(Ok(Reconciled::of(ObjectState::Rejected(rejection), Vec::new())))
    };
    // Of 40 objects, every fourth is refused; the server counts them.
    let names: Vec<String> = (0..40).map(|index| format!("{index:02}")).collect();
    for (limit, expected) in [
        (Amount::Objects(1), Some(1)),
        (Amount::Objects(10), Some(10)),
        (Amount::Objects(11), None),
        (Amount::Percent(1), Some(1)),
        (Amount::Percent(10), Some(4)),
        (Amount::Percent(25), Some(10)),
        (Amount::Percent(26), None),
    ] {
        let names: Vec<&'static str> = names.iter().map(|name| &*String::leak(name.clone())).collect();
        let mut server = Server { in_order: true, counts: true, ..Server::of(&names) };
        let limits = Limits {
            stop_after_rejected: Some(limit),
            verifies: true,
            moves_record: true,
            ..Limits::default()
        };
        let pass = Pass::begin(rules(), limits, Checkpoint::empty(&rules().crd), Ledger::default());
        let is_refused = |name: &str| name.parse::<u32>().is_ok_and(|index| index % 4 == 3);
        let ended = server.drive(pass, |name| if is_refused(name) { refused() } else { None });
        let found = match ended {
            Ok(_) => None,
            Err(interrupted) => match interrupted.reason {
                PassError::Sweep(SweepError::TooManyRejected(rejected)) => Some(rejected),
                reason => panic!("{reason:?}"),
            },
        };
        assert_eq!(found, expected, "{limit}");
    }
}

/// A webhook that is away is asked again, and what an earlier sweep was refused is no news.
#[test]
fn only_what_a_sweep_was_refused_counts_towards_the_number_that_stops_it() {
    let names: Vec<&'static str> = (0..400).map(|index| &*String::leak(format!("{index:03}"))).collect();
    let stop_after_rejected = Some(Amount::Percent(2));
    let limits = Limits { stop_after_rejected, verifies: true, moves_record: true, ..Limits::default() };
    let rejected = |kind| {
        let rejection = Rejection { kind, message: String::new(), fields: Vec::new() };
        Some(Ok(Reconciled::of(ObjectState::Rejected(rejection), Vec::new())))
    };
    for kind in [RejectionKind::Unavailable, RejectionKind::Admission] {
        let mut server = Server { in_order: true, counts: true, ..Server::of(&names) };
        let pass = Pass::begin(rules(), limits.clone(), while_servers_lag(), Ledger::default());
        let is_refused = |name: &str| match kind {
            RejectionKind::Unavailable => name < "040",
            _ => name.ends_with("99"),
        };
        let ended = server.drive(pass, |name| if is_refused(name) { rejected(kind) } else { None });
        assert!(ended.is_ok(), "{kind:?}");
    }
}

#[test]
fn a_list_that_is_older_than_the_record_is_one_of_a_cluster_that_was_restored() {
    let record = Record { through: Some(11), ..Record::empty(&rules().crd) };
    let ended = Server::of(&["a"]).run(Checkpoint { record, ..Checkpoint::default() }, |_| None);
    let reason = ended.map(|_| ()).map_err(|interrupted| interrupted.reason);
    assert!(matches!(reason, Err(PassError::Restored)), "{reason:?}");
}

#[test]
fn a_pass_that_writes_nothing_leaves_what_was_known_before() {
    let mut server = Server::of(&["a"]);
    let record = Record { through: Some(5), ..Record::empty(&rules().crd) };
    let checkpoint = Checkpoint { record, upto: Some("/0".to_owned()), ..Checkpoint::default() };
    let rules = Rules { mode: Mode::Audit, ..rules() };
    let due = |_: &str| Some(Ok(Reconciled::of(ObjectState::Due, Vec::new())));
    let pass = Pass::begin(rules, Limits::default(), checkpoint, Ledger::default());
    let verified = server.drive(pass, due).expect("it comes to its end");
    assert_eq!((verified.before.record.through, verified.before.upto.as_deref()), (Some(5), Some("/0")));
    assert_eq!((verified.checkpoint.record.through, verified.through), (None, None));
    assert_eq!(verified.last.tally.counts().due, 1);
}

#[test]
fn one_unknown_object_is_read_again_beside_thousands_that_were_rejected() {
    let names: Vec<&'static str> = (0..1_501).map(|index| &*String::leak(format!("{index:04}"))).collect();
    let mut server = Server::of(&names);
    let rejected = |name: &str| {
        let rejection =
            Rejection { kind: RejectionKind::Mutated, message: format!("{name} it is"), fields: Vec::new() };
        ObjectState::Rejected(rejection)
    };
    let ends = |name: &str| {
        let state = if name == "1500" { ObjectState::Unknown } else { rejected(name) };
        Some(Ok(Reconciled::of(state, Vec::new())))
    };
    let verified = server.run(Checkpoint::empty(&rules().crd), ends).expect("it comes to its end");
    let tally = &verified.last.tally;
    assert!(tally.overflows_with_rejected() && !tally.overflows_with_unknown());
    assert_eq!(tally.unanswered().len(), 1);
    // A pass that follows sends nothing for the others, and knows why.
    let checkpoint = Checkpoint { rejected: Rejected::of_tally(tally), ..verified.checkpoint };
    let mut asked = Vec::new();
    let again = server.run(checkpoint, |name| {
        asked.push(name.to_owned());
        ends(name)
    });
    let again = again.expect("it comes to its end");
    assert_eq!((asked.as_slice(), again.postponed), (&["1500".to_owned()][..], 1_500));
    let known = again.last.tally.problems().find(|(identity, _)| identity.name == "0700");
    assert_eq!(known.map(|(_, state)| state.clone()), Some(rejected("0700")));
}
