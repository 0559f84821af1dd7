//! What an earlier run was refused, as its report keeps it.
//! It must not count as rejected what has changed since.

use std::collections::HashMap;

use etch_core::api::{DefaultsReportStatus, ObjectProblem};
use crate::controller::state::tally::version_hash;
use etch_core::bloom_filter::BloomFilter;
use etch_core::object::Object;
use etch_core::object_state;
use etch_core::plan::{Rejection, RejectionKind};

/// The objects whose writes an earlier run was refused: as they are, they would be refused again.
#[derive(Debug, Default)]
pub(in crate::controller) struct Rejected {
    /// In which version.
    versions: BloomFilter,
    /// Why, by uid, as far as the report names them.
    known: HashMap<String, Rejection>,
}

impl Rejected {
    /// What a report keeps of them.
    pub(in crate::controller) fn from_report(status: &DefaultsReportStatus) -> Self {
        let versions = status.exceptions.as_ref().map(|exceptions| exceptions.rejected.0.clone());
        let known = status.rejected.iter().filter_map(|problem| {
            let ObjectProblem { uid, reason, message, paths, .. } = problem.clone();
            Some((uid, Rejection { kind: object_state::rejected_for(&reason)?, message, fields: paths }))
        });
        Self { versions: BloomFilter::from_bytes(versions.unwrap_or_default()), known: known.collect() }
    }

    /// Why an object as it is was rejected by an earlier run; none where that is not known.
    pub(in crate::controller) fn of(&self, object: &Object) -> Option<Rejection> {
        if !self.versions.contains(version_hash(object.uid(), object.resource_version())) {
            return None;
        }
        let unknown = || Rejection {
            kind: RejectionKind::Other,
            message: "rejected by an earlier run of Etch".to_owned(),
            fields: Vec::new(),
        };
        Some(self.known.get(object.uid()).cloned().unwrap_or_else(unknown))
    }
}
