//! The report on a CRD as it was read, with what continues it: nothing is done for the objects before there
//! is one.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::api::{DefaultsReportStatus, Settings};
use crate::condition::Reason;
use crate::crd::Crd;
use crate::report::changed_defaults::ChangedDefaults;
use crate::report::dropped_fields::DroppedFields;
use crate::report::ledger::Ledger;
use crate::report::state::{ReportState, Times};
use crate::report::tally::Tally;

/// A report that was read.
#[derive(Clone, Debug)]
pub struct OpenReport {
    /// The part of the report that does not depend on the objects.
    pub state: ReportState,
    /// What is counted beside the states of objects; a pass and the watch take it along.
    pub ledger: Ledger,
}

impl OpenReport {
    /// Continues the last report, if there is one. `revision` is the resource version of the CRD as it was
    /// read; `before` is the ledger of this run, where it has opened a report before: it knows more than the
    /// report lists yet.
    pub fn new(
        report: Option<&DefaultsReportStatus>,
        crd: &Crd,
        settings: &Settings,
        revision: &str,
        now: Timestamp,
        before: Option<Ledger>,
    ) -> Self {
        let state = ReportState::open(report, crd, settings, revision, now);
        let ledger = before.unwrap_or_else(|| {
            let about_this = report.filter(|report| state.is_about(report));
            Ledger {
                changes: ChangedDefaults::open(about_this, state.previous(), crd, settings),
                dropped: DroppedFields::open(report, crd),
            }
        });
        Self { state, ledger }
    }

    /// Forgets what is on record, which is about another past.
    pub fn forget_record(&mut self) {
        self.state.forget_record();
        self.ledger.dropped.forget_cleared();
    }
}

impl ReportState {
    /// The report about objects that were processed up to a resource version.
    pub fn counted(
        &self,
        ledger: &Ledger,
        reason: Reason,
        tally: &Tally,
        through: Option<u64>,
        times: Times,
    ) -> DefaultsReportStatus {
        let mut status = self.status(reason.as_str(), tally, through, times, &ledger.dropped);
        ledger.changes.add_to_report(&mut status);
        status
    }

    /// What Etch's own condition proves up to a resource version, in a report. How many objects there are is
    /// not known.
    pub fn taken_over(&self, ledger: &Ledger, through: u64, now: Timestamp) -> DefaultsReportStatus {
        let times = Times { finished: Some(now), verify_at: self.verify_at(), ..Times::default() };
        self.status(Reason::AllPersisted.as_str(), None, Some(through), times, &ledger.dropped)
    }

    /// A finished report with another state, and the later outcomes for changed defaults.
    pub fn confirmed(
        &self,
        ledger: &Ledger,
        report: &DefaultsReportStatus,
        reason: Reason,
        times: Times,
    ) -> DefaultsReportStatus {
        let mut status = self.with_state(report, reason.as_str(), &ledger.dropped);
        self.add_generation(&mut status);
        status.read_namespaces = self.read_namespaces();
        status.verify_at = times.verify_at.map(Time);
        ledger.changes.add_to_report(&mut status);
        status
    }
}
