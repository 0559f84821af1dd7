//! Random lives of a CRD's objects, in which everything happens at any time: users write, create and delete
//! while servers lag behind and afterwards, answers are lost, the watch is slow, a pause begins, Etch
//! crashes. When servers have caught up, faults have stopped and nothing is left to be done, each object that
//! is counted as stored is, and none is left out.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::{object, page, range, rules, start};
use crate::engine::pass::{self, Interrupted, Limits, Pass, Verified};
use crate::engine::pass_state::PassState;
use crate::engine::retries::Retries;
use crate::engine::stop_reason::StopReason;
use crate::engine::sweep::{Form, Page, PageRequest};
use crate::engine::watching::{self, Change, End, Watching};
use crate::engine::{Received, Work};
use crate::object::{Identity, Object};
use crate::object_machine::{Again, Reconciled, Step};
use crate::object_state::ObjectState;
use crate::plan::{Outcome, Proof, Record};
use crate::report::checkpoint::Checkpoint;
use crate::report::state::Times;

/// Objects to a page.
const PER_PAGE: usize = 3;
/// After this, every server serves the schema.
const CAUGHT_UP: Duration = Duration::from_secs(900);
/// How often something happens before faults stop.
const HAPPENS: usize = 120;
/// So many steps after that are enough to come to rest.
const PATIENCE: usize = 20_000;

/// Numbers that depend on the seed alone.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % sides as u64) as usize
    }
}

#[derive(Clone, Copy)]
struct Stored {
    revision: u64,
    uid: u64,
    /// Whether etcd holds the default.
    is_filled: bool,
}

/// What etcd holds, and what has happened to it.
#[derive(Default)]
struct Etcd {
    revision: u64,
    uids: u64,
    objects: BTreeMap<String, Stored>,
    events: Vec<(u64, Happened)>,
}

#[derive(Clone)]
enum Happened {
    Created(String, Stored),
    Changed(String, Stored),
    Deleted(String, Stored),
}

fn shown(name: &str, stored: Stored) -> Object {
    let mut json = object(name, stored.revision).json().clone();
    json["metadata"]["uid"] = stored.uid.to_string().into();
    Object::from(json)
}

impl Etcd {
    /// Creates or updates an object; through a server that lags behind, the default is not stored.
    fn write(&mut self, name: &str, is_filled: bool) {
        self.revision += 1;
        let before = self.objects.get(name).copied();
        self.uids += u64::from(before.is_none());
        let uid = before.map_or(self.uids, |before| before.uid);
        let stored = Stored { revision: self.revision, uid, is_filled };
        self.objects.insert(name.to_owned(), stored);
        let happened = match before {
            None => Happened::Created(name.to_owned(), stored),
            Some(_) => Happened::Changed(name.to_owned(), stored),
        };
        self.events.push((self.revision, happened));
    }

    fn delete(&mut self, name: &str) {
        if let Some(stored) = self.objects.remove(name) {
            self.revision += 1;
            let last = Stored { revision: self.revision, ..stored };
            self.events.push((self.revision, Happened::Deleted(name.to_owned(), last)));
        }
    }

    fn get(&self, identity: &Identity) -> Option<Object> {
        let stored = self.objects.get(&identity.name).copied()?;
        (stored.uid.to_string() == identity.uid).then(|| shown(&identity.name, stored))
    }

    /// A write of Etch's to the object as it was read, with a repeat that proves it where that is asked for.
    fn persist(&mut self, read: &Object) -> Outcome {
        let Some(stored) = self.objects.get(read.name()).copied() else { return Outcome::Gone };
        if stored.uid.to_string() != read.uid() {
            return Outcome::Gone;
        }
        if Some(stored.revision) != read.revision() {
            return Outcome::Conflict;
        }
        if stored.is_filled {
            return Outcome::AlreadyStored(Proof::WriteChangedNothing);
        }
        self.write(read.name(), true);
        Outcome::Written { resource_version: self.revision.to_string(), proof: Proof::WriteAnswered }
    }
}

/// A list that is read page by page, as it was at the beginning.
struct Snapshot {
    revision: u64,
    objects: Vec<(String, Stored)>,
}

/// What is under way for Etch.
enum Task {
    List(PageRequest),
    Admit,
    Object(Box<Work<()>>),
    Read(Identity),
    CheckServer,
}

enum Phase {
    Pass(Box<Pass<()>>),
    Watch(Box<Watching<()>>),
}

struct Life {
    dice: Dice,
    etcd: Etcd,
    now: Instant,
    phase: Phase,
    tasks: Vec<Task>,
    snapshot: Option<Snapshot>,
    /// How many events the watch has brought, and those that are on their way.
    heard: u64,
    coming: VecDeque<Happened>,
    record: Record,
    /// Whether the pass has begun when servers had caught up, and asks about every object.
    verifies: bool,
    is_verified: bool,
    /// Whether the work that is under way ends for a pause.
    is_paused: bool,
    has_faults: bool,
}

impl Life {
    fn begin(seed: u64) -> Self {
        let mut dice = Dice(seed);
        let mut etcd = Etcd::default();
        for index in 0..dice.roll(12) {
            let is_filled = dice.roll(3) == 0;
            etcd.write(&format!("o{index:02}"), is_filled);
        }
        let record = Record { servers_lag: true, ..Record::empty(&rules().crd) };
        let checkpoint = Checkpoint { record: record.clone(), ..Checkpoint::default() };
        Self {
            phase: Phase::Pass(pass(checkpoint, false)),
            dice,
            etcd,
            now: start(),
            tasks: Vec::new(),
            snapshot: None,
            heard: 0,
            coming: VecDeque::new(),
            record,
            verifies: false,
            is_verified: false,
            is_paused: false,
            has_faults: true,
        }
    }

    fn lags(&self) -> bool {
        self.now < start() + CAUGHT_UP
    }

    /// Something that Etch does not decide.
    fn happen(&mut self) {
        let name = format!("o{:02}", self.dice.roll(14));
        match self.dice.roll(12) {
            0..=3 => {
                let is_filled = !self.lags() || self.dice.roll(2) == 0;
                self.etcd.write(&name, is_filled);
            }
            4 => self.etcd.delete(&name),
            5 => self.stop(StopReason::Pause),
            6 if self.dice.roll(4) == 0 => self.crash(),
            7 => {
                if let Phase::Watch(watching) = &mut self.phase {
                    watching.changed(self.now, Change::Failed(Timestamp::UNIX_EPOCH, "refused".to_owned()));
                }
            }
            _ => self.now += Duration::from_secs(self.dice.roll(60) as u64),
        }
    }

    fn stop(&mut self, reason: StopReason) {
        self.is_paused = true;
        match &mut self.phase {
            Phase::Pass(pass) => pass.stop(reason),
            Phase::Watch(watching) => watching.end(End::Stop(reason)),
        }
    }

    /// Etch ends, and begins again with what is on record.
    fn crash(&mut self) {
        self.restart(Checkpoint { record: self.record.clone(), ..Checkpoint::default() });
    }

    fn restart(&mut self, mut checkpoint: Checkpoint) {
        self.tasks.clear();
        self.snapshot = None;
        self.is_paused = false;
        self.verifies = !self.is_verified && !self.lags();
        // As the operator begins a pass.
        let is_covered = checkpoint.record.through.is_some();
        checkpoint.record.servers_lag = !self.is_verified && (self.verifies || !is_covered);
        let keeps_record = !self.is_verified && !self.verifies && is_covered;
        self.phase = Phase::Pass(pass(checkpoint, keeps_record));
    }

    /// Performs all that Etch asks for now; whether it asked for anything.
    fn perform(&mut self) -> bool {
        let mut has_asked = false;
        loop {
            match &mut self.phase {
                Phase::Pass(pass) => {
                    let Some(command) = pass.poll() else { return has_asked };
                    match command {
                        pass::Command::SweepBegins { .. } => self.snapshot = None,
                        pass::Command::List(request) => self.tasks.push(Task::List(request)),
                        pass::Command::Admit(_) => self.tasks.push(Task::Admit),
                        pass::Command::Reconcile(work) => self.tasks.push(Task::Object(work)),
                        pass::Command::CheckServer => self.tasks.push(Task::CheckServer),
                        pass::Command::SweepEnds { .. } | pass::Command::ListAhead(_) => {}
                        pass::Command::End(ended) => self.end_pass(ended),
                    }
                }
                Phase::Watch(watching) => {
                    let Some(command) = watching.poll(self.now) else { return has_asked };
                    match command {
                        watching::Command::Reconcile(work) => self.tasks.push(Task::Object(work)),
                        watching::Command::Read(identity) => self.tasks.push(Task::Read(identity)),
                        watching::Command::Publish => {
                            self.record = watching.pass().record.clone();
                            watching.published(self.now);
                        }
                        watching::Command::End(_) => self.end_watch(),
                    }
                }
            }
            has_asked = true;
        }
    }

    fn end_pass(&mut self, ended: Result<Box<Verified>, Box<Interrupted>>) {
        match ended {
            Ok(verified) => {
                let Verified { last, checkpoint, through, .. } = *verified;
                let mut record = checkpoint.record;
                self.is_verified |= self.verifies;
                let verify_at = (!self.is_verified).then_some(Timestamp::MAX);
                record.servers_lag = false;
                record.through = record.through.and(through);
                self.record = record.clone();
                let from: u64 = last.watch_from.parse().expect("a revision");
                self.heard = from;
                self.coming.clear();
                self.tasks.clear();
                self.is_paused = false;
                let pass = PassState {
                    tally: last.tally,
                    record,
                    proved: checkpoint.proved,
                    watch_from: last.watch_from,
                    times: Times { verify_at, ..Times::default() },
                    finished_through: through,
                    watch_failure: None,
                };
                let verify_at = (!self.is_verified).then(|| start() + CAUGHT_UP);
                let seed = self.dice.roll(16) as u64;
                let watching = Watching::begin(rules(), pass, Retries::new(seed), verify_at, true, self.now);
                self.phase = Phase::Watch(Box::new(watching));
            }
            Err(interrupted) => self.restart(interrupted.checkpoint),
        }
    }

    fn end_watch(&mut self) {
        let crd = rules().crd;
        let next = Phase::Pass(pass(Checkpoint::empty(&crd), false));
        let Phase::Watch(watching) = std::mem::replace(&mut self.phase, next) else { return };
        let (pass, _) = watching.into_parts();
        self.restart(pass.into_checkpoint().unwrap_or_else(|| Checkpoint::empty(&crd)));
    }

    /// Something comes of what is under way, or the watch brings something; false where nothing is.
    fn advance(&mut self) -> bool {
        self.hear();
        let can_hear = match &self.phase {
            Phase::Watch(watching) => watching.wants_changes() && !self.coming.is_empty(),
            Phase::Pass(_) => false,
        };
        let choices = self.tasks.len() + usize::from(can_hear);
        if choices == 0 {
            return false;
        }
        let choice = self.dice.roll(choices);
        if choice == self.tasks.len() {
            self.deliver();
            return true;
        }
        match self.tasks.swap_remove(choice) {
            Task::List(request) => {
                let page = self.page(request);
                self.with_pass(|pass| pass.page(Ok(page)));
            }
            Task::Admit => self.with_pass(|pass| pass.admitted(())),
            Task::CheckServer => self.with_pass(|pass| pass.server_checked(Ok(()))),
            Task::Read(identity) => match self.etcd.get(&identity) {
                Some(object) => {
                    let now = self.now;
                    if let Phase::Watch(watching) = &mut self.phase {
                        watching.read(now, Received { object, hold: () });
                    }
                }
                None => self.ended(0, identity, Ok(Reconciled::of(ObjectState::Gone, Vec::new()))),
            },
            Task::Object(work) => self.advance_object(*work),
        }
        true
    }

    fn with_pass(&mut self, act: impl FnOnce(&mut Pass<()>)) {
        if let Phase::Pass(pass) = &mut self.phase {
            act(pass);
        }
    }

    fn advance_object(&mut self, mut work: Work<()>) {
        let step = std::mem::replace(&mut work.step, Step::Write);
        work.step = match step {
            Step::Done(reconciled) => return self.ended(work.index, work.identity, Ok(reconciled)),
            // A pause has begun before there was a place for the write.
            Step::Write if self.is_paused && self.dice.roll(2) == 0 => {
                work.machine.interrupt();
                return self.ended(work.index, work.identity, Err(StopReason::Pause));
            }
            Step::Write => {
                let outcome = self.etcd.persist(work.machine.object());
                // The answer may be lost, of what was carried out.
                let is_lost = self.has_faults && self.dice.roll(6) == 0;
                work.machine.wrote((!is_lost).then_some(outcome))
            }
            Step::ReadAgain { .. } => {
                let again = match self.etcd.get(&work.identity) {
                    _ if self.has_faults && self.dice.roll(6) == 0 => Again::Unanswered,
                    Some(object) => Again::Read(Box::new(object)),
                    None => Again::Gone,
                };
                work.machine.read(again)
            }
            step => panic!("{step:?}"),
        };
        self.tasks.push(Task::Object(Box::new(work)));
    }

    fn ended(&mut self, index: usize, identity: Identity, ended: Result<Reconciled, StopReason>) {
        match &mut self.phase {
            Phase::Pass(pass) => pass.reconciled(index, identity, ended),
            Phase::Watch(watching) => watching.reconciled(self.now, &identity, ended),
        }
    }

    fn page(&mut self, request: PageRequest) -> Page {
        let Snapshot { revision, objects } = self.snapshot.get_or_insert_with(|| Snapshot {
            revision: self.etcd.revision,
            objects: self.etcd.objects.iter().map(|(name, stored)| (name.clone(), *stored)).collect(),
        });
        let (range, next) = range(&request, objects.len(), PER_PAGE);
        let objects = objects[range].iter().map(|(name, stored)| {
            let object = shown(name, *stored);
            match request.form {
                Form::Whole => object,
                Form::Metadata => {
                    let mut json = object.json().clone();
                    json["spec"].take();
                    Object::from(json)
                }
            }
        });
        page(objects.collect(), *revision, next)
    }

    /// Puts on their way the events that the watch has not brought yet.
    fn hear(&mut self) {
        let news = self.etcd.events.iter().filter(|(revision, _)| *revision > self.heard);
        self.coming.extend(news.map(|(_, happened)| happened.clone()));
        self.heard = self.etcd.revision.max(self.heard);
    }

    fn deliver(&mut self) {
        let (Some(happened), Phase::Watch(watching)) = (self.coming.pop_front(), &mut self.phase) else {
            return;
        };
        let received = |name: &str, stored| Received { object: shown(name, stored), hold: () };
        let (revision, change) = match &happened {
            Happened::Created(name, stored) => (stored.revision, Change::Created(received(name, *stored))),
            Happened::Changed(name, stored) => (stored.revision, Change::Applied(received(name, *stored))),
            Happened::Deleted(name, stored) => (stored.revision, Change::Deleted(shown(name, *stored))),
        };
        watching.changed(self.now, change);
        watching.set_delivered(Some(revision));
    }

    /// Lets time pass until Etch has something to do; false where nothing is ever left to be done.
    fn wait(&mut self) -> bool {
        let Phase::Watch(watching) = &self.phase else { return false };
        match watching.timeout() {
            Some(at) => {
                self.now = self.now.max(at);
                true
            }
            None => false,
        }
    }

    fn live(mut self) -> Result<(), String> {
        for _ in 0..HAPPENS {
            self.happen();
            for _ in 0..self.dice.roll(8) {
                self.perform();
                self.advance();
            }
        }
        self.has_faults = false;
        self.now = self.now.max(start() + CAUGHT_UP);
        if let Phase::Watch(watching) = &mut self.phase {
            watching.changed(self.now, Change::Resumed);
        }
        for _ in 0..PATIENCE {
            if !self.perform() && !self.advance() && !self.wait() {
                return self.judge();
            }
        }
        Err("it never comes to rest".to_owned())
    }

    fn judge(&self) -> Result<(), String> {
        let Phase::Watch(watching) = &self.phase else { return Err("no pass has ended".to_owned()) };
        let counts = watching.pass().tally.counts();
        let lacking: Vec<_> =
            self.etcd.objects.iter().filter(|(_, stored)| !stored.is_filled).map(|(name, _)| name).collect();
        if !self.is_verified {
            return Err("what was written while servers lagged behind was never verified".to_owned());
        }
        if !lacking.is_empty() || counts.objects != self.etcd.objects.len() as u64 {
            return Err(format!("{counts:?} of {}; not stored: {lacking:?}", self.etcd.objects.len()));
        }
        if counts.written + counts.already_stored != counts.objects {
            return Err(format!("all is stored, and not counted so: {counts:?}"));
        }
        Ok(())
    }
}

fn pass(checkpoint: Checkpoint, keeps_record: bool) -> Box<Pass<()>> {
    let limits = Limits { verifies: true, moves_record: true, keeps_record, ..Limits::default() };
    Box::new(Pass::begin(rules(), limits, checkpoint))
}

/// The lives of a usual run, and of a long one.
const LIVES: u64 = 2_000;
const LONG: u64 = 30_000;

fn live(lives: u64) {
    for seed in 0..lives {
        if let Err(why) = Life::begin(seed).live() {
            panic!("life {seed}: {why}");
        }
    }
}

#[test]
fn no_random_life_ends_with_a_false_claim() {
    live(LIVES);
}

#[test]
#[ignore = "takes minutes"]
fn nor_does_any_of_very_many() {
    live(LONG);
}
