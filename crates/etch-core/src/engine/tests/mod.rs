//! Passes over a list in memory, and what happens afterwards.

mod canary;

use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::json;

use super::counted::CountedObjects;
use super::pass::{self, Interrupted, Limits, Pass, PassError, Verified};
use super::pass_state::PassState;
use super::retries::Retries;
use super::status::{self, CrdRevision, Status, Subject};
use super::stop_reason::StopReason;
use super::sweep::{Form, Listed, Page, PageRequest, Sweep, SweepError};
use super::watching::{self, Change, End, Watching};
use super::{Ended, Now, Received, Work};
use crate::api::{Amount, DefaultsReportStatus, Mode};
use crate::call_error::CallError;
use crate::crd::Crd;
use crate::crd::sample::{things, things_document, with_spec};
use crate::object::{Identity, Object};
use crate::object_machine::{Reconciled, Rules, Step};
use crate::object_state::ObjectState;
use crate::plan::{Held, Hold, Record, Rejection, RejectionKind, Terms};
use crate::refusal::Refusal;
use crate::report::checkpoint::Checkpoint;
use crate::report::ledger::Ledger;
use crate::report::rejected::Rejected;
use crate::report::state::Times;
use crate::report::tally::Tally;
use crate::report::versions::{ObjectVersions, list_key};

/// A moment that stays the same: tests add to it.
pub(super) fn start() -> Instant {
    static START: OnceLock<Instant> = OnceLock::new();
    #[expect(clippy::disallowed_methods, reason = "there is no other way to make one")]
    *START.get_or_init(Instant::now)
}

/// Objects to a page.
const PER_PAGE: usize = 2;

pub(super) fn rules() -> Rules {
    Rules {
        crd: Arc::new(things(with_spec(json!({ "size": { "type": "integer", "default": 5 } })))),
        terms: Terms::default(),
        mode: Mode::Persist,
        since: Arc::default(),
    }
}

pub(super) fn object(name: &str, revision: u64) -> Object {
    let owner = json!({
        "manager": "user", "operation": "Update", "apiVersion": "example.com/v1", "fieldsType": "FieldsV1",
        "fieldsV1": { "f:spec": {} },
    });
    Object::from(json!({
        "apiVersion": "example.com/v1", "kind": "Thing", "spec": { "size": 5 }, "status": { "phase": "New" },
        "metadata": { "name": name, "uid": name, "resourceVersion": revision.to_string(), "managedFields": [owner] },
    }))
}

/// Nothing is known, and what is written now proves nothing but itself.
fn while_servers_lag() -> Checkpoint {
    let record = Record { servers_lag: true, ..Record::empty(&rules().crd) };
    Checkpoint { record, ..Checkpoint::default() }
}

fn written(revision: u64) -> Result<Reconciled, StopReason> {
    Ok(Reconciled::of(ObjectState::Written { resource_version: revision.to_string() }, Vec::new()))
}

/// A list in memory, and the requests to it.
#[derive(Default)]
struct Server {
    objects: Vec<(&'static str, u64)>,
    revision: u64,
    pages: Vec<PageRequest>,
    written: Vec<String>,
    /// The version in which another client leaves the first object before it is verified.
    intrudes: Option<u64>,
    /// Whether objects end in the order in which they began; otherwise the last one first.
    in_order: bool,
    /// Whether it counts the objects of a list.
    counts: bool,
}

/// The objects of a page in memory.
struct Items(Vec<Object>);

impl Listed for Items {
    fn size(&self, _: usize) -> usize {
        100
    }

    fn object(&self, index: usize) -> Result<Object, CallError> {
        Ok(self.0[index].clone())
    }
}

/// A page of these objects; `next` is where the one after it begins.
pub(super) fn page(objects: Vec<Object>, revision: u64, next: Option<usize>) -> Page {
    Page {
        keys: objects.iter().map(list_key).collect(),
        resource_version: revision.to_string(),
        latest: revision.to_string(),
        next: next.map(|next| next.to_string()),
        total: None,
        read: start(),
        objects: Arc::new(Items(objects)),
    }
}

/// Which objects of so many a request for so many to a page is about, and where the next page begins.
pub(super) fn range(request: &PageRequest, all: usize, per_page: usize) -> (Range<usize>, Option<usize>) {
    let first: usize = request.after.as_deref().map_or(0, |after| after.parse().expect("a place"));
    let end = (first + per_page).min(all);
    (first..end, (end < all).then_some(end))
}

impl Server {
    fn of(names: &[&'static str]) -> Self {
        let objects = names.iter().map(|name| (*name, 7)).collect();
        Self { objects, revision: 10, ..Self::default() }
    }

    fn page(&mut self, request: PageRequest) -> Page {
        let (range, next) = range(&request, self.objects.len(), PER_PAGE);
        let shown = self.objects[range].iter().map(|(name, revision)| object(name, *revision));
        self.pages.push(request);
        let shown = page(shown.collect(), self.revision, next);
        Page { total: self.counts.then_some(self.objects.len() as u64), ..shown }
    }

    /// Ends an object: it is written if its machine requests that.
    fn end(&mut self, identity: &Identity, step: Step) -> Result<Reconciled, StopReason> {
        match step {
            Step::Done(reconciled) => Ok(reconciled),
            _ => self.write(&identity.name),
        }
    }

    fn write(&mut self, name: &str) -> Result<Reconciled, StopReason> {
        self.revision += 1;
        let stored = self.objects.iter_mut().find(|(known, _)| *known == name).expect("an object");
        stored.1 = self.revision;
        self.written.push(name.to_owned());
        written(self.revision)
    }

    /// Drives a pass that writes to its end, in which `ends` gives the result for each object; an object
    /// without one is written.
    fn run(
        &mut self,
        checkpoint: Checkpoint,
        ends: impl FnMut(&str) -> Option<Result<Reconciled, StopReason>>,
    ) -> Result<Box<Verified>, Box<Interrupted>> {
        let limits = Limits { verifies: true, moves_record: true, ..Limits::default() };
        self.drive(Pass::begin(rules(), limits, checkpoint, Ledger::default()), ends)
    }

    fn drive(
        &mut self,
        mut pass: Pass<()>,
        mut ends: impl FnMut(&str) -> Option<Result<Reconciled, StopReason>>,
    ) -> Result<Box<Verified>, Box<Interrupted>> {
        let mut works = Vec::new();
        loop {
            let Some(command) = pass.poll() else {
                let next = if self.in_order { 0 } else { works.len() - 1 };
                let work: Box<Work<()>> = works.remove(next);
                let Work { index, identity, step, .. } = *work;
                let ended = ends(&identity.name).unwrap_or_else(|| self.end(&identity, step));
                pass.reconciled(index, identity, ended.into());
                continue;
            };
            match command {
                pass::Command::List(request) => {
                    let page = self.page(request);
                    pass.page(Ok(page));
                }
                pass::Command::Admit(_) => pass.admitted(()),
                pass::Command::Reconcile(work) => works.push(work),
                pass::Command::CheckServer => {
                    assert!(pass.poll().is_none(), "nothing is listed before the answer");
                    if let Some(revision) = self.intrudes.take() {
                        self.objects[0].1 = revision;
                    }
                    pass.server_checked(Ok(()));
                }
                pass::Command::SweepBegins { .. }
                | pass::Command::SweepEnds { .. }
                | pass::Command::ListAhead(_) => {}
                pass::Command::End(ended) => return ended,
            }
        }
    }
}

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

/// The results of a pass over one object that is stored.
fn pass_state() -> PassState {
    let mut tally = Tally::default();
    tally.add(object("a", 7).identity(), ObjectState::Stored, &[]);
    PassState {
        tally,
        record: Record { through: Some(10), ..Record::empty(&rules().crd) },
        proved: ObjectVersions::default(),
        watch_from: "10".to_owned(),
        counted: CountedObjects::default(),
        times: Times::default(),
        finished_through: Some(10),
        watch_failure: None,
    }
}

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

#[test]
fn a_report_that_is_gone_before_it_has_a_status_is_another_one() {
    let subject = Subject {
        name: "things.example.com".to_owned(),
        uid: "crd".to_owned(),
        generation: 1,
        objects: None,
    };
    let mut status = Status::new(subject, Vec::new(), CrdRevision::default(), 0);
    let now = Now { at: start(), date: Timestamp::UNIX_EPOCH };
    status.set_report(DefaultsReportStatus::default());
    assert!(matches!(status.poll(now), Some(status::Command::OpenReport)));
    status.report_written(now.at, Ok("1".to_owned()));
    let Some(status::Command::SetReport(..)) = status.poll(now) else { panic!("it is not written") };
    let answer = |body: &[u8]| CallError::Refused(Box::new(Refusal::read(404, None, body)));
    status.report_written(now.at, Err(answer(b"404 page not found")));
    assert!(!status.take_other(), "a server has answered that serves no reports");
    let now = Now { at: status.timeout().expect("it is written again"), ..now };
    let Some(status::Command::SetReport(..)) = status.poll(now) else { panic!("it is not written") };
    status.report_written(now.at, Err(answer(br#"{ "details": { "name": "things.example.com" } }"#)));
    assert!(status.take_other() && status.is_idle(), "a restore of etcd has taken it away");
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
