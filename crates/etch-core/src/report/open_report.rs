//! The report on a CRD as it was read, with what continues it: nothing is done for the objects before there
//! is one.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::api::{DefaultsReportStatus, Settings};
use crate::condition::Reason;
use crate::crd::Crd;
use crate::report::changed_defaults::ChangedDefaults;
use crate::report::state::{ReportState, Times};
use crate::report::tally::Tally;

/// A report that was read.
#[derive(Debug)]
pub struct OpenReport {
    /// The part of the report that does not depend on what becomes of the objects.
    pub state: ReportState,
    /// The defaults that have changed.
    pub changes: Arc<ChangedDefaults>,
}

impl OpenReport {
    /// Continues the last report, if there is one. `revision` is the resource version of the CRD as it was
    /// read; `before` is the report as this run has opened it before: it knows more than the report lists
    /// yet.
    pub fn new(
        report: Option<&DefaultsReportStatus>,
        crd: &Crd,
        settings: &Settings,
        revision: &str,
        now: Timestamp,
        before: Option<&Self>,
    ) -> Self {
        let mut state = ReportState::open(report, crd, settings, revision, now);
        let changes = match before {
            Some(before) => {
                state.keep_dropped(before.state.dropped());
                before.changes.clone()
            }
            None => {
                let about_this = report.filter(|report| state.is_about(report));
                Arc::new(ChangedDefaults::open(about_this, state.previous(), crd, settings))
            }
        };
        Self { state, changes }
    }

    /// The report about objects that were processed up to a resource version.
    pub fn status(
        &self,
        reason: Reason,
        tally: &Tally,
        through: Option<u64>,
        times: Times,
    ) -> DefaultsReportStatus {
        let mut status = self.state.status(reason.as_str(), tally, through, times);
        self.changes.add_to_report(&mut status);
        status
    }

    /// A finished report with another state, and what became of changed defaults since.
    pub fn confirmed(
        &self,
        report: &DefaultsReportStatus,
        reason: Reason,
        times: Times,
    ) -> DefaultsReportStatus {
        let mut status = self.state.with_state(report, reason.as_str());
        self.state.add_generation(&mut status);
        status.verify_at = times.verify_at.map(Time);
        self.changes.add_to_report(&mut status);
        status
    }
}
