//! Performs what a [`Pass`] and the steady state ask for about the objects of one CRD, for the operator and
//! for `etch persist`: pages, the room for objects, and their machines.

use std::sync::Arc;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tracing::{Instrument as _, Span};

use crate::cluster::{Held, PrefetchedPage, Received};
use crate::operator::object::reconcile::ObjectReconciler;
use crate::operator::spans;
use etch_core::api::Counts;
use etch_core::call_error::CallError;
use etch_core::engine::pass::{self, Pass};
use etch_core::engine::sweep::{Page, PageRequest};
use etch_core::engine::watching::{self, Watching};
use etch_core::engine::{self, Ended, Work};
use etch_core::object::Identity;
use etch_core::object_machine::Reconciled;
use etch_core::object_state::ObjectState;

/// Objects of one pass that are decided about or wait for their first write at once: while hundreds of CRDs
/// wait, all others of theirs stay as they came.
const BEFORE_WRITE: usize = 1;

/// What an object has that is processed: the room that it takes and, in a pass, its turn, which is the next
/// one's as soon as its first write begins or it needs none.
#[derive(Debug)]
pub(crate) struct Admission {
    turn: Option<OwnedSemaphorePermit>,
    held: Held,
}

/// What drives the objects of one CRD.
pub(crate) struct ObjectDriver {
    reconciler: Arc<ObjectReconciler>,
    /// Whether the CRD's own server is taken to serve its objects where Etch may not read APIServices.
    trusts_server: bool,
    turns: Arc<Semaphore>,
    under_way: FuturesUnordered<BoxFuture<'static, Event>>,
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

/// The result of a command.
pub(crate) enum Event {
    Page(Span, Result<Page, CallError>),
    Admitted(Admission),
    /// One object is done; its place in its page.
    Reconciled(usize, Identity, Ended),
    Server(Result<(), CallError>),
    /// An object was read again.
    Read(Received),
}

impl ObjectDriver {
    pub(crate) fn new(reconciler: ObjectReconciler, trusts_server: bool) -> Self {
        Self {
            reconciler: Arc::new(reconciler),
            trusts_server,
            turns: Arc::new(Semaphore::new(BEFORE_WRITE)),
            under_way: FuturesUnordered::new(),
            ahead: None,
            wanted_ahead: None,
            sweep: Span::none(),
            page: Span::none(),
        }
    }

    /// What drives the machines of the objects.
    pub(crate) fn reconciler(&self) -> &Arc<ObjectReconciler> {
        &self.reconciler
    }

    /// Whether anything is under way.
    pub(crate) fn is_busy(&self) -> bool {
        !self.under_way.is_empty()
    }

    /// Performs a command of a pass, which has this span; the caller handles the commands that end it or its
    /// sweeps.
    pub(crate) fn perform(&mut self, command: pass::Command<Admission>, pass: &Span) {
        match command {
            pass::Command::SweepBegins { verifies } => {
                self.sweep = pass.in_scope(|| spans::sweep(&self.reconciler.rules.crd, verifies));
            }
            pass::Command::List(request) => self.list(request),
            pass::Command::ListAhead(request) => self.wanted_ahead = Some(request),
            pass::Command::Admit(bytes) => self.admit(bytes),
            pass::Command::Reconcile(work) => self.reconcile(*work),
            pass::Command::CheckServer => self.check_server(),
            pass::Command::SweepEnds { .. } | pass::Command::End(_) => {}
        }
    }

    /// Performs a command of the steady state; the caller handles publishing and the end.
    pub(crate) fn perform_watching(&mut self, command: watching::Command<Admission>) {
        match command {
            watching::Command::Reconcile(work) => self.reconcile(*work),
            watching::Command::Read(identity) => self.read(identity),
            watching::Command::Publish | watching::Command::End(_) => {}
        }
    }

    /// Reads a page ahead where one is wanted, and there is room for it.
    pub(crate) fn read_ahead(&mut self) {
        if self.reconciler.cluster.can_prefetch()
            && let Some(request) = self.wanted_ahead.take()
        {
            self.ahead = Some(self.ask(&request));
        }
    }

    /// What ends next. This future may be dropped at any time, and never ends while nothing is under way.
    pub(crate) async fn next(&mut self) -> Event {
        match self.under_way.next().await {
            Some(event) => event,
            None => std::future::pending().await,
        }
    }

    /// Passes the result of a command to its pass.
    pub(crate) fn take_in(&mut self, event: Event, pass: &mut Pass<Admission>) {
        match event {
            Event::Page(span, page) => {
                if let Ok(page) = &page {
                    span.record("objects", page.keys.len());
                }
                self.set_page(span);
                pass.page(page);
            }
            Event::Admitted(admission) => pass.admitted(admission),
            Event::Reconciled(index, identity, ended) => {
                self.count(&ended);
                pass.reconciled(index, identity, ended);
            }
            Event::Server(checked) => pass.server_checked(checked),
            // A pass reads only pages.
            Event::Read(_) => {}
        }
    }

    /// Passes the result of a command to the steady state.
    pub(crate) fn take_in_watching(&self, event: Event, watching: &mut Watching<Admission>) {
        let now = Instant::now().into_std();
        match event {
            Event::Reconciled(_, identity, ended) => {
                self.count(&ended);
                watching.reconciled(now, &identity, ended);
            }
            Event::Read(object) => watching.read(now, received(object)),
            // These occur only in a pass.
            Event::Page(..) | Event::Admitted(_) | Event::Server(_) => {}
        }
    }

    fn count(&self, ended: &Ended) {
        if let Ok(reconciled) = &ended.result {
            self.reconciler.cluster.metrics().object(reconciled.state.kind());
        }
    }

    /// Ends a sweep with these numbers, and drops what is under way: where it is complete, nothing is.
    pub(crate) fn end_sweep(&mut self, counts: Counts) {
        spans::count(&self.sweep, counts);
        self.under_way.clear();
        (self.ahead, self.wanted_ahead) = (None, None);
        self.set_page(Span::none());
        self.sweep = Span::none();
    }

    /// Ends the span of the page before as a part of its sweep.
    fn set_page(&mut self, page: Span) {
        let Self { sweep, page: before, .. } = self;
        sweep.in_scope(|| *before = page);
    }

    fn ask(&self, PageRequest { form, after, number }: &PageRequest) -> Asked {
        let ObjectReconciler { cluster, rules, scope, .. } = &*self.reconciler;
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
        let ObjectReconciler { cluster, rules, .. } = &*self.reconciler;
        let (turns, room) = (self.turns.clone(), cluster.object_room(&rules.crd.resource()));
        self.under_way.push(Box::pin(async move {
            match turns.acquire_owned().await {
                Ok(turn) => Event::Admitted(Admission { turn: Some(turn), held: room.hold(bytes).await }),
                // It is never closed.
                Err(_) => std::future::pending().await,
            }
        }));
    }

    fn reconcile(&mut self, work: Work<Admission>) {
        let (reconciler, span) = (self.reconciler.clone(), self.page.clone());
        let Work { index, identity, machine, step, read, hold } = work;
        let Admission { turn, held } = hold;
        let reconciling = async move {
            let _held = held;
            let read = Instant::from_std(read);
            let ended = reconciler.reconcile(machine, step, read, turn).await;
            Event::Reconciled(index, identity, ended)
        };
        self.under_way.push(Box::pin(reconciling.instrument(span)));
    }

    fn read(&mut self, identity: Identity) {
        let reconciler = self.reconciler.clone();
        self.under_way.push(Box::pin(async move {
            let resource = reconciler.rules.crd.resource();
            let state = match reconciler.cluster.object_with_room(&resource, &identity).await {
                Ok(Some(object)) => return Event::Read(object),
                Ok(None) => ObjectState::Gone,
                Err(_) => ObjectState::Unknown,
            };
            Event::Reconciled(0, identity, Ok(Reconciled::of(state, Vec::new())).into())
        }));
    }

    fn check_server(&mut self) {
        let (reconciler, trusts_server) = (self.reconciler.clone(), self.trusts_server);
        self.under_way.push(Box::pin(async move {
            let ObjectReconciler { cluster, rules, .. } = &*reconciler;
            let checked = match cluster.check_server(&(&*rules.crd).into()).await {
                Err(CallError::MissingPermission(_)) if trusts_server => Ok(()),
                checked => checked,
            };
            Event::Server(checked)
        }));
    }
}

/// An object that was read or received by itself, as machines take it.
pub(crate) fn received(object: Received) -> engine::Received<Admission> {
    let (object, held) = object.into_parts();
    engine::Received { object, hold: Admission { turn: None, held } }
}
