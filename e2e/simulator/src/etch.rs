//! Etch's side of one CRD: it performs what the [`CrdMachine`] asks for, one request at a time, in any order.

mod objects;
mod reads;
mod reports;
mod stray;
mod tasks;

use std::sync::Arc;
use std::time::{Duration, Instant};

use etch_core::api::{DefaultsReport, DefaultsReportStatus, Mode, Pause, Settings};
use etch_core::call_error::{CallError, Server as ServerName};
use etch_core::condition::present;
use etch_core::crd::Crd;
use etch_core::engine::Now;
use etch_core::engine::canary::CanaryRun;
use etch_core::engine::crd::machine::CrdMachine;
use etch_core::engine::crd::protocol::{Command, Next, Note};
use etch_core::engine::crd::task::Task as Assignment;
use etch_core::engine::pass;
use etch_core::engine::restore_check::RestoreCheck;
use etch_core::engine::status::{self, CrdRevision, Status, Subject};
use etch_core::engine::sweep::Listed;
use etch_core::engine::watching;
use etch_core::event::ObjectKind;
use etch_core::object::{Identity, Object};
use etch_core::plan::Shown;
use kube_structural_schema::json::Json;
use kube_structural_schema::path::Path;
use serde_json::Value;

pub use self::stray::Stray;
use self::stray::StrayWrite;
use self::tasks::{ObjectTask, Task, WriteUnderWay, object};
use super::dice::Dice;
use super::etcd::{Clock, Live, Resource, Server};
use super::sabotage::Sabotage;
use super::server::{Refused, Revision, Tag, refusal};

/// Objects to a page.
const PER_PAGE: usize = 5;
/// How long an answer about the CRD's generation counts.
const COUNTS: Duration = Duration::from_secs(1);
/// The answer that names no object.
const NOT_SERVED: &str = "the server could not find the requested resource";
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
    /// What Etch does, if it is recorded.
    pub trace: &'a mut Option<Vec<String>>,
}

impl Surroundings<'_> {
    fn note(&mut self, line: impl FnOnce() -> String) {
        if let Some(trace) = self.trace {
            trace.push(format!("{} {}", self.now.date, line()));
        }
    }
}

/// What drives the machine of one CRD.
#[derive(Clone, Debug)]
pub struct Driver {
    resource: usize,
    /// Whose it is.
    pub replica: usize,
    /// Until when it stands still, or has stood still.
    stopped: Option<Instant>,
    /// The generation that it knows.
    knows: usize,
    machine: CrdMachine<Seen>,
    tasks: Vec<Task>,
    snapshot: Option<Snapshot>,
    watch: Option<Watch>,
    waits: Option<Waits>,
    /// When the CRD was last confirmed at its generation.
    confirmed: Option<Instant>,
    is_over: bool,
    /// Whether the pass verifies what was written while servers lagged behind.
    verifies: bool,
    dropped: Vec<(Identity, Vec<Path>)>,
    /// The report as it was read, or as a write of it was answered, last.
    known_report: Option<DefaultsReportStatus>,
    /// The report that was sent last, if its answer was lost.
    sent_report: Option<DefaultsReportStatus>,
    /// How many writes were sent.
    pub writes: u64,
}

/// By which server an object was shown.
type Seen = Server;

/// Why nothing continues.
#[derive(Clone, Debug)]
struct Waits {
    /// None for as long as nothing changes.
    until: Option<Instant>,
}

/// A list that is read page by page, as it was at the beginning.
#[derive(Clone, Debug)]
struct Snapshot {
    revision: Revision,
    server: Server,
    objects: Vec<(String, Live)>,
}

#[derive(Clone, Debug)]
struct Watch {
    /// Everything up to this revision was delivered.
    delivered: Revision,
    is_expired: bool,
}

/// The objects of a page.
#[derive(Clone, Debug)]
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
            Some(Sabotage::TakesStatusForStored) => mistaken(resource.document(), |spec| {
                for version in spec["versions"].as_array_mut().into_iter().flatten() {
                    version["subresources"] = Value::Null;
                }
            }),
            Some(Sabotage::TrustsTheWebhook) => {
                mistaken(resource.document(), |spec| spec["conversion"] = Value::Null)
            }
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
        let task = Assignment {
            canary: CanaryRun::new(&crd, settings.canary, None),
            shown_by_crd: Shown::by(&document, &crd, at.now.date),
            crd,
            settings,
            pause,
            findings,
            revision: resource.revision.to_string(),
            within: None,
        };
        let status =
            Status::new(subject, present(&document), CrdRevision::of(&document), at.dice.seed(1 << 30));
        let restore_check = RestoreCheck::new("simulated", false, at.now.at);
        let mut machine = CrdMachine::new(task, status, restore_check, at.dice.seed(1 << 30));
        machine.add_dropped(dropped);
        machine.start();
        Self {
            resource: index,
            replica: 0,
            stopped: None,
            knows,
            machine,
            tasks: Vec::new(),
            snapshot: None,
            watch: None,
            waits: None,
            confirmed: Some(at.now.at),
            is_over: false,
            verifies: false,
            dropped: Vec::new(),
            known_report: None,
            sent_report: None,
            writes: 0,
        }
    }

    /// Which CRD it is about.
    pub fn resource(&self) -> usize {
        self.resource
    }

    /// The mode of the policy that it knows.
    pub fn mode(&self) -> Mode {
        self.machine.task().settings.mode
    }

    /// It stands still until then: what it is about to send, it sends afterwards.
    pub fn stops_until(&mut self, until: Instant) {
        self.stopped = Some(until);
    }

    /// Whether the CRD is another one than it knows: of a new generation, or one that lists other versions at
    /// which objects are stored, as after a restore.
    pub fn has_news(&self, resource: &Resource) -> bool {
        let known = &self.machine.task().crd;
        self.knows != resource.generation()
            || !known.versions_elsewhere().eq(resource.crd().versions_elsewhere())
    }

    /// The revision up to which its watch has brought everything.
    pub fn delivered(&self) -> Option<Revision> {
        self.watch.as_ref().map(|watch| watch.delivered)
    }

    /// Whether it has nothing to do, or watches its objects and nothing is under way.
    pub fn is_at_rest(&mut self) -> bool {
        let is_waiting = self.waits.as_ref().is_some_and(|waits| waits.until.is_none());
        let is_idle = self.tasks.is_empty() && self.machine.status().is_idle();
        is_idle && (is_waiting || self.machine.watching().is_some())
    }

    /// Whether everything that it knows is reported.
    pub fn has_reported(&mut self, now: Instant) -> bool {
        let soon = now + Duration::from_secs(5);
        let owes_report = self.machine.watching().is_some_and(|watching| watching.has_unreported());
        self.is_at_rest() && !owes_report && self.timeout().is_none_or(|timeout| timeout > soon)
    }

    /// Whether a report is the one that it has read or written last, or may have written.
    pub fn knows_report(&self, report: Option<&DefaultsReport>) -> bool {
        let report = report.and_then(|report| report.status.as_ref());
        self.known_report.as_ref() == report || report.is_some() && self.sent_report.as_ref() == report
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

    /// The watch of CRDs shows the CRD at this revision.
    pub fn crd_shown(&mut self, now: Instant, revision: CrdRevision) {
        self.machine.status().crd_shown(now, revision);
    }

    /// What may be done has changed.
    pub fn permissions_changed(&mut self) {
        self.machine.permissions_changed();
    }

    /// The watch is closed, and cannot continue.
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
                Command::Log(Note::PassVerifies) => self.verifies = true,
                Command::Status(status::Command::Emit(_) | status::Command::Count { .. })
                | Command::Log(_) => {}
                Command::Status(command) => self.tasks.push(Task::Status(command)),
                Command::Ask(question) => self.tasks.push(Task::Ask(question)),
                Command::Begin(_) => (self.snapshot, self.verifies) = (None, false),
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
                    let has_pause_changed = self.machine.task().settings.pause != self.machine.task().pause;
                    let until = match next {
                        // A pause that has begun or ended meanwhile ends the wait.
                        Next::Wait(_) | Next::Settle(_) if has_pause_changed => Some(at.now.at),
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
            if !matches!(command, status::Command::Emit(_) | status::Command::Count { .. }) {
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
        let resource = self.resource;
        self.tasks.retain_mut(|task| match task {
            Task::Status(_) | Task::Ask(_) => true,
            Task::Object(task) => {
                if let Some(WriteUnderWay { sent, .. }) =
                    task.write.take().filter(|_| task.confirmed.is_some())
                {
                    let name = task.work.identity.name.clone();
                    strays.push(Stray { resource, write: StrayWrite::Object { name, sent } });
                }
                false
            }
            Task::List(_) | Task::Admit | Task::CheckServer | Task::Read(_) => false,
        });
    }

    fn with_pass(&mut self, act: impl FnOnce(&mut pass::Pass<Seen>)) {
        if let Some(pass) = self.machine.pass() {
            act(pass);
        }
    }

    /// Whether a request, or its answer, is lost.
    fn fails(at: &mut Surroundings<'_>) -> bool {
        at.has_faults && at.dice.loses()
    }
}

/// A CRD as something else than what it is.
fn mistaken(mut document: Value, change: impl FnOnce(&mut Value)) -> Arc<Crd> {
    change(&mut document["spec"]);
    Arc::new(Crd::read(&Json::from(document)).expect("it can be read with it"))
}

/// Which bytes an object shows.
fn tag(object: &Object) -> Tag {
    Tag {
        uid: object.uid().trim_start_matches("uid-").parse().unwrap_or_default(),
        revision: object.resource_version().parse().unwrap_or_default(),
    }
}

fn lost() -> CallError {
    CallError::Connection(ServerName::default(), "the connection was closed".to_owned())
}

/// How a request fails that is not carried out.
fn failed(at: &mut Surroundings<'_>) -> CallError {
    turned_away(at).map_or_else(lost, |refused| call_refused(&refused))
}

/// The answer to a request that is not carried out; `None` if there is no answer.
fn turned_away(at: &mut Surroundings<'_>) -> Option<Refused> {
    let (code, message) = match at.dice.seed(4) {
        1 => (429, "too many requests"),
        2 => (404, NOT_SERVED),
        _ => return None,
    };
    Some(Refused { code, message: message.to_owned() })
}

fn refused(code: u16, message: &str) -> CallError {
    call_refused(&Refused { code, message: message.to_owned() })
}

fn call_refused(refused: &Refused) -> CallError {
    CallError::Refused(Box::new(refusal(refused)))
}
