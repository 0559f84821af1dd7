//! What all machines of one object have in common: their steps, and what the outcome of a write means.

use crate::object::Object;
use crate::object_state::ObjectState;
use crate::plan::{Outcome, Proof, Rejection, Write};
use crate::rbac::Verb;
use kube_structural_schema::path::Path;

/// How often an object is decided about again, or a write repeated that the server could not answer.
pub const ATTEMPTS: u32 = 6;

/// One object on its way from its read to its end: the caller performs each [`Step`], and hands in what
/// results.
pub trait Machine {
    /// What the object comes to.
    type End;

    /// The object as it was read last, or as a write left it.
    fn object(&self) -> &Object;

    /// The write that is to be performed; none but at [`Step::Write`].
    fn planned(&self) -> Option<&Write>;

    /// How often the object was decided about.
    fn attempts(&self) -> u32;

    /// The fields that a write with this outcome has dropped, as the policy allows.
    fn dropped(&self, _: &Outcome) -> &[Path] {
        &[]
    }

    /// Handles the outcome of the write; `None` if the server could not answer, and nothing is known.
    fn wrote(&mut self, outcome: Option<Outcome>) -> Step<Self::End>;

    /// Handles the object as it was read again.
    fn read(&mut self, again: Again) -> Step<Self::End>;

    /// Ends with an object that was refused.
    fn rejected(&mut self, rejection: Rejection) -> Step<Self::End>;

    /// Ends with an object about which nothing is known.
    fn unknown(&mut self) -> Step<Self::End>;

    /// Records that nothing more may begin.
    fn interrupt(&mut self) {}

    /// Ends, and with it the writes to all objects of the CRD.
    fn stop(&mut self, stop: Stop) -> Step<Self::End> {
        self.interrupt();
        Step::Stop(stop)
    }

    /// Records whether other objects may be written, or read, where this one may not; `None` if that is
    /// unknown, and with it whether the permission for all of them is missing.
    fn may_write_others(&mut self, verb: Verb, may: Option<bool>) -> Step<Self::End> {
        match may {
            Some(true) => self.rejected(Rejection::forbidden(verb)),
            Some(false) => self.stop(Stop::Forbidden(verb)),
            None => self.unknown(),
        }
    }
}

/// What is to be done next.
#[derive(Clone, Debug)]
pub enum Step<E = Reconciled> {
    /// Perform [`Machine::planned`].
    Write,
    /// Read the object again; where it `waits`, after a wait that grows each time.
    ReadAgain {
        /// Whether others write too, or the server could not answer.
        waits: bool,
    },
    /// Ask whether this verb is permitted for other objects of the resource, which it is not for this one.
    AskOthers(Verb),
    /// Nothing: the machine has come to its end.
    Done(E),
    /// Nothing, and no further object of the CRD may be written.
    Stop(Stop),
}

/// What the operator and `etch persist` reconcile an object to: its state, and what was missing in it.
#[derive(Clone, Debug)]
pub struct Reconciled {
    /// The state.
    pub state: ObjectState,
    /// The places that were missing, in the object's own terms.
    pub missing: Vec<Path>,
    /// The resource version in which it was rejected.
    pub left_at: Option<String>,
}

impl Reconciled {
    /// An object that has come to this without a write.
    pub fn of(state: ObjectState, missing: Vec<Path>) -> Self {
        Self { state, missing, left_at: None }
    }
}

/// Why no further object of a CRD may be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// This verb is permitted for no object.
    Forbidden(Verb),
    /// A write made the server forget these owners, or change what they own.
    OwnersLost(Vec<String>),
    /// A write has dropped these fields, which the object showed.
    FieldsDropped(Vec<Path>),
    /// The CRD is another one by now.
    CrdChanged,
}

/// The object as it was read again.
#[derive(Clone, Debug)]
pub enum Again {
    /// It is this by now.
    Read(Box<Object>),
    /// It is gone.
    Gone,
    /// The server could not answer: it is decided about as it was read before.
    Unanswered,
}

/// What the outcome of a write means, whatever was written: an end, a stop, or another attempt.
#[derive(Debug)]
pub(super) enum Meaning {
    /// See [`Outcome::Written`].
    Written { resource_version: String, proof: Proof },
    /// See [`Outcome::AlreadyStored`].
    AlreadyStored,
    /// See [`Outcome::Followed`]: decide again at once.
    Followed(Box<Object>),
    /// See [`Outcome::Mutated`].
    Mutated { resource_version: String },
    /// The object is gone.
    Gone,
    /// It was refused.
    Rejected(Rejection),
    /// It may not be written, and others perhaps neither.
    Forbidden(Verb),
    /// No further object may be written.
    Stop(Stop),
    /// Read and decide again, for this reason; `None` if the server could not answer.
    Again(Option<Outcome>),
}

impl From<Option<Outcome>> for Meaning {
    fn from(outcome: Option<Outcome>) -> Self {
        match outcome {
            Some(Outcome::Written { resource_version, proof }) => Self::Written { resource_version, proof },
            Some(Outcome::AlreadyStored(_)) => Self::AlreadyStored,
            Some(Outcome::Followed(after)) => Self::Followed(after),
            Some(Outcome::Mutated { resource_version }) => Self::Mutated { resource_version },
            Some(Outcome::Gone) => Self::Gone,
            Some(Outcome::Rejected(rejection)) => Self::Rejected(rejection),
            Some(Outcome::Forbidden { verb }) => Self::Forbidden(verb),
            Some(Outcome::OwnersLost { managers }) => Self::Stop(Stop::OwnersLost(managers)),
            Some(Outcome::FieldsDropped { paths }) => Self::Stop(Stop::FieldsDropped(paths)),
            Some(Outcome::CrdChanged) => Self::Stop(Stop::CrdChanged),
            again @ (None
            | Some(
                Outcome::Conflict
                | Outcome::IdentityWritten
                | Outcome::Unproved
                | Outcome::Altered
                | Outcome::NeedsRewrite
                | Outcome::Harmful { .. },
            )) => Self::Again(again),
        }
    }
}
