//! Objects of which it is known what becomes of them: their metadata tell that they are as they were when
//! they were processed. It must not say so of an object whose defaults have to be looked at.

use super::{Sweep, SweepInput, is_left_out, lock};
use crate::cluster::{CallError, Form, RawPage};
use crate::operator::object::reconcile::ObjectReconciler;
use etch_core::object::{Identity, Object};
use etch_core::object_machine::Rules;
use etch_core::object_state::ObjectState;
use etch_core::plan::Rejection;
use etch_core::report::tally::Tally;

/// An object, and what becomes of it.
pub(super) struct KnownObject<'a> {
    identity: Identity,
    resource_version: String,
    outcome: Outcome<'a>,
}

enum Outcome<'a> {
    /// An earlier command has processed it.
    LeftOut,
    /// An earlier sweep, with this tally, found it held or rejected.
    Left { is_held: bool, earlier: &'a Tally },
    /// An earlier run was refused it, and it is not tried again yet.
    Postponed(Rejection),
    /// It was proved as it is.
    Stored,
}

impl<'a> SweepInput<'a> {
    /// An object, if it is known what becomes of it.
    pub(super) fn known(&self, object: &Object, reconciler: ObjectReconciler<'_>) -> Option<KnownObject<'a>> {
        let outcome = self.outcome(object, reconciler)?;
        let (identity, resource_version) = (object.identity(), object.resource_version().to_owned());
        Some(KnownObject { identity, resource_version, outcome })
    }

    /// All objects of a page, if it is known what becomes of each.
    pub(super) fn all_known(
        &self,
        page: &RawPage,
        reconciler: ObjectReconciler<'_>,
    ) -> Result<Option<Vec<KnownObject<'a>>>, CallError> {
        page.objects().map(|object| Ok(self.known(&object?, reconciler))).collect()
    }

    fn outcome(&self, object: &Object, reconciler: ObjectReconciler<'_>) -> Option<Outcome<'a>> {
        let Rules { crd, changes, .. } = reconciler.rules;
        if is_left_out(object, self.after) {
            return Some(Outcome::LeftOut);
        }
        if let Some(Sweep { left, tally: earlier, .. }) = self.earlier {
            let (is_held, is_rejected) = (left.held.contains(object), left.rejected.contains(object));
            if is_held || is_rejected {
                return Some(Outcome::Left { is_held, earlier });
            }
        }
        if let Some(rejection) = self.rejected.and_then(|rejected| rejected.of(object))
            && self.record_of(object, crd).covers(object, crd).is_none()
        {
            return Some(Outcome::Postponed(rejection));
        }
        // A changed default may concern it, and no sweep of this pass has looked at that: an interruption
        // forgets what was counted, not what was proved.
        let may_follow =
            self.earlier.is_none() && !changes.for_object(object, self.record).is_empty();
        // Proof::UnchangedSincePass.
        (self.proved.contains(object) && !may_follow).then_some(Outcome::Stored)
    }
}

impl Sweep {
    /// How the next page is to be read. A sweep that verifies another needs metadata alone until it meets an
    /// object that is not known; what fits on one page is read whole, for then there would be nothing to
    /// spare but that page.
    pub(super) fn form(&self, input: SweepInput<'_>) -> Form {
        let verifies_pages = input.earlier.is_some_and(|earlier| earlier.pages > 1);
        if verifies_pages && !self.met_unknown { Form::Metadata } else { Form::Whole }
    }

    /// Counts an object of which it is known what becomes of it.
    pub(super) fn count(&mut self, object: KnownObject<'_>, input: SweepInput<'_>) {
        let KnownObject { identity, resource_version, outcome } = object;
        let mut tally = lock(input.tally);
        match outcome {
            Outcome::LeftOut => tally.count_left_out(),
            Outcome::Stored => tally.add(identity, ObjectState::Stored, &[]),
            Outcome::Left { is_held, earlier } => {
                self.left.insert(is_held, &identity.uid, &resource_version);
                tally.add_unchanged(identity.clone(), earlier, is_held);
                if !is_held {
                    tally.set_rejected_at(&identity, &resource_version);
                }
            }
            Outcome::Postponed(rejection) => {
                self.left.insert(false, &identity.uid, &resource_version);
                self.postponed += 1;
                tally.add(identity.clone(), ObjectState::Rejected(rejection), &[]);
                tally.set_rejected_at(&identity, &resource_version);
            }
        }
    }
}
