//! What is known of the objects of a CRD before they are read: from its report, or from this run.

use std::sync::Arc;

use crate::api::{DefaultsReportStatus, PreviousDefaults, ServedVersion};
use crate::bloom_filter::BloomFilter;
use crate::crd::Crd;
use crate::object_machine::Rules;
use crate::plan::{Exceptions, HiddenEvidence, Record};
use crate::report::carried::{carried, is_lag_harmless, proves};
use crate::report::dropped_fields::DroppedFields;
use crate::report::former_defaults::of_report;
use crate::report::rejected::Rejected;
use crate::report::schema::is_on_record;
use crate::report::served::{creates_drop_status, has_unknown, may_drop_defaults, served_since};
use crate::report::state::all_at_storage_version;
use crate::report::tally::{Tally, WriteCounts};
use crate::report::versions::{ListKey, ObjectVersions};

/// What a task keeps from one pass to the next.
#[derive(Clone, Debug, Default)]
pub struct Checkpoint {
    /// Which objects need no look.
    pub record: Record,
    /// Up to which object that is known; none if of all of them.
    pub upto: Option<ListKey>,
    /// States of objects that were proved since.
    pub proved: ObjectVersions,
    /// What was written in the course of this pass.
    pub writes: WriteCounts,
    /// What an earlier run was refused.
    pub rejected: Rejected,
}

/// The objects that a report's record does not cover.
fn exceptions(status: &DefaultsReportStatus) -> Exceptions {
    match &status.exceptions {
        Some(exceptions) => Exceptions::of_filter(BloomFilter::from_bytes(exceptions.uids.0.clone())),
        // Reports of releases that kept no more than the lists.
        None => {
            let problems = status.held.iter().chain(&status.rejected);
            problems.map(|problem| problem.uid.clone()).collect()
        }
    }
}

/// The objects that the record of an earlier schema does not cover.
pub(super) fn excepted(past: &PreviousDefaults) -> Exceptions {
    match &past.open {
        Some(open) => Exceptions::of_filter(BloomFilter::from_bytes(open.0.clone())),
        None => past.exceptions.iter().cloned().collect(),
    }
}

impl Checkpoint {
    /// What a report keeps for the next run, if it is about these very defaults and complete.
    pub fn from_report(status: &DefaultsReportStatus, crd: &Crd) -> Option<Self> {
        let digest = crd.digest();
        let is_this = |other: &str, version: &str| (other, version) == (&digest, &crd.storage().name);
        let is_about_these = is_this(&status.digest, &status.storage_version);
        let through = status.through.as_ref().and_then(|through| through.parse().ok());
        if let (true, Some(through)) = (is_about_these, through) {
            let served = served_since(status, crd);
            // Where no version gives defaults, a pass leaves objects where they are, unless it moves them.
            let was_moved = crd.gives_defaults()
                || status.stored_versions.as_ref().is_some_and(|versions| versions.verified);
            let record = Record {
                through: Some(through),
                exceptions: exceptions(status),
                selection: status.objects.clone().into(),
                versions_disagree: may_drop_defaults(&served),
                storage_changed: has_unknown(&served) || crd.stored_elsewhere() && !was_moved,
                creates_drop_status: creates_drop_status(&served, crd),
                ..Record::default()
            };
            let writes = WriteCounts::from_report(status);
            // Another generation may let them pass.
            let rejected = match status.generation == crd.generation() {
                true => Rejected::from_report(status),
                false => Rejected::default(),
            };
            let is_interrupted = status.finished.is_none() && status.upto.is_some();
            let upto = status.upto.clone().filter(|_| is_interrupted);
            let is_on_record = is_interrupted || is_on_record(status);
            return is_on_record.then(|| Self { record, upto, rejected, writes, ..Self::default() });
        }
        if let Some((before, served)) = carried(status, crd) {
            return Self::carried(&before, &served, crd);
        }
        // Defaults that are back: what has not been written since holds them still, and of what has been
        // nothing is known.
        let past = status.previous.iter().find(|past| is_this(&past.digest, &past.storage_version))?;
        if !proves(past) {
            return None;
        }
        let record = Record {
            through: Some(past.through.as_deref()?.parse().ok()?),
            exceptions: excepted(past),
            versions_disagree: true,
            storage_changed: true,
            ..Record::default()
        };
        Some(Self { record, ..Self::default() })
    }

    /// What the pass for the schema before proves of these defaults, which were among those; `served` is what
    /// was served since.
    fn carried(before: &PreviousDefaults, served: &[ServedVersion], crd: &Crd) -> Option<Self> {
        let record = Record {
            through: Some(before.through.as_deref()?.parse().ok()?),
            exceptions: excepted(before),
            versions_disagree: may_drop_defaults(served),
            storage_changed: has_unknown(served),
            creates_drop_status: creates_drop_status(served, crd),
            ..Record::default()
        };
        Some(Self { record, ..Self::default() })
    }

    /// What is known before anything is.
    pub fn empty(crd: &Crd) -> Self {
        Self { record: Record::empty(crd), ..Self::default() }
    }

    /// What is known after a sweep to the end, whose numbers come to be those of the whole pass.
    pub fn after_sweep(
        &mut self,
        tally: &mut Tally,
        proved: ObjectVersions,
        through: Option<u64>,
        rules: &Rules,
    ) -> Self {
        tally.add_earlier_writes(&self.writes);
        let mut all = std::mem::take(&mut self.proved);
        all.extend(proved);
        let record = Record {
            servers_lag: self.record.servers_lag,
            ..record_of(tally, through, rules, &self.record.hidden)
        };
        Self { record, upto: None, proved: all, writes: tally.writes(), rejected: Rejected::default() }
    }

    /// Adds what a sweep that wrote has done and that did not end: it began at the first of `place`, and came
    /// to the second.
    pub fn add_interrupted(
        &mut self,
        tally: &Tally,
        proved: ObjectVersions,
        place: (Option<u64>, Option<ListKey>),
        rules: &Rules,
    ) {
        let (through, upto) = place;
        self.proved.extend(proved);
        self.writes.add(&tally.writes());
        let is_further = match &self.upto {
            Some(before) => upto.as_ref() > Some(before),
            None => self.record.through.is_none() && upto.is_some(),
        };
        let record = record_of(tally, through, rules, &self.record.hidden);
        if is_further && record.through.is_some() {
            (self.record, self.upto) = (record, upto);
        }
    }
}

/// What a report records about the objects of a CRD, for those who only read; nothing of which objects hold
/// their defaults if it is about other defaults, or not complete.
pub fn on_record(status: &DefaultsReportStatus, crd: &Crd) -> Record {
    let of_all = Checkpoint::from_report(status, crd).filter(|checkpoint| checkpoint.upto.is_none());
    let checkpoint = of_all.unwrap_or_else(|| Checkpoint::empty(crd));
    let record = checkpoint.record;
    // What they have stored since the pass is verified at that time.
    let servers_lag =
        record.servers_lag || status.verify_at.is_some() && !is_lag_harmless(&status.previous, crd);
    let is_verified = status.stored_versions.as_ref().is_some_and(|versions| versions.verified);
    Record {
        hidden: Arc::new(HiddenEvidence {
            cleared: DroppedFields::open(Some(status), crd).cleared(),
            former: of_report(status, crd),
        }),
        all_at_storage_version: all_at_storage_version(status, crd),
        asked_each: is_verified && !servers_lag,
        servers_lag,
        ..record
    }
}

/// The record after a sweep that processed every object, or every one of those that it is used for.
pub fn record_of(tally: &Tally, through: Option<u64>, rules: &Rules, hidden: &Arc<HiddenEvidence>) -> Record {
    Record {
        through,
        exceptions: tally.exceptions(),
        selection: rules.terms.selection.clone(),
        hidden: hidden.clone(),
        ..Record::empty(&rules.crd)
    }
}
