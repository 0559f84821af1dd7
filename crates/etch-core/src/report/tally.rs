//! Counts the states of the objects of a CRD. It holds a bounded number of objects, and no value of one.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::ByteString;

use crate::api::{self, Counts, DefaultsReportStatus};
use crate::bloom_filter::{BloomFilter, hash};
use crate::object::Identity;
use crate::object_state::{ObjectState, StateKind};
use crate::plan;
use crate::report::skipped::{REMEMBERED, SkippedObjects};
use kube_structural_schema::path::Path;

/// The room in a report for the objects that its record does not cover, and for those that were rejected, in
/// bytes.
const UIDS: usize = 12 * 1024;
const REJECTED: usize = 6 * 1024;

/// The states of all objects.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    counts: Counts,
    missing: BTreeMap<String, u64>,
    /// The objects that are held, rejected or unknown.
    problems: BTreeMap<Identity, ObjectState>,
    /// The first objects that are due, and the hashes of the uids of all others.
    due: BTreeSet<Identity>,
    more_due: BTreeSet<u64>,
    /// The hashes of the uids of those that only a write would prove to be stored.
    unproved: BTreeSet<u64>,
    /// How many objects the list has, as the server counts them.
    expected: Option<u64>,
    /// How many of them are left out; they are in no other number.
    left_out: u64,
    skipped: SkippedObjects,
    /// All that are held, rejected or unknown, by the hash of their uid: there may be more than are
    /// remembered by name.
    troubled: BTreeMap<u64, Troubled>,
    /// The hashes of the uids of those that went away before they could be counted: the watch has yet to
    /// report their deletion.
    gone: BTreeSet<u64>,
    /// Those that were counted as written until they changed, by the hash of their uid: they are again once
    /// they are stored.
    were_written: BTreeSet<u64>,
    /// How far the sweep has come that counts.
    place: Option<Place>,
}

/// How far a sweep has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The resource version at which it began.
    pub through: u64,
    /// The object up to which every one was processed, as it stands in the list; empty before the first page
    /// has ended.
    pub upto: String,
}

/// What is known about an object that may not be remembered by name.
#[derive(Clone, Copy, Debug)]
struct Troubled {
    kind: StateKind,
    is_unanswered: bool,
    /// Whether it is remembered by name.
    is_named: bool,
    /// The hash of the version that was rejected, if it would be rejected again.
    rejected: Option<u64>,
}

/// How many objects were written, and how many lacked each default, by its place in the schema.
#[derive(Clone, Debug, Default)]
pub struct WriteCounts {
    written: u64,
    missing: BTreeMap<String, u64>,
}

impl WriteCounts {
    /// Those of a report.
    pub fn from_report(status: &DefaultsReportStatus) -> Self {
        let missing = status.defaults.iter().filter(|default| default.objects > 0);
        Self {
            written: status.counts.written,
            missing: missing.map(|default| (default.path.clone(), default.objects)).collect(),
        }
    }

    /// The sum of both.
    pub fn add(&mut self, other: &Self) {
        self.written += other.written;
        for (place, objects) in &other.missing {
            *self.missing.entry(place.clone()).or_default() += objects;
        }
    }
}

impl Tally {
    /// Counts one object, and the places that were missing in it; those of an object of which nothing is
    /// known yet are counted when something is. One that went away does not count.
    pub fn add(&mut self, identity: Identity, state: ObjectState, missing: &[Path]) {
        let kind = state.kind();
        let Some(count) = count(&mut self.counts, kind) else {
            self.gone.insert(hash(&identity.uid));
            return;
        };
        *count += 1;
        self.counts.objects += 1;
        let missing = if kind == StateKind::Unknown { &[] } else { missing };
        let places: BTreeSet<String> = missing.iter().map(|path| path.to_schema().to_string()).collect();
        for place in places {
            *self.missing.entry(place).or_default() += 1;
        }
        match state {
            ObjectState::Stored
            | ObjectState::AlreadyStored
            | ObjectState::Written { .. }
            | ObjectState::Gone => {}
            ObjectState::Skipped(skipped) => self.skipped.insert(identity, skipped),
            ObjectState::Due if self.due.len() < REMEMBERED => drop(self.due.insert(identity)),
            ObjectState::Due => drop(self.more_due.insert(hash(&identity.uid))),
            ObjectState::Unproved => drop(self.unproved.insert(hash(&identity.uid))),
            ObjectState::Held(_) | ObjectState::Rejected(_) | ObjectState::Unknown => {
                let is_unanswered = state.is_unanswered();
                // The API server may answer the next request for it, whatever is wrong with the others.
                let most = if is_unanswered { 2 * REMEMBERED } else { REMEMBERED };
                let is_named = self.problems.len() < most;
                self.troubled
                    .insert(hash(&identity.uid), Troubled { kind, is_unanswered, is_named, rejected: None });
                if is_named {
                    self.problems.insert(identity, state);
                }
            }
        }
    }

    /// Sets how far the sweep has come.
    pub fn set_place(&mut self, place: Option<Place>) {
        self.place = place;
    }

    /// How far the sweep has come; none before it has begun.
    pub fn place(&self) -> Option<&Place> {
        self.place.as_ref()
    }

    /// Sets how many objects the list has, as the server counts them.
    pub fn set_expected(&mut self, objects: Option<u64>) {
        self.expected = objects;
    }

    /// How many objects the list has, as the server counts them, those included that are left out.
    pub fn expected(&self) -> Option<u64> {
        self.expected
    }

    /// Counts one object that is left out.
    pub fn count_left_out(&mut self) {
        self.left_out += 1;
    }

    /// How many objects were left out.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Counts one object that is held or rejected as an earlier sweep has found it, and has not changed
    /// since.
    pub fn add_unchanged(&mut self, identity: Identity, earlier: &Self, is_held: bool) {
        match earlier.problems.get(&identity) {
            Some(state) => self.add(identity, state.clone(), &[]),
            None => {
                self.counts.objects += 1;
                let (kind, count) = match is_held {
                    true => (StateKind::Held, &mut self.counts.held),
                    false => (StateKind::Rejected, &mut self.counts.rejected),
                };
                *count += 1;
                let uid = hash(&identity.uid);
                let is_unanswered = earlier.troubled.get(&uid).is_some_and(|known| known.is_unanswered);
                let troubled = Troubled { kind, is_unanswered, is_named: false, rejected: None };
                self.troubled.insert(uid, troubled);
            }
        }
    }

    /// Notes in which version an object was rejected that is counted already. For an unanswered one the next
    /// answer may be another.
    pub fn set_rejected_at(&mut self, identity: &Identity, resource_version: &str) {
        let troubled = self.troubled.get_mut(&hash(&identity.uid));
        if let Some(troubled) = troubled.filter(|troubled| !troubled.is_unanswered) {
            troubled.rejected = Some(version_hash(&identity.uid, resource_version));
        }
    }

    /// The objects that are not known to be stored, all of them, for a record.
    pub fn exceptions(&self) -> plan::Exceptions {
        plan::Exceptions::of_hashes(self.open().collect())
    }

    /// The hashes of the uids of those that are held, rejected or unknown, or that an audit leaves open.
    fn open(&self) -> impl Iterator<Item = u64> + '_ {
        let due = self.due.iter().map(|identity| hash(&identity.uid));
        let others = self.more_due.iter().chain(&self.unproved).chain(self.troubled.keys());
        due.chain(others.copied())
    }

    /// The same for a report.
    pub fn reported_exceptions(&self) -> Option<api::Exceptions> {
        let rejected = self.rejected_versions();
        let uids: Vec<u64> = self.open().collect();
        (!uids.is_empty()).then(|| api::Exceptions {
            uids: ByteString(BloomFilter::of(uids.into_iter(), UIDS).into_bytes()),
            rejected: ByteString(BloomFilter::of(rejected.into_iter(), REJECTED).into_bytes()),
        })
    }

    /// The hashes of the versions of objects that would be rejected again.
    pub fn rejected_versions(&self) -> Vec<u64> {
        self.troubled.values().filter_map(|troubled| troubled.rejected).collect()
    }

    /// Counts as written what was written before this sweep began, which found it stored.
    pub fn add_earlier_writes(&mut self, before: &WriteCounts) {
        let written = before.written.min(self.counts.already_stored);
        self.counts.already_stored -= written;
        self.counts.written += written;
        for (place, objects) in &before.missing {
            *self.missing.entry(place.clone()).or_default() += objects;
        }
    }

    /// What was written.
    pub fn writes(&self) -> WriteCounts {
        WriteCounts { written: self.counts.written, missing: self.missing.clone() }
    }

    /// Replaces the state of one object after it changed or was tried again; returns whether the condition or
    /// the report changes then.
    ///
    /// The watch reports objects that went away.
    pub fn update(&mut self, identity: &Identity, state: ObjectState, missing: &[Path]) -> bool {
        // The watch is behind the request that found it gone.
        if self.gone.contains(&hash(&identity.uid)) {
            return false;
        }
        let (was_due, before) = (self.waits_as(identity), self.problems.get(identity));
        let was_skipped = self.skipped.get(identity);
        let (is_due, problem, is_skipped) = match &state {
            ObjectState::Gone => return false,
            // A held object is reconciled only when it has changed, and may be held no more.
            ObjectState::Unknown if matches!(before, Some(ObjectState::Held(_))) => {
                (None, Some(&state), None)
            }
            // What could not be found out changes nothing of what is known.
            ObjectState::Unknown if was_due.is_some() || before.is_some() => return false,
            ObjectState::Unknown | ObjectState::Held(_) | ObjectState::Rejected(_) => {
                (None, Some(&state), None)
            }
            ObjectState::Due | ObjectState::Unproved => (Some(state.kind()), None, None),
            ObjectState::Skipped(skipped) => (None, None, Some(*skipped)),
            ObjectState::Stored | ObjectState::AlreadyStored | ObjectState::Written { .. } => {
                (None, None, None)
            }
        };
        if (was_due, before, was_skipped) == (is_due, problem, is_skipped) {
            return false;
        }
        let missing = if before == Some(&ObjectState::Unknown) { missing } else { &[] };
        let uid = hash(&identity.uid);
        let was_written = match self.remove(identity) {
            true => self.were_written.remove(&uid),
            false => self.remove_stored() == Some(StateKind::Written),
        };
        let kind = state.kind();
        self.add(identity.clone(), state, missing);
        match kind {
            StateKind::Stored if was_written => {
                self.counts.already_stored -= 1;
                self.counts.written += 1;
            }
            StateKind::Stored | StateKind::Written => {}
            _ if was_written => drop(self.were_written.insert(uid)),
            _ => {}
        }
        true
    }

    /// Counts an object that was created after the others were counted; whether it has a problem or is due.
    pub fn created(&mut self, identity: &Identity, state: ObjectState, missing: &[Path]) -> bool {
        let is_fine = state.is_stored() || state.kind() == StateKind::Gone;
        self.add(identity.clone(), state, missing);
        !is_fine
    }

    /// Takes an object that was deleted out of the numbers; whether it had a problem, was skipped or due.
    pub fn deleted(&mut self, identity: &Identity) -> bool {
        if self.gone.remove(&hash(&identity.uid)) {
            return false;
        }
        let is_known = self.remove(identity);
        if !is_known {
            self.remove_stored();
        }
        self.were_written.remove(&hash(&identity.uid));
        is_known
    }

    /// Takes one object that is stored out of the numbers; as what it was counted.
    fn remove_stored(&mut self) -> Option<StateKind> {
        let counts = &mut self.counts;
        let both =
            [(StateKind::Stored, &mut counts.already_stored), (StateKind::Written, &mut counts.written)];
        let (kind, count) = both.into_iter().find(|(_, count)| **count > 0)?;
        *count -= 1;
        counts.objects -= 1;
        Some(kind)
    }

    /// Takes out an object that is skipped, due, unproved, held, rejected or unknown; whether it was one.
    fn remove(&mut self, identity: &Identity) -> bool {
        let kind = if let Some(skipped) = self.skipped.remove(identity) {
            skipped.kind()
        } else if self.due.remove(identity) || self.more_due.remove(&hash(&identity.uid)) {
            StateKind::Due
        } else if self.unproved.remove(&hash(&identity.uid)) {
            StateKind::Unproved
        } else if let Some(state) = self.problems.remove(identity) {
            self.troubled.remove(&hash(&identity.uid));
            state.kind()
        } else if let Some(troubled) = self.troubled.remove(&hash(&identity.uid)) {
            troubled.kind
        } else {
            return false;
        };
        if let Some(count) = count(&mut self.counts, kind) {
            *count -= 1;
        }
        self.counts.objects -= 1;
        true
    }

    /// The objects that were rejected, and may be accepted if they are tried again.
    pub fn rejected(&self) -> Vec<Identity> {
        self.identities(|state| {
            state.kind() == StateKind::Rejected && !state.is_unanswered() && !state.is_mutated()
        })
    }

    /// The objects that admission changes on each write.
    pub fn mutated(&self) -> Vec<Identity> {
        self.identities(ObjectState::is_mutated)
    }

    /// Whether admission changes this object on each write.
    pub fn is_mutated(&self, identity: &Identity) -> bool {
        self.problems.get(identity).is_some_and(ObjectState::is_mutated)
    }

    /// The objects that are unanswered, and can be stored as soon as an answer comes.
    pub fn unanswered(&self) -> Vec<Identity> {
        self.identities(ObjectState::is_unanswered)
    }

    /// Whether this object is unanswered.
    pub fn is_unanswered(&self, identity: &Identity) -> bool {
        self.problems.get(identity).is_some_and(ObjectState::is_unanswered)
    }

    /// Whether it is a webhook that did not answer about some of them.
    pub fn waits_for_webhook(&self) -> bool {
        self.problems.values().any(|state| state.kind() == StateKind::Rejected && state.is_unanswered())
    }

    fn identities(&self, is_wanted: impl Fn(&ObjectState) -> bool) -> Vec<Identity> {
        let all = self.problems.iter().filter(|(_, state)| is_wanted(state));
        all.map(|(identity, _)| identity.clone()).collect()
    }

    /// The numbers.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// In how many objects a default, by its place in the schema, was missing.
    pub fn missing(&self, place: &str) -> u64 {
        self.missing.get(place).copied().unwrap_or_default()
    }

    /// The objects that are held, rejected or unknown, as far as they are remembered, in order.
    pub fn problems(&self) -> impl Iterator<Item = (&Identity, &ObjectState)> {
        self.problems.iter()
    }

    /// The objects that are not written, whatever they lack.
    pub fn skipped(&self) -> &SkippedObjects {
        &self.skipped
    }

    /// How many objects do not hold their defaults in etcd, or probably not.
    pub fn phantoms(&self) -> u64 {
        let Counts { held, rejected, unknown, due, .. } = self.counts;
        held + rejected + unknown + due + self.skipped.lacking()
    }

    /// As what an object waits for the policy to allow a write, if it does.
    fn waits_as(&self, identity: &Identity) -> Option<StateKind> {
        let uid = hash(&identity.uid);
        match () {
            () if self.due.contains(identity) || self.more_due.contains(&uid) => Some(StateKind::Due),
            () if self.unproved.contains(&uid) => Some(StateKind::Unproved),
            () => None,
        }
    }

    /// The first objects that are due, in order.
    pub fn due(&self) -> impl Iterator<Item = &Identity> {
        self.due.iter()
    }

    /// Whether more objects are held, rejected or unknown than are remembered.
    pub fn overflows(&self) -> bool {
        self.counts.held + self.counts.rejected + self.counts.unknown > self.problems.len() as u64
    }

    /// Whether some of the others were rejected, and may be accepted if they are tried again.
    pub fn overflows_with_rejected(&self) -> bool {
        self.overflows_with(|troubled| troubled.kind == StateKind::Rejected && !troubled.is_unanswered)
    }

    /// Whether some of the others are unanswered.
    pub fn overflows_with_unanswered(&self) -> bool {
        self.overflows_with(|troubled| troubled.is_unanswered)
    }

    /// Whether some of the others are unknown.
    pub fn overflows_with_unknown(&self) -> bool {
        self.overflows_with(|troubled| troubled.kind == StateKind::Unknown)
    }

    fn overflows_with(&self, is_wanted: impl Fn(&Troubled) -> bool) -> bool {
        self.overflows() && self.troubled.values().any(|troubled| !troubled.is_named && is_wanted(troubled))
    }
}

/// The hash of an object in one version.
pub fn version_hash(uid: &str, resource_version: &str) -> u64 {
    hash(&format!("{uid}/{resource_version}"))
}

/// Where an object in this state is counted; `None` if it is gone.
fn count(counts: &mut Counts, kind: StateKind) -> Option<&mut u64> {
    Some(match kind {
        StateKind::Stored => &mut counts.already_stored,
        StateKind::Written => &mut counts.written,
        StateKind::Held => &mut counts.held,
        StateKind::Rejected => &mut counts.rejected,
        StateKind::Ignored => &mut counts.ignored,
        StateKind::Terminating => &mut counts.terminating,
        StateKind::TooDeep => &mut counts.too_deep,
        StateKind::NotSelected => &mut counts.not_selected,
        StateKind::Due => &mut counts.due,
        StateKind::Unproved => &mut counts.unproved,
        StateKind::Unknown => &mut counts.unknown,
        StateKind::Gone => return None,
    })
}
