//! The objects whose writes were rejected, in an earlier run or by an earlier pass.

use std::collections::HashMap;

use crate::api::{DefaultsReportStatus, ObjectProblem};
use crate::bloom_filter::BloomFilter;
use crate::object::Object;
use crate::object_state::{self, ObjectState};
use crate::plan::{Rejection, RejectionKind};
use crate::report::tally::{Tally, version_hash};

/// The objects whose writes were rejected: unchanged, they would be rejected again.
#[derive(Clone, Debug, Default)]
pub struct Rejected {
    /// In which version.
    versions: BloomFilter,
    /// The reasons by uid; only of those that the report or the tally names.
    known: HashMap<String, Rejection>,
}

impl Rejected {
    /// What a report keeps of them.
    pub fn from_report(status: &DefaultsReportStatus) -> Self {
        let versions = status.exceptions.as_ref().map(|exceptions| exceptions.rejected.0.clone());
        let known = status.rejected.iter().filter_map(|problem| {
            let ObjectProblem { uid, reason, message, paths, .. } = problem.clone();
            Some((uid, Rejection { kind: object_state::rejected_for(&reason)?, message, fields: paths }))
        });
        Self { versions: BloomFilter::from_bytes(versions.unwrap_or_default()), known: known.collect() }
    }

    /// What a pass of this run has found: the tally names more of them than a report.
    pub fn of_tally(tally: &Tally) -> Self {
        let known = tally.problems().filter_map(|(identity, state)| match state {
            ObjectState::Rejected(rejection) => Some((identity.uid.clone(), rejection.clone())),
            _ => None,
        });
        let versions = BloomFilter::of(tally.rejected_versions().into_iter(), usize::MAX);
        Self { versions, known: known.collect() }
    }

    /// Why this version of an object was rejected by an earlier run; `None` if that is not known.
    pub fn of(&self, object: &Object) -> Option<Rejection> {
        if !self.versions.contains(version_hash(object.uid(), object.resource_version())) {
            return None;
        }
        let unknown = || Rejection {
            kind: RejectionKind::Refused,
            message: "rejected by an earlier run of Etch".to_owned(),
            fields: Vec::new(),
        };
        Some(self.known.get(object.uid()).cloned().unwrap_or_else(unknown))
    }
}
