//! What one report has of a schema: its defaults, how far a pass for them has come, and what of it stays when
//! the schema changes.

use crate::api::{DefaultPath, DefaultValue, DefaultsReportStatus, PreviousDefaults};
use crate::crd::Crd;

/// How many defaults the report lists, at most.
const DEFAULTS: usize = 500;
/// The longest value that it shows, and all of them together, in bytes of JSON.
const VALUE: usize = 2 * 1024;
const VALUES: usize = 16 * 1024;

/// Whether a report is about the defaults that the CRD has now.
pub(super) fn is_about(report: &DefaultsReportStatus, crd: &Crd) -> bool {
    report.digest == crd.digest() && report.storage_version == crd.storage().name
}

/// The defaults of a CRD, as many as fit in a report, and how many more there are.
pub(super) fn list(crd: &Crd) -> (Vec<DefaultPath>, u64) {
    let (sites, more) = crd.compiled().first_defaults(DEFAULTS);
    let mut room = VALUES;
    let listed = sites.iter().map(|site| {
        let value = if room == 0 { None } else { String::from_utf8(site.value().to_vec()).ok() };
        // What is too long to be shown costs room as well: it was computed.
        room = room.saturating_sub(value.as_ref().map_or(0, String::len));
        let value = value.filter(|value| value.len() <= VALUE);
        DefaultPath {
            path: site.path.to_string(),
            value,
            nullable: site.is_nullable(),
            ..DefaultPath::default()
        }
    });
    (listed.collect(), more as u64)
}

/// What a report on other defaults becomes.
pub(super) fn past(report: &DefaultsReportStatus) -> PreviousDefaults {
    let problems = report.held.iter().chain(&report.rejected);
    let open = report.exceptions.as_ref().filter(|_| !is_complete(report));
    PreviousDefaults {
        digest: report.digest.clone(),
        storage_version: report.storage_version.clone(),
        generation: report.generation,
        first_seen: report.first_seen.clone(),
        finished: report.finished.clone(),
        verify_at: report.verify_at.clone(),
        // What was not selected then is not covered.
        through: report
            .through
            .clone()
            .filter(|_| is_on_record(report) && report.objects.is_none() && !report.shown_by_crd),
        open: open.map(|exceptions| exceptions.uids.clone()),
        exceptions: problems.map(|problem| problem.uid.clone()).collect(),
        defaults: report
            .defaults
            .iter()
            .map(|default| DefaultValue {
                path: default.path.clone(),
                value: default.value.clone(),
                nullable: default.nullable,
            })
            .collect(),
        served: report.served.clone(),
        more_defaults: report.more_defaults,
    }
}

/// Whether a report names every object that was not processed.
pub fn is_complete(report: &DefaultsReportStatus) -> bool {
    let listed = report.held.len() + report.rejected.len();
    report.finished.is_some()
        && report.counts.unknown + report.counts.due + report.counts.unproved == 0
        && report.counts.held + report.counts.rejected == listed as u64
}

/// Whether a report knows every object that was not processed, or is open: by name, or as members of a set.
pub fn is_on_record(report: &DefaultsReportStatus) -> bool {
    report.finished.is_some() && report.exceptions.is_some() || is_complete(report)
}
