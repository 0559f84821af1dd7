//! The steady state of a CRD: what happens to its objects is reconciled, counted and reported.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;

use super::outage::WatchOutage;
use super::pass_state::PassState;
use super::queue::{InTally, Queue, Queued};
use super::retries::Retries;
use super::stop_reason::StopReason;
use super::updates::Updates;
use super::{Ended, Received, Work};
use crate::object::{Identity, Object};
use crate::object_machine::{ObjectMachine, Reconciled, Rules};
use crate::object_state::ObjectState;
use crate::plan::Record;
use crate::report::checkpoint::record_of;
use crate::report::ledger::Ledger;

/// What the watch brings.
#[derive(Clone, Debug)]
pub enum Change<H> {
    /// An object was created.
    Created(Received<H>),
    /// An object was changed.
    Applied(Received<H>),
    /// An object was deleted; its last state.
    Deleted(Object),
    /// The watch fails, at this time of day, and why.
    Failed(Timestamp, String),
    /// The watch works again, and nothing has happened in between.
    Resumed,
}

/// What is to be done.
#[derive(Clone, Debug)]
pub enum Command<H> {
    /// Drive the machine of an object to its end, and call [`Watching::reconciled`].
    Reconcile(Box<Work<H>>),
    /// Read an object again, and call [`Watching::read`]; or [`Watching::reconciled`] where it is gone or
    /// cannot be read.
    Read(Identity),
    /// Bring conditions and report up to date, and call [`Watching::published`].
    Publish,
    /// Watch no longer: everything that is still under way is to be dropped.
    End(End),
}

/// Why the objects are watched no longer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// All objects are to be verified: it is time, or some change may have been missed.
    Verify,
    /// More objects failed than are remembered by name, and are to be tried again.
    Overflow,
    /// No further object may be processed.
    Stop(StopReason),
}

/// The objects of one CRD after a pass.
#[derive(Clone, Debug)]
pub struct Watching<H> {
    rules: Rules,
    writes: bool,
    pass: PassState,
    ledger: Ledger,
    /// What is on record of an object.
    record: Arc<Record>,
    /// The same for an object that was processed before it changed.
    of_known: Arc<Record>,
    queue: Queue<H>,
    retries: Retries,
    updates: Updates,
    outage: WatchOutage,
    /// Whether some of the objects are watched by another watch than the last change came through, and that
    /// one fails.
    is_other_failing: bool,
    /// When what was written since the schema changed is to be verified.
    verify_at: Option<Instant>,
    /// The resource version up to which the watch has brought everything.
    delivered: Option<u64>,
    /// Writes that take so long that others no longer wait for them.
    slow: usize,
    is_publishing: bool,
    commands: VecDeque<Command<H>>,
    /// Why it ends, once nothing is under way any more.
    end: Option<End>,
}

impl<H> Watching<H> {
    /// Begins where a pass has ended. `verify_at` is when what was written is to be verified, and `writes`
    /// whether anything may be.
    pub fn begin(
        rules: Rules,
        pass: PassState,
        ledger: Ledger,
        mut retries: Retries,
        verify_at: Option<Instant>,
        writes: bool,
        now: Instant,
    ) -> Self {
        retries.arm(now, &pass.tally, writes);
        let mut queue = Queue::default();
        // What was rejected is not tried again where nothing is written.
        let mutated = if writes { pass.tally.mutated() } else { Vec::new() };
        mutated.into_iter().for_each(|identity| queue.back_off(now, identity));
        let mut watching = Self {
            rules,
            writes,
            record: Arc::default(),
            of_known: Arc::default(),
            queue,
            retries,
            updates: Updates::after(pass.tally.counts()),
            pass,
            ledger,
            outage: WatchOutage::default(),
            is_other_failing: false,
            verify_at: verify_at.filter(|_| writes),
            delivered: None,
            slow: 0,
            is_publishing: false,
            commands: VecDeque::new(),
            end: None,
        };
        watching.share_record();
        watching
    }

    /// What is known of the objects.
    pub fn pass(&self) -> &PassState {
        &self.pass
    }

    /// What is counted beside the states of objects.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Ends it: what is known of the objects, when to try again what could not be written, and the ledger.
    pub fn into_parts(self) -> (PassState, Retries, Ledger) {
        (self.pass, self.retries, self.ledger)
    }

    /// Whether changes are wanted: while there is room for one more object.
    pub fn wants_changes(&self) -> bool {
        self.end.is_none() && self.queue.has_capacity(self.slow)
    }

    /// How many objects there are, where nothing is being done about any of them.
    pub fn objects_at_rest(&self) -> Option<u64> {
        self.queue.is_idle().then(|| self.pass.tally.counts().objects)
    }

    /// Whether the report lacks something about the objects.
    pub fn has_unreported(&self) -> bool {
        self.is_publishing || self.updates.due().is_some()
    }

    /// Whether the report lacks something about the objects, or did a moment ago: if etcd is restored to that
    /// moment, the report does not show it.
    pub(super) fn had_unreported(&self, now: Instant) -> bool {
        self.has_unreported() || self.updates.are_fresh(now)
    }

    /// Records how many writes take so long that others no longer wait for them.
    pub fn set_slow_writes(&mut self, slow: usize) {
        self.slow = slow;
    }

    /// Records up to which resource version the watch has brought everything.
    pub fn set_delivered(&mut self, delivered: Option<u64>) {
        self.delivered = delivered;
        self.pass.counted.delivered(delivered);
    }

    /// Records whether another watch of some of the objects fails: what comes from now on through the others
    /// does not show that every change is noticed.
    pub fn set_other_failing(&mut self, is_failing: bool) {
        self.is_other_failing = is_failing;
    }

    /// Records since when, and why, changes of CRDs or policies are not noticed.
    pub fn set_watch_failure(&mut self, now: Instant, failure: Option<String>) {
        self.pass.watch_failure = self.outage.reported().or(failure);
        self.updates.want(now);
    }

    /// Notes that the watch has gone on where nothing had happened since it failed.
    pub fn watch_resumed(&mut self) {
        self.outage.works();
    }

    /// Ends it as soon as nothing is under way any more.
    pub fn end(&mut self, end: End) {
        self.end.get_or_insert(end);
        // What has not begun is not waited for.
        for command in self.commands.drain(..) {
            if let Command::Reconcile(work) = command {
                self.queue.done(&work.identity.uid, false);
            }
        }
    }

    /// Whether it ends once nothing is under way any more.
    pub fn is_ending(&self) -> bool {
        self.end.is_some()
    }

    /// Notes that conditions and report are brought up to date with what is known now, some time after
    /// [`Command::Publish`] asked for it.
    pub fn publishes(&mut self, date: Timestamp) {
        self.pass.times.finished = Some(date);
        self.updates.publishes(self.pass.tally.counts());
    }

    /// Records what the watch brings.
    pub fn changed(&mut self, now: Instant, change: Change<H>) {
        if !self.is_other_failing && !matches!(change, Change::Failed(..)) {
            self.outage.works();
        }
        match change {
            Change::Failed(date, why) => self.outage.fails(now, date, why),
            Change::Resumed => {}
            // The list showed it in this state, or in a later one.
            Change::Created(received) if self.pass.counted.has_created(&received.object) => {
                self.object_changed(now, received);
            }
            Change::Created(received) => {
                let queued = self.queue.created(now, received);
                self.begin_object(now, queued);
            }
            Change::Applied(received) => self.object_changed(now, received),
            Change::Deleted(object) => {
                let is_counted = self.queue.deleted(&object) && !self.pass.counted.never_had(&object);
                if is_counted && self.pass.tally.deleted(&object.identity()) {
                    self.updates.want(now);
                }
                self.updates.want_totals(now, self.pass.tally.counts());
            }
        }
    }

    /// Reconciles an object that has changed, unless it is as our own write left it
    /// (Proof::UnchangedSincePass). While it has to wait, nothing is known of it.
    fn object_changed(&mut self, now: Instant, received: Received<H>) {
        if self.pass.proved.take(&received.object) {
            return;
        }
        let identity = received.object.identity();
        let queued = self.queue.changed(now, received);
        let waits = matches!(queued, Queued::Waits);
        self.begin_object(now, queued);
        if waits && self.pass.tally.update(&identity, ObjectState::Unknown, &[]) {
            self.renew_record();
            self.updates.want(now);
        }
    }

    fn begin_object(&mut self, now: Instant, queued: Queued<H>) {
        let Queued::Begins(received, is_new) = queued else { return };
        let record = if is_new { self.record.clone() } else { self.of_known.clone() };
        self.reconcile(received, record, now);
    }

    fn reconcile(&mut self, received: Received<H>, record: Arc<Record>, read: Instant) {
        let Received { object, hold } = received;
        let identity = object.identity();
        let known = self.ledger.of_object(&object, &identity, &record);
        let (machine, step) = ObjectMachine::begin(self.rules.clone(), known, object, record, false);
        self.commands.push_back(Command::Reconcile(Box::new(Work {
            index: 0,
            identity,
            machine,
            step,
            read,
            hold,
        })));
    }

    /// Handles an object that was to be read again.
    pub fn read(&mut self, now: Instant, received: Received<H>) {
        self.queue.was_read(received.object.uid());
        if self.end.is_some() {
            self.queue.done(received.object.uid(), false);
            return;
        }
        self.reconcile(received, self.record.clone(), now);
    }

    /// Handles the result for an object.
    pub fn reconciled(&mut self, now: Instant, identity: &Identity, ended: Ended) {
        let Ended { result: reconciled, found } = ended;
        let has_cleared = !found.cleared.is_empty();
        self.ledger.enter(identity, found);
        let is_gone = matches!(&reconciled, Ok(Reconciled { state: ObjectState::Gone, .. }));
        let (in_tally, newest) = self.queue.done(&identity.uid, is_gone);
        if self.end.is_some() {
            return;
        }
        let reconciled = match reconciled {
            Ok(reconciled) => reconciled,
            Err(stop) => {
                if !stop.lets_writes_end() {
                    self.queue = Queue::default();
                }
                return self.end(End::Stop(stop));
            }
        };
        let was_unanswered = self.pass.tally.is_unanswered(identity);
        let is_unknown = matches!(reconciled.state, ObjectState::Unknown);
        let is_news = self.count(now, identity, reconciled, in_tally);
        if is_news || is_unknown {
            // The event that led here is used up: nothing else looks at the object again.
            self.retries.arm(now, &self.pass.tally, self.writes);
        }
        if is_news {
            self.renew_record();
            let is_answered = was_unanswered && !self.pass.tally.is_unanswered(identity);
            // While the others are read again, one answer more is no news.
            if is_answered && !self.queue.reads_again() {
                self.retries.answered(now);
            }
            self.updates.want(now);
        }
        self.updates.want_totals(now, self.pass.tally.counts());
        if has_cleared {
            self.updates.want(now);
        }
        if let Some(newest) = newest {
            self.object_changed(now, newest);
        }
    }

    /// Counts the result for an object; whether what is reported changes by that.
    fn count(
        &mut self,
        now: Instant,
        identity: &Identity,
        reconciled: Reconciled,
        in_tally: InTally,
    ) -> bool {
        let Reconciled { state, missing, left_at } = reconciled;
        if let ObjectState::Written { resource_version } = &state {
            self.pass.proved.insert(&identity.uid, resource_version);
            self.queue.count_write(now, &identity.uid);
            self.updates.want_write(now);
        }
        let tally = &mut self.pass.tally;
        // What is missing again and again counts once.
        let counted = if self.queue.is_contended(now, &identity.uid) { &[][..] } else { &missing };
        let is_news = match in_tally {
            InTally::Counted => tally.update(identity, state, counted),
            InTally::Created => tally.created(identity, state, &missing),
            InTally::Deleted => false,
        };
        if let Some(left_at) = left_at {
            tally.set_rejected_at(identity, &left_at);
        }
        // It stays so if no server answers when it is read again.
        if tally.is_mutated(identity) {
            self.queue.back_off(now, identity.clone());
        }
        is_news
    }

    /// Notes that conditions and report are up to date with what was known at [`Self::publishes`].
    pub fn published(&mut self, now: Instant) {
        self.is_publishing = false;
        self.updates.made(now);
    }

    /// What is to be done now; none until something happens, or it is [`Self::timeout`].
    pub fn poll(&mut self, now: Instant) -> Option<Command<H>> {
        self.take_time(now);
        if let Some(end) = &self.end {
            return self.queue.is_drained().then(|| Command::End(end.clone()));
        }
        if let Some(command) = self.commands.pop_front() {
            return Some(command);
        }
        if let Some(identity) = self.queue.next_read(now, self.slow) {
            return Some(Command::Read(identity));
        }
        let is_due = !self.is_publishing && self.updates.due().is_some_and(|due| due <= now);
        if is_due && self.updates.take(self.pass.tally.counts()) {
            if self.queue.is_idle() {
                self.advance_record();
            }
            self.is_publishing = true;
            return Some(Command::Publish);
        }
        None
    }

    /// When to call [`Self::poll`] though nothing has happened, if there is such a time.
    pub fn timeout(&self) -> Option<Instant> {
        let update = self.updates.due().filter(|_| !self.is_publishing);
        let times =
            [self.queue.due(), self.retries.due(), self.outage.due(), self.verification_due(), update];
        times.into_iter().flatten().min().filter(|_| self.end.is_none())
    }

    /// While no watch shows changes of the objects, a list now would be out of date at once.
    fn verification_due(&self) -> Option<Instant> {
        self.verify_at.filter(|_| !self.outage.goes_on())
    }

    /// Records that some time has come.
    fn take_time(&mut self, now: Instant) {
        if self.end.is_some() {
            return;
        }
        let is_due = |due: Option<Instant>| due.is_some_and(|due| due <= now);
        if self.outage.is_over() {
            // Which events are still to come is not known, but a list shows where they end.
            return self.end(End::Verify);
        }
        if is_due(self.verification_due()) {
            return self.end(End::Verify);
        }
        if is_due(self.outage.due()) {
            self.pass.watch_failure = self.outage.report();
            self.updates.want(now);
        }
        if is_due(self.retries.due()) {
            // Those that were to be retried may be gone.
            self.retries.arm(now, &self.pass.tally, self.writes);
        }
        if is_due(self.retries.due()) {
            match self.retries.take(now, &self.pass.tally) {
                Some(identities) => self.queue.read_again(identities),
                None => {
                    self.queue = Queue::default();
                    self.end(End::Overflow);
                }
            }
        }
    }

    /// Moves the record to the resource version up to which every object was reconciled while watching, or
    /// excepted. Before what was written under a changed schema is verified, it stays where the pass has put
    /// it.
    fn advance_record(&mut self) {
        let pass = &mut self.pass;
        let is_later = self.delivered > pass.finished_through && pass.finished_through.is_some();
        if is_later && self.writes && pass.times.verify_at.is_none() {
            pass.finished_through = self.delivered;
            self.renew_record();
        }
    }

    /// Puts the record where the numbers are.
    fn renew_record(&mut self) {
        let pass = &mut self.pass;
        if self.writes {
            let hidden = &pass.record.hidden;
            pass.record = record_of(&pass.tally, pass.finished_through, &self.rules, hidden);
        }
        self.share_record();
    }

    fn share_record(&mut self) {
        self.of_known = Arc::new(self.pass.record.of_known_object());
        self.record = Arc::new(self.pass.record.clone());
    }
}
