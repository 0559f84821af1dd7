//! What the report on a CRD holds, for whoever predicts what the operator does: commands, and the guard on upgrades.
//! It must not count anything: nothing has been done.

use crate::api::{DefaultsReportStatus, Settings};
use crate::controller::state::changed_defaults::ChangedDefaults;
use crate::controller::state::checkpoint::on_record;
use crate::controller::state::report::ReportState;
use crate::controller::status::writer::now;
use crate::domain::crd::Crd;
use crate::domain::impact::Upgrade;
use crate::domain::object::Object;
use crate::domain::plan::{Change, Record, changes, past_of};

/// The changed defaults of a CRD whose old values the operator has still to look for.
#[derive(Debug)]
pub struct PendingChanges {
    changes: ChangedDefaults,
    record: Record,
}

/// Which changes of defaults are due by the last report on a CRD, under the settings of its policy. The report may be about
/// earlier defaults of the CRD.
pub fn pending_changes(report: &DefaultsReportStatus, crd: &Crd, settings: &Settings) -> PendingChanges {
    let state = ReportState::open(Some(report), crd, settings, "", now());
    let about_this = Some(report).filter(|report| state.is_about(report));
    let changes = ChangedDefaults::open(about_this, state.previous(), crd, settings);
    PendingChanges { changes, record: on_record(report, crd) }
}

impl PendingChanges {
    /// The changes that concern an object.
    pub fn of(&self, object: &Object) -> &[Change] {
        self.changes.for_object(object, &self.record)
    }
}

/// What is on record of stored objects by the report on a CRD.
pub fn record_from_report(report: Option<&DefaultsReportStatus>, crd: &Crd) -> Record {
    report.map_or_else(|| Record::empty(crd), |report| on_record(report, crd))
}

/// An upgrade under the policy that governs its CRD, if one does. Which defaults have changed is compared with the last report where
/// that is about the CRD as it is, as for the operator.
pub fn upgrade_under_policy<'a>(
    upgrade: Upgrade<'a>,
    old: &Crd,
    new: &Crd,
    settings: Option<&Settings>,
    report: Option<&DefaultsReportStatus>,
) -> Upgrade<'a> {
    let Some(settings) = settings else { return upgrade };
    let is_about_old = |report: &&DefaultsReportStatus| report.digest == old.compiled().digest().to_string();
    let changes = match report.filter(is_about_old) {
        Some(report) => pending_changes(report, new, settings).of(&Object::default()).to_vec(),
        None => changes(&past_of(old), new, &settings.follow),
    };
    upgrade.under(settings.terms, changes, settings.writes())
}
