//! One sweep over all objects of a CRD.
//! It must not hold more of an object than a hash, unless the tally does, nor count as proved what was not.

mod known;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tracing::{Id, Instrument as _, Span};

use crate::cluster::{CallError, Form, PrefetchedPage, RawPage};
use crate::operator::object::pause::PauseWatch;
use crate::operator::object::reconcile::ObjectReconciler;
use crate::operator::spans;
use etch_core::engine::stop_reason::StopReason;
use etch_core::crd::Crd;
use etch_core::object::Object;
use etch_core::object_machine::{ObjectMachine, Rules};
use etch_core::object_state::ObjectState;
use etch_core::plan::Record;
use etch_core::report::rejected::Rejected;
use etch_core::report::tally::{Place, Tally};
use etch_core::report::versions::{ListKey, ObjectVersions, key, list_key};

/// Objects processed at once in one pass; the shared pace limits how many of them are written at once.
const AT_ONCE: usize = 64;
/// Objects of one pass that are decided about or wait for their first write at once: while hundreds of CRDs
/// wait, all others of theirs stay as they came.
const BEFORE_WRITE: usize = 1;
/// The next page is asked for when only so many objects of a page are still to be begun, or half of a smaller
/// page: their writes take about as long as a list.
const AHEAD: usize = 64;

/// A list of all objects, page by page, and what became of them.
#[derive(Debug, Default)]
pub(crate) struct Sweep {
    /// What became of the objects, once the sweep has ended; until then see [`SweepInput::tally`].
    pub(crate) tally: Tally,
    /// The resource version at which the sweep began: all that is older was processed.
    pub(crate) through: Option<u64>,
    /// The resource version from which a watch misses nothing: that of the first page.
    pub(crate) watch_from: String,
    /// Objects that this sweep wrote and proved, as they were left; hashes, since there may be many.
    pub(crate) proved: ObjectVersions,
    /// Objects that are held or rejected, in the version in which they were read.
    pub(crate) left: ProblemVersions,
    /// How many objects needed a request.
    pub(crate) requests: u64,
    /// How many objects an earlier run was refused, and are not tried again yet.
    pub(crate) postponed: u64,
    /// The last object of the last page of which every object was processed; none if the list is not sorted.
    pub(crate) upto: Option<ListKey>,
    /// The same within the last page: the object up to which every one was processed.
    pub(crate) reached: Option<ListKey>,
    /// Pages that were asked for.
    pages: u64,
    /// Whether the last page had an object of which it was not known what becomes of it.
    met_unknown: bool,
    /// Where the next page begins.
    after: Option<String>,
    /// The next page, if it is on its way.
    ahead: Option<NextPage>,
    /// What the spans of its pages are parts of.
    span: Option<Id>,
}

/// A page that is on its way.
#[derive(Debug)]
struct NextPage {
    span: Span,
    form: Form,
    asked: PrefetchedPage,
}

/// Which versions of which objects were held or rejected.
#[derive(Debug, Default)]
pub(crate) struct ProblemVersions {
    held: ObjectVersions,
    rejected: ObjectVersions,
}

/// Why a sweep was not completed.
#[derive(Debug, thiserror::Error)]
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

/// The inputs of a sweep.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SweepInput<'a> {
    /// What is on record.
    pub(crate) record: &'a Arc<Record>,
    /// Up to which object the record goes; none if it is about all of them.
    pub(crate) upto: Option<&'a ListKey>,
    /// What is on record of the others: nothing.
    pub(crate) beyond: &'a Arc<Record>,
    /// States that were proved since.
    pub(crate) proved: &'a ObjectVersions,
    /// The sweep that this one verifies: what was held or rejected then, and has not changed, is not tried
    /// again.
    pub(crate) earlier: Option<&'a Sweep>,
    /// What an earlier run was refused: it is not tried again at once. None where everything is.
    pub(crate) rejected: Option<&'a Rejected>,
    /// The object up to which all are left out; none if all are processed.
    pub(crate) after: Option<&'a ListKey>,
    /// What became of the objects so far, for progress reports.
    pub(crate) tally: &'a Mutex<Tally>,
    /// Rejections after which the sweep stops.
    pub(crate) stop_after_rejected: Option<u32>,
}

impl ProblemVersions {
    fn insert(&mut self, is_held: bool, uid: &str, resource_version: &str) {
        let states = if is_held { &mut self.held } else { &mut self.rejected };
        states.insert(uid, resource_version);
    }
}

impl SweepInput<'_> {
    /// What is on record of an object. One that was written after the record began is covered wherever it
    /// stands in the list, for the schema was in force by then; but not where it may have been stored at an
    /// old version until then.
    fn record_of(&self, object: &Object, crd: &Crd) -> &Arc<Record> {
        let is_before = object.revision() <= self.record.through || crd.stored_elsewhere();
        match self.upto {
            Some(upto) if is_before && list_key(object) > *upto => self.beyond,
            _ => self.record,
        }
    }
}

impl Sweep {
    /// Reads all pages and processes each object.
    ///
    /// # Errors
    /// See [`Self::page`].
    pub(crate) async fn run(
        &mut self,
        reconciler: ObjectReconciler<'_>,
        input: SweepInput<'_>,
    ) -> Result<(), SweepError> {
        while self.page(reconciler, input).await? {}
        Ok(())
    }

    /// Reads one more page and processes each of its objects; whether there are more.
    ///
    /// # Errors
    /// See [`SweepError`]; what was done until then is done, and counted.
    pub(crate) async fn page(
        &mut self,
        reconciler: ObjectReconciler<'_>,
        input: SweepInput<'_>,
    ) -> Result<bool, SweepError> {
        // A pause that has begun or ended stops a sweep that need not write anything as well.
        if reconciler.pause_watch.is_some_and(PauseWatch::has_changed) {
            return Err(StopReason::Pause.into());
        }
        self.span = Span::current().id();
        let next = match self.ahead.take() {
            Some(next) => next,
            None => self.ask(reconciler, input, self.after.clone().as_deref()),
        };
        let span = next.span.clone();
        let ended = self.process_page(reconciler, input, next).instrument(span).await;
        if ended.is_err() {
            self.ahead = None;
        }
        ended
    }

    /// Asks for one more page.
    fn ask(
        &mut self,
        reconciler: ObjectReconciler<'_>,
        input: SweepInput<'_>,
        after: Option<&str>,
    ) -> NextPage {
        let form = self.form(input);
        self.pages += 1;
        let ObjectReconciler { cluster, rules: Rules { crd, .. }, scope, .. } = reconciler;
        let span = spans::page(crd, self.span.clone(), self.pages);
        let asked = span.in_scope(|| cluster.prefetch(&crd.resource(), scope, form, after));
        NextPage { span, form, asked }
    }

    async fn process_page(
        &mut self,
        reconciler: ObjectReconciler<'_>,
        input: SweepInput<'_>,
        NextPage { span, form, mut asked }: NextPage,
    ) -> Result<bool, SweepError> {
        let page = tokio::select! {
            biased;
            stop = reconciler.stopped() => return Err(stop.into()),
            page = asked.page() => page?,
        };
        let read = Instant::now();
        let keys = page.names().map(|name| name.map(|(namespace, name)| key(&namespace, &name)));
        let mut keys: Vec<ListKey> = keys.collect::<Result<_, _>>()?;
        span.record("objects", keys.len());
        let known = match form {
            Form::Whole => None,
            Form::Metadata => input.all_known(&page, reconciler)?,
        };
        self.met_unknown = form == Form::Metadata && known.is_none();
        if self.met_unknown {
            // It is asked for once more, whole.
            return Ok(true);
        }
        if self.after.is_none() {
            self.through = page.resource_version.parse().ok();
            self.watch_from.clone_from(&page.resource_version);
            let mut tally = lock(input.tally);
            tally.set_expected(page.total);
            tally.set_place(self.through.map(|through| Place { through, upto: String::new() }));
        }
        // A list that was not sorted once is none that a place in it means anything for.
        let goes_on = |upto: &ListKey| keys.first().is_some_and(|first| upto <= first);
        let in_order = keys.is_sorted() && (self.after.is_none() || self.upto.as_ref().is_some_and(goes_on));
        let mut proved = ObjectVersions::default();
        let mut finished = vec![false; keys.len()];
        let ended = match known {
            Some(known) => {
                known.into_iter().for_each(|object| self.count(object, input));
                Ok(())
            }
            None => process_objects(reconciler, input, &page, read, self, &mut proved, &mut finished).await,
        };
        if let Err(interruption) = ended {
            // The page is not done, so no record covers what was written of it.
            self.proved.extend(proved);
            keys.truncate(finished.iter().take_while(|finished| **finished).count());
            self.reached = keys.pop().or(self.upto.take()).filter(|_| in_order);
            return Err(interruption);
        }
        self.upto = keys.into_iter().next_back().filter(|_| in_order);
        self.reached.clone_from(&self.upto);
        if let (Some(through), Some(upto)) = (self.through, self.upto.clone()) {
            lock(input.tally).set_place(Some(Place { through, upto }));
        }
        self.after = page.next;
        Ok(self.after.is_some())
    }
}

/// The numbers of a sweep that is under way.
pub(crate) fn lock(tally: &Mutex<Tally>) -> MutexGuard<'_, Tally> {
    // Counting does not panic half way; and numbers that may be off by one are better than none.
    tally.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether an object is left out of a pass that resumes after `after`.
pub fn is_left_out(object: &Object, after: Option<&String>) -> bool {
    after.is_some_and(|after| list_key(object) <= *after)
}

/// Processes the objects of a page; `finished` marks those that are done, whatever came of them.
///
/// When it is stopped, what is under way is finished, and nothing else is begun.
async fn process_objects(
    reconciler: ObjectReconciler<'_>,
    input: SweepInput<'_>,
    page: &RawPage,
    read: Instant,
    sweep: &mut Sweep,
    proved: &mut ObjectVersions,
    finished: &mut [bool],
) -> Result<(), SweepError> {
    let turns = Semaphore::new(BEFORE_WRITE);
    let Rules { crd, changes, .. } = reconciler.rules;
    let room = reconciler.cluster.object_room(&crd.resource());
    let sizes = page.sizes();
    let mut queue = page.objects().enumerate();
    let ahead = AHEAD.min(queue.len() / 2);
    let mut under_way = FuturesUnordered::new();
    let mut stopped = None;
    loop {
        if let Some(token) = page.next.as_deref()
            && stopped.is_none()
            && queue.len() <= ahead
            && sweep.ahead.is_none()
            && reconciler.cluster.can_prefetch()
        {
            sweep.ahead = Some(sweep.ask(reconciler, input, Some(token)));
        }
        let most = AT_ONCE + reconciler.writes_without_slot();
        let begins = stopped.is_none() && under_way.len() < most && queue.len() > 0;
        let size = sizes.get(sizes.len() - queue.len()).copied().unwrap_or_default();
        let admitted = async {
            let turn = turns.acquire().await;
            (turn, room.hold(size).await)
        };
        let (index, identity, seen, reconciled) = tokio::select! {
            biased;
            (Ok(turn), held) = admitted, if begins => {
                let Some((index, object)) = queue.next() else { continue };
                let object = object?;
                if let Some(known) = input.known(&object, reconciler) {
                    sweep.count(known, input);
                    finished[index] = true;
                } else {
                    sweep.met_unknown = true;
                    let is_proved = input.proved.contains(&object);
                    under_way.push(async move {
                        let _held = held;
                        let identity = object.identity();
                        let resource_version = object.resource_version().to_owned();
                        // It was read with an old default before, and nothing was written for that.
                        let is_suspect = changes.is_suspect(&object);
                        let record = if is_suspect { input.beyond } else { input.record_of(&object, crd) };
                        let (machine, step) = ObjectMachine::begin(reconciler.rules.clone(), object, record.clone(), is_proved);
                        (index, identity, resource_version, reconciler.reconcile(machine, step, read, Some(turn)).await)
                    });
                }
                continue;
            }
            Some(ended) = under_way.next() => ended,
            () = reconciler.slot_released(), if !under_way.is_empty() => continue,
            else => return stopped.map_or(Ok(()), |stop: StopReason| Err(stop.into())),
        };
        let reconciled = match reconciled {
            // Nothing more begins, and what has begun comes to its end.
            Err(
                stop @ (StopReason::Pause
                | StopReason::Ended
                | StopReason::CrdChanged
                | StopReason::FieldsDropped { .. }),
            ) => {
                // What has gone wrong first says most.
                stopped.get_or_insert(stop);
                continue;
            }
            reconciled => reconciled?,
        };
        finished[index] = true;
        reconciler.cluster.metrics().object(reconciled.state.kind());
        sweep.requests += u64::from(reconciled.state.took_request());
        let mut left_at = None;
        match &reconciled.state {
            ObjectState::Written { resource_version }
                if input.record.versions_disagree || input.record.servers_lag =>
            {
                sweep.proved.insert(&identity.uid, resource_version);
            }
            ObjectState::Written { resource_version } => proved.insert(&identity.uid, resource_version),
            // In these versions a later sweep takes them for stored (Proof::UnchangedSincePass).
            ObjectState::AlreadyStored => proved.insert(&identity.uid, &seen),
            ObjectState::Held(_) => sweep.left.insert(true, &identity.uid, &seen),
            ObjectState::Rejected(_) => {
                left_at = reconciled.left_at.clone().or(Some(seen));
                sweep.left.insert(false, &identity.uid, left_at.as_deref().unwrap_or_default());
            }
            ObjectState::Stored
            | ObjectState::Skipped(_)
            | ObjectState::Gone
            | ObjectState::Due
            | ObjectState::Unproved
            | ObjectState::Unknown => {}
        }
        let rejected = {
            let mut tally = lock(input.tally);
            tally.add(identity.clone(), reconciled.state, &reconciled.missing);
            if let Some(left_at) = left_at {
                tally.set_rejected_at(&identity, &left_at);
            }
            tally.counts().rejected
        };
        if input.stop_after_rejected.is_some_and(|limit| rejected >= u64::from(limit)) {
            return Err(SweepError::TooManyRejected(rejected));
        }
    }
}
