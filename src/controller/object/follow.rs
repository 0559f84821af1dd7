//! Changed defaults in one object while it is seen to: what is done about them, before what is done anyway.
//! It must not let a refusal to follow stand in the way of storing what is missing.

use crate::controller::state::changed_defaults::Changes;
use crate::controller::state::tally::Fate;
use crate::domain::crd::Crd;
use crate::domain::object::Object;
use crate::domain::path::Path;
use crate::domain::plan::{Change, Held, Hold, Plan, Record, Rejection, Strategy, Terms, Write, follow};

/// What became of the changed defaults in one object so far.
pub(in crate::controller) struct Pursuit<'a> {
    changes: &'a Changes,
    uid: String,
    /// The changes that are still to be looked at.
    list: &'a [Change],
    moved: Vec<Path>,
    kept: Vec<Path>,
    /// The resource version after the last move.
    resource_version: Option<String>,
    refused: Option<Rejection>,
    /// Why what would be moved is not: it would make the object invalid.
    held: Option<Held>,
}

impl<'a> Pursuit<'a> {
    /// Nothing has been done yet.
    pub(in crate::controller) fn of(changes: &'a Changes, object: &Object, record: &Record) -> Self {
        let list = changes.for_object(object, record);
        let uid = object.uid().to_owned();
        Self {
            changes,
            uid,
            list,
            moved: Vec::new(),
            kept: Vec::new(),
            resource_version: None,
            refused: None,
            held: None,
        }
    }

    /// What to do next, where `plan` is what is to be done apart from changed defaults: to follow comes first, save where
    /// the owners have to be named anew. An audit does not follow, and takes down what would.
    pub(in crate::controller) fn instead_of(
        &mut self,
        plan: Plan,
        object: &Object,
        crd: &Crd,
        terms: &Terms,
        is_audit: bool,
    ) -> Plan {
        let may_follow = match &plan {
            Plan::Stored => true,
            Plan::Write(write) => write.strategy != Strategy::Rewrite || is_audit,
            Plan::Skip(_) | Plan::Hold(_) => false,
        };
        if self.list.is_empty() || !may_follow {
            return plan;
        }
        let following = follow(object, crd, terms, self.list);
        self.kept = following.kept;
        self.held = None;
        match following.plan {
            Some(Plan::Hold(held)) if held.reason == Hold::InvalidDefaults => {
                self.kept.extend(following.moved);
                self.held = Some(held);
                plan
            }
            Some(Plan::Write(_)) if is_audit => {
                self.moved = following.moved;
                plan
            }
            instead => instead.unwrap_or(plan),
        }
    }

    /// Takes down what a write has moved.
    pub(in crate::controller) fn moved(&mut self, object: &Object, write: Write) {
        self.moved.extend(write.missing);
        self.resource_version = Some(object.resource_version().to_owned());
    }

    /// Takes down that a move was refused; there will be no other.
    pub(in crate::controller) fn refused(&mut self, rejection: Rejection) {
        self.refused = Some(rejection);
        self.list = &[];
    }

    /// Counts what was moved before nothing more could be done.
    pub(in crate::controller) fn stopped(self) {
        if self.resource_version.is_some() {
            self.changes.count(&self.uid, &self.moved, &[], true);
        }
    }

    /// What became of the object in the end, by what became of it apart from changed defaults. It is counted.
    pub(in crate::controller) fn end(self, fate: Fate) -> Fate {
        let Self { changes, uid, moved, kept, resource_version, refused, held, .. } = self;
        if !matches!(fate, Fate::Unknown) && refused.is_none() {
            changes.count(&uid, &moved, &kept, resource_version.is_some());
        }
        let fate = match (fate, held) {
            (Fate::Stored | Fate::AlreadyStored | Fate::Written(_), Some(held)) => Fate::Held(held),
            (fate, _) => fate,
        };
        match (fate, refused, resource_version) {
            (Fate::Stored | Fate::AlreadyStored | Fate::Written(_), Some(rejection), _) => {
                Fate::Rejected(rejection)
            }
            (Fate::Stored | Fate::AlreadyStored, None, Some(resource_version)) => {
                Fate::Written(resource_version)
            }
            (Fate::Stored, None, None) if !moved.is_empty() => Fate::Due,
            (fate, ..) => fate,
        }
    }
}
