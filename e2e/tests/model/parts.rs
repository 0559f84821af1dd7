//! The write machine of Etch, and the model's server, as functions from small numbers to small numbers. It
//! must not decide anything that Etch decides, nor repair what it sends: only a sabotage changes a request,
//! on its way out.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use etch_core::api::Mode;
use etch_core::object::Object;
use etch_core::object_machine::Rules;
use etch_core::ownership::MANAGER;
use etch_core::plan::{
    self, Change, HiddenFields, Outcome, PatchKind, Step, Strategy, Terms, Write, WriteMachine, changes,
    past, past_of,
};

use crate::object::{Begun, History, Stand, Taken};
use crate::server::{self, Content, Effect, Refused, Request, Revision, Tag, Uid, Verb, document, refusal};
use crate::tables::{Id, Memo, Table};
use crate::worlds::World;
use e2e::simulator::sabotage::{Sabotage, is_release};

/// An object as a server showed it: which release that served, what etcd held, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Seen {
    pub(crate) by: u8,
    pub(crate) content: Id,
    pub(crate) tag: Tag,
}

/// What is on record of the object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Known {
    pub(crate) through: Option<Revision>,
    pub(crate) excepted: Option<Uid>,
    pub(crate) versions_disagree: bool,
    pub(crate) servers_lag: bool,
}

/// An earlier release, and whether its pass had ended.
pub(crate) type Past = Option<(u8, bool)>;

/// A write under way: everything that it was begun with, and the answers so far.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Machine {
    world: u8,
    release: u8,
    seen: Seen,
    write: Id,
    answers: Vec<Answer>,
}

/// What a request is answered.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Answer {
    Object(Seen),
    Refused(Refused),
}

/// What follows an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Next {
    /// This write waits for another answer.
    Send(Id),
    /// This write has ended.
    Done(Id),
    /// The server could not answer.
    Failed,
}

/// Something that is told from others by what is printed of it.
pub(crate) struct Named<T>(pub(crate) T, [u64; 2]);

/// A request that waits to be processed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Pending {
    pub(crate) request: Id,
    /// The object as it was last seen before.
    pub(crate) basis: Tag,
    /// Whether values are moved after a changed default.
    pub(crate) follows: bool,
    /// The release that Etch knew.
    pub(crate) release: u8,
}

/// What a request does to the object: the refusal, or the bytes that there are then; none where it is
/// deleted.
pub(crate) type Done = Result<Option<Id>, Refused>;

/// World, release, object and request.
type Handled = (u8, u8, Option<(Id, Tag)>, Id);

/// All worlds, and everything that has been worked out about them.
pub(crate) struct Parts {
    pub(crate) worlds: Vec<World>,
    pub(crate) sabotage: Option<Sabotage>,
    pub(crate) contents: Table<Content>,
    pub(crate) requests: Table<Request>,
    pub(crate) machines: Table<Machine>,
    answers: Table<Answer>,
    writes: Table<Named<Write>>,
    pub(crate) objects: Table<Named<History>>,
    pub(crate) begun: Memo<Begun, Stand>,
    pub(crate) taken: Memo<(Id, Taken), Stand>,
    steps: Memo<(Id, Id), Next>,
    pending: Memo<Id, Pending>,
    handled: Memo<Handled, Done>,
    stored: Memo<(u8, u8, Id), bool>,
}

impl Parts {
    pub(crate) fn new(worlds: Vec<World>, sabotage: Option<Sabotage>) -> Self {
        Self {
            worlds,
            sabotage,
            contents: Table::default(),
            requests: Table::default(),
            machines: Table::default(),
            answers: Table::default(),
            writes: Table::default(),
            objects: Table::default(),
            begun: Memo::default(),
            taken: Memo::default(),
            steps: Memo::default(),
            pending: Memo::default(),
            handled: Memo::default(),
            stored: Memo::default(),
        }
    }

    pub(crate) fn is(&self, sabotage: Sabotage) -> bool {
        self.sabotage == Some(sabotage)
    }

    /// Whether a server that serves `by` answers at the storage version of `release`.
    pub(crate) fn answers(&self, world: u8, by: u8, release: u8) -> bool {
        let releases = &self.worlds[world as usize].releases;
        releases[by as usize].has(releases[release as usize].storage())
    }

    pub(crate) fn object(&self, world: u8, release: u8, seen: Seen) -> Object {
        let releases = &self.worlds[world as usize].releases;
        let version = releases[release as usize].storage();
        let content = self.contents.get(seen.content);
        let document = document(&releases[seen.by as usize], &content, seen.tag, version);
        Object::from(document.expect("what a server answered with, it can show"))
    }

    fn terms(&self, world: u8) -> Terms {
        let terms = self.worlds[world as usize].terms.clone();
        match self.is(Sabotage::IgnoresHiddenFields) {
            true => Terms { hidden_fields: HiddenFields::Drop, ..terms },
            false => terms,
        }
    }

    /// What has changed since the releases before.
    pub(crate) fn changes(&self, world: u8, release: u8, before: &[Past; 3]) -> Vec<Change> {
        let world = &self.worlds[world as usize];
        let history = before.iter().rev().flatten().fold(Vec::new(), |older, (release, is_finished)| {
            past(past_of(&world.releases[*release as usize].crd), *is_finished, older)
        });
        changes(&history, &world.releases[release as usize].crd, &world.follow)
    }

    /// Whether anything has changed since the releases before.
    pub(crate) fn has_changes(&self, world: u8, release: u8, before: &[Past; 3]) -> bool {
        !self.changes(world, release, before).is_empty()
    }

    /// Whether a write that is under way replaces the owners.
    pub(crate) fn is_rewrite(&self, machine: Id) -> bool {
        self.writes.get(self.machines.get(machine).write).0.strategy == Strategy::Rewrite
    }

    /// A write of an object as it was seen.
    pub(crate) fn write(&self, world: u8, release: u8, seen: Seen, write: Write) -> Id {
        let write = match self.sabotage {
            Some(sabotage) => sabotage.change_write(write),
            None => write,
        };
        let text = format!("{write:?}");
        let write = self.writes.id(Named::new(write, &text));
        self.machines.id(Machine { world, release, seen, write, answers: Vec::new() })
    }

    /// What Etch decides by.
    pub(crate) fn rules(&self, world: u8, release: u8) -> Rules {
        Rules {
            crd: self.worlds[world as usize].releases[release as usize].crd.clone(),
            terms: self.terms(world),
            mode: Mode::Persist,
            since: Arc::default(),
        }
    }

    /// The request of a write that waits for an answer.
    pub(crate) fn pending(&self, machine: Id) -> Pending {
        self.pending.of(machine, |_| {
            let machine_ = self.machines.get(machine);
            let write = &self.writes.get(machine_.write).0;
            let request = match self.run(&machine_, write) {
                Step::Send(request) => request,
                _ => unreachable!("only a write that has sent a request waits for an answer"),
            };
            let releases = &self.worlds[machine_.world as usize].releases;
            let verb = match request.kind {
                PatchKind::Apply => Verb::Apply,
                PatchKind::Merge => Verb::Merge,
                PatchKind::Json => Verb::Json,
                PatchKind::DryRun | PatchKind::ApplyDryRun => Verb::DryRun,
            };
            let basis = machine_.answers.iter().rev().find_map(|answer| match answer {
                Answer::Object(seen) => Some(seen.tag),
                Answer::Refused(_) => None,
            });
            let request = Request {
                version: releases[machine_.release as usize].storage().to_owned(),
                manager: MANAGER.to_owned(),
                verb,
                body: request.body.into_inner(),
            };
            let object = || self.object(machine_.world, machine_.release, machine_.seen);
            let request = match self.sabotage {
                Some(sabotage) => sabotage.change(request, &object),
                None => request,
            };
            Pending {
                request: self.requests.id(request),
                basis: basis.unwrap_or(machine_.seen.tag),
                follows: write.strategy == Strategy::Follow,
                release: machine_.release,
            }
        })
    }

    /// Runs a write machine through the answers so far; its last step.
    fn run(&self, machine: &Machine, write: &Write) -> Step {
        let crd = &self.worlds[machine.world as usize].releases[machine.release as usize].crd;
        let terms = self.terms(machine.world);
        let object = self.object(machine.world, machine.release, machine.seen);
        let (mut write_machine, request) = WriteMachine::begin(crd, &object, write, &terms);
        let mut step = Step::Send(request);
        for answer in &machine.answers {
            step = match answer {
                Answer::Object(seen) => {
                    write_machine.answered(self.object(machine.world, machine.release, *seen))
                }
                Answer::Refused(refused) => write_machine.refused(refusal(refused)),
            };
        }
        step
    }

    /// Hands an answer to a write.
    pub(crate) fn answered(&self, machine: Id, answer: Answer) -> Next {
        let id = self.answers.id(answer.clone());
        self.steps.of((machine, id), |_| {
            let mut machine = (*self.machines.get(machine)).clone();
            machine.answers.push(answer);
            let write = &self.writes.get(machine.write).0;
            match self.run(&machine, write) {
                Step::Send(request) if !self.leaves_it_there(&request) => {
                    Next::Send(self.machines.id(machine))
                }
                Step::Send(_) | Step::Done(_) => Next::Done(self.machines.id(machine)),
                Step::Failed(_) => Next::Failed,
            }
        })
    }

    fn leaves_it_there(&self, request: &plan::Request) -> bool {
        self.is(Sabotage::LeavesItsEntry) && is_release(&request.body)
    }

    /// How a write has ended, and the object as it was answered last.
    pub(crate) fn ended(&self, machine: Id) -> (Outcome, Option<Seen>) {
        let machine = self.machines.get(machine);
        let last = machine.answers.iter().rev().find_map(|answer| match answer {
            Answer::Object(seen) => Some(*seen),
            Answer::Refused(_) => None,
        });
        let written = || Outcome::Written {
            resource_version: last.map(|seen| seen.tag.revision.to_string()).unwrap_or_default(),
            proof: plan::Proof::WriteAnswered,
        };
        let outcome = match self.run(&machine, &self.writes.get(machine.write).0) {
            Step::Done(Outcome::Unproved) if self.is(Sabotage::BelievesEveryAnswer) => written(),
            Step::Done(outcome) => outcome,
            // What it would send is the removal of its entry: see `leaves_it_there`.
            Step::Send(_) => written(),
            Step::Failed(_) => unreachable!("a write that has failed has not ended"),
        };
        (outcome, last)
    }

    /// What a server that serves `release` makes of a request.
    pub(crate) fn handle(&self, world: u8, release: u8, live: Option<(Id, Tag)>, request: Id) -> Done {
        self.handled.of((world, release, live, request), |_| {
            let place = &self.worlds[world as usize];
            let content = live.map(|(content, tag)| (self.contents.get(content), tag));
            let live = content.as_ref().map(|(content, tag)| (&**content, *tag));
            let request = self.requests.get(request);
            let effect = server::handle(&place.releases[release as usize], place.untypable, live, &request)?;
            Ok(match effect {
                Effect::Stored(content) => Some(self.contents.id(content)),
                Effect::Deleted => None,
            })
        })
    }

    /// Whether etcd holds every default of a release.
    pub(crate) fn is_stored(&self, world: u8, release: u8, content: Id) -> bool {
        self.stored.of((world, release, content), |_| {
            self.worlds[world as usize].releases[release as usize].is_stored(&self.contents.get(content))
        })
    }
}

impl<T> Named<T> {
    /// Two hashes of what is printed stand for it: texts would take more room than all else.
    pub(crate) fn new(value: T, text: &str) -> Self {
        let hash = |salt: u8| {
            let mut hasher = DefaultHasher::new();
            (salt, text).hash(&mut hasher);
            hasher.finish()
        };
        Self(value, [hash(0), hash(1)])
    }
}

impl<T> PartialEq for Named<T> {
    fn eq(&self, other: &Self) -> bool {
        self.1 == other.1
    }
}

impl<T> Eq for Named<T> {}

impl<T> Hash for Named<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.1.hash(state);
    }
}

/// Parts that are shared by all that explore them.
pub(crate) type Shared = Arc<Parts>;
