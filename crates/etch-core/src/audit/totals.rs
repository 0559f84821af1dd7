//! The numbers of an audit of one CRD.

use std::collections::BTreeMap;

use super::{Missing, State, overall};
use crate::plan::Skip;
use kube_structural_schema::path::Path;

/// How many objects are in which state, and where defaults are missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// All objects: each is one of `stored`, `phantom`, `unknown` and `unreadable`.
    pub objects: u64,
    /// Objects of which etcd holds every default.
    pub stored: u64,
    /// Objects of which etcd does not hold a default.
    pub phantom: u64,
    /// Objects of which etcd may not hold a default.
    pub unknown: u64,
    /// Objects whose bytes cannot be read.
    pub unreadable: u64,
    /// Objects among `phantom` and `unknown` that Etch would not write.
    pub held: u64,
    /// Objects that Etch does not write because their annotation asks for it; each is counted above as well.
    pub ignored: u64,
    /// Objects that Etch does not write because they are being deleted; each is counted above as well.
    pub terminating: u64,
    /// Objects that are nested too deeply, so that Etch leaves them alone; each is counted in `unknown` as
    /// well.
    pub too_deep: u64,
    /// Objects that Etch does not write because the policy does not select them; each is counted above as
    /// well.
    pub not_selected: u64,
    /// Objects with a value that Etch moves to a changed default, as the policy asks.
    pub following: u64,
    /// Objects with fields that only etcd holds, where the bytes were looked at.
    pub hidden: u64,
    /// Places in the schema, and in how many objects a default is missing there or may be.
    pub paths: BTreeMap<Path, Lacking>,
}

/// In how many objects a default is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lacking {
    /// Objects in which etcd does not hold it, wherever it applies or in a part of these places.
    pub missing: u64,
    /// Other objects in which nothing shows whether etcd holds it.
    pub unknown: u64,
}

impl Totals {
    /// Counts an object.
    pub fn add(&mut self, missing: &[Missing], held: bool, skipped: Option<Skip>) {
        self.objects += 1;
        match overall(missing) {
            State::Stored => self.stored += 1,
            State::Unknown => self.unknown += 1,
            State::Gap | State::Phantom => self.phantom += 1,
        }
        self.held += u64::from(held);
        match skipped {
            Some(Skip::Ignored | Skip::IgnoredUnclear) => self.ignored += 1,
            Some(Skip::Terminating) => self.terminating += 1,
            Some(Skip::TooDeep) => self.too_deep += 1,
            Some(Skip::NotSelected) => self.not_selected += 1,
            None => {}
        }
        let mut places: BTreeMap<Path, State> = BTreeMap::new();
        for Missing { path, state } in missing {
            let place = places.entry(path.to_schema()).or_insert(*state);
            *place = (*place).max(*state);
        }
        for (place, state) in places {
            let Lacking { missing, unknown } = self.paths.entry(place).or_default();
            match state {
                State::Unknown => *unknown += 1,
                State::Gap | State::Phantom | State::Stored => *missing += 1,
            }
        }
    }

    /// Counts an object whose bytes cannot be read.
    pub fn add_unreadable(&mut self) {
        self.objects += 1;
        self.unreadable += 1;
    }

    /// Whether there is anything that is not, or not for certain, as it should be.
    pub fn is_clean(&self) -> bool {
        self.stored == self.objects
    }
}
