//! Counting what became of the objects of a CRD.
//! It must not hold more than a bounded number of objects, nor any value of one.

use std::collections::{BTreeMap, HashSet};

use crate::api::{Counts, ObjectProblem};
use crate::cluster::{Rejection, RejectionKind};
use crate::domain::object::Identity;
use crate::domain::path::Path;
use crate::domain::plan::Hold;
use crate::metrics::ObjectOutcome;

/// How many held and rejected objects are remembered by name, for the report and to be tried again.
pub(super) const REMEMBERED: usize = 1000;

/// What became of one object.
#[derive(Debug)]
pub(super) enum Fate {
    /// Nothing was missing, and no request was needed to know.
    Stored,
    /// A write showed that nothing was missing.
    AlreadyStored,
    /// A write stored what was missing; the object's resource version after it.
    Written(String),
    /// It was left alone on purpose, or went away.
    Skipped,
    /// A write would do harm.
    Held(Hold, Vec<Path>),
    /// A write was refused.
    Rejected(Rejection),
    /// A write is due and the policy forbids it.
    Due,
    /// Nothing is known yet.
    Unknown,
}

impl Fate {
    /// The same, as it is counted.
    pub(super) fn outcome(&self) -> ObjectOutcome {
        match self {
            Self::Stored | Self::AlreadyStored => ObjectOutcome::Stored,
            Self::Written(_) => ObjectOutcome::Written,
            Self::Skipped => ObjectOutcome::Skipped,
            Self::Held(..) => ObjectOutcome::Held,
            Self::Rejected(_) => ObjectOutcome::Rejected,
            Self::Due => ObjectOutcome::Due,
            Self::Unknown => ObjectOutcome::Unknown,
        }
    }
}

/// What became of all objects.
#[derive(Debug, Default)]
pub(super) struct Tally {
    counts: Counts,
    missing: BTreeMap<String, u64>,
    troubles: BTreeMap<Identity, Trouble>,
}

/// Why the defaults of one object are not stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// A write would do harm.
    Held(Hold, Vec<Path>),
    /// A write was refused.
    Rejected(Rejection),
    /// It changed, and could not be seen to since.
    Unknown,
}

impl Tally {
    /// Counts one object, and the places that were missing in it.
    pub(super) fn add(&mut self, identity: Identity, fate: Fate, missing: &[Path]) {
        self.counts.objects += 1;
        let places: HashSet<String> = missing.iter().map(|path| path.to_schema().to_string()).collect();
        for place in places {
            *self.missing.entry(place).or_default() += 1;
        }
        match fate {
            Fate::Stored | Fate::AlreadyStored => self.counts.already_stored += 1,
            Fate::Written(_) => self.counts.written += 1,
            Fate::Skipped => self.counts.skipped += 1,
            Fate::Due => self.counts.due += 1,
            Fate::Unknown => self.counts.unknown += 1,
            Fate::Held(reason, paths) => {
                self.counts.held += 1;
                self.remember(identity, Trouble::Held(reason, paths));
            }
            Fate::Rejected(rejection) => {
                self.counts.rejected += 1;
                self.remember(identity, Trouble::Rejected(rejection));
            }
        }
    }

    /// Replaces what is known of one object after it changed or was tried again; whether there is something new to say.
    pub(super) fn settle(&mut self, identity: &Identity, fate: Fate) -> bool {
        let trouble = match &fate {
            // What could not be found out changes nothing of what is known.
            Fate::Unknown if self.is_troubled(identity) => return false,
            Fate::Unknown => Some(Trouble::Unknown),
            Fate::Held(reason, paths) => Some(Trouble::Held(*reason, paths.clone())),
            Fate::Rejected(rejection) => Some(Trouble::Rejected(rejection.clone())),
            _ => None,
        };
        if self.troubles.get(identity) == trouble.as_ref() {
            return false;
        }
        if !self.forget(identity) {
            self.uncount();
        }
        if matches!(fate, Fate::Unknown) {
            self.remember(identity.clone(), Trouble::Unknown);
        }
        self.add(identity.clone(), fate, &[]);
        true
    }

    /// Takes one object without trouble out of the numbers. Where they hold none, it was created since they were made.
    fn uncount(&mut self) {
        let counts = &mut self.counts;
        let kind = [&mut counts.already_stored, &mut counts.written].into_iter().find(|count| **count > 0);
        if let Some(count) = kind {
            *count -= 1;
            counts.objects -= 1;
        }
    }

    /// Adds what a later sweep found, in which objects that were in trouble before count as stored.
    pub(super) fn amend(&mut self, later: Self) {
        let troubled = self.counts.held + self.counts.rejected;
        self.counts.objects = later.counts.objects;
        self.counts.written += later.counts.written;
        self.counts.held += later.counts.held;
        self.counts.rejected += later.counts.rejected;
        self.counts.unknown = later.counts.unknown;
        self.counts.skipped = later.counts.skipped;
        let others = self.counts.written + self.counts.held + self.counts.rejected + self.counts.unknown;
        self.counts.already_stored = self.counts.objects.saturating_sub(others + self.counts.skipped);
        debug_assert!(troubled <= self.counts.held + self.counts.rejected);
        for (identity, trouble) in later.troubles {
            self.remember(identity, trouble);
        }
    }

    /// Forgets an object in trouble; whether it was one.
    pub(super) fn forget(&mut self, identity: &Identity) -> bool {
        match self.troubles.remove(identity) {
            Some(Trouble::Held(..)) => self.counts.held -= 1,
            Some(Trouble::Rejected(_)) => self.counts.rejected -= 1,
            Some(Trouble::Unknown) => self.counts.unknown -= 1,
            None => return false,
        }
        self.counts.objects -= 1;
        true
    }

    /// The objects that may come out otherwise if they are tried again.
    pub(super) fn to_retry(&self) -> Vec<Identity> {
        let all = self.troubles.iter();
        all.filter(|(_, trouble)| matches!(trouble, Trouble::Rejected(_) | Trouble::Unknown))
            .map(|(identity, _)| identity.clone())
            .collect()
    }

    /// The numbers.
    pub(super) fn counts(&self) -> Counts {
        self.counts
    }

    /// In how many objects a default, by its place in the schema, was missing or may have been.
    pub(super) fn missing(&self, place: &str) -> u64 {
        self.missing.get(place).copied().unwrap_or_default()
    }

    /// The objects in trouble that are remembered, in order.
    pub(super) fn troubles(&self) -> impl Iterator<Item = (&Identity, &Trouble)> {
        self.troubles.iter()
    }

    /// Whether an object is known to be in trouble.
    pub(super) fn is_troubled(&self, identity: &Identity) -> bool {
        self.troubles.contains_key(identity)
    }

    /// Whether there are more objects in trouble than are remembered.
    pub(super) fn overflows(&self) -> bool {
        self.counts.held + self.counts.rejected + self.counts.unknown > self.troubles.len() as u64
    }

    fn remember(&mut self, identity: Identity, trouble: Trouble) {
        if self.troubles.len() < REMEMBERED {
            self.troubles.insert(identity, trouble);
        }
    }
}

impl Trouble {
    /// The trouble of an object, as the report has it.
    pub(super) fn describe(&self, identity: &Identity) -> ObjectProblem {
        let (reason, message, paths) = match self {
            Self::Held(Hold::HiddenFields, paths) => (
                "HiddenFields",
                "etcd may still hold these fields, which the schema no longer knows; a write would destroy them"
                    .to_owned(),
                paths.iter().map(Path::to_string).collect(),
            ),
            Self::Held(Hold::Misfit, paths) => (
                "Misfit",
                "these values have another type than the schema says; a write would make the server forget who owns what"
                    .to_owned(),
                paths.iter().map(Path::to_string).collect(),
            ),
            Self::Held(Hold::InvalidDefault, paths) => (
                "InvalidDefault",
                "these defaults are themselves invalid; correct them in the CRD".to_owned(),
                paths.iter().map(Path::to_string).collect(),
            ),
            Self::Rejected(rejection) => {
                let reason = match rejection.kind {
                    RejectionKind::Invalid => "Invalid",
                    RejectionKind::Admission => "Admission",
                    RejectionKind::TooLarge => "TooLarge",
                    RejectionKind::Other => "Refused",
                };
                (reason, rejection.message.clone(), rejection.fields.clone())
            }
            Self::Unknown => {
                ("Unknown", "the API server could not be asked about it; tried again by itself".to_owned(), Vec::new())
            }
        };
        ObjectProblem {
            namespace: identity.namespace.clone(),
            name: identity.name.clone(),
            uid: identity.uid.clone(),
            reason: reason.to_owned(),
            message,
            paths,
        }
    }
}
