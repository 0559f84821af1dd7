//! Counting what became of the objects of a CRD.
//! It must not hold more than a bounded number of objects, nor any value of one.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::api::{Counts, DefaultsReportStatus};
use crate::controller::state::problem::Trouble;
use crate::controller::state::skipped::{Skipped, SkippedObjects};
use crate::domain::object::Identity;
use crate::domain::path::Path;
use crate::domain::plan::{Held, Rejection, Skip};
use crate::metrics::ObjectOutcome;

/// How many objects in trouble are remembered by name, for the report and to be tried again; and how many that are due.
pub(in crate::controller) const REMEMBERED: usize = 1000;

/// What became of one object.
#[derive(Debug)]
pub(in crate::controller) enum Fate {
    /// Nothing was missing, and no request was needed to know.
    Stored,
    /// A write showed that nothing was missing.
    AlreadyStored,
    /// A write stored what was missing; the object's resource version after it.
    Written(String),
    /// It is not written, whatever it lacks.
    Skipped(Skipped),
    /// It went away.
    Gone,
    /// A write would do harm.
    Held(Held),
    /// A write was refused.
    Rejected(Rejection),
    /// A write is due and the policy forbids it.
    Due,
    /// Nothing is known yet.
    Unknown,
}

impl Fate {
    /// The same, as it is counted.
    pub(in crate::controller) fn outcome(&self) -> ObjectOutcome {
        match self {
            Self::Stored | Self::AlreadyStored => ObjectOutcome::Stored,
            Self::Written(_) => ObjectOutcome::Written,
            Self::Skipped(Skipped { why: Skip::Ignored, .. }) => ObjectOutcome::Ignored,
            Self::Skipped(Skipped { why: Skip::Terminating, .. }) => ObjectOutcome::Terminating,
            Self::Gone => ObjectOutcome::Gone,
            Self::Held(..) => ObjectOutcome::Held,
            Self::Rejected(_) => ObjectOutcome::Rejected,
            Self::Due => ObjectOutcome::Due,
            Self::Unknown => ObjectOutcome::Unknown,
        }
    }
}

/// What became of all objects.
#[derive(Clone, Debug, Default)]
pub(in crate::controller) struct Tally {
    counts: Counts,
    missing: BTreeMap<String, u64>,
    troubles: BTreeMap<Identity, Trouble>,
    due: BTreeSet<Identity>,
    /// How many objects the list is said to have.
    expected: Option<u64>,
    /// How many of them are left out; they are in no other number.
    left_out: u64,
    skipped: SkippedObjects,
}

/// How many objects were written, and how many lacked each default, by its place in the schema.
#[derive(Clone, Debug, Default)]
pub(in crate::controller) struct Done {
    written: u64,
    missing: BTreeMap<String, u64>,
}

impl Done {
    /// What a report says about it.
    pub(in crate::controller) fn of_report(status: &DefaultsReportStatus) -> Self {
        let missing = status.defaults.iter().filter(|default| default.objects > 0);
        Self {
            written: status.counts.written,
            missing: missing.map(|default| (default.path.clone(), default.objects)).collect(),
        }
    }

    /// This, and what was written besides.
    pub(in crate::controller) fn add(&mut self, other: &Self) {
        self.written += other.written;
        for (place, objects) in &other.missing {
            *self.missing.entry(place.clone()).or_default() += objects;
        }
    }
}

impl Tally {
    /// Counts one object, and the places that were missing in it; those of an object of which nothing is known yet are
    /// counted when something is. One that went away does not count.
    pub(in crate::controller) fn add(&mut self, identity: Identity, fate: Fate, missing: &[Path]) {
        if matches!(fate, Fate::Gone) {
            return;
        }
        self.counts.objects += 1;
        let missing = if matches!(fate, Fate::Unknown) { &[] } else { missing };
        let places: HashSet<String> = missing.iter().map(|path| path.to_schema().to_string()).collect();
        for place in places {
            *self.missing.entry(place).or_default() += 1;
        }
        match fate {
            Fate::Stored | Fate::AlreadyStored => self.counts.already_stored += 1,
            Fate::Written(_) => self.counts.written += 1,
            Fate::Skipped(skipped) => self.skipped.insert(identity, skipped, &mut self.counts),
            Fate::Gone => {}
            Fate::Due => {
                self.counts.due += 1;
                if self.due.len() < REMEMBERED {
                    self.due.insert(identity);
                }
            }
            Fate::Unknown => self.trouble(identity, Trouble::Unknown),
            Fate::Held(held) => self.trouble(identity, Trouble::Held(held)),
            Fate::Rejected(rejection) => self.trouble(identity, Trouble::Rejected(rejection)),
        }
    }

    /// Takes down how many objects there are said to be.
    pub(in crate::controller) fn expect(&mut self, objects: Option<u64>) {
        self.expected = objects;
    }

    /// How many objects there are said to be, those included that are left out.
    pub(in crate::controller) fn expected(&self) -> Option<u64> {
        self.expected
    }

    /// Counts one object that is left out.
    pub(in crate::controller) fn leave_out(&mut self) {
        self.left_out += 1;
    }

    /// How many objects were left out.
    pub(in crate::controller) fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Counts one object that is in the same trouble as an earlier sweep has found.
    pub(in crate::controller) fn carry(&mut self, identity: Identity, earlier: &Self, is_held: bool) {
        self.counts.objects += 1;
        match earlier.troubles.get(&identity) {
            Some(trouble) => self.trouble(identity, trouble.clone()),
            None if is_held => self.counts.held += 1,
            None => self.counts.rejected += 1,
        }
    }

    /// Counts as written what was written before this sweep began, which found it stored.
    pub(in crate::controller) fn credit(&mut self, before: &Done) {
        let written = before.written.min(self.counts.already_stored);
        self.counts.already_stored -= written;
        self.counts.written += written;
        for (place, objects) in &before.missing {
            *self.missing.entry(place.clone()).or_default() += objects;
        }
    }

    /// What was written.
    pub(in crate::controller) fn done(&self) -> Done {
        Done { written: self.counts.written, missing: self.missing.clone() }
    }

    /// Replaces what is known of one object after it changed or was tried again; whether there is something new to say.
    ///
    /// Of one that went away the watch tells.
    pub(in crate::controller) fn settle(
        &mut self,
        identity: &Identity,
        fate: Fate,
        missing: &[Path],
    ) -> bool {
        let (was_due, before) = (self.due.contains(identity), self.troubles.get(identity));
        let was_skipped = self.skipped.get(identity);
        let (is_due, trouble, is_skipped) = match &fate {
            Fate::Gone => return false,
            // What could not be found out changes nothing of what is known.
            Fate::Unknown if was_due || before.is_some() => return false,
            Fate::Unknown => (false, Some(Trouble::Unknown), None),
            Fate::Held(held) => (false, Some(Trouble::Held(held.clone())), None),
            Fate::Rejected(rejection) => (false, Some(Trouble::Rejected(rejection.clone())), None),
            Fate::Due => (true, None, None),
            Fate::Skipped(skipped) => (false, None, Some(*skipped)),
            Fate::Stored | Fate::AlreadyStored | Fate::Written(_) => (false, None, None),
        };
        if (was_due, before, was_skipped) == (is_due, trouble.as_ref(), is_skipped) {
            return false;
        }
        let missing = if before == Some(&Trouble::Unknown) { missing } else { &[] };
        if !self.forget(identity) {
            self.uncount();
        }
        self.add(identity.clone(), fate, missing);
        true
    }

    /// Counts an object that was created after the others were counted; whether there is something new to say.
    pub(in crate::controller) fn created(
        &mut self,
        identity: &Identity,
        fate: Fate,
        missing: &[Path],
    ) -> bool {
        let is_well = matches!(fate, Fate::Stored | Fate::AlreadyStored | Fate::Written(_) | Fate::Gone);
        self.add(identity.clone(), fate, missing);
        !is_well
    }

    /// Takes an object that was deleted out of the numbers; whether there is something new to say.
    pub(in crate::controller) fn deleted(&mut self, identity: &Identity) -> bool {
        let is_news = self.forget(identity);
        if !is_news {
            self.uncount();
        }
        is_news
    }

    /// Takes one object that is stored out of the numbers.
    fn uncount(&mut self) {
        let counts = &mut self.counts;
        let kind = [&mut counts.already_stored, &mut counts.written].into_iter().find(|count| **count > 0);
        if let Some(count) = kind {
            *count -= 1;
            counts.objects -= 1;
        }
    }

    /// Forgets an object that is skipped, due or in trouble; whether it was one.
    fn forget(&mut self, identity: &Identity) -> bool {
        if self.skipped.remove(identity, &mut self.counts) {
        } else if self.due.remove(identity) {
            self.counts.due -= 1;
        } else {
            match self.troubles.remove(identity) {
                Some(Trouble::Held(..)) => self.counts.held -= 1,
                Some(Trouble::Rejected(_)) => self.counts.rejected -= 1,
                Some(Trouble::Unknown) => self.counts.unknown -= 1,
                None => return false,
            }
        }
        self.counts.objects -= 1;
        true
    }

    /// The objects that were refused, and may come out otherwise if they are tried again.
    pub(in crate::controller) fn refused(&self) -> Vec<Identity> {
        self.identities(|trouble| matches!(trouble, Trouble::Rejected(_)) && !trouble.may_pass())
    }

    /// The objects that nobody could judge, and that come out otherwise as soon as somebody can.
    pub(in crate::controller) fn unjudged(&self) -> Vec<Identity> {
        self.identities(Trouble::may_pass)
    }

    /// Whether nobody could judge this object.
    pub(in crate::controller) fn is_unjudged(&self, identity: &Identity) -> bool {
        self.troubles.get(identity).is_some_and(Trouble::may_pass)
    }

    /// Whether it is a webhook's silence that objects could not be judged for.
    pub(in crate::controller) fn waits_for_webhook(&self) -> bool {
        self.troubles.values().any(|trouble| matches!(trouble, Trouble::Rejected(_)) && trouble.may_pass())
    }

    fn identities(&self, wanted: impl Fn(&Trouble) -> bool) -> Vec<Identity> {
        let all = self.troubles.iter().filter(|(_, trouble)| wanted(trouble));
        all.map(|(identity, _)| identity.clone()).collect()
    }

    /// The numbers.
    pub(in crate::controller) fn counts(&self) -> Counts {
        self.counts
    }

    /// In how many objects a default, by its place in the schema, was missing.
    pub(in crate::controller) fn missing(&self, place: &str) -> u64 {
        self.missing.get(place).copied().unwrap_or_default()
    }

    /// The objects in trouble that are remembered, in order.
    pub(in crate::controller) fn troubles(&self) -> impl Iterator<Item = (&Identity, &Trouble)> {
        self.troubles.iter()
    }

    /// The objects that are not written, whatever they lack.
    pub(in crate::controller) fn skipped(&self) -> &SkippedObjects {
        &self.skipped
    }

    /// How many objects do not hold their defaults in etcd, or may not.
    pub(in crate::controller) fn phantoms(&self) -> u64 {
        let Counts { held, rejected, unknown, due, .. } = self.counts;
        held + rejected + unknown + due + self.skipped.lacking()
    }

    /// The first objects that are due, in order.
    pub(in crate::controller) fn due(&self) -> impl Iterator<Item = &Identity> {
        self.due.iter()
    }

    /// Whether there are more objects in trouble than are remembered.
    pub(in crate::controller) fn overflows(&self) -> bool {
        self.counts.held + self.counts.rejected + self.counts.unknown > self.troubles.len() as u64
    }

    fn trouble(&mut self, identity: Identity, trouble: Trouble) {
        match trouble {
            Trouble::Held(..) => self.counts.held += 1,
            Trouble::Rejected(_) => self.counts.rejected += 1,
            Trouble::Unknown => self.counts.unknown += 1,
        }
        if self.troubles.len() < REMEMBERED {
            self.troubles.insert(identity, trouble);
        }
    }
}
