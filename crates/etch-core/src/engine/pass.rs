//! A pass over the objects of a CRD, of the operator and of `etch persist`: a sweep that may write, and those
//! that verify it.

use std::collections::VecDeque;
use std::sync::Arc;

use super::canary::{CanaryCounts, CanaryLimit};
use super::stage::Stage;
use super::stop_reason::StopReason;
use super::sweep::{Page, PageRequest, Sweep, SweepError, Wanted};
use super::{Ended, Work};
use crate::api::{Amount, Mode};
use crate::call_error::CallError;
use crate::object::Identity;
use crate::object_machine::Rules;
use crate::plan::Record;
use crate::report::checkpoint::Checkpoint;
use crate::report::ledger::Ledger;
use crate::report::tally::Tally;
use crate::report::versions::{ListKey, ObjectVersions};

/// How often a sweep that wrote something is verified by another, at most.
const VERIFICATIONS: u32 = 3;

/// What distinguishes passes.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// The object up to which all are left out; none if all are processed.
    pub after: Option<ListKey>,
    /// Rejections after which a sweep stops.
    pub stop_after_rejected: Option<Amount>,
    /// How many objects are written before all others: the pass ends after these, unless they are all that
    /// need a write. `None` if all are.
    pub canary: Option<CanaryLimit>,
    /// Whether what is refused to an earlier run is counted as that, though nothing is written.
    pub shows_rejected: bool,
    /// Whether what was written is verified.
    pub verifies: bool,
    /// Whether a pass is verified only once every object was answered about. The operator retries those while
    /// it watches; a command has no later.
    pub needs_every_answer: bool,
    /// Whether each sweep moves the resource version up to which the record covers the objects. Where it does
    /// not, a write by another client in the course of the pass is checked by every sweep that follows.
    pub moves_record: bool,
    /// Whether the record stays at the resource version at which it is. While servers may lag behind, a later
    /// write is taken to store what it shows, and that is verified when they do not: until then no record may
    /// prove it.
    pub keeps_record: bool,
}

/// What is to be done.
#[derive(Clone, Debug)]
pub enum Command<H> {
    /// A sweep begins, which verifies another or does not.
    SweepBegins {
        /// Whether it does.
        verifies: bool,
    },
    /// Ask for a page, and call [`Pass::page`].
    List(PageRequest),
    /// The same page will be asked for soon: it may be read ahead.
    ListAhead(PageRequest),
    /// Take room for an object of so many bytes, and call [`Pass::admitted`].
    Admit(usize),
    /// Drive the machine of an object to its end, and call [`Pass::reconciled`].
    Reconcile(Box<Work<H>>),
    /// A sweep has ended; its numbers are [`Pass::tally`] until the next call.
    SweepEnds {
        /// Whether it came to the end of the list.
        is_complete: bool,
    },
    /// Ask whether the next list still reaches the CRD's own objects, and call [`Pass::server_checked`].
    CheckServer,
    /// Nothing: it has ended. Drop everything that is still under way.
    End(Result<Box<Verified>, Box<Interrupted>>),
}

/// What the sweeps of a pass came to.
#[derive(Clone, Debug)]
pub struct Verified {
    /// The last sweep; its numbers are those of the whole pass.
    pub last: Sweep,
    /// What is known of the objects now.
    pub checkpoint: Checkpoint,
    /// What was known before a pass that writes nothing, which leaves that as it was.
    pub before: Checkpoint,
    /// The resource version up to which that is known.
    pub through: Option<u64>,
    /// How many objects needed a request, in all sweeps.
    pub requests: u64,
    /// How many objects an earlier run was refused, and were not tried again.
    pub postponed: u64,
    /// Whether the last sweep wrote nothing.
    pub is_verified: bool,
    /// The results of a canary, if other objects need a write, too; `None` after a pass over all objects.
    pub canary: Option<CanaryCounts>,
}

/// A pass that was not completed. What was done until then is done.
#[derive(Clone, Debug)]
pub struct Interrupted {
    /// The sweep that was interrupted, if it is the first one; otherwise the one that was being verified.
    pub last: Sweep,
    /// What is known of the objects now.
    pub checkpoint: Checkpoint,
    /// Whether the first sweep was interrupted.
    pub in_first: bool,
    /// The results of a canary until then; `None` in a pass over all objects.
    pub canary: Option<CanaryCounts>,
    /// Why it was not completed.
    pub reason: PassError,
}

/// Why a pass was not completed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PassError {
    /// A sweep was not.
    #[error(transparent)]
    Sweep(#[from] SweepError),
    /// The list is older than what is on record: etcd was restored.
    #[error("the resource version of the objects is lower than before")]
    Restored,
}

/// A pass over the objects of a CRD.
#[derive(Clone, Debug)]
pub struct Pass<H> {
    rules: Rules,
    limits: Limits,
    checkpoint: Checkpoint,
    ledger: Ledger,
    /// What is on record of the objects, for as long as the sweep lasts.
    record: Arc<Record>,
    /// What is on record beyond the place up to which the record goes: nothing.
    beyond: Arc<Record>,
    /// The sweep that is being verified; none in the first one.
    earlier: Option<Box<Sweep>>,
    sweep: Box<Sweep>,
    verifications: u32,
    /// The resource version at which the record was.
    covered: Option<u64>,
    through: Option<u64>,
    requests: u64,
    postponed: u64,
    slow: usize,
    commands: VecDeque<Command<H>>,
    state: State,
}

/// How far a pass has come.
#[derive(Clone, Debug)]
enum State {
    /// A sweep continues.
    Sweeps,
    /// It has ended like this, and [`Command::SweepEnds`] is to be taken.
    HasSwept(Result<(), SweepError>),
    /// The next one waits for [`Pass::server_checked`].
    AwaitsServer,
    /// There is none any more.
    Over,
}

impl<H> Pass<H> {
    /// Begins a pass over the objects, of which those that `checkpoint` covers need no request.
    pub fn begin(rules: Rules, limits: Limits, checkpoint: Checkpoint, ledger: Ledger) -> Self {
        let mut pass = Self {
            rules,
            limits,
            record: Arc::default(),
            beyond: Arc::default(),
            earlier: None,
            sweep: Box::default(),
            verifications: 0,
            covered: checkpoint.record.through,
            checkpoint,
            ledger,
            through: None,
            requests: 0,
            postponed: 0,
            slow: 0,
            commands: VecDeque::new(),
            state: State::Sweeps,
        };
        pass.begin_sweep();
        pass
    }

    /// The results of this sweep so far.
    pub fn tally(&self) -> &Tally {
        &self.sweep.tally
    }

    /// The sweep that this one verifies; none in the first one.
    pub fn earlier(&self) -> Option<&Sweep> {
        self.earlier.as_deref()
    }

    /// What is counted beside the states of objects.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Takes the ledger out of a pass that has ended.
    pub fn take_ledger(&mut self) -> Ledger {
        std::mem::take(&mut self.ledger)
    }

    /// What is known of the objects before this sweep.
    pub fn checkpoint(&self) -> &Checkpoint {
        &self.checkpoint
    }

    /// Records how many writes take so long that others no longer wait for them.
    pub fn set_slow_writes(&mut self, slow: usize) {
        self.slow = slow;
    }

    /// Begins nothing more; what is under way continues to its end.
    pub fn stop(&mut self, reason: StopReason) {
        self.sweep.stop(reason);
    }

    /// Handles a page.
    pub fn page(&mut self, page: Result<Page, CallError>) {
        if !self.sweeps() {
            return;
        }
        let (stage, sweep) = self.stage();
        let taken = sweep.page(&stage, page);
        self.go_on(taken);
    }

    /// Records that there is room for the next object.
    pub fn admitted(&mut self, hold: H) {
        if !self.sweeps() {
            return;
        }
        let (stage, sweep) = self.stage();
        let taken = sweep.admitted(&stage, hold);
        let taken = taken.map(|work| self.commands.extend(work.map(Box::new).map(Command::Reconcile)));
        self.go_on(taken);
    }

    /// Handles the result for an object.
    pub fn reconciled(&mut self, index: usize, identity: Identity, ended: Ended) {
        self.ledger.enter(&identity, ended.found);
        if !self.sweeps() {
            return;
        }
        let (stage, sweep) = self.stage();
        let taken = sweep.reconciled(&stage, index, identity, ended.result);
        self.go_on(taken);
    }

    /// Records whether the next list still reaches the CRD's own objects.
    pub fn server_checked(&mut self, checked: Result<(), CallError>) {
        match checked {
            Ok(()) => {
                self.state = State::Sweeps;
                self.begin_sweep();
            }
            Err(error) => {
                // The sweep that would have verified it has not begun.
                if let Some(earlier) = self.earlier.take() {
                    self.end_interrupted(*earlier, false, SweepError::List(error).into());
                }
            }
        }
    }

    /// What is to be done now; none until something is taken in.
    pub fn poll(&mut self) -> Option<Command<H>> {
        if let Some(command) = self.commands.pop_front() {
            return Some(command);
        }
        match std::mem::replace(&mut self.state, State::Over) {
            State::HasSwept(Ok(())) => self.sweep_complete(),
            State::HasSwept(Err(reason)) => self.sweep_interrupted(reason),
            State::Sweeps => {
                self.state = State::Sweeps;
                return self.poll_sweep();
            }
            idle => self.state = idle,
        }
        self.commands.pop_front()
    }

    fn poll_sweep(&mut self) -> Option<Command<H>> {
        if let Some(stop) = self.sweep.take_stop() {
            self.go_on(Err(stop.into()));
            return self.commands.pop_front();
        }
        let slow = self.slow;
        let (stage, sweep) = self.stage();
        Some(match sweep.poll(&stage, slow)? {
            Wanted::Page(request) => Command::List(request),
            Wanted::PageAhead(request) => Command::ListAhead(request),
            Wanted::Room(bytes) => Command::Admit(bytes),
        })
    }

    fn sweeps(&self) -> bool {
        matches!(self.state, State::Sweeps)
    }

    fn stage(&mut self) -> (Stage<'_>, &mut Sweep) {
        let Self { rules, limits, checkpoint, ledger, record, beyond, earlier, sweep, .. } = self;
        let stage = Stage {
            ledger,
            record,
            upto: checkpoint.upto.as_ref(),
            beyond,
            proved: &checkpoint.proved,
            earlier: earlier.as_deref().map(Sweep::as_earlier),
            rejected: (rules.mode == Mode::Persist || limits.shows_rejected).then_some(&checkpoint.rejected),
            after: limits.after.as_ref(),
            stop_after_rejected: limits.stop_after_rejected,
            canary: limits.canary,
            rules,
        };
        (stage, sweep)
    }

    fn begin_sweep(&mut self) {
        let hidden = self.checkpoint.record.hidden.clone();
        self.record = Arc::new(self.checkpoint.record.clone());
        self.beyond = Arc::new(Record { hidden, ..Record::empty(&self.rules.crd) });
        self.commands.push_back(Command::SweepBegins { verifies: self.earlier.is_some() });
    }

    /// Continues after something was taken in.
    fn go_on(&mut self, taken: Result<(), SweepError>) {
        if taken.is_ok() && !self.sweep.is_complete() {
            return;
        }
        let is_complete = taken.is_ok();
        if !is_complete {
            self.sweep.interrupt();
            self.commands.clear();
        }
        self.commands.push_back(Command::SweepEnds { is_complete });
        self.state = State::HasSwept(taken);
    }

    fn sweep_interrupted(&mut self, reason: SweepError) {
        let mut sweep = std::mem::take(&mut *self.sweep);
        match self.earlier.take() {
            None => {
                self.interrupt_first(&mut sweep);
                self.end_interrupted(sweep, true, reason.into());
            }
            Some(earlier) => {
                self.checkpoint.proved.extend(sweep.proved);
                self.end_interrupted(*earlier, false, reason.into());
            }
        }
    }

    /// Keeps what a first sweep has done that writes.
    fn interrupt_first(&mut self, sweep: &mut Sweep) {
        if self.limits.verifies {
            // What a canary leaves out is covered by no record.
            let place = match self.limits.canary {
                None => (self.record_through(sweep.through), sweep.upto.clone()),
                Some(_) => (None, None),
            };
            let proved = std::mem::take(&mut sweep.proved);
            self.checkpoint.add_interrupted(&sweep.tally, proved, place, &self.rules);
        }
    }

    /// Where a sweep that began at this resource version puts the record.
    pub fn record_through(&self, began: Option<u64>) -> Option<u64> {
        if self.limits.keeps_record { self.covered } else { began }
    }

    fn end_interrupted(&mut self, last: Sweep, in_first: bool, reason: PassError) {
        let checkpoint = std::mem::take(&mut self.checkpoint);
        // In a later sweep, `last` is the first one: the only one that writes.
        let canary = self.limits.canary.map(|_| last.canary());
        self.end(Err(Box::new(Interrupted { last, checkpoint, in_first, canary, reason })));
    }

    fn end(&mut self, ended: Result<Box<Verified>, Box<Interrupted>>) {
        self.state = State::Over;
        self.commands.push_back(Command::End(ended));
    }

    /// Continues after a sweep to the end.
    fn sweep_complete(&mut self) {
        let sweep = std::mem::take(&mut self.sweep);
        let is_first = self.earlier.is_none();
        if is_first && sweep.through.is_some() && sweep.through < self.checkpoint.record.through {
            return self.end_interrupted(*sweep, true, PassError::Restored);
        }
        if is_first {
            self.postponed = sweep.postponed;
        }
        self.requests += sweep.requests;
        if !self.limits.verifies {
            return self.end_unverified(*sweep, None);
        }
        if self.limits.canary.is_some() {
            let Some(sweep) = self.canary_swept(sweep) else { return };
            self.limits.canary = None;
            return self.go_on_after(sweep, is_first);
        }
        self.go_on_after(sweep, is_first);
    }

    /// Continues after a sweep that may write a few objects; returns the sweep if no other object needs a
    /// write.
    fn canary_swept(&mut self, mut sweep: Box<Sweep>) -> Option<Box<Sweep>> {
        if let Some(first) = self.earlier.take() {
            sweep.tally.add_earlier_writes(&self.checkpoint.writes);
            self.end_unverified(*sweep, Some(first.canary()));
            return None;
        }
        if sweep.canary().withheld == 0 {
            return Some(sweep);
        }
        let proved = std::mem::take(&mut sweep.proved);
        let before = std::mem::take(&mut self.checkpoint.writes);
        self.checkpoint.add_interrupted(&sweep.tally, proved, (None, None), &self.rules);
        sweep.tally.add_earlier_writes(&before);
        self.checkpoint.writes.add(&before);
        if sweep.canary().written == 0 {
            let counts = sweep.canary();
            self.end_unverified(*sweep, Some(counts));
            return None;
        }
        self.earlier = Some(sweep);
        self.state = State::AwaitsServer;
        self.commands.push_back(Command::CheckServer);
        None
    }

    fn go_on_after(&mut self, mut sweep: Box<Sweep>, is_first: bool) {
        if is_first || self.limits.moves_record {
            self.through = self.record_through(sweep.through);
        }
        let unanswered = if self.limits.needs_every_answer { 0 } else { sweep.tally.counts().unknown };
        let is_verified = match is_first {
            true => sweep.tally.counts().written == 0,
            false => sweep.requests == unanswered,
        };
        let proved = std::mem::take(&mut sweep.proved);
        self.checkpoint = self.checkpoint.after_sweep(&mut sweep.tally, proved, self.through, &self.rules);
        if is_verified || self.verifications == VERIFICATIONS {
            return self.end_verified(*sweep, is_verified);
        }
        self.verifications += 1;
        self.earlier = Some(sweep);
        self.state = State::AwaitsServer;
        self.commands.push_back(Command::CheckServer);
    }

    fn end_verified(&mut self, last: Sweep, is_verified: bool) {
        let checkpoint = std::mem::take(&mut self.checkpoint);
        let Self { through, requests, postponed, .. } = *self;
        let before = Checkpoint::default();
        let canary = None;
        let verified =
            Verified { last, checkpoint, before, through, requests, postponed, is_verified, canary };
        self.end(Ok(Box::new(verified)));
    }

    /// Ends a pass that writes nothing, or a canary: it proves nothing about other objects than it has
    /// written.
    fn end_unverified(&mut self, mut last: Sweep, canary: Option<CanaryCounts>) {
        let before = std::mem::take(&mut self.checkpoint);
        if canary.is_none() {
            last.tally.add_earlier_writes(&before.writes);
        }
        // A record of a part of the objects is no record of those that change now.
        let record = match before.upto {
            None => before.record.clone(),
            Some(_) => Record { through: None, ..before.record.clone() },
        };
        let counts = last.tally.counts();
        let open = counts.due + counts.unproved + counts.held + counts.rejected + counts.unknown;
        let through = match open {
            // What all objects were known to store at the beginning of the list.
            0 => last.through.filter(|_| record.through.is_some()),
            // What is on record stays so, apart from the objects that are open now.
            _ => record.through.filter(|_| canary.is_none()),
        };
        let Self { requests, postponed, .. } = *self;
        let proved = match canary {
            // The watch brings what it has written.
            Some(_) => before.proved.clone(),
            None => ObjectVersions::default(),
        };
        let checkpoint = Checkpoint { record, proved, ..Checkpoint::default() };
        let is_verified = false;
        let verified =
            Verified { last, checkpoint, before, through, requests, postponed, is_verified, canary };
        self.end(Ok(Box::new(verified)));
    }
}
