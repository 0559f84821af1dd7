//! What the report on a CRD holds of changed defaults, for commands that predict what the operator does.
//! It must not count anything: nothing has been done.

use crate::api::{DefaultsReportStatus, Settings};
use crate::controller::state::changed_defaults::ChangedDefaults;
use crate::controller::state::checkpoint::on_record;
use crate::controller::state::report::ReportState;
use crate::domain::crd::Crd;
use crate::domain::object::Object;
use crate::domain::plan::{Change, Record};

/// The changed defaults of a CRD whose old values the operator has still to look for.
#[derive(Debug)]
pub struct DueChanges {
    changes: ChangedDefaults,
    record: Record,
}

/// Which changes of defaults are due by the last report on a CRD, under the settings of its policy. The report may be about
/// earlier defaults of the CRD.
pub fn due_changes(report: &DefaultsReportStatus, crd: &Crd, settings: &Settings) -> DueChanges {
    let state = ReportState::open(Some(report), crd, settings, "");
    let about_this = Some(report).filter(|report| state.is_about(report));
    let changes = ChangedDefaults::open(about_this, state.previous(), crd, settings);
    DueChanges { changes, record: on_record(report, crd) }
}

impl DueChanges {
    /// The changes that concern an object.
    pub fn of(&self, object: &Object) -> &[Change] {
        self.changes.for_object(object, &self.record)
    }
}
