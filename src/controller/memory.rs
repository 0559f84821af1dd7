//! What is known of the objects of a CRD before they are read: from its report, or from this run.
//! It must not claim more than was proved under the very defaults that are in force.

use std::collections::HashSet;

use super::ledger::is_complete;
use super::pass::Proved;
use super::rounds::Standing;
use super::tally::Tally;
use crate::api::DefaultsReportStatus;
use crate::domain::crd::Crd;
use crate::domain::plan::Record;

/// What a task keeps from one way through to the next.
#[derive(Debug)]
pub(super) struct Memory {
    /// Which objects need no look.
    pub(super) record: Record,
    /// States of objects that were proved since.
    pub(super) proved: Proved,
}

impl Memory {
    /// What remains of what was known after a pass; nothing where it does not say which objects were seen to.
    pub(super) fn of(standing: Standing) -> Option<Self> {
        let Standing { record, proved, .. } = standing;
        record.through.is_some().then_some(Self { record, proved })
    }
}

/// What a report keeps for the next run, if it is about these very defaults and complete.
pub(super) fn recorded(status: &DefaultsReportStatus, crd: &Crd) -> Option<Record> {
    let digest = crd.compiled().digest().to_string();
    let is_this = |other: &str, version: &str| (other, version) == (&digest, &crd.storage().name);
    if is_this(&status.digest, &status.storage_version) {
        let through = status.through.as_deref()?.parse().ok()?;
        let troubled = status.held.iter().chain(&status.rejected);
        return is_complete(status).then(|| Record {
            through: Some(through),
            exceptions: troubled.map(|problem| problem.uid.clone()).collect(),
            versions_disagree: crd.versions_disagree(),
            trust_claims: false,
        });
    }
    // Defaults that are back: what has not been written since holds them still, and of what has been nothing is known.
    let past = status.previous.iter().find(|past| is_this(&past.digest, &past.storage_version))?;
    Some(Record {
        through: Some(past.through.as_deref()?.parse().ok()?),
        exceptions: past.exceptions.iter().cloned().collect(),
        versions_disagree: true,
        trust_claims: false,
    })
}

/// The record after a sweep that saw to every object.
pub(super) fn record_of(tally: &Tally, through: Option<u64>, crd: &Crd) -> Record {
    let exceptions: HashSet<String> = tally.troubles().map(|(identity, _)| identity.uid.clone()).collect();
    let through = through.filter(|_| !tally.overflows());
    Record { through, exceptions, versions_disagree: crd.versions_disagree(), trust_claims: false }
}
