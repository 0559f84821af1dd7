//! One list of all objects of a CRD, page by page, and the result for each. Of an object, only a hash stays
//! in memory, unless the tally names it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use super::Work;
use super::canary::{Budget, CanaryCounts, Trials};
use super::counted::CountedObjects;
use super::stage::{Earlier, KnownObject, Outcome, ProblemVersions, Stage};
use super::stop_reason::StopReason;
use crate::api::{Amount, Mode};
use crate::call_error::CallError;
use crate::object::{Identity, Object};
use crate::object_machine::{ObjectMachine, Reconciled, Rules, Step};
use crate::object_state::ObjectState;
use crate::report::tally::{Place, Tally};
use crate::report::versions::{ListKey, ObjectVersions};

/// Objects processed at once in one pass; the shared pace limits how many of them are written at once.
const AT_ONCE: usize = 64;
/// Etch requests the next page when only so many objects of a page are still to be begun, or half of a
/// smaller page: their writes take about as long as a list.
const AHEAD: usize = 64;
/// A part of the objects that were tried is one of so many at least, if there are so many.
const FEW: u64 = 100;

/// What a list contains of each object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// All of it.
    Whole,
    /// Its metadata, as a `PartialObjectMetadata`: a page of them costs the server a fraction, and takes a
    /// fraction of the room. It has the same resource version of an object as a whole page (fact R8).
    Metadata,
}

/// A page to be requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRequest {
    /// What it is to hold.
    pub form: Form,
    /// Where it begins; `None` for the first page.
    pub after: Option<String>,
    /// Which page of its sweep it is, counted from one.
    pub number: u64,
}

/// A page as it came: its objects are parsed when their turn comes, for parsed they take many times the room.
#[derive(Clone)]
pub struct Page {
    /// Where its objects stand, in the order of the page.
    pub keys: Vec<ListKey>,
    /// The resource version of the list. A watch resumes from that of the first page: a list whose snapshot
    /// is lost continues with a later one, and what changed in between on the pages before is in none of
    /// them.
    pub resource_version: String,
    /// The resource version of the list that its objects are from: a later one where the lists before it, of
    /// other namespaces, had none.
    pub latest: String,
    /// Where the next page begins; `None` after the last.
    pub next: Option<String>,
    /// How many objects the whole list has, by the first page; an estimate, for objects come and go.
    pub total: Option<u64>,
    /// When it had been read, at the latest.
    pub read: Instant,
    /// Its objects.
    pub objects: Arc<dyn Listed + Send + Sync>,
}

/// The objects of a page.
pub trait Listed {
    /// How many bytes of JSON an object has.
    fn size(&self, index: usize) -> usize;

    /// Parses an object.
    ///
    /// # Errors
    /// Where it cannot be read.
    fn object(&self, index: usize) -> Result<Object, CallError>;
}

impl fmt::Debug for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Page")
            .field("keys", &self.keys.len())
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

/// Why a sweep was not completed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SweepError {
    /// The list could not be read.
    #[error("cannot list the objects: {0}")]
    List(#[from] CallError),
    /// See [`StopReason`].
    #[error(transparent)]
    Stop(#[from] StopReason),
    /// The policy's limit of rejected objects is reached.
    #[error("stopped after {0} rejected objects (stopAfterRejected)")]
    TooManyRejected(u64),
}

/// What a sweep needs next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// A page, whose answer goes to [`Sweep::page`].
    Page(PageRequest),
    /// A page that will be needed soon.
    PageAhead(PageRequest),
    /// Room for an object of so many bytes, which goes to [`Sweep::admitted`].
    Room(usize),
}

/// A list of all objects, page by page, and the results for them.
#[derive(Clone, Debug, Default)]
pub struct Sweep {
    /// The results for the objects.
    pub tally: Tally,
    /// The resource version at which the sweep began: all that is older was processed.
    pub through: Option<u64>,
    /// The resource version from which a watch misses nothing: that of the first page.
    pub watch_from: String,
    /// The objects that it has counted.
    pub counted: CountedObjects,
    /// Objects that this sweep wrote and proved, as they were left; hashes, since there may be many.
    pub proved: ObjectVersions,
    /// How many objects needed a request.
    pub requests: u64,
    /// How many of them were rejected, by a server, webhook or policy that did answer.
    refused: u64,
    /// How many objects an earlier run was refused, and are not tried again yet.
    pub postponed: u64,
    /// The last object of the last page of which every object was processed; `None` if the list is not
    /// sorted.
    pub upto: Option<ListKey>,
    /// The last object within the open page up to which every one was processed.
    pub reached: Option<ListKey>,
    /// The objects that are written before all others, if there are any.
    trials: Trials,
    /// Objects that are held or rejected, in the version in which they were read.
    left: ProblemVersions,
    /// Pages that were requested.
    pages: u64,
    /// Whether the last page had an object without a recorded result.
    met_unknown: bool,
    /// Where the next page begins.
    after: Option<String>,
    /// In which form the pending page was requested.
    asked: Option<Form>,
    /// The page after the one that is processed, once it is requested.
    ahead: Option<PageRequest>,
    /// The page that is processed.
    open: Option<OpenPage>,
    /// Why nothing more is begun.
    stopped: Option<StopReason>,
    is_complete: bool,
}

/// A page whose objects are processed.
#[derive(Clone, Debug)]
struct OpenPage {
    page: Page,
    /// The first object that is not begun.
    next: usize,
    /// Whether room for it was requested.
    wants_room: bool,
    /// The objects that are under way, by their place in the page: the version in which each was read.
    under_way: BTreeMap<usize, String>,
    /// Which objects are done, whatever the outcome.
    finished: Vec<bool>,
    proved: ObjectVersions,
    in_order: bool,
}

impl Sweep {
    /// Its results for the sweep that verifies it.
    pub(super) fn as_earlier(&self) -> Earlier<'_> {
        Earlier { left: &self.left, tally: &self.tally, pages: self.pages }
    }

    /// The outcomes for the objects of a canary.
    pub(super) fn canary(&self) -> CanaryCounts {
        self.trials.counts
    }

    /// Whether another object may be written, as far as a canary limits that. A sweep that verifies it writes
    /// none.
    fn budget(&self, stage: &Stage<'_>) -> Budget {
        match stage.canary {
            None => Budget::Open,
            Some(_) if stage.earlier.is_some() => Budget::Spent,
            Some(limit) => self.trials.budget(limit, self.tally.expected().unwrap_or_default()),
        }
    }

    /// Whether every page was processed.
    pub(super) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Why nothing more is begun, once nothing is under way.
    pub(super) fn take_stop(&mut self) -> Option<StopReason> {
        let is_quiet = self.open.as_ref().is_none_or(|open| open.under_way.is_empty());
        self.stopped.take_if(|_| is_quiet)
    }

    /// Begins nothing more; what is under way completes. The first reason counts.
    pub(super) fn stop(&mut self, reason: StopReason) {
        self.stopped.get_or_insert(reason);
    }

    /// Records how far it came, if it ends before the last page; no record covers what was written of a page
    /// that is not done.
    pub(super) fn interrupt(&mut self) {
        let Some(open) = self.open.take() else { return };
        let done = open.finished.iter().take_while(|finished| **finished).count();
        let reached = done.checked_sub(1).and_then(|last| open.page.keys.get(last).cloned());
        self.proved.extend(open.proved);
        self.reached = reached.or_else(|| self.upto.clone()).filter(|_| open.in_order);
    }

    /// What is needed next; `slow` is how many writes take so long that others no longer wait for them.
    pub(super) fn poll(&mut self, stage: &Stage<'_>, slow: usize) -> Option<Wanted> {
        if self.stopped.is_some() || self.is_complete {
            return None;
        }
        let Some(open) = &mut self.open else {
            if self.asked.is_some() {
                return None;
            }
            let request = match self.ahead.take() {
                Some(request) => request,
                None => self.request(stage, self.after.clone()),
            };
            self.asked = Some(request.form);
            return Some(Wanted::Page(request));
        };
        let left = open.page.keys.len() - open.next;
        let ahead = AHEAD.min(open.page.keys.len() / 2);
        if left <= ahead
            && self.ahead.is_none()
            && let Some(token) = open.page.next.clone()
        {
            let request = self.request(stage, Some(token));
            self.ahead = Some(request.clone());
            return Some(Wanted::PageAhead(request));
        }
        let has_room = !open.wants_room && open.under_way.len() < AT_ONCE + slow;
        if left > 0 && has_room && self.budget(stage) != Budget::Awaits {
            let open = self.open.as_mut()?;
            open.wants_room = true;
            return Some(Wanted::Room(open.page.objects.size(open.next)));
        }
        None
    }

    /// How to read the next page. A sweep that verifies another needs metadata alone until it meets an object
    /// without a recorded result; a list that fits on one page is read whole, because only that page could be
    /// saved.
    fn request(&mut self, stage: &Stage<'_>, after: Option<String>) -> PageRequest {
        let verifies_pages = stage.earlier.is_some_and(|earlier| earlier.pages > 1);
        let form = if verifies_pages && !self.met_unknown { Form::Metadata } else { Form::Whole };
        self.pages += 1;
        PageRequest { form, after, number: self.pages }
    }

    /// Handles a page.
    ///
    /// # Errors
    /// [`SweepError::List`].
    pub(super) fn page(
        &mut self,
        stage: &Stage<'_>,
        page: Result<Page, CallError>,
    ) -> Result<(), SweepError> {
        let page = page?;
        let form = self.asked.take().unwrap_or(Form::Whole);
        let known = match form {
            Form::Whole => None,
            Form::Metadata => {
                let known = |index| Ok(stage.known(&page.objects.object(index)?));
                (0..page.keys.len()).map(known).collect::<Result<Option<Vec<_>>, CallError>>()?
            }
        };
        self.met_unknown = form == Form::Metadata && known.is_none();
        if self.met_unknown {
            // The sweep requests it once more, whole.
            return Ok(());
        }
        if self.after.is_none() {
            self.through = page.resource_version.parse().ok();
            self.watch_from.clone_from(&page.resource_version);
            self.tally.set_expected(page.total);
            self.tally.set_place(self.through.map(|through| Place { through, upto: String::new() }));
        }
        for resource_version in [&page.resource_version, &page.latest] {
            self.counted.page(resource_version.parse().ok());
        }
        // In a list that was unsorted once, a place has no meaning.
        let goes_on = |upto: &ListKey| page.keys.first().is_some_and(|first| upto <= first);
        let in_order =
            page.keys.is_sorted() && (self.after.is_none() || self.upto.as_ref().is_some_and(goes_on));
        let count = page.keys.len();
        self.open = Some(OpenPage {
            page,
            next: if known.is_some() { count } else { 0 },
            wants_room: false,
            under_way: BTreeMap::new(),
            finished: vec![known.is_some(); count],
            proved: ObjectVersions::default(),
            in_order,
        });
        known.into_iter().flatten().for_each(|object| self.count(object));
        self.close_page();
        Ok(())
    }

    /// Records that there is room for the next object; returns the work on it, unless its result is
    /// recorded.
    ///
    /// # Errors
    /// [`SweepError::List`], if it cannot be read.
    pub(super) fn admitted<H>(&mut self, stage: &Stage<'_>, hold: H) -> Result<Option<Work<H>>, SweepError> {
        let budget = self.budget(stage);
        let Some(open) = &mut self.open else { return Ok(None) };
        open.wants_room = false;
        if self.stopped.is_some() {
            return Ok(None);
        }
        let (index, read) = (open.next, open.page.read);
        let object = open.page.objects.object(index)?;
        open.next += 1;
        if let Some(known) = stage.known(&object) {
            open.finished[index] = true;
            self.count(known);
            self.close_page();
            return Ok(None);
        }
        open.under_way.insert(index, object.resource_version().to_owned());
        self.met_unknown = true;
        let (identity, is_proved) = (object.identity(), stage.proved.contains(&object));
        self.counted.add(&identity.uid);
        // It may have been read from a server that lagged behind, and then nothing was written because of
        // that.
        let is_suspect = stage.ledger.changes.is_suspect(&object);
        let record = if is_suspect { stage.beyond } else { stage.record_of(&object) };
        let known = stage.ledger.of_object(&object, &identity, record);
        let rules = match budget {
            Budget::Open => stage.rules.clone(),
            Budget::Awaits | Budget::Spent => Rules { mode: Mode::Audit, ..stage.rules.clone() },
        };
        let (machine, step) = ObjectMachine::begin(rules, known, object, record.clone(), is_proved);
        if stage.canary.is_some() && matches!(step, Step::Write) {
            self.trials.begin(index);
        }
        Ok(Some(Work { index, identity, machine, step, read, hold }))
    }

    /// Handles the result for an object.
    ///
    /// # Errors
    /// If nothing more may be done, not even what is under way.
    pub(super) fn reconciled(
        &mut self,
        stage: &Stage<'_>,
        index: usize,
        identity: Identity,
        reconciled: Result<Reconciled, StopReason>,
    ) -> Result<(), SweepError> {
        let Some(open) = &mut self.open else { return Ok(()) };
        let seen = open.under_way.remove(&index).unwrap_or_default();
        let reconciled = match reconciled {
            Ok(reconciled) => reconciled,
            Err(stop) if stop.lets_writes_end() => {
                self.stop(stop);
                return Ok(());
            }
            Err(stop) => return Err(stop.into()),
        };
        open.finished[index] = true;
        if stage.canary.is_some() {
            self.trials.end(index, &reconciled.state);
        }
        self.requests += u64::from(reconciled.state.took_request());
        let is_refused =
            matches!(reconciled.state, ObjectState::Rejected(_)) && !reconciled.state.is_unanswered();
        self.refused += u64::from(is_refused);
        let mut left_at = None;
        match &reconciled.state {
            ObjectState::Written { resource_version }
                if stage.canary.is_some() || stage.record.doubts_writes() =>
            {
                self.proved.insert(&identity.uid, resource_version);
            }
            ObjectState::Written { resource_version } => open.proved.insert(&identity.uid, resource_version),
            // In these versions a later sweep takes them for stored (Proof::UnchangedSincePass).
            ObjectState::AlreadyStored => open.proved.insert(&identity.uid, &seen),
            ObjectState::Held(_) => self.left.insert(true, &identity.uid, &seen),
            ObjectState::Rejected(_) => {
                left_at = reconciled.left_at.clone().or(Some(seen));
                self.left.insert(false, &identity.uid, left_at.as_deref().unwrap_or_default());
            }
            ObjectState::Stored
            | ObjectState::Skipped(_)
            | ObjectState::Gone
            | ObjectState::Due
            | ObjectState::Unproved
            | ObjectState::Unknown => {}
        }
        self.tally.add(identity.clone(), reconciled.state, &reconciled.missing);
        if let Some(left_at) = left_at {
            self.tally.set_rejected_at(&identity, &left_at);
        }
        let limit = stage.stop_after_rejected.filter(|_| stage.canary.is_none());
        if limit.is_some_and(|limit| is_refused && self.refused >= self.stops_at(limit)) {
            return Err(SweepError::TooManyRejected(self.refused));
        }
        self.close_page();
        Ok(())
    }

    /// How many rejected objects stop the sweep. Of few objects, each one is a large part.
    fn stops_at(&self, limit: Amount) -> u64 {
        let few = self.tally.expected().map_or(FEW, |all| all.min(FEW));
        limit.of(self.requests.max(few)).max(1)
    }

    /// Continues to the next page once every object of this one is done.
    fn close_page(&mut self) {
        let is_done = |open: &mut OpenPage| open.finished.iter().all(|finished| *finished);
        let Some(open) = self.open.take_if(is_done) else { return };
        // What was proved in the course of the page is covered by the record of the sweep.
        self.upto = open.page.keys.into_iter().next_back().filter(|_| open.in_order);
        self.reached.clone_from(&self.upto);
        if let (Some(through), Some(upto)) = (self.through, self.upto.clone()) {
            self.tally.set_place(Some(Place { through, upto }));
        }
        self.after = open.page.next;
        self.is_complete = self.after.is_none();
    }

    /// Counts an object whose result is recorded.
    fn count(&mut self, object: KnownObject<'_>) {
        let KnownObject { identity, resource_version, outcome } = object;
        self.counted.add(&identity.uid);
        match outcome {
            Outcome::LeftOut => self.tally.count_left_out(),
            Outcome::Stored => self.tally.add(identity, ObjectState::Stored, &[]),
            Outcome::Left { is_held, earlier } => {
                self.left.insert(is_held, &identity.uid, &resource_version);
                self.tally.add_unchanged(identity.clone(), earlier, is_held);
                if !is_held {
                    self.tally.set_rejected_at(&identity, &resource_version);
                }
            }
            Outcome::Postponed(rejection) => {
                self.left.insert(false, &identity.uid, &resource_version);
                self.postponed += 1;
                self.tally.add(identity.clone(), ObjectState::Rejected(rejection), &[]);
                self.tally.set_rejected_at(&identity, &resource_version);
            }
        }
    }
}
