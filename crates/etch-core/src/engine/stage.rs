//! What the objects of a sweep are judged by, and those whose result is known already.

use std::sync::Arc;

use super::canary::CanaryLimit;
use crate::api::Amount;
use crate::crd::Crd;
use crate::object::{Identity, Object};
use crate::object_machine::Rules;
use crate::plan::{Record, Rejection};
use crate::report::ledger::Ledger;
use crate::report::rejected::Rejected;
use crate::report::tally::Tally;
use crate::report::versions::{ListKey, ObjectVersions, list_key};

/// What the objects of a sweep are judged by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stage<'a> {
    pub(super) rules: &'a Rules,
    /// What is counted beside the states of objects.
    pub(super) ledger: &'a Ledger,
    /// What is on record.
    pub(super) record: &'a Arc<Record>,
    /// Up to which object the record goes; none if it is about all of them.
    pub(super) upto: Option<&'a ListKey>,
    /// What is on record of the others: nothing.
    pub(super) beyond: &'a Arc<Record>,
    /// States that were proved since.
    pub(super) proved: &'a ObjectVersions,
    /// The sweep that this one verifies: what was held or rejected then, and has not changed, is not tried
    /// again.
    pub(super) earlier: Option<Earlier<'a>>,
    /// What an earlier run was refused: it is not tried again at once. `None` if everything is.
    pub(super) rejected: Option<&'a Rejected>,
    /// The object up to which all are left out; none if all are processed.
    pub(super) after: Option<&'a ListKey>,
    /// Rejections after which the sweep stops.
    pub(super) stop_after_rejected: Option<Amount>,
    /// How many objects may be written; `None` if all may.
    pub(super) canary: Option<CanaryLimit>,
}

/// A sweep that is verified.
#[derive(Clone, Copy, Debug)]
pub(super) struct Earlier<'a> {
    pub(super) left: &'a ProblemVersions,
    pub(super) tally: &'a Tally,
    /// Pages that it asked for.
    pub(super) pages: u64,
}

/// Which versions of which objects were held or rejected.
#[derive(Clone, Debug, Default)]
pub(super) struct ProblemVersions {
    held: ObjectVersions,
    rejected: ObjectVersions,
}

impl ProblemVersions {
    pub(super) fn insert(&mut self, is_held: bool, uid: &str, resource_version: &str) {
        let states = if is_held { &mut self.held } else { &mut self.rejected };
        states.insert(uid, resource_version);
    }

    /// Whether an object was held, or else rejected, in the version that it has now; none if neither was.
    fn is_held(&self, object: &Object) -> Option<bool> {
        let is_held = self.held.contains(object);
        (is_held || self.rejected.contains(object)).then_some(is_held)
    }
}

/// An object whose result is known: by its metadata it is as it was when it was processed.
pub(super) struct KnownObject<'a> {
    pub(super) identity: Identity,
    pub(super) resource_version: String,
    pub(super) outcome: Outcome<'a>,
}

pub(super) enum Outcome<'a> {
    /// An earlier command has processed it.
    LeftOut,
    /// An earlier sweep, with this tally, found it held or rejected.
    Left { is_held: bool, earlier: &'a Tally },
    /// An earlier run was refused it, and it is not tried again yet.
    Postponed(Rejection),
    /// It was proved as it is.
    Stored,
}

/// Whether an object is left out of a pass that resumes after `after`.
pub fn is_left_out(object: &Object, after: Option<&ListKey>) -> bool {
    after.is_some_and(|after| list_key(object) <= *after)
}

impl<'a> Stage<'a> {
    /// What is on record of an object. One that was written after the record began is covered wherever it
    /// stands in the list, for the schema was in force by then; but not where it may have been stored at an
    /// old version until then.
    pub(super) fn record_of(&self, object: &Object) -> &'a Arc<Record> {
        let is_before = object.revision() <= self.record.through || self.crd().stored_elsewhere();
        match self.upto {
            Some(upto) if is_before && list_key(object) > *upto => self.beyond,
            _ => self.record,
        }
    }

    fn crd(&self) -> &'a Crd {
        &self.rules.crd
    }

    /// An object, if its result is known.
    pub(super) fn known(&self, object: &Object) -> Option<KnownObject<'a>> {
        let outcome = self.outcome(object)?;
        let (identity, resource_version) = (object.identity(), object.resource_version().to_owned());
        Some(KnownObject { identity, resource_version, outcome })
    }

    fn outcome(&self, object: &Object) -> Option<Outcome<'a>> {
        if is_left_out(object, self.after) {
            return Some(Outcome::LeftOut);
        }
        if let Some(earlier) = self.earlier
            && let Some(is_held) = earlier.left.is_held(object)
        {
            return Some(Outcome::Left { is_held, earlier: earlier.tally });
        }
        // The policy may have selected others when it was rejected.
        if let Some(rejection) = self.rejected.and_then(|rejected| rejected.of(object))
            && self.rules.terms.selection.selects(object)
            && self.record_of(object).covers(object, self.crd()).is_none()
        {
            return Some(Outcome::Postponed(rejection));
        }
        // A changed default may concern it, and no sweep of this pass has looked at that: an interruption
        // forgets what was counted, not what was proved.
        let may_follow =
            self.earlier.is_none() && !self.ledger.changes.for_object(object, self.record).is_empty();
        // Proof::UnchangedSincePass.
        (self.proved.contains(object) && !may_follow).then_some(Outcome::Stored)
    }
}
