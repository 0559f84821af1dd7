//! The conditions and the report of a CRD before its objects are read, and whether they need to be read.

use super::task::Task;
use crate::api::{DefaultsReportStatus, Mode};
use crate::condition::{CrdStatus, Reason};
use crate::engine::pass_state::has_nothing_left;
use crate::message;
use crate::report::open_report::OpenReport;

/// What a CRD itself shows, before its report is read.
#[derive(Clone, Debug)]
pub(super) struct Opening {
    /// The status if no object needs to be read; `None` if some do, or the CRD has no defaults.
    at_rest: Option<CrdStatus>,
    /// The status of a CRD without defaults: the values of its last defaults may have to be counted first.
    no_defaults: Option<CrdStatus>,
}

impl Opening {
    pub(super) fn of(task: &Task) -> Self {
        match message::without_objects(&task.crd, &task.settings, &task.findings) {
            Some(crd_status) if crd_status.reason == Reason::NoDefaults => {
                Self { at_rest: None, no_defaults: Some(crd_status) }
            }
            at_rest => Self { at_rest, no_defaults: None },
        }
    }

    /// The status that no report changes.
    pub(super) fn at_rest(&self) -> Option<&CrdStatus> {
        self.at_rest.as_ref()
    }

    /// The status where the CRD has no defaults.
    pub(super) fn no_defaults(&self) -> Option<&CrdStatus> {
        self.no_defaults.as_ref()
    }

    /// Whether the CRD has defaults.
    pub(super) fn has_defaults(&self) -> bool {
        self.no_defaults.is_none()
    }

    /// Whether there is nothing to do, though objects may exist. Where the last defaults were taken back, one
    /// more pass has to count which values remain, and objects that wait to follow are tried again.
    pub(super) fn is_idle(
        &self,
        task: &Task,
        open: &OpenReport,
        report: Option<&DefaultsReportStatus>,
    ) -> bool {
        let may_look = task.settings.mode != Mode::Ignore && task.crd.storage().served;
        let waits = report
            .filter(|report| open.state.is_about(report))
            .is_some_and(|report| !has_nothing_left(&task.crd, &task.settings, report.counts));
        let is_needed = self.has_defaults()
            || task.writes_without_defaults()
            || may_look && (open.ledger.changes.are_pending() || waits);
        self.at_rest.is_some() || !is_needed
    }

    /// The report if there is nothing to do; `None` if there is nothing to report.
    pub(super) fn report_at_rest(
        &self,
        open: &OpenReport,
        report: Option<&DefaultsReportStatus>,
    ) -> Option<DefaultsReportStatus> {
        let about_this = report.filter(|report| open.state.is_about(report));
        let state = self.at_rest.as_ref().map_or(Reason::NoDefaults, |crd_status| crd_status.reason);
        match (&self.at_rest, report) {
            // A CRD without defaults has no report, unless it had defaults once, or has old versions.
            (None, None) if open.state.stored_versions().is_none() => return None,
            // These defaults are still in force, and the results for the objects stay true.
            (Some(at_rest), _) if at_rest.reason != Reason::Ignored => None,
            _ => about_this.map(|report| open.state.with_state(report, state.as_str(), &open.ledger.dropped)),
        }
        .or_else(|| Some(open.state.idle(state.as_str(), &open.ledger.dropped)))
    }
}
