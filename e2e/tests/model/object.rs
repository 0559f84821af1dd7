//! The machine of an object, which Etch runs, as a function from small numbers to small numbers. Nothing here
//! decides what the machine decides.
//!
//! Machines that print the same are the same, however they came to be so; of each, the first way is kept.

use std::sync::Arc;

use etch_core::object::Object;
use etch_core::object_machine::{Again, ObjectMachine, Reconciled, Step, Stop};
use etch_core::object_state::ObjectState;
use etch_core::plan::{Exceptions, Outcome, Proof, Record, Strategy};
use etch_core::report::changed_defaults::version_of;
use etch_core::report::ledger::ObjectLedger;
use serde_json::json;

use crate::parts::{Known, Named, Parts, Past, Seen};
use crate::server::uid;
use crate::tables::Id;
use crate::task::{Conclusion, Problem};
use e2e::simulator::sabotage::Sabotage;

/// What it begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Begun {
    pub(crate) world: u8,
    /// The release that Etch knows.
    pub(crate) release: u8,
    pub(crate) seen: Seen,
    pub(crate) known: Known,
    /// The releases before, the latest first.
    pub(crate) past: [Past; 3],
    /// Whether values of changed defaults are still to follow.
    pub(crate) follows: bool,
    /// Whether servers may lag behind.
    pub(crate) may_lag: bool,
}

/// What it takes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Taken {
    /// This write has ended.
    Ended(Id),
    /// The server could not answer.
    Unanswered,
    /// The same, and it is taken for an answer: a sabotage.
    Believed,
    /// The object was read again.
    Read(Seen),
}

/// What it began with, and what it has taken in since.
#[derive(Clone, Debug)]
pub(crate) struct History {
    begun: Begun,
    taken: Vec<Taken>,
}

/// Where a machine stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Stand {
    /// Which machine it is.
    pub(crate) machine: Id,
    /// The object as it was read last, or as a move left it.
    pub(crate) seen: Seen,
    /// Whether that shows an old default while servers may lag behind.
    pub(crate) is_suspect: bool,
    pub(crate) next: NextStep,
}

/// What is to be done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum NextStep {
    /// This write.
    Write(Id),
    /// The object is to be read again.
    Read,
    /// It has ended.
    Done(Conclusion),
    /// Nothing more is to be written before the CRD is read again.
    Stop {
        /// Whether a write took an owner away.
        has_lost_owners: bool,
    },
}

impl Parts {
    /// Begins with an object.
    pub(crate) fn begin(&self, begun: Begun) -> Stand {
        self.begun.of(begun, |begun| self.stand(History { begun: *begun, taken: Vec::new() }))
    }

    /// Goes on with an object.
    pub(crate) fn take(&self, machine: Id, taken: Taken) -> Stand {
        self.taken.of((machine, taken), |_| {
            let mut history = self.objects.get(machine).0.clone();
            history.taken.push(taken);
            self.stand(history)
        })
    }

    fn stand(&self, history: History) -> Stand {
        let Begun { world, release, .. } = history.begun;
        let (machine, step, seen) = self.replay(&history);
        let suspects = machine.clone().into_found().suspects;
        let is_suspect = suspects.contains(&version_of(machine.object()));
        let next = match &step {
            Step::Write => match machine.planned() {
                Some(write) => NextStep::Write(self.write(world, release, seen, write.clone())),
                None => unreachable!("a write is planned"),
            },
            Step::ReadAgain { .. } => NextStep::Read,
            Step::Done(Reconciled { state, .. }) => NextStep::Done(conclusion(state)),
            Step::Stop(stop) => NextStep::Stop { has_lost_owners: matches!(stop, Stop::OwnersLost(_)) },
            Step::AskOthers(_) => unreachable!("it was answered"),
        };
        let text = format!("{world} {seen:?} {machine:?} {step:?}");
        Stand { machine: self.objects.id(Named::new(history, &text)), seen, is_suspect, next }
    }

    fn replay(&self, history: &History) -> (ObjectMachine, Step, Seen) {
        let Begun { world, release, mut seen, known, past, follows, may_lag } = history.begun;
        let record = Record {
            through: known.through.map(u64::from),
            exceptions: known.excepted.map(uid).into_iter().collect::<Exceptions>(),
            versions_disagree: known.versions_disagree,
            servers_lag: known.servers_lag,
            ..Record::default()
        };
        let changes = self.changes(world, release, &past);
        let ledger = ObjectLedger {
            concerns: follows && !changes.is_empty(),
            changes: changes.into(),
            servers_may_lag: may_lag,
            ..ObjectLedger::default()
        };
        let object = |seen| self.unowned(world, self.object(world, release, seen));
        let rules = self.rules(world, release);
        let (mut machine, mut step) =
            ObjectMachine::begin(rules, ledger, object(seen), Arc::new(record), false);
        for taken in &history.taken {
            step = match *taken {
                Taken::Unanswered => machine.wrote(None),
                Taken::Believed => machine.wrote(Some(Outcome::Written {
                    resource_version: seen.tag.revision.to_string(),
                    proof: Proof::WriteAnswered,
                })),
                Taken::Read(fresh) => {
                    seen = fresh;
                    machine.read(Again::Read(Box::new(object(fresh))))
                }
                Taken::Ended(write) => {
                    let (outcome, last) = self.ended(write);
                    let is_end = self.is(Sabotage::EndsWithARewrite)
                        && machine.planned().is_some_and(|write| write.strategy == Strategy::Rewrite);
                    match (&outcome, last) {
                        (Outcome::Followed(_), Some(last)) => seen = last,
                        (Outcome::Written { resource_version, .. }, _) if is_end => {
                            let resource_version = resource_version.clone();
                            let state = ObjectState::Written { resource_version };
                            step = Step::Done(Reconciled::of(state, Vec::new()));
                            continue;
                        }
                        _ => {}
                    }
                    machine.wrote(Some(outcome))
                }
            };
            // No object may be written less than others.
            if let Step::AskOthers(verb) = step {
                step = machine.may_write_others(verb, true);
            }
        }
        (machine, step, seen)
    }

    /// An object as Etch takes it: with a sabotage, as one of which nobody owns what follows.
    fn unowned(&self, world: u8, object: Object) -> Object {
        if !self.is(Sabotage::FollowsWhatIsOwned) || self.worlds[world as usize].follow.is_empty() {
            return object;
        }
        let mut json = object.json().clone();
        let entries = json["metadata"]["managedFields"].as_array_mut().into_iter().flatten();
        entries.for_each(|entry| entry["fieldsV1"] = json!({ "f:spec": { "f:note": {} } }));
        Object::from(json)
    }
}

fn conclusion(state: &ObjectState) -> Conclusion {
    match state {
        ObjectState::Stored | ObjectState::Skipped(_) => Conclusion::Stored,
        ObjectState::AlreadyStored => Conclusion::AlreadyStored,
        ObjectState::Written { resource_version } => {
            Conclusion::Written(resource_version.parse().expect("the model's versions are numbers"))
        }
        ObjectState::Gone => Conclusion::Gone,
        ObjectState::Held(_) => Conclusion::Problem(Problem::Held),
        ObjectState::Rejected(_) => Conclusion::Problem(Problem::Rejected),
        ObjectState::Unknown => Conclusion::Problem(Problem::Unknown),
        ObjectState::Due | ObjectState::Unproved => unreachable!("Etch may write"),
    }
}
