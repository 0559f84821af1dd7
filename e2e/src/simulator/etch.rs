//! Etch's side of one CRD: it performs what the [`CrdMachine`] asks for, one request at a time, in any order.

use std::sync::Arc;
use std::time::{Duration, Instant};

use etch_core::api::{DefaultsReport, DefaultsReportSpec, DefaultsReportStatus, Pause, Settings};
use etch_core::call_error::{CallError, Server as ServerName};
use etch_core::condition::present;
use etch_core::crd::Crd;
use etch_core::engine::crd::machine::CrdMachine;
use etch_core::engine::crd::protocol::{Answer, Command, Next, Question};
use etch_core::engine::crd::task::Task as Assignment;
use etch_core::engine::pass;
use etch_core::engine::restore_check::RestoreCheck;
use etch_core::engine::status::{self, Status, Subject};
use etch_core::engine::stop_reason::StopReason;
use etch_core::engine::sweep::{Form, Listed, Page, PageRequest};
use etch_core::engine::watching::{self, Change};
use etch_core::engine::{Now, Received, Work};
use etch_core::event::ObjectKind;
use etch_core::object::{Identity, Object};
use etch_core::object_machine::{Again, Reconciled, Step, Stop};
use etch_core::object_state::ObjectState;
use etch_core::ownership::MANAGER;
use etch_core::plan::{self, Outcome, PatchKind, Strategy, WriteMachine};
use etch_core::report::versions::list_key;
use kube_structural_schema::json::Json;
use kube_structural_schema::path::Path;

use super::dice::Dice;
use super::etcd::{Clock, Happened, Live, Resource, Server};
use super::laws::Law;
use super::sabotage::Sabotage;
use super::server::{self, Refused, Request, Revision, Tag, Verb, refusal, uid};

/// Objects to a page.
const PER_PAGE: usize = 5;
/// How long what the server said of the CRD's generation counts.
const COUNTS: Duration = Duration::from_secs(1);
/// How often a missing permission is asked for again.
const ASK_AGAIN: Duration = Duration::from_secs(30);

/// What a request meets in the world.
pub struct Surroundings<'a> {
    /// What has been written so far.
    pub clock: &'a mut Clock,
    /// What depends on chance.
    pub dice: &'a mut Dice,
    /// What time it is.
    pub now: Now,
    /// Whether answers are lost, and servers fail.
    pub has_faults: bool,
    /// The law that is broken on purpose.
    pub sabotage: Option<Sabotage>,
    /// Writes of Etch's that may still arrive.
    pub strays: &'a mut Vec<Stray>,
    /// What Etch does, where somebody wants to know.
    pub trace: &'a mut Option<Vec<String>>,
}

impl Surroundings<'_> {
    fn note(&mut self, line: impl FnOnce() -> String) {
        if let Some(trace) = self.trace {
            trace.push(format!("{} {}", self.now.date, line()));
        }
    }
}

/// A write whose sender does not wait for it any more.
#[derive(Clone)]
pub struct Stray {
    /// Which CRD it is about.
    pub resource: usize,
    write: StrayWrite,
}

#[derive(Clone)]
enum StrayWrite {
    Object { name: String, sent: Sent, knows: usize },
    Status(status::Command),
}

/// What drives the machine of one CRD.
pub struct Driver {
    resource: usize,
    /// The generation that it knows.
    knows: usize,
    machine: CrdMachine<Seen>,
    tasks: Vec<Task>,
    snapshot: Option<Snapshot>,
    watch: Option<Watch>,
    waits: Option<Waits>,
    /// When the CRD was last known to be at its generation; what it is changed to is no concern any more.
    confirmed: Option<Instant>,
    is_over: bool,
    dropped: Vec<(Identity, Vec<Path>)>,
    /// The report as it was read, or as a write of it was answered, last.
    known_report: Option<DefaultsReportStatus>,
    /// How many writes were sent.
    pub writes: u64,
}

/// By which server an object was shown.
type Seen = Server;

/// Why nothing goes on.
struct Waits {
    /// None for as long as nothing changes.
    until: Option<Instant>,
}

/// A list that is read page by page, as it was at the beginning.
struct Snapshot {
    revision: Revision,
    server: Server,
    objects: Vec<(String, Live)>,
}

struct Watch {
    /// Everything up to this revision was delivered.
    delivered: Revision,
    is_expired: bool,
}

/// What is under way.
enum Task {
    Status(status::Command),
    Ask(Question),
    List(PageRequest),
    Admit,
    CheckServer,
    Object(Box<ObjectTask>),
    Read(Identity),
}

/// An object on its way.
struct ObjectTask {
    work: Work<Seen>,
    /// When the object was read.
    read: Instant,
    write: Option<WriteUnderWay>,
    is_confirmed: bool,
}

/// A write: what it was answered so far, and the request that waits for an answer.
struct WriteUnderWay {
    answers: Vec<Result<Object, Refused>>,
    request: plan::Request,
    sent: Sent,
}

/// A request as it is sent.
#[derive(Clone)]
struct Sent {
    request: Request,
    basis: Tag,
    follows: bool,
}

/// The objects of a page.
struct Items(Vec<Object>);

impl Listed for Items {
    fn size(&self, _: usize) -> usize {
        100
    }

    fn object(&self, index: usize) -> Result<Object, CallError> {
        Ok(self.0[index].clone())
    }
}

impl Driver {
    /// Begins with the CRD as it is now.
    pub fn new(
        index: usize,
        resource: &Resource,
        settings: &Settings,
        pause: Option<Pause>,
        dropped: Vec<(Identity, Vec<Path>)>,
        at: &mut Surroundings<'_>,
    ) -> Self {
        let document = Json::from(resource.document());
        let crd = match at.sabotage {
            Some(Sabotage::TakesStatusForStored) => without_status(resource.document()),
            _ => resource.crd().clone(),
        };
        let subject = Subject {
            name: crd.name().to_owned(),
            uid: crd.uid().to_owned(),
            generation: crd.generation(),
            objects: Some(ObjectKind::from(&*crd)),
        };
        let knows = resource.generation();
        let settings = Settings { pause: pause.clone(), ..settings.clone() };
        let findings = resource.generations[knows].findings.clone();
        let task = Assignment { crd, settings, pause, findings, revision: resource.revision.to_string() };
        let status = Status::new(subject, present(&document), at.dice.roll(1 << 30) as u64);
        let restore_check = RestoreCheck::new("simulated", false, at.now.at);
        let mut machine = CrdMachine::new(task, status, restore_check, at.dice.roll(1 << 30) as u64);
        machine.add_dropped(dropped);
        machine.start();
        Self {
            resource: index,
            knows,
            machine,
            tasks: Vec::new(),
            snapshot: None,
            watch: None,
            waits: None,
            confirmed: Some(at.now.at),
            is_over: false,
            dropped: Vec::new(),
            known_report: None,
            writes: 0,
        }
    }

    /// The generation that it knows.
    pub fn knows(&self) -> usize {
        self.knows
    }

    /// Whether it has nothing to do, or watches its objects and nothing is under way.
    pub fn is_at_rest(&mut self) -> bool {
        let is_waiting = self.waits.as_ref().is_some_and(|waits| waits.until.is_none());
        let is_idle = self.tasks.is_empty() && self.machine.status().is_idle();
        is_idle && (is_waiting || self.machine.watching().is_some())
    }

    /// Whether everything that it knows is reported, or is about to be some minutes later at the earliest.
    pub fn has_reported(&mut self, now: Instant) -> bool {
        let soon = now + Duration::from_secs(5);
        self.is_at_rest() && self.timeout().is_none_or(|timeout| timeout > soon)
    }

    /// Whether a report says what it has read or written last.
    pub fn knows_report(&self, report: Option<&DefaultsReport>) -> bool {
        self.known_report.as_ref() == report.and_then(|report| report.status.as_ref())
    }

    /// Ends it: what it has sent may still arrive. What its writes have dropped is returned.
    pub fn end(mut self, strays: &mut Vec<Stray>) -> Vec<(Identity, Vec<Path>)> {
        self.abandon(strays);
        self.dropped
    }

    /// Hands in the pause that is in force.
    pub fn set_pause(&mut self, now: Instant, pause: Option<Pause>) {
        self.machine.set_pause(now, pause);
        if self.machine.task().settings.pause != self.machine.task().pause
            && let Some(waits) = &mut self.waits
        {
            waits.until = Some(now);
        }
    }

    /// Somebody may have changed our conditions.
    pub fn conditions_changed(&mut self, now: Instant) {
        self.machine.status().conditions_changed(now);
    }

    /// What may be done has changed.
    pub fn permissions_changed(&mut self) {
        self.machine.permissions_changed();
    }

    /// The watch is closed, and cannot go on.
    pub fn expire(&mut self) {
        if let Some(watch) = &mut self.watch {
            watch.is_expired = true;
        }
    }

    /// When it has something to do though nothing happens.
    pub fn timeout(&self) -> Option<Instant> {
        match &self.waits {
            Some(waits) => waits.until,
            None => self.machine.timeout(),
        }
    }

    /// Performs all that the machine asks for now; whether it asked for anything. `Changed` where the CRD has
    /// to be read again.
    pub fn perform(&mut self, at: &mut Surroundings<'_>) -> (bool, bool) {
        if let Some(waits) = &self.waits {
            if waits.until.is_none_or(|until| until > at.now.at) {
                return (self.recheck(at), false);
            }
            self.waits = None;
            self.machine.add_dropped(std::mem::take(&mut self.dropped));
            self.machine.start();
        }
        let mut has_asked = false;
        self.measure();
        while let Some(command) = self.machine.poll(at.now) {
            has_asked = true;
            if let Command::Log(note) = &command {
                at.note(|| format!("generation {}: {note:?}", self.knows));
            }
            match command {
                Command::Status(status::Command::Emit(_) | status::Command::Count(_)) | Command::Log(_) => {}
                Command::Status(command) => self.tasks.push(Task::Status(command)),
                Command::Ask(question) => self.tasks.push(Task::Ask(question)),
                Command::Begin(_) => self.snapshot = None,
                Command::Pass(command) => self.perform_pass(command, at.strays),
                Command::Object(watching::Command::Reconcile(work)) => self.tasks.push(object(*work)),
                Command::Object(watching::Command::Read(identity)) => self.tasks.push(Task::Read(identity)),
                Command::Object(watching::Command::Publish | watching::Command::End(_)) => {}
                Command::Watch(from) | Command::Resume(from) => {
                    let delivered = from.parse().unwrap_or_default();
                    self.watch = Some(Watch { delivered, is_expired: false });
                }
                Command::Abandon => self.abandon(at.strays),
                Command::End(Next::Changed) => return (true, true),
                Command::End(next) => {
                    self.abandon(at.strays);
                    let until = match next {
                        Next::Wait(wait) | Next::Settle(wait) => Some(at.now.at + wait),
                        Next::Permission(_) => Some(at.now.at + ASK_AGAIN),
                        Next::Idle | Next::Changed => None,
                    };
                    self.waits = Some(Waits { until });
                    break;
                }
            }
            self.measure();
        }
        (has_asked, false)
    }

    /// Repairs our conditions while nothing else is under way.
    fn recheck(&mut self, at: &mut Surroundings<'_>) -> bool {
        let status = self.machine.status();
        if status.is_idle() && status.recheck_due().is_some_and(|due| due <= at.now.at) {
            status.recheck();
        }
        let mut has_asked = false;
        while let Some(command) = status.poll(at.now) {
            if !matches!(command, status::Command::Emit(_) | status::Command::Count(_)) {
                self.tasks.push(Task::Status(command));
            }
            has_asked = true;
        }
        has_asked
    }

    fn measure(&mut self) {
        let delivered = self.watch.as_ref().map(|watch| u64::from(watch.delivered));
        if let Some(watching) = self.machine.watching() {
            watching.set_delivered(delivered);
        }
    }

    fn perform_pass(&mut self, command: pass::Command<Seen>, strays: &mut Vec<Stray>) {
        match command {
            pass::Command::SweepBegins { .. } => self.snapshot = None,
            pass::Command::List(request) => self.tasks.push(Task::List(request)),
            pass::Command::Admit(_) => self.tasks.push(Task::Admit),
            pass::Command::Reconcile(work) => self.tasks.push(object(*work)),
            pass::Command::CheckServer => self.tasks.push(Task::CheckServer),
            pass::Command::SweepEnds { .. } => self.drop_objects(strays),
            pass::Command::ListAhead(_) | pass::Command::End(_) => {}
        }
    }

    fn abandon(&mut self, strays: &mut Vec<Stray>) {
        self.drop_objects(strays);
        self.tasks.retain(|task| matches!(task, Task::Status(_)));
        (self.watch, self.snapshot) = (None, None);
    }

    /// Drops what is under way about objects: what was sent may still arrive.
    fn drop_objects(&mut self, strays: &mut Vec<Stray>) {
        let (resource, knows) = (self.resource, self.knows);
        self.tasks.retain_mut(|task| match task {
            Task::Status(_) | Task::Ask(_) => true,
            Task::Object(task) => {
                if let Some(WriteUnderWay { sent, .. }) = task.write.take().filter(|_| task.is_confirmed) {
                    let name = task.work.identity.name.clone();
                    strays.push(Stray { resource, write: StrayWrite::Object { name, sent, knows } });
                }
                false
            }
            Task::List(_) | Task::Admit | Task::CheckServer | Task::Read(_) => false,
        });
    }

    /// How much is under way, and may be brought by the watch.
    pub fn choices(&self, resource: &Resource) -> usize {
        self.tasks.len() + usize::from(self.can_hear(resource))
    }

    fn can_hear(&self, resource: &Resource) -> bool {
        self.machine.wants_changes()
            && self.watch.as_ref().is_some_and(|watch| {
                let has_news =
                    resource.events.last().is_some_and(|(revision, ..)| *revision > watch.delivered);
                watch.is_expired || has_news || watch.delivered < resource.compacted
            })
    }

    /// Something comes of what is under way, or the watch brings something.
    ///
    /// # Errors
    /// The law that was broken.
    pub fn advance(&mut self, resource: &mut Resource, at: &mut Surroundings<'_>) -> Result<(), Law> {
        let choice = at.dice.roll(self.choices(resource));
        if choice >= self.tasks.len() {
            self.hear(resource, at);
            return Ok(());
        }
        match self.tasks.swap_remove(choice) {
            Task::Status(command) => self.write_status(command, resource, at),
            Task::Ask(question) => self.ask(question, resource, at),
            Task::List(request) => {
                let page = self.page(&request, resource, at);
                self.with_pass(|pass| pass.page(page));
            }
            Task::Admit => {
                let server = self.snapshot.as_ref().map_or(Server::Current, |snapshot| snapshot.server);
                self.with_pass(|pass| pass.admitted(server));
            }
            Task::CheckServer => self.with_pass(|pass| pass.server_checked(Ok(()))),
            Task::Read(identity) => self.read(identity, resource, at),
            Task::Object(task) => return self.advance_object(*task, resource, at),
        }
        Ok(())
    }

    fn with_pass(&mut self, act: impl FnOnce(&mut pass::Pass<Seen>)) {
        if let Some(pass) = self.machine.pass() {
            act(pass);
        }
    }

    /// Whether a request, or its answer, is lost.
    fn fails(at: &mut Surroundings<'_>) -> bool {
        at.has_faults && at.dice.roll(12) == 0
    }

    fn write_status(&mut self, command: status::Command, resource: &mut Resource, at: &mut Surroundings<'_>) {
        let command = match (command, at.sabotage) {
            (status::Command::SetReport(report, version), Some(Sabotage::RecordsAhead)) => {
                let mut report = (*report).clone();
                report.through = report.through.map(|_| at.clock.revision.to_string());
                report.exceptions = Default::default();
                status::Command::SetReport(report.into(), version)
            }
            (command, _) => command,
        };
        let is_lost = Self::fails(at);
        let now = at.now.at;
        match command {
            status::Command::SetConditions(_) => {
                let answer = self.write_or_lose(command, is_lost, resource, at);
                self.machine.status().written(now, answer.map(drop));
            }
            status::Command::OpenReport | status::Command::SetReport(..) => {
                let answer = self.write_or_lose(command, is_lost, resource, at);
                if answer.is_ok() {
                    self.note_report(resource);
                }
                self.machine.status().report_written(now, answer);
            }
            status::Command::ReadReport => {
                if !is_lost {
                    self.note_report(resource);
                }
                let report = if is_lost { Err(lost()) } else { Ok(resource.report.clone().map(Box::new)) };
                self.machine.status().report_read_again(now, report);
            }
            status::Command::ReadCrd => {
                let document = if is_lost { Err(lost()) } else { Ok(Some(Json::from(resource.document()))) };
                self.machine.status().crd_read(now, document);
            }
            status::Command::ReadGeneration => {
                let is_same =
                    resource.generation() == self.knows || at.sabotage == Some(Sabotage::RecordsWhatIsOver);
                self.machine.status().generation_read(now, if is_lost { Err(lost()) } else { Ok(is_same) });
            }
            status::Command::Emit(_) | status::Command::Count(_) => {}
        }
    }

    fn note_report(&mut self, resource: &Resource) {
        self.known_report = resource.report.as_ref().and_then(|report| report.status.clone());
    }

    /// Carries out a write of conditions or report, unless it is lost: then it may have been carried out, or be
    /// carried out later.
    fn write_or_lose(
        &self,
        command: status::Command,
        is_lost: bool,
        resource: &mut Resource,
        at: &mut Surroundings<'_>,
    ) -> Result<String, CallError> {
        if !is_lost {
            return set_status(&command, resource, at.clock).map_err(|refused| call_refused(&refused));
        }
        match at.dice.roll(3) {
            0 => drop(set_status(&command, resource, at.clock)),
            1 => at.strays.push(Stray { resource: self.resource, write: StrayWrite::Status(command) }),
            _ => {}
        }
        Err(lost())
    }

    fn ask(&mut self, question: Question, resource: &Resource, at: &mut Surroundings<'_>) {
        let is_lost = Self::fails(at);
        fn answer<T>(is_lost: bool, answer: T) -> Result<T, CallError> {
            if is_lost { Err(lost()) } else { Ok(answer) }
        }
        let answered = match question {
            Question::Report => {
                if !is_lost {
                    self.note_report(resource);
                }
                let mut report = resource.report.clone();
                if at.sabotage == Some(Sabotage::RemembersTooMuch)
                    && let Some(status) = report.as_mut().and_then(|report| report.status.as_mut())
                {
                    let crd = &self.machine.task().crd;
                    status.digest = crd.compiled().digest().to_string();
                    status.generation = crd.generation();
                }
                Answer::Report(answer(is_lost, report.map(Box::new)))
            }
            Question::Crd => Answer::Crd(answer(is_lost, Some(Json::from(resource.document())))),
            Question::Permissions(_) => Answer::Permissions(answer(is_lost, None)),
            Question::Server => Answer::Server(answer(is_lost, ())),
            Question::Generation => {
                let is_same = resource.generation() == self.knows;
                self.is_over = !is_same;
                Answer::Generation(answer(is_lost, is_same))
            }
            Question::ResumePoint { through, objects } => {
                let has_changed = resource.objects.len() as u64 != objects
                    || resource.objects.values().any(|live| u64::from(live.tag.revision) > through);
                let from = (!has_changed).then(|| at.clock.revision.to_string());
                Answer::ResumePoint(answer(is_lost, from))
            }
        };
        self.machine.answered(at.now, answered);
    }

    fn version(&self) -> String {
        self.machine.task().crd.storage().name.clone()
    }

    /// A server that can answer at the version that Etch asks for.
    fn server(&self, resource: &Resource, at: &mut Surroundings<'_>) -> Server {
        let behind = &resource.generations[resource.served(Server::Behind)].release;
        let is_there = resource.may_store_late() && resource.was_reported() && behind.has(&self.version());
        match is_there && at.dice.roll(3) == 0 {
            true => Server::Behind,
            false => Server::Current,
        }
    }

    fn page(
        &mut self,
        request: &PageRequest,
        resource: &Resource,
        at: &mut Surroundings<'_>,
    ) -> Result<Page, CallError> {
        if Self::fails(at) {
            return Err(lost());
        }
        if self.snapshot.is_none() {
            let server = self.server(resource, at);
            let objects = resource.objects.iter().map(|(name, live)| (name.clone(), live.clone())).collect();
            self.snapshot = Some(Snapshot { revision: at.clock.revision, server, objects });
        }
        let version = self.version();
        let Some(Snapshot { revision, server, objects }) = &self.snapshot else { return Err(lost()) };
        let first: usize = request.after.as_deref().map_or(0, |after| after.parse().unwrap_or_default());
        let end = (first + PER_PAGE).min(objects.len());
        let shown = objects[first..end].iter().map(|(name, live)| {
            let object = resource.shown(name, live, *server, &version);
            let object = object.map_err(|refused| call_refused(&refused))?;
            Ok(match request.form {
                Form::Whole => object,
                Form::Metadata => {
                    let mut json = object.json().clone();
                    json["spec"].take();
                    Object::from(json)
                }
            })
        });
        let shown: Vec<Object> = shown.collect::<Result<_, CallError>>()?;
        Ok(Page {
            keys: shown.iter().map(list_key).collect(),
            resource_version: revision.to_string(),
            next: (end < objects.len()).then(|| end.to_string()),
            total: None,
            read: at.now.at,
            objects: Box::new(Items(shown)),
        })
    }

    fn read(&mut self, identity: Identity, resource: &Resource, at: &mut Surroundings<'_>) {
        let now = at.now.at;
        let (server, is_lost) = (self.server(resource, at), Self::fails(at));
        let found = self.get(&identity, resource, server).filter(|_| !is_lost);
        let gone = if is_lost { ObjectState::Unknown } else { ObjectState::Gone };
        at.note(|| {
            format!("{identity} is read again, and is {}", if found.is_some() { "there" } else { "not" })
        });
        let Some(watching) = self.machine.watching() else { return };
        match found {
            Some(object) => watching.read(now, Received { object, hold: server }),
            None => watching.reconciled(now, &identity, Ok(Reconciled::of(gone, Vec::new()))),
        }
    }

    fn get(&self, identity: &Identity, resource: &Resource, server: Server) -> Option<Object> {
        let live = resource.objects.get(&identity.name)?;
        let object = resource.shown(&identity.name, live, server, &self.version()).ok()?;
        (object.uid() == identity.uid).then_some(object)
    }

    /// The watch brings one event, or expires.
    fn hear(&mut self, resource: &Resource, at: &mut Surroundings<'_>) {
        let (server, version) = (self.server(resource, at), self.version());
        let Some(watch) = &mut self.watch else { return };
        if watch.is_expired || watch.delivered < resource.compacted {
            let delivered = Some(u64::from(watch.delivered));
            watch.is_expired = true;
            return self.machine.watch_expired(at.now, refused(410, "too old resource version"), delivered);
        }
        let next = resource.events.iter().find(|(revision, ..)| *revision > watch.delivered);
        let Some((revision, name, happened)) = next else { return };
        watch.delivered = *revision;
        if at.sabotage == Some(Sabotage::HearsNothing) {
            return;
        }
        let received = |live: &Live| {
            let object = resource.shown(name, live, server, &version).ok()?;
            Some(Received { object, hold: server })
        };
        let change = match happened {
            Happened::Created(live) => received(live).map(Change::Created),
            Happened::Changed(live) => received(live).map(Change::Applied),
            Happened::Deleted(live) => received(live).map(|received| Change::Deleted(received.object)),
        };
        match change {
            Some(change) => self.machine.object_changed(at.now.at, change),
            // A server that cannot show an object ends the watch.
            None => self.machine.watch_failed(at.now, refused(500, "no")),
        }
    }

    fn advance_object(
        &mut self,
        mut task: ObjectTask,
        resource: &mut Resource,
        at: &mut Surroundings<'_>,
    ) -> Result<(), Law> {
        let step = std::mem::replace(&mut task.work.step, Step::Write);
        let next = match step {
            Step::Done(reconciled) => {
                at.note(|| {
                    let object = task.work.machine.object();
                    let (name, revision) = (object.name(), object.resource_version());
                    format!("{name} at {revision}, seen by {:?}: {:?}", task.work.hold, reconciled.state)
                });
                let claim = self.claim(&task, &reconciled.state, resource);
                self.reconciled(task.work, Ok(reconciled), at.now.at);
                return claim;
            }
            Step::Stop(stop) => {
                let reason = self.stop_reason(&task.work.identity, stop);
                self.reconciled(task.work, Err(reason), at.now.at);
                return Ok(());
            }
            Step::Write if task.write.is_none() && self.is_pause_new() => {
                task.work.machine.interrupt();
                self.reconciled(task.work, Err(StopReason::Pause), at.now.at);
                return Ok(());
            }
            Step::Write => return self.write(task, resource, at),
            Step::ReadAgain { .. } => {
                let server = self.server(resource, at);
                let again = match self.get(&task.work.identity, resource, server) {
                    _ if Self::fails(at) => Again::Unanswered,
                    Some(object) => {
                        (task.read, task.work.hold) = (at.now.at, server);
                        Again::Read(Box::new(object))
                    }
                    None => Again::Gone,
                };
                task.work.machine.read(again)
            }
            Step::AskOthers(verb) => task.work.machine.may_write_others(verb, true),
        };
        task.work.step = next;
        self.tasks.push(Task::Object(Box::new(task)));
        Ok(())
    }

    fn is_pause_new(&self) -> bool {
        let task = self.machine.task();
        task.pause != task.settings.pause
    }

    fn stop_reason(&self, identity: &Identity, stop: Stop) -> StopReason {
        match stop {
            Stop::Forbidden(verb) => {
                let resource = self.machine.task().crd.resource();
                StopReason::Forbidden(etch_core::rbac::MissingPermissions::of(&resource, vec![verb]))
            }
            Stop::OwnersLost(managers) => StopReason::OwnersLost { object: identity.to_string(), managers },
            Stop::FieldsDropped(_) => {
                StopReason::FieldsDropped { object: identity.to_string(), paths: String::new() }
            }
            Stop::CrdChanged => StopReason::CrdChanged,
        }
    }

    fn reconciled(&mut self, work: Work<Seen>, ended: Result<Reconciled, StopReason>, now: Instant) {
        let Work { index, identity, .. } = work;
        if let Some(pass) = self.machine.pass() {
            pass.reconciled(index, identity, ended);
        } else if let Some(watching) = self.machine.watching() {
            watching.reconciled(now, &identity, ended);
        }
    }

    /// What is said of an object is so: etcd holds its defaults where it is stored.
    fn claim(&self, task: &ObjectTask, state: &ObjectState, resource: &Resource) -> Result<(), Law> {
        let object = task.work.machine.object();
        let revision = match state {
            ObjectState::Stored | ObjectState::AlreadyStored => object.revision(),
            ObjectState::Written { resource_version } => resource_version.parse().ok(),
            _ => None,
        };
        let Some(live) = resource.objects.get(object.name()) else { return Ok(()) };
        let is_this = uid(live.tag.uid) == object.uid() && Some(u64::from(live.tag.revision)) == revision;
        // What is said is said of the generation that Etch knows, and its conditions name that.
        if !is_this || resource.generation() != self.knows || resource.is_restored {
            return Ok(());
        }
        // Until everything is verified, a server that lagged behind may have stored it, or shown it.
        let may_be_wrong = *state == ObjectState::Stored
            && (live.is_late || task.work.hold == Server::Behind || resource.is_verified_later());
        match may_be_wrong || resource.release().is_stored(&live.content) {
            true => Ok(()),
            false => Err(Law::Persisted),
        }
    }

    /// Goes on with a write: it asks for the CRD's generation, or sends one request.
    fn write(
        &mut self,
        mut task: ObjectTask,
        resource: &mut Resource,
        at: &mut Surroundings<'_>,
    ) -> Result<(), Law> {
        let Some(write) = task.write.take().or_else(|| self.begin(&task, at)) else {
            let step = task.work.machine.wrote(None);
            return self.go_on(task, step);
        };
        if !task.is_confirmed {
            let since = if write.request.keeps_fields { task.read } else { at.now.at };
            if !self.is_confirmed(since, resource, at) {
                let outcome = self.is_over.then_some(Outcome::CrdChanged);
                let step = task.work.machine.wrote(outcome);
                return self.go_on(task, step);
            }
            (task.is_confirmed, task.write) = (true, Some(write));
            self.tasks.push(Task::Object(Box::new(task)));
            return Ok(());
        }
        task.is_confirmed = false;
        let WriteUnderWay { mut answers, sent, .. } = write;
        let name = task.work.identity.name.clone();
        let fate = if at.has_faults { at.dice.roll(12) } else { 12 };
        if fate == 0 {
            if at.dice.roll(2) == 0 {
                let write = StrayWrite::Object { name, sent, knows: self.knows };
                at.strays.push(Stray { resource: self.resource, write });
            }
            let resource_version = task.work.machine.object().resource_version().to_owned();
            let silence = || Outcome::Written { resource_version, proof: plan::Proof::WriteAnswered };
            let believes = at.sabotage == Some(Sabotage::BelievesInSilence);
            let step = task.work.machine.wrote(believes.then(silence));
            return self.go_on(task, step);
        }
        let server = self.server(resource, at);
        let before = resource.objects.get(&name).cloned();
        let answer = self.send(&name, &sent, server, resource, at);
        at.note(|| {
            let after = resource.objects.get(&name);
            let shown =
                |live: Option<&Live>| live.map(|live| (live.tag.revision, live.content.value.to_string()));
            let (before, after) = (shown(before.as_ref()), shown(after));
            let Request { verb, body, .. } = &sent.request;
            format!("to {server:?}, {name}: {verb:?} {body}: {before:?} becomes {after:?}")
        });
        let answer = answer?;
        if fate == 1 {
            let step = task.work.machine.wrote(None);
            return self.go_on(task, step);
        }
        let answer = answer.and_then(|live| resource.shown(&name, &live, server, &self.version()));
        if answer.is_ok() {
            task.work.hold = server;
        }
        answers.push(answer);
        let step = self.run(&task, &answers, at.sabotage);
        let outcome = match step {
            Some(plan::Step::Send(next))
                if at.sabotage == Some(Sabotage::LeavesItsEntry)
                    && super::sabotage::is_release(&next.body) =>
            {
                let resource_version = resource.objects.get(&name).map(|live| live.tag.revision.to_string());
                resource_version.map(|resource_version| Outcome::Written {
                    resource_version,
                    proof: plan::Proof::WriteAnswered,
                })
            }
            Some(plan::Step::Send(request)) => {
                let last = answers.iter().rev().find_map(|answer| answer.as_ref().ok());
                let basis = last.map_or(sent.basis, tag);
                let sent = self.sent(&request, &task, basis, sent.follows, at);
                task.write = Some(WriteUnderWay { answers, request, sent });
                self.tasks.push(Task::Object(Box::new(task)));
                return Ok(());
            }
            Some(plan::Step::Done(outcome)) => Some(outcome),
            Some(plan::Step::Failed(_)) | None => None,
        };
        let outcome = match (outcome, at.sabotage, resource.objects.get(&name)) {
            (Some(Outcome::Unproved), Some(Sabotage::BelievesEveryAnswer), Some(live)) => {
                Some(Outcome::Written {
                    resource_version: live.tag.revision.to_string(),
                    proof: plan::Proof::WriteAnswered,
                })
            }
            (_, Some(Sabotage::CreatesWhatIsGone), None) => return self.create(&name, resource, at),
            (outcome, ..) => outcome,
        };
        let is_end = at.sabotage == Some(Sabotage::EndsWithARewrite)
            && matches!(outcome, Some(Outcome::Written { .. }))
            && task.work.machine.planned().is_some_and(|write| write.strategy == Strategy::Rewrite);
        if is_end {
            let step = Step::Done(Reconciled::of(ObjectState::AlreadyStored, Vec::new()));
            return self.go_on(task, step);
        }
        if let Some(Outcome::FieldsDropped { paths }) = &outcome {
            self.dropped.push((task.work.identity.clone(), paths.clone()));
            self.is_over = true;
        }
        if let Some(Outcome::Followed(_)) = &outcome {
            task.read = at.now.at;
        }
        let step = task.work.machine.wrote(outcome);
        self.go_on(task, step)
    }

    /// Creates an object that is gone: a sabotage.
    fn create(&self, name: &str, resource: &mut Resource, at: &mut Surroundings<'_>) -> Result<(), Law> {
        let request = resource.world.menu[0].clone();
        let created = resource.process(at.clock, name, Server::Current, &request);
        let created = created.ok().flatten();
        let basis = Tag { uid: 0, revision: 0 };
        resource
            .broken((None, created.as_ref()), Server::Current, basis, false, self.knows)
            .map_or(Ok(()), Err)
    }

    /// Runs a write through the answers so far; its last step.
    fn run(
        &self,
        task: &ObjectTask,
        answers: &[Result<Object, Refused>],
        sabotage: Option<Sabotage>,
    ) -> Option<plan::Step> {
        let Assignment { crd, settings, .. } = self.machine.task();
        let (object, planned) = (task.work.machine.object(), task.work.machine.planned()?);
        let sabotaged = sabotage.map(|sabotage| sabotage.change_write(planned.clone()));
        let write = sabotaged.as_ref().unwrap_or(planned);
        let (mut machine, request) = WriteMachine::begin(crd, object, write, &settings.terms);
        let mut step = plan::Step::Send(request);
        for answer in answers {
            step = match answer {
                Ok(object) => machine.answered(object.clone()),
                Err(refused) => machine.refused(refusal(refused)),
            };
        }
        Some(step)
    }

    fn go_on(&mut self, mut task: ObjectTask, step: Step) -> Result<(), Law> {
        task.work.step = step;
        self.tasks.push(Task::Object(Box::new(task)));
        Ok(())
    }

    fn begin(&self, task: &ObjectTask, at: &Surroundings<'_>) -> Option<WriteUnderWay> {
        let follows = task.work.machine.planned()?.strategy == Strategy::Follow;
        let plan::Step::Send(request) = self.run(task, &[], at.sabotage)? else { return None };
        let sent = self.sent(&request, task, tag(task.work.machine.object()), follows, at);
        Some(WriteUnderWay { answers: Vec::new(), request, sent })
    }

    /// A request as it is sent: a sabotage changes it on its way out.
    fn sent(
        &self,
        request: &plan::Request,
        task: &ObjectTask,
        basis: Tag,
        follows: bool,
        at: &Surroundings<'_>,
    ) -> Sent {
        let verb = match request.kind {
            PatchKind::Apply => Verb::Apply,
            PatchKind::Merge => Verb::Merge,
            PatchKind::Json => Verb::Json,
            PatchKind::DryRun | PatchKind::ApplyDryRun => Verb::DryRun,
        };
        let body = serde_json::Value::clone(&request.body);
        let request = Request { version: self.version(), manager: MANAGER.to_owned(), verb, body };
        let object = || task.work.machine.object().clone();
        let request = match at.sabotage {
            Some(sabotage) => sabotage.change(request, &object),
            None => request,
        };
        Sent { request, basis, follows }
    }

    /// Whether a write may begin: the CRD was at its generation within the last second and since `read`, or
    /// is so now.
    fn is_confirmed(&mut self, read: Instant, resource: &Resource, at: &mut Surroundings<'_>) -> bool {
        if self.is_over {
            return false;
        }
        let is_known = self.confirmed.is_some_and(|asked| asked >= read && asked + COUNTS > at.now.at);
        if is_known || at.sabotage == Some(Sabotage::NeverAsksForTheGeneration) {
            return true;
        }
        if Self::fails(at) {
            return false;
        }
        self.is_over = resource.generation() != self.knows;
        self.confirmed = (!self.is_over).then_some(at.now.at);
        !self.is_over
    }

    fn send(
        &mut self,
        name: &str,
        sent: &Sent,
        server: Server,
        resource: &mut Resource,
        at: &mut Surroundings<'_>,
    ) -> Result<Result<Live, Refused>, Law> {
        self.writes += u64::from(sent.request.verb != Verb::DryRun);
        // A limit: an apply that is under way when the CRD loses a field destroys it.
        let is_overtaken =
            self.knows != resource.generation() && resource.has_just_changed(at.now.at, COUNTS);
        match send(name, sent, self.knows, server, resource, at.clock) {
            Err(Law::Hidden) if is_overtaken => Ok(Err(Refused { code: 504, message: String::new() })),
            answer => answer,
        }
    }
}

/// Processes a write of Etch's, and judges what it does.
fn send(
    name: &str,
    sent: &Sent,
    knows: usize,
    server: Server,
    resource: &mut Resource,
    clock: &mut Clock,
) -> Result<Result<Live, Refused>, Law> {
    if resource.refuses(name) {
        let message = "admission webhook \"v.example.com\" denied the request: never".to_owned();
        return Ok(Err(Refused { code: 403, message }));
    }
    let before = resource.objects.get(name).cloned();
    let answer = resource.process(clock, name, server, &sent.request);
    let after = resource.objects.get(name);
    if let Some(law) = resource.broken((before.as_ref(), after), server, sent.basis, sent.follows, knows) {
        return Err(law);
    }
    Ok(answer.and_then(|live| live.ok_or_else(|| Refused { code: 404, message: "not found".to_owned() })))
}

impl Stray {
    /// Arrives, long after its sender has given up.
    ///
    /// # Errors
    /// The law that it breaks.
    pub fn arrive(self, resource: &mut Resource, clock: &mut Clock) -> Result<(), Law> {
        match self.write {
            StrayWrite::Object { name, sent, knows } => {
                match send(&name, &sent, knows, Server::Current, resource, clock) {
                    // The same limit.
                    Err(Law::Hidden) if knows != resource.generation() => Ok(()),
                    answer => answer.map(drop),
                }
            }
            StrayWrite::Status(command) => {
                // What is refused has not happened.
                let _ = set_status(&command, resource, clock);
                Ok(())
            }
        }
    }
}

/// Writes conditions or report; the resource version of the report.
fn set_status(
    command: &status::Command,
    resource: &mut Resource,
    clock: &mut Clock,
) -> Result<String, Refused> {
    let version = (clock.revision + 1).to_string();
    match command {
        status::Command::SetConditions(conditions) => resource.conditions = conditions.to_vec(),
        status::Command::OpenReport => {
            let (crd, crd_uid) = (resource.crd().name().to_owned(), resource.crd().uid().to_owned());
            let new = || DefaultsReport::new(&crd, DefaultsReportSpec { crd: crd.clone(), crd_uid });
            let report = resource.report.get_or_insert_with(new);
            report.metadata.resource_version = Some(version.clone());
        }
        status::Command::SetReport(status, expected) => {
            let Some(report) = &mut resource.report else { return server::refused(404, "not found") };
            if report.metadata.resource_version.as_ref() != Some(expected) {
                return server::refused(409, "the object has been modified");
            }
            report.metadata.resource_version = Some(version.clone());
            report.status = Some((**status).clone());
        }
        _ => {}
    }
    clock.revision += 1;
    Ok(version)
}

/// A CRD that has no status subresource.
fn without_status(mut document: serde_json::Value) -> Arc<Crd> {
    for version in document["spec"]["versions"].as_array_mut().into_iter().flatten() {
        version["subresources"] = serde_json::Value::Null;
    }
    Arc::new(Crd::read(&Json::from(document)).expect("it can be read with it"))
}

/// Which bytes an object shows.
fn tag(object: &Object) -> Tag {
    Tag {
        uid: object.uid().trim_start_matches("uid-").parse().unwrap_or_default(),
        revision: object.resource_version().parse().unwrap_or_default(),
    }
}

fn object(work: Work<Seen>) -> Task {
    Task::Object(Box::new(ObjectTask { read: work.read, work, write: None, is_confirmed: false }))
}

fn lost() -> CallError {
    CallError::Connection(ServerName::default(), "the connection was closed".to_owned())
}

fn refused(code: u16, message: &str) -> CallError {
    call_refused(&Refused { code, message: message.to_owned() })
}

fn call_refused(refused: &Refused) -> CallError {
    CallError::Refused(Box::new(refusal(refused)))
}
