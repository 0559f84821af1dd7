//! The real decision and the real write machine of Etch, and the model's server, as functions from small
//! numbers to small numbers. It must not decide anything that Etch decides, nor repair what it sends: only a
//! sabotage changes a request, on its way out.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use etch_core::object::Object;
use etch_core::ownership::MANAGER;
use etch_core::plan::{
    Change, Exceptions, HiddenFields, Outcome, PatchKind, Plan, Record, Step, Strategy, Terms, Write,
    WriteMachine, changes, decide, follow, has_gap, past, past_of, pinned, rewritten, shows_past,
    with_lag_check,
};
use serde_json::json;

use crate::server::{
    self, Content, Effect, Refused, Request, Revision, Tag, Uid, Verb, document, refusal, uid,
};
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

/// What a decision depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Question {
    pub(crate) world: u8,
    /// The release that Etch knows.
    pub(crate) release: u8,
    pub(crate) seen: Seen,
    pub(crate) known: Known,
    /// The releases before, the latest first.
    pub(crate) past: [Past; 3],
    /// Whether values of changed defaults are still to follow.
    pub(crate) follows: bool,
    /// Whether some have been moved.
    pub(crate) has_moved: bool,
    /// Whether a rewrite of the owners has just stored all that was missing.
    pub(crate) is_stored: bool,
    /// The write that could not be carried out in the owners' terms.
    pub(crate) refused: Option<Id>,
    /// Whether a repeat has changed the object again.
    pub(crate) altered: bool,
    /// Whether servers may lag behind.
    pub(crate) may_lag: bool,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Planned {
    Stored,
    Skip,
    Hold,
    Write(Id),
}

/// A write under way: everything that it was begun with, and the answers so far.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Machine {
    world: u8,
    release: u8,
    pub(crate) seen: Seen,
    pub(crate) write: Id,
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
    Send(Id),
    Done(End),
    Failed,
}

/// What came of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum End {
    Written(Revision),
    Followed(Seen),
    AlreadyStored,
    Gone,
    Again,
    Unproved,
    Altered,
    NeedsRewrite,
    Rejected,
    OwnersLost,
}

/// A write, told from others by all that it says.
pub(crate) struct Named(Write, String);

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
    writes: Table<Named>,
    plans: Memo<Question, Planned>,
    steps: Memo<(Id, Id), Next>,
    pending: Memo<Id, Pending>,
    handled: Memo<Handled, Done>,
    stored: Memo<(u8, u8, Id), bool>,
    suspects: Memo<(u8, u8, Seen, [Past; 3]), bool>,
    gaps: Memo<(u8, u8, Seen), bool>,
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
            plans: Memo::default(),
            steps: Memo::default(),
            pending: Memo::default(),
            handled: Memo::default(),
            stored: Memo::default(),
            suspects: Memo::default(),
            gaps: Memo::default(),
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

    fn object(&self, world: u8, release: u8, seen: Seen) -> Object {
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
    fn changes(&self, world: u8, release: u8, before: &[Past; 3]) -> Vec<Change> {
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

    /// Whether an object shows what a changed default gave before.
    pub(crate) fn is_suspect(&self, world: u8, release: u8, seen: Seen, before: [Past; 3]) -> bool {
        self.suspects.of((world, release, seen, before), |_| {
            let changes = self.changes(world, release, &before);
            shows_past(&self.object(world, release, seen), &changes)
        })
    }

    /// Whether an object lacks a default even as it is shown.
    pub(crate) fn has_gap(&self, world: u8, release: u8, seen: Seen) -> bool {
        self.gaps.of((world, release, seen), |_| {
            let crd = &self.worlds[world as usize].releases[release as usize].crd;
            has_gap(&self.object(world, release, seen), crd)
        })
    }

    /// Decides, as the reconciler of objects has it decided.
    pub(crate) fn plan(&self, question: Question) -> Planned {
        self.plans.of(question, |question| self.work_out(question))
    }

    fn work_out(&self, question: &Question) -> Planned {
        let Question {
            world,
            release,
            seen,
            known,
            past,
            follows,
            has_moved,
            is_stored,
            refused,
            altered,
            may_lag,
        } = *question;
        let crd = &self.worlds[world as usize].releases[release as usize].crd;
        let (object, terms) = (self.object(world, release, seen), self.terms(world));
        let record = Record {
            through: known.through.map(u64::from),
            exceptions: known.excepted.map(uid).into_iter().collect::<Exceptions>(),
            versions_disagree: known.versions_disagree,
            servers_lag: known.servers_lag,
            ..Record::default()
        };
        let changes = self.changes(world, release, &past);
        let plan = match is_stored {
            true => Plan::Stored(etch_core::plan::Proof::UnchangedSincePass),
            false => decide(&object, crd, &terms, &record),
        };
        let may_follow = match &plan {
            Plan::Stored(_) => true,
            Plan::Write(write) => write.strategy != Strategy::Rewrite,
            Plan::Skip(_) | Plan::Hold(_) => false,
        };
        let plan = match may_follow && follows && !changes.is_empty() {
            true => match follow(&self.unowned(&object), crd, &terms, &changes).plan {
                Some(Plan::Hold(held)) if held.reason == etch_core::plan::Hold::InvalidDefaults => plan,
                instead => instead.unwrap_or(plan),
            },
            false => plan,
        };
        let refused = refused.map(|id| self.writes.get(id));
        let write = match (refused, plan) {
            (_, Plan::Stored(_)) => return Planned::Stored,
            (_, Plan::Skip(_)) => return Planned::Skip,
            (_, Plan::Hold(_)) => return Planned::Hold,
            (Some(refused), Plan::Write(_)) => rewritten(&object, crd, &terms, &refused.0),
            (None, Plan::Write(write)) => write,
        };
        let write = Write { prove: write.prove && !altered && !self.is(Sabotage::ProvesNothing), ..write };
        let write = match has_moved || self.is(Sabotage::SendsNoChangedValues) {
            true => write,
            false => pinned(write, &object, crd, &terms, &changes),
        };
        let write = match may_lag && !has_moved && !self.is(Sabotage::DoubtsNothing) {
            true => with_lag_check(write, &object, &changes),
            false => write,
        };
        let text = format!("{write:?}");
        let write = self.writes.id(Named(write, text));
        Planned::Write(self.machines.id(Machine { world, release, seen, write, answers: Vec::new() }))
    }

    fn unowned(&self, object: &Object) -> Object {
        let mut object = object.clone();
        if self.is(Sabotage::FollowsWhatIsOwned) {
            let mut json = object.json().clone();
            let entries = json["metadata"]["managedFields"].as_array_mut().into_iter().flatten();
            entries.for_each(|entry| entry["fieldsV1"] = json!({ "f:spec": { "f:note": {} } }));
            object = Object::from(json);
        }
        object
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
                Step::Send(request) if self.is(Sabotage::LeavesItsEntry) && is_release(&request.body) => {
                    let last = machine.answers.iter().rev().find_map(|answer| match answer {
                        Answer::Object(seen) => Some(seen.tag.revision),
                        Answer::Refused(_) => None,
                    });
                    last.map_or(Next::Failed, |revision| Next::Done(End::Written(revision)))
                }
                Step::Send(_) => Next::Send(self.machines.id(machine)),
                Step::Failed(_) => Next::Failed,
                Step::Done(outcome) => Next::Done(self.end(&machine, outcome)),
            }
        })
    }

    fn end(&self, machine: &Machine, outcome: Outcome) -> End {
        let last = machine.answers.iter().rev().find_map(|answer| match answer {
            Answer::Object(seen) => Some(*seen),
            Answer::Refused(_) => None,
        });
        match outcome {
            Outcome::Written { resource_version, .. } => {
                End::Written(resource_version.parse().expect("the model's versions are numbers"))
            }
            Outcome::Followed(_) => End::Followed(last.expect("it was answered with an object")),
            Outcome::AlreadyStored(_) => End::AlreadyStored,
            Outcome::Gone => End::Gone,
            // The task reads the CRD again, and then the object.
            Outcome::Conflict
            | Outcome::Harmful { .. }
            | Outcome::FieldsDropped { .. }
            | Outcome::CrdChanged => End::Again,
            Outcome::Unproved => End::Unproved,
            Outcome::Altered => End::Altered,
            Outcome::Mutated { .. } => unreachable!("the model has no admission"),
            Outcome::NeedsRewrite => End::NeedsRewrite,
            Outcome::Rejected(_) | Outcome::Forbidden { .. } => End::Rejected,
            Outcome::OwnersLost { .. } => End::OwnersLost,
        }
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

impl PartialEq for Named {
    fn eq(&self, other: &Self) -> bool {
        self.1 == other.1
    }
}

impl Eq for Named {}

impl Hash for Named {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.1.hash(state);
    }
}

/// Parts that are shared by all that explore them.
pub(crate) type Shared = Arc<Parts>;
