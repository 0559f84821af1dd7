//! One object without I/O, from its read to its state: decide, modify, write, classify, and decide again for
//! as long as others write too.
//!
//! | [`Machine`] | the write | of |
//! |---|---|---|
//! | [`ObjectMachine`] | stores what [`decide`] finds missing | the operator, `etch persist` |
//! | [`EmbedMachine`] | stores what an embedded extension lacks | `existing: Persist` |
//! | [`RevertMachine`] | removes what passes have stored | `etch revert` |
//!
//! ```text
//! begin ──> decide ──> Step::Write ── wrote(outcome) ──┬──> Step::Done, Step::Stop <── may_write_others ──┐
//!             ^  └───> Step::Done                      ├──> Step::AskOthers ──────────────────────────────┘
//!             └── read(again) <── Step::ReadAgain <────┘
//! ```
//!
//! # Modifiers
//! What [`decide`] plans is changed in this order:
//!
//! | modifier | where |
//! |---|---|
//! | a rewrite in place of an apply | the server could not carry out the apply in the owners' terms |
//! | the move of a changed default comes first | a policy follows the default, and the value has no owner |
//! | no proof | a repeat has changed the object already: one more write proves no more |
//! | values ([`pinned`]) | a default has changed, and the values are not in etcd yet |
//! | a dry run ahead ([`with_lag_check`]) | servers may lag behind |
//!
//! Where admission refuses it, [`through_status`] may come in its place, once.

mod embed;
mod machine;
mod revert;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::api::Mode;
use crate::crd::Crd;
use crate::follow_changes::FollowChanges;
use crate::object::Object;
use crate::object_state::{ObjectState, Skipped};
use crate::plan::{
    HiddenFields, Outcome, Plan, Proof, Record, Rejection, RejectionKind, Since, Skip, Strategy, Terms,
    Write, decide, has_gap, hidden, likely, pinned, renamed, rewritten, shows_past, through_status, unproved,
    with_lag_check,
};
use crate::report::changed_defaults::version_of;
use crate::report::ledger::{Found, ObjectLedger};
use kube_structural_schema::path::Path;
use machine::Meaning;

pub use embed::{EmbedMachine, Kept, Rest};
pub use machine::{ATTEMPTS, Again, Machine, Reconciled, Step, Stop};
pub use revert::{Failure, RevertMachine, Reverted};

/// How many answers without a default that the object shows mean that admission takes it away.
pub const STRIPPED: u32 = 3;

/// What all objects of a CRD are decided by.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The CRD.
    pub crd: Arc<Crd>,
    /// What writes may do.
    pub terms: Terms,
    /// Whether there are any.
    pub mode: Mode,
    /// Since when each default has been in the schema.
    pub since: Arc<Since>,
}

/// One object on its way to have its defaults stored.
#[derive(Clone, Debug)]
pub struct ObjectMachine {
    rules: Rules,
    known: ObjectLedger,
    found: Found,
    object: Object,
    /// Cleared once a write of ours may have left the object unchanged, which proves nothing (fact W6).
    record: Arc<Record>,
    following: Option<FollowChanges>,
    /// The version in which its defaults are stored, and its state: what follows a changed default comes
    /// after that.
    stored: Option<(String, ObjectState)>,
    missing: Vec<Path>,
    /// An apply that the server could not carry out in the owners' terms.
    needs_rewrite: Option<Write>,
    planned: Option<Write>,
    /// Why admission has refused the write before the planned one, which goes through the status.
    refused: Option<Rejection>,
    /// The fields that the planned write drops, if etcd holds them.
    at_risk: Vec<Path>,
    /// Whether a write of ours changed the object and did not prove that its defaults are stored.
    is_unproved: bool,
    /// Whether the last answer lacked a default.
    lacked: bool,
    suspicion: Suspicion,
    attempts: u32,
}

impl ObjectMachine {
    /// Begins with an object as it was read; of one that `is_proved` to store its defaults, only what may
    /// follow a changed one.
    pub fn begin(
        rules: Rules,
        known: ObjectLedger,
        object: Object,
        record: Arc<Record>,
        is_proved: bool,
    ) -> (Self, Step) {
        let stored = is_proved.then(|| (object.resource_version().to_owned(), ObjectState::Stored));
        let following = Some(FollowChanges::new(&known));
        let mut machine = Self {
            rules,
            known,
            found: Found::default(),
            object,
            record,
            following,
            stored,
            missing: Vec::new(),
            needs_rewrite: None,
            planned: None,
            refused: None,
            at_risk: Vec::new(),
            is_unproved: false,
            lacked: false,
            suspicion: Suspicion::default(),
            attempts: 0,
        };
        let step = machine.decide();
        (machine, step)
    }

    /// What it is decided by.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// What was found, once it has ended.
    pub fn into_found(self) -> Found {
        self.found
    }

    fn decide(&mut self) -> Step {
        let Rules { crd, terms, mode, since } = &self.rules;
        let missing = |machine: &mut Self| std::mem::take(&mut machine.missing);
        let (true, Some(following)) = (self.attempts < ATTEMPTS, &mut self.following) else {
            let missing = missing(self);
            return self.done(Reconciled::of(ObjectState::Unknown, missing));
        };
        self.attempts += 1;
        self.refused = None;
        let version = self.object.resource_version();
        let plan = match self.stored.as_ref().is_some_and(|(stored, _)| stored == version) {
            true => Plan::Stored(Proof::UnchangedSincePass),
            false => decide(&self.object, crd, terms, &self.record),
        };
        // Such a server may leave out the field that a default is in. Read again, the object may have come
        // from another one than before.
        let lacks_places = matches!(plan, Plan::Stored(proof) if proof.needs_the_schema());
        if self.known.servers_may_lag && (lacks_places || shows_past(&self.object, &self.known.changes)) {
            self.found.suspects.push(version_of(&self.object));
        }
        let is_audit = *mode == Mode::Audit;
        let has_moved = following.has_moved();
        let plan = following.plan(plan, &self.object, crd, terms, &self.record, is_audit);
        let write = match (self.needs_rewrite.take(), plan) {
            (Some(write), Plan::Write(_)) => rewritten(&self.object, crd, terms, &write),
            (None, Plan::Write(write)) => write,
            (_, plan) => {
                let state = match self.stored.take().filter(|_| matches!(plan, Plan::Stored(_))) {
                    Some((_, state)) => state,
                    None => self.without_write(plan),
                };
                let missing = missing(self);
                return self.done(Reconciled::of(state, missing));
            }
        };
        let write = Write { prove: write.prove && !self.suspicion.altered, ..write };
        if write.strategy == Strategy::Rewrite && !is_audit {
            let paths = renamed(&self.object, crd);
            if !paths.is_empty() {
                return self.conclude(ObjectState::Rejected(Rejection::renamed(&paths, &crd.storage().name)));
            }
        }
        if write.strategy != Strategy::Follow {
            let likely = likely(&self.object, crd, terms, &write, since);
            if is_audit {
                let state = if likely.changes { ObjectState::Due } else { ObjectState::Unproved };
                return self.done(Reconciled::of(state, likely.missing));
            }
            if self.stored.is_none() {
                self.missing = likely.missing;
            }
        }
        let write = match has_moved {
            // The values are in etcd by now, as they were sent.
            true => write,
            false => {
                let write = pinned(write, &self.object, crd, terms, &self.known.changes);
                match self.known.servers_may_lag {
                    true => with_lag_check(write, &self.object, &self.known.changes),
                    false => write,
                }
            }
        };
        self.at_risk = match terms.hidden_fields {
            HiddenFields::Hold => Vec::new(),
            HiddenFields::Drop => self.known.at_risk(hidden(&self.object, crd, &self.record.hidden.former)),
        };
        self.planned = Some(write);
        Step::Write
    }

    /// Has the object read again after an outcome that means another attempt.
    fn again(&mut self, write: Write, why: Option<&Outcome>) -> Step {
        self.lacked = matches!(why, Some(Outcome::Unproved));
        self.suspicion.altered |= matches!(why, Some(Outcome::Altered));
        // What the next write finds stored, this one may have stored.
        self.is_unproved |=
            matches!(why, Some(Outcome::IdentityWritten | Outcome::Unproved | Outcome::Altered));
        if self.is_unproved || why.is_none() {
            self.record = Arc::new(self.record.of_nothing());
        }
        self.needs_rewrite = Some(write).filter(|_| matches!(why, Some(Outcome::NeedsRewrite)));
        Step::ReadAgain { waits: true }
    }

    /// The write through the status in place of one that was rejected.
    fn through_status(&self, write: &Write, rejection: &Rejection) -> Option<Write> {
        let Rules { crd, terms, .. } = &self.rules;
        let is_by_admission = rejection.kind == RejectionKind::Admission;
        is_by_admission.then(|| through_status(&self.object, crd, terms, write)).flatten()
    }

    fn without_write(&self, plan: Plan) -> ObjectState {
        match plan {
            Plan::Skip(why) => {
                let lacks = match why {
                    // Only the metadata were read.
                    Skip::TooDeep => true,
                    // What is out of scope is not looked at.
                    Skip::NotSelected => false,
                    Skip::Ignored | Skip::IgnoredUnclear | Skip::Terminating => {
                        !unproved(&self.object, &self.rules.crd).is_empty()
                    }
                };
                ObjectState::Skipped(Skipped { why, lacks })
            }
            Plan::Hold(held) => ObjectState::Held(held.without_keys()),
            Plan::Stored(_) | Plan::Write(_) => ObjectState::Stored,
        }
    }

    fn conclude(&mut self, state: ObjectState) -> Step {
        let is_rejected = matches!(state, ObjectState::Rejected(_));
        let left_at = is_rejected.then(|| self.object.resource_version().to_owned());
        let missing = std::mem::take(&mut self.missing);
        self.done(Reconciled { state, missing, left_at })
    }

    /// An object that each write changes again.
    fn mutated(&mut self, rejection: Rejection, left_at: String) -> Step {
        let state = ObjectState::Rejected(rejection);
        self.done(Reconciled { state, missing: Vec::new(), left_at: Some(left_at) })
    }

    fn done(&mut self, reconciled: Reconciled) -> Step {
        let state = match self.following.take() {
            Some(following) => {
                let (state, followed) = following.finish(reconciled.state);
                self.found.followed = followed;
                state
            }
            None => reconciled.state,
        };
        Step::Done(Reconciled { state, ..reconciled })
    }
}

impl Machine for ObjectMachine {
    type End = Reconciled;

    fn object(&self) -> &Object {
        &self.object
    }

    fn planned(&self) -> Option<&Write> {
        self.planned.as_ref()
    }

    fn attempts(&self) -> u32 {
        self.attempts
    }

    fn dropped(&self, outcome: &Outcome) -> &[Path] {
        if has_dropped(outcome) == Some(true) { &self.at_risk } else { &[] }
    }

    fn wrote(&mut self, outcome: Option<Outcome>) -> Step {
        let Some(write) = self.planned.take() else { return self.decide() };
        if let Some(dropped) = outcome.as_ref().and_then(has_dropped)
            && !self.at_risk.is_empty()
        {
            self.found.cleared.push((self.at_risk.clone(), dropped));
            self.known.cleared.extend(self.at_risk.iter().map(Path::to_schema));
        }
        let read = |object: &Object| object.resource_version().to_owned();
        let state = match Meaning::from(outcome) {
            // A repeat that changed nothing shows that admission leaves the object as it is.
            Meaning::Written { resource_version, proof }
                if self.suspicion.altered && proof != Proof::RepeatChangedNothing =>
            {
                return self.mutated(Rejection::mutated(), resource_version);
            }
            Meaning::Written { resource_version, .. } => {
                if self.missing.is_empty() {
                    // A default that seemed to be stored was not; the answer does not show which.
                    self.missing.clone_from(&write.missing);
                }
                ObjectState::Written { resource_version }
            }
            // Proved now, by a repeat that changed nothing (Proof::RepeatChangedNothing).
            Meaning::AlreadyStored if self.stored.is_some() || self.is_unproved => {
                ObjectState::Written { resource_version: read(&self.object) }
            }
            Meaning::AlreadyStored => {
                self.missing.clear();
                ObjectState::AlreadyStored
            }
            Meaning::Followed(after) => {
                self.following.iter_mut().for_each(|following| following.moved(&after, &write));
                self.object = *after;
                return self.decide();
            }
            Meaning::Mutated { resource_version } => {
                return self.mutated(Rejection::mutated(), resource_version);
            }
            Meaning::Gone => ObjectState::Gone,
            Meaning::Rejected(rejection) if write.strategy == Strategy::Follow => {
                self.following.iter_mut().for_each(|following| following.rejected(rejection.clone()));
                return self.decide();
            }
            Meaning::Rejected(rejection) => match self.refused.take() {
                Some(refused) => ObjectState::Rejected(refused),
                None => match self.through_status(&write, &rejection) {
                    Some(write) => {
                        (self.planned, self.refused) = (Some(write), Some(rejection));
                        return Step::Write;
                    }
                    None => ObjectState::Rejected(rejection),
                },
            },
            Meaning::Forbidden(verb) => match self.refused.take() {
                Some(refused) => {
                    let plural = &self.rules.crd.resource().plural;
                    ObjectState::Rejected(refused.without_status(plural))
                }
                None => return Step::AskOthers(verb),
            },
            Meaning::Stop(stop) => return self.stop(stop),
            Meaning::Again(why) => return self.again(write, why.as_ref()),
        };
        let follows = self.following.as_ref().is_some_and(FollowChanges::is_open);
        if write.strategy == Strategy::Rewrite && state.is_stored() && follows {
            let version = match &state {
                ObjectState::Written { resource_version } => resource_version.clone(),
                _ => read(&self.object),
            };
            self.stored = Some((version, state));
            self.lacked = false;
            return Step::ReadAgain { waits: false };
        }
        self.conclude(state)
    }

    fn read(&mut self, again: Again) -> Step {
        match again {
            Again::Read(object) => self.object = *object,
            Again::Gone => {
                let missing = std::mem::take(&mut self.missing);
                return self.done(Reconciled::of(ObjectState::Gone, missing));
            }
            Again::Unanswered => {}
        }
        if self.lacked && self.suspicion.is_stripped(&self.object, &self.rules.crd) {
            let left_at = self.object.resource_version().to_owned();
            return self.mutated(Rejection::stripped(), left_at);
        }
        self.decide()
    }

    fn rejected(&mut self, rejection: Rejection) -> Step {
        self.conclude(ObjectState::Rejected(rejection))
    }

    fn unknown(&mut self) -> Step {
        self.conclude(ObjectState::Unknown)
    }

    fn interrupt(&mut self) {
        if let Some(following) = self.following.take() {
            self.found.followed = following.interrupted();
        }
    }
}

/// Whether a write with this outcome has dropped what it puts at risk; `None` if it is not known whether the
/// server has carried it out.
fn has_dropped(outcome: &Outcome) -> Option<bool> {
    match outcome {
        Outcome::Written { .. }
        | Outcome::Followed(_)
        | Outcome::IdentityWritten
        | Outcome::Unproved
        | Outcome::Altered
        | Outcome::Mutated { .. }
        | Outcome::OwnersLost { .. } => Some(true),
        // Nor does etcd hold anything that such a write would drop (fact W1, Proof::WriteChangedNothing).
        Outcome::AlreadyStored(_) => Some(false),
        _ => None,
    }
}

/// What makes it likely that admission undoes what writes do.
#[derive(Clone, Debug, Default)]
struct Suspicion {
    /// A repeat changed the object again, and none of its owners wrote in between.
    altered: bool,
    /// How many answers lacked a default that the object shows when it is read: a server that lags behind
    /// gives such an answer as well, but not each time.
    stripped: u32,
}

impl Suspicion {
    /// Counts an answer that lacked a default, for the object as it was read then; whether there were enough.
    fn is_stripped(&mut self, read: &Object, crd: &Crd) -> bool {
        self.stripped += u32::from(!has_gap(read, crd));
        self.stripped >= STRIPPED
    }
}
