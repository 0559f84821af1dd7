//! Passes over a list in memory, and what happens afterwards.

mod canary;
mod passes;
mod steady_state;

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
        "metadata": {
            "name": name, "uid": name, "resourceVersion": revision.to_string(), "managedFields": [owner],
        },
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
