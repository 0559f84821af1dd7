//! What an earlier pass proved about the objects of a CRD, and which objects that covers now.

use std::sync::Arc;

use super::places::{filled, skip};
use super::{Clock, Exceptions, HiddenEvidence, History, Proof, rewrite};
use crate::crd::{Crd, STATUS};
use crate::object::Object;
use crate::ownership::{Owner, owners};
use crate::selection::Selection;
use kube_structural_schema::path::{Path, Step};

/// What is on record about the objects of a CRD, from a pass for the digest that is in force.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// The resource version up to which every object was processed; none while no pass is on record.
    pub through: Option<u64>,
    /// What another pass has proved up to its own resource version: where this one covers only some objects.
    pub beside: Option<Arc<Self>>,
    /// Objects that were not processed: held, rejected or unknown.
    pub exceptions: Exceptions,
    /// Which objects were selected then: no other was processed. An object that has not been written since
    /// has the labels of that time.
    pub selection: Selection,
    /// Whether a write since then may have dropped defaults: under some generation of the CRD since then, a
    /// served version has another schema (fact W10), or a webhook converts it.
    pub versions_disagree: bool,
    /// Whether objects may be stored at another version than the storage version nevertheless: that was
    /// another one for a time since then, and what was written meanwhile is stored there and read with its
    /// defaults (fact R2); or the pass did not move them.
    pub storage_changed: bool,
    /// Whether every object is known to be stored at the storage version, selected or not.
    pub all_at_storage_version: bool,
    /// Whether the pass has asked about each object that it processed, also where no default is shown, when
    /// every API server served the schema.
    pub asked_each: bool,
    /// Whether an object that was written since may have been created since, without its defaults at or below
    /// `status` (fact D11).
    pub creates_drop_status: bool,
    /// Whether a write since then may have been made through an API server that does not serve the schema yet
    /// (fact R6).
    pub servers_lag: bool,
    /// Which objects were written since every API server serves the schema. The default clock has none: the
    /// operator writes, and does not need it.
    pub clock: Clock,
    /// The states that the CRD has had, for those who do not write: which defaults no early write can have
    /// stored.
    pub history: History,
    /// What shows which fields only etcd may hold.
    pub hidden: Arc<HiddenEvidence>,
}

/// Which of the defaults that an object shows a record proves to be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// None.
    Nothing,
    /// All but those at or below `status`.
    AllButStatus(Proof),
    /// All.
    All(Proof),
}

impl Coverage {
    /// What either of two proofs covers.
    fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Nothing | Self::AllButStatus(_), Self::All(_)) | (Self::Nothing, _) => other,
            _ => self,
        }
    }

    /// What proves that the default at this place of the object is stored, if anything does.
    pub fn of_place(self, place: &Path) -> Option<Proof> {
        match self {
            Self::All(proof) => Some(proof),
            Self::AllButStatus(proof) if !is_in_status(place) => Some(proof),
            Self::AllButStatus(_) | Self::Nothing => None,
        }
    }

    /// What proves that every default that `object` shows is stored, if anything does.
    pub fn of_all(self, object: &Object, crd: &Crd) -> Option<Proof> {
        match self {
            Self::All(proof) => Some(proof),
            Self::AllButStatus(proof) => (!filled(object, crd).iter().any(is_in_status)).then_some(proof),
            Self::Nothing => None,
        }
    }
}

impl Record {
    /// What is on record before a pass.
    pub fn empty(crd: &Crd) -> Self {
        Self {
            versions_disagree: crd.versions_disagree(),
            creates_drop_status: crd.creates_drop_status(),
            ..Self::default()
        }
    }

    /// The same without what is on record of any object.
    pub fn of_nothing(&self) -> Self {
        Self { through: None, beside: None, exceptions: Exceptions::default(), ..self.clone() }
    }

    /// What is known before a pass, but for which objects the last one has not processed: in these, changed
    /// defaults are still to be followed.
    pub fn of_exceptions(&self, crd: &Crd) -> Self {
        Self { exceptions: self.exceptions.clone(), ..Self::empty(crd) }
    }

    /// The part about what no read shows, and not about what objects hold.
    pub fn of_hidden(&self) -> Self {
        Self { hidden: self.hidden.clone(), ..Self::default() }
    }

    /// The same for an object that was processed before its last write, so that this write was no create.
    #[must_use]
    pub fn of_known_object(&self) -> Self {
        Self { creates_drop_status: false, ..self.clone() }
    }

    /// Whether a write since the record began, Etch's own included, may have stored less than the object
    /// shows: the record does not show whose it was.
    pub fn doubts_writes(&self) -> bool {
        self.versions_disagree || self.servers_lag || self.creates_drop_status
    }

    /// Whether the pass on record was about all objects, and what was written since is proved as well.
    pub fn is_of_all(&self) -> bool {
        self.through.is_some() && self.selection.selector().is_none() && !self.doubts_writes()
    }

    /// What proves that etcd holds every default that this object, as it is, shows; `None` if nothing on
    /// record does.
    pub fn covers(&self, object: &Object, crd: &Crd) -> Option<Proof> {
        self.coverage(object, crd).of_all(object, crd)
    }

    /// Which defaults of this object, as it is, the record proves to be stored.
    ///
    /// Of one that is skipped, or was not selected, it proves none. Where that ends, the client that ends it
    /// writes the object after the pass; and that write stores the defaults that its writer sees, save
    /// perhaps where an owner's version has none of them (fact W6). Of an exception it proves none either:
    /// what the object lacked when the pass met it, a later write may lack as well (fact W25).
    pub fn coverage(&self, object: &Object, crd: &Crd) -> Coverage {
        let of_passes = self.passes().map(|record| record.of_pass(object, crd));
        match of_passes.fold(Coverage::Nothing, Coverage::or) {
            Coverage::All(proof) => Coverage::All(proof),
            other => other.or(self.of_last_write(object, crd)),
        }
    }

    /// The records of the passes that this one is of, each by itself.
    pub(super) fn passes(&self) -> impl Iterator<Item = &Self> {
        [Some(self), self.beside.as_deref()].into_iter().flatten()
    }

    /// Which defaults the last pass and what happened since prove to be stored.
    pub(super) fn of_pass(&self, object: &Object, crd: &Crd) -> Coverage {
        let Some(through) = self.through else { return Coverage::Nothing };
        // Where no version gives defaults, a pass that moves no objects leaves them at the version that they
        // are in.
        if crd.stored_elsewhere() && !crd.gives_defaults() && !self.asked_each {
            return Coverage::Nothing;
        }
        let is_processed = skip(object).is_none() && self.selection.selects(object);
        let Some(revision) = object.revision().filter(|_| is_processed) else { return Coverage::Nothing };
        if self.exceptions.contains(object.uid()) {
            return Coverage::Nothing;
        }
        if revision <= through {
            return Coverage::All(Proof::UnchangedSincePass);
        }
        match self.versions_disagree || self.servers_lag {
            true => Coverage::Nothing,
            false => last_write_stores(object, crd, self.creates_drop_status),
        }
    }

    /// Which defaults are stored because a client has written the object since every API server serves the
    /// schema.
    fn of_last_write(&self, object: &Object, crd: &Crd) -> Coverage {
        // The last write may be the one that moved the bytes to the storage version.
        let was_at_storage = !crd.has_version_that_may_drop_defaults() || self.clock.is_created_since(object);
        match self.clock.is_since(object) && was_at_storage && !crd.versions_disagree() {
            true => last_write_stores(object, crd, crd.creates_drop_status()),
            false => Coverage::Nothing,
        }
    }
}

/// Which defaults of an object its last write stored, if that was made after every API server served the
/// schema, through a version that drops none; `may_be_create` where that write may have created the object
/// (the write matrix, `docs/apiserver.md`).
///
/// A write at the storage version stores each default that it shows, with two exceptions. An apply goes
/// through the version of its manager's last one: it may drop defaults that this version does not have (facts
/// W6, W18), or that a webhook does not know. A create drops `status` (fact D11).
pub fn last_write_stores(object: &Object, crd: &Crd, may_be_create: bool) -> Coverage {
    let storage = &crd.storage().name;
    let mut others = owners(object).filter(|owner| owner.version() != storage).peekable();
    let is_converted =
        |owner: Owner<'_>| owner.operation == "Apply" && !crd.names_fields_alike(owner.version());
    let goes_through_another = others.peek().is_some()
        && (others.any(is_converted) || rewrite::is_needed(object, crd, filled(object, crd).iter()));
    match (goes_through_another, may_be_create) {
        (true, _) => Coverage::Nothing,
        (false, true) => Coverage::AllButStatus(Proof::WrittenSince),
        (false, false) => Coverage::All(Proof::WrittenSince),
    }
}

fn is_in_status(place: &Path) -> bool {
    matches!(place.steps().first(), Some(Step::Field(field)) if field == STATUS)
}
