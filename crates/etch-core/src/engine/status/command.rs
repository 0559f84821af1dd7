//! The requests about the conditions and the report of a CRD.

use std::sync::Arc;

use crate::api::DefaultsReportStatus;
use crate::condition::{Condition, Reason};
use crate::event::{Event, ObjectKind, Regarding};

/// Which CRD, in which state, is written about.
#[derive(Clone, Debug)]
pub struct Subject {
    /// `crontabs.stable.example.com`
    pub name: String,
    /// The CRD's uid.
    pub uid: String,
    /// The generation that was judged.
    pub generation: i64,
    /// What its objects are called; `None` if it cannot be read.
    pub objects: Option<ObjectKind>,
}

impl Subject {
    pub(super) fn regarding(&self) -> Regarding {
        Regarding {
            api_version: "apiextensions.k8s.io/v1".to_owned(),
            kind: "CustomResourceDefinition".to_owned(),
            namespace: None,
            name: self.name.clone(),
            uid: self.uid.clone(),
        }
    }
}

/// What is to be done. One request is under way at a time.
#[derive(Clone, Debug)]
pub enum Command {
    /// Apply our conditions to the CRD where it still has this resource version, and call `Status::written`.
    SetConditions(Arc<[Condition]>, String),
    /// Read the CRD, and call `Status::crd_read`.
    ReadCrd,
    /// Ask whether the CRD still has the generation of the subject, and call `Status::generation_read`.
    ReadGeneration,
    /// Create the report, or make one that is left from an earlier CRD this one's, and call
    /// `Status::report_written`.
    OpenReport,
    /// Replace the report where it still has this resource version, and call `Status::report_written`.
    SetReport(Arc<DefaultsReportStatus>, String),
    /// Read the report, and call `Status::report_read_again`.
    ReadReport,
    /// Publish an event.
    Emit(Event),
    /// Count the CRD.
    Count {
        /// Under this reason; under none if there is nothing to report.
        reason: Option<Reason>,
        /// Whether its objects are not written any more because a write lost owners.
        are_owners_lost: bool,
    },
}
