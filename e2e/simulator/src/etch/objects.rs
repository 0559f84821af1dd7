//! Objects on their way: from their read to what is known of them, with every request in between.

use std::time::Instant;

use etch_core::api::Mode;
use etch_core::engine::crd::task::Task as Assignment;
use etch_core::engine::stop_reason::StopReason;
use etch_core::engine::{Ended, Work};
use etch_core::object::{Identity, Object};
use etch_core::object_machine::{Again, Machine as _, Reconciled, Step, Stop};
use etch_core::object_state::ObjectState;
use etch_core::plan::{self, Outcome, Proof, Strategy, WriteMachine};

use super::{
    COUNTS, Driver, ObjectTask, Seen, Stray, StrayWrite, Surroundings, Task, WriteUnderWay, tag, turned_away,
};
use crate::dice::Fate;
use crate::etcd::{Live, Resource, Sent, Server};
use crate::laws::Law;
use crate::sabotage::{Sabotage, is_release};
use crate::server::{Refused, Request, Tag, Verb, refusal, uid};

impl Driver {
    pub(super) fn advance_object(
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
            Step::AskOthers(verb) => task.work.machine.may_write_others(verb, Some(true)),
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

    fn reconciled(&mut self, work: Work<Seen>, result: Result<Reconciled, StopReason>, now: Instant) {
        let Work { index, identity, machine, .. } = work;
        let ended = Ended { result, found: machine.into_found() };
        if let Some(pass) = self.machine.pass() {
            pass.reconciled(index, identity, ended);
        } else if let Some(watching) = self.machine.watching() {
            watching.reconciled(now, &identity, ended);
        }
    }

    /// A verdict of stored is true: etcd holds the object's defaults.
    fn claim(&self, task: &ObjectTask, state: &ObjectState, resource: &Resource) -> Result<(), Law> {
        let object = task.work.machine.object();
        let revision = match state {
            ObjectState::Stored | ObjectState::AlreadyStored => object.revision(),
            ObjectState::Written { resource_version } => resource_version.parse().ok(),
            _ => None,
        };
        let Some(live) = resource.objects.get(object.name()) else { return Ok(()) };
        let is_this = uid(live.tag.uid) == object.uid() && Some(u64::from(live.tag.revision)) == revision;
        // A verdict is about the generation that Etch knows, which its conditions name.
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

    /// Continues with a write: it asks for the CRD's generation, or sends one request.
    fn write(
        &mut self,
        mut task: ObjectTask,
        resource: &mut Resource,
        at: &mut Surroundings<'_>,
    ) -> Result<(), Law> {
        if at.sabotage == Some(Sabotage::VerifiesNothing) && self.verifies {
            let step = task.work.machine.wrote(Some(Outcome::AlreadyStored(Proof::WriteChangedNothing)));
            return self.go_on(task, step);
        }
        let Some(write) = task.write.take().or_else(|| self.begin(&task, at)) else {
            let step = task.work.machine.wrote(None);
            return self.go_on(task, step);
        };
        let Some(confirmed) = task.confirmed.take() else {
            let since = if write.request.keeps_fields { task.read } else { at.now.at };
            if !self.is_confirmed(since, resource, at) {
                let outcome = self.is_over.then_some(Outcome::CrdChanged);
                let step = task.work.machine.wrote(outcome);
                return self.go_on(task, step);
            }
            let asked = self.confirmed.filter(|_| at.sabotage != Some(Sabotage::NeverAsksForTheGeneration));
            (task.confirmed, task.write) = (asked.or(Some(at.now.at)), Some(write));
            self.tasks.push(Task::Object(Box::new(task)));
            return Ok(());
        };
        let WriteUnderWay { mut answers, sent, .. } = write;
        let name = task.work.identity.name.clone();
        let fate = if at.has_faults { at.dice.fate() } else { Fate::Answered };
        let refused = if fate == Fate::Lost { turned_away(at) } else { None };
        if matches!(fate, Fate::Late | Fate::Lost) && refused.is_none() {
            if fate == Fate::Late {
                let write = StrayWrite::Object { name, sent };
                at.strays.push(Stray { resource: self.resource, write });
            }
            let resource_version = task.work.machine.object().resource_version().to_owned();
            let silence = || Outcome::Written { resource_version, proof: Proof::WriteAnswered };
            let believes = at.sabotage == Some(Sabotage::BelievesInSilence);
            let step = task.work.machine.wrote(believes.then(silence));
            return self.go_on(task, step);
        }
        let server = self.server(resource, at);
        let before = resource.objects.get(&name).cloned();
        let answer = match refused {
            Some(refused) => Ok(Err(refused)),
            None => self.send((&name, confirmed), &sent, server, resource, at),
        };
        at.note(|| {
            let after = resource.objects.get(&name);
            let shown =
                |live: Option<&Live>| live.map(|live| (live.tag.revision, live.content.value.to_string()));
            let (before, after) = (shown(before.as_ref()), shown(after));
            let Request { verb, body, .. } = &sent.request;
            format!("to {server:?}, {name}: {verb:?} {body}: {before:?} becomes {after:?}")
        });
        let answer = answer?;
        if fate == Fate::Unanswered {
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
                if at.sabotage == Some(Sabotage::LeavesItsEntry) && is_release(&next.body) =>
            {
                let resource_version = resource.objects.get(&name).map(|live| live.tag.revision.to_string());
                resource_version.map(|resource_version| Outcome::Written {
                    resource_version,
                    proof: Proof::WriteAnswered,
                })
            }
            Some(plan::Step::Send(request)) => {
                let last = answers.iter().rev().find_map(|answer| answer.as_ref().ok());
                let basis = last.map_or(sent.basis, tag);
                // A dry run that is refused may be followed by the write all the same.
                let is_refused =
                    sent.request.verb == Verb::DryRun && answers.last().is_some_and(Result::is_err);
                let doubtful = match task.work.machine.planned().filter(|_| is_refused) {
                    Some(write) => write.doubtful.iter().map(|doubt| doubt.place.to_string()).collect(),
                    None => sent.doubtful,
                };
                let sent = Sent { doubtful, ..self.sent(&request, &task, basis, sent.follows, at) };
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
                    proof: Proof::WriteAnswered,
                })
            }
            (_, Some(Sabotage::CreatesWhatIsGone), None) => return Self::create(&name, resource, at),
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
    fn create(name: &str, resource: &mut Resource, at: &mut Surroundings<'_>) -> Result<(), Law> {
        let request = resource.world.menu[0].clone();
        match resource.process(at.clock, name, Server::Current, &request) {
            Ok(Some(_)) => Err(Law::Creates),
            Ok(None) | Err(_) => Ok(()),
        }
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
        let request = Request::of_etch(request, &self.version());
        let object = || task.work.machine.object().clone();
        let request = match at.sabotage {
            Some(sabotage) => sabotage.change(request, &object),
            None => request,
        };
        Sent { request, basis, follows, knows: self.knows, doubtful: Vec::new() }
    }

    /// Whether a write may begin: the CRD was at its generation within the last second and since `read`, or
    /// is so now.
    fn is_confirmed(&mut self, read: Instant, resource: &Resource, at: &mut Surroundings<'_>) -> bool {
        if self.is_over {
            return false;
        }
        // Where no time passes, what was asked before the read may seem to be asked after it.
        let is_known = self.confirmed.is_some_and(|asked| asked > read && asked + COUNTS > at.now.at);
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
        (name, confirmed): (&str, Instant),
        sent: &Sent,
        server: Server,
        resource: &mut Resource,
        at: &mut Surroundings<'_>,
    ) -> Result<Result<Live, Refused>, Law> {
        let is_write = sent.request.verb != Verb::DryRun;
        self.writes += u64::from(is_write);
        if is_write && self.mode() != Mode::Persist {
            return Err(Law::Allowed);
        }
        // A limit: an apply that is under way when the CRD loses a field destroys it.
        let has_stopped = self.stopped.is_some_and(|until| at.now.at < until + COUNTS);
        let is_overtaken = self.knows != resource.generation()
            && (has_stopped
                || resource.has_just_changed(at.now.at, COUNTS)
                || resource.has_changed_since(confirmed));
        match resource.process_sent(at.clock, name, server, sent) {
            Err(Law::Hidden) if is_overtaken => Ok(Err(Refused { code: 504, message: String::new() })),
            answer => answer,
        }
    }
}
