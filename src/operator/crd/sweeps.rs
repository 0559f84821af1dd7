//! Drives a [`Pass`], of the operator and of `etch persist`: its pages, the room for its objects, and their
//! machines. What is reported meanwhile is up to an [`Observer`].

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until};
use tracing::{Instrument as _, Span};

use crate::cluster::{Held, PrefetchedPage};
use crate::operator::object::reconcile::ObjectReconciler;
use crate::operator::spans;
use etch_core::call_error::CallError;
use etch_core::engine::Work;
use etch_core::engine::pass::{Command, Interrupted, Pass, Verified};
use etch_core::engine::stop_reason::StopReason;
use etch_core::engine::sweep::{Page, PageRequest};
use etch_core::object::Identity;
use etch_core::object_machine::Reconciled;

/// Objects of one pass that are decided about or wait for their first write at once: while hundreds of CRDs
/// wait, all others of theirs stay as they came.
const BEFORE_WRITE: usize = 1;

/// When progress is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// In the course of a sweep, at the observer's rate, and as soon as a pause begins or ends.
    UnderWay,
    /// After a sweep that was not completed.
    Interrupted,
    /// After a sweep to the end.
    Completed,
}

/// What reports how far the sweeps of a pass have come.
pub(crate) trait Observer: Send {
    /// How long a sweep runs before its first report.
    const FIRST: Duration;
    /// The least time from the end of a report to the next one.
    const EVERY: Duration;

    /// Reports how far a sweep has come: what it needs of the pass it takes at once, for that goes on
    /// meanwhile.
    fn report<'s>(&'s mut self, pass: &Pass<Admission>, moment: Moment) -> BoxFuture<'s, ()>;
}

/// What an object has that may be decided about: the room that it takes, and its turn, which is the next
/// one's as soon as its first write begins or it needs none.
#[derive(Debug)]
pub(crate) struct Admission {
    turn: OwnedSemaphorePermit,
    held: Held,
}

/// What drives passes over the objects of one CRD.
pub(crate) struct Sweeps<'a> {
    reconciler: ObjectReconciler<'a>,
    /// Whether the CRD's own server is taken to serve its objects where Etch may not read APIServices.
    trusts_server: bool,
    turns: Arc<Semaphore>,
    under_way: FuturesUnordered<BoxFuture<'a, Event>>,
    /// The page that is read ahead, once it is.
    ahead: Option<Asked>,
    /// The page that is to be read ahead as soon as there is room.
    wanted_ahead: Option<PageRequest>,
    sweep: Span,
    page: Span,
}

/// A page that is on its way.
struct Asked {
    span: Span,
    page: PrefetchedPage,
}

/// What came of a command.
enum Event {
    Page(Span, Result<Page, CallError>),
    Admitted(Admission),
    Reconciled(usize, Identity, Result<Reconciled, StopReason>),
    Server(Result<(), CallError>),
}

/// What a pass has come to that cannot go on by itself.
enum Halt {
    SweepEnds { is_complete: bool },
    End(Result<Box<Verified>, Box<Interrupted>>),
}

impl<'a> Sweeps<'a> {
    pub(crate) fn new(reconciler: ObjectReconciler<'a>, trusts_server: bool) -> Self {
        Self {
            reconciler,
            trusts_server,
            turns: Arc::new(Semaphore::new(BEFORE_WRITE)),
            under_way: FuturesUnordered::new(),
            ahead: None,
            wanted_ahead: None,
            sweep: Span::none(),
            page: Span::none(),
        }
    }

    /// Drives a pass to its end.
    ///
    /// # Errors
    /// See [`Interrupted`]. What was done until then is done.
    pub(crate) async fn run<O: Observer>(
        mut self,
        mut pass: Pass<Admission>,
        observer: &mut O,
    ) -> Result<Box<Verified>, Box<Interrupted>> {
        let mut next = Instant::now() + O::FIRST;
        let (mut stopped, mut halt) = (false, None);
        loop {
            match halt.take().or_else(|| self.perform(&mut pass)) {
                None => {}
                Some(Halt::End(ended)) => return ended,
                Some(Halt::SweepEnds { is_complete }) => {
                    let moment = if is_complete { Moment::Completed } else { Moment::Interrupted };
                    self.end_sweep(&pass);
                    observer.report(&pass, moment).await;
                    next = Instant::now() + O::FIRST;
                    continue;
                }
            }
            let (reconciler, is_busy) = (self.reconciler, !self.under_way.is_empty());
            tokio::select! {
                event = self.next() => {
                    self.take_in(event, &mut pass);
                    continue;
                }
                () = reconciler.slot_released(), if is_busy => continue,
                () = sleep_until(next) => {}
                // A pause is reported before the writes under way have ended.
                stop = reconciler.stopped(), if !stopped => {
                    stopped = true;
                    let is_pause = matches!(stop, StopReason::Pause);
                    pass.stop(stop);
                    if !is_pause {
                        continue;
                    }
                }
            }
            let mut reporting = observer.report(&pass, Moment::UnderWay);
            loop {
                tokio::select! {
                    () = &mut reporting => break,
                    // What is under way holds places that other CRDs wait for.
                    event = self.next(), if halt.is_none() => {
                        self.take_in(event, &mut pass);
                        halt = self.perform(&mut pass);
                        if halt.is_some() {
                            // It is driven no longer, and must not keep those places.
                            self.under_way.clear();
                        }
                    }
                }
            }
            drop(reporting);
            next = Instant::now() + O::EVERY;
        }
    }

    /// Performs what the pass asks for, until it waits for something.
    fn perform(&mut self, pass: &mut Pass<Admission>) -> Option<Halt> {
        pass.set_slow_writes(self.reconciler.writes_without_slot());
        while let Some(command) = pass.poll() {
            match command {
                Command::SweepBegins { verifies } => {
                    self.sweep = spans::sweep(&self.reconciler.rules.crd, verifies);
                }
                Command::List(request) => self.list(request),
                Command::ListAhead(request) => self.wanted_ahead = Some(request),
                Command::Admit(bytes) => self.admit(bytes),
                Command::Reconcile(work) => self.reconcile(*work),
                Command::CheckServer => self.check_server(),
                Command::SweepEnds { is_complete } => return Some(Halt::SweepEnds { is_complete }),
                Command::End(ended) => return Some(Halt::End(ended)),
            }
        }
        if self.reconciler.cluster.can_prefetch()
            && let Some(request) = self.wanted_ahead.take()
        {
            self.ahead = Some(self.ask(&request));
        }
        None
    }

    /// What ends next. This future may be dropped at any time, and never ends while nothing is under way.
    async fn next(&mut self) -> Event {
        match self.under_way.next().await {
            Some(event) => event,
            None => std::future::pending().await,
        }
    }

    fn take_in(&mut self, event: Event, pass: &mut Pass<Admission>) {
        match event {
            Event::Page(span, page) => {
                if let Ok(page) = &page {
                    span.record("objects", page.keys.len());
                }
                self.set_page(span);
                pass.page(page);
            }
            Event::Admitted(admission) => pass.admitted(admission),
            Event::Reconciled(index, identity, reconciled) => {
                if let Ok(reconciled) = &reconciled {
                    self.reconciler.cluster.metrics().object(reconciled.state.kind());
                }
                pass.reconciled(index, identity, reconciled);
            }
            Event::Server(checked) => pass.server_checked(checked),
        }
    }

    /// Drops what is under way: where the sweep is complete, nothing is.
    fn end_sweep(&mut self, pass: &Pass<Admission>) {
        self.under_way.clear();
        (self.ahead, self.wanted_ahead) = (None, None);
        spans::count(&self.sweep, pass.tally().counts());
        self.set_page(Span::none());
        self.sweep = Span::none();
    }

    /// Ends the span of the page before as a part of its sweep.
    fn set_page(&mut self, page: Span) {
        let Self { sweep, page: before, .. } = self;
        sweep.in_scope(|| *before = page);
    }

    fn ask(&self, PageRequest { form, after, number }: &PageRequest) -> Asked {
        let ObjectReconciler { cluster, rules, scope, .. } = self.reconciler;
        let span = spans::page(&rules.crd, self.sweep.id(), *number);
        let resource = rules.crd.resource();
        let page = span.in_scope(|| cluster.prefetch(&resource, scope, *form, after.as_deref()));
        Asked { span, page }
    }

    fn list(&mut self, request: PageRequest) {
        self.wanted_ahead = None;
        let Asked { span, mut page } = match self.ahead.take() {
            Some(asked) => asked,
            None => self.ask(&request),
        };
        self.under_way.push(Box::pin(async move {
            // The page may have come long ago, and been read before that.
            let page = page.page().await;
            let read = Instant::now().into_std();
            Event::Page(span, page.and_then(|page| page.into_page(read)))
        }));
    }

    fn admit(&mut self, bytes: usize) {
        let ObjectReconciler { cluster, rules, .. } = self.reconciler;
        let (turns, room) = (self.turns.clone(), cluster.object_room(&rules.crd.resource()));
        self.under_way.push(Box::pin(async move {
            match turns.acquire_owned().await {
                Ok(turn) => Event::Admitted(Admission { turn, held: room.hold(bytes).await }),
                // It is never closed.
                Err(_) => std::future::pending().await,
            }
        }));
    }

    fn reconcile(&mut self, work: Work<Admission>) {
        let (reconciler, span) = (self.reconciler, self.page.clone());
        let Work { index, identity, machine, step, read, hold } = work;
        let Admission { turn, held } = hold;
        let reconciling = async move {
            let _held = held;
            let read = Instant::from_std(read);
            let reconciled = reconciler.reconcile(machine, step, read, Some(turn)).await;
            Event::Reconciled(index, identity, reconciled)
        };
        self.under_way.push(Box::pin(reconciling.instrument(span)));
    }

    fn check_server(&mut self) {
        let ObjectReconciler { cluster, rules, .. } = self.reconciler;
        let trusts_server = self.trusts_server;
        self.under_way.push(Box::pin(async move {
            let checked = match cluster.check_server(&(&*rules.crd).into()).await {
                Err(CallError::MissingPermission(_)) if trusts_server => Ok(()),
                checked => checked,
            };
            Event::Server(checked)
        }));
    }
}
