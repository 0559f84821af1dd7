//! What a report shows about the versions that could go out of `status.storedVersions`. It must not call an
//! object proved of which anything is open.

use jiff::Timestamp;

use crate::api::{Counts, KeptVersion, StoredVersionsReport};
use crate::call_error::CallError;
use crate::crd::Crd;
use crate::stored_versions::{VersionTally, removable};

/// By where etcd holds the objects, as far as reads show it.
pub fn of_tally(crd: &Crd, tally: &VersionTally) -> StoredVersionsReport {
    let versions = tally.old_versions(crd, None);
    let kept = versions.iter().filter(|version| !version.kept.is_empty());
    StoredVersionsReport {
        proved: tally.proved,
        elsewhere: tally.elsewhere(),
        unknown: tally.unknown + tally.unreadable,
        verified: false,
        removable: removable(&versions).map(str::to_owned).collect(),
        kept: kept
            .map(|version| KeptVersion { name: version.name.clone(), reasons: version.kept.clone() })
            .collect(),
    }
}

/// From the results of a pass that writes each object which may be stored at an old version. Until
/// `verify_at` an API server that lags behind may store objects there, and take one that is there for stored.
pub fn of_counts(crd: &Crd, counts: Counts, verify_at: Option<Timestamp>) -> StoredVersionsReport {
    let Counts { objects, written, already_stored, .. } = counts;
    let proved = if verify_at.is_none() { written + already_stored } else { 0 };
    let mut reasons: Vec<String> = open(counts).collect();
    if let Some(verify_at) = verify_at {
        let why = "API servers that lag behind may store objects at an old version until then";
        reasons.push(format!("Etch verifies all objects at {verify_at:.0}: {why}"));
    }
    let (removable, kept) = split(crd, &reasons);
    StoredVersionsReport {
        proved,
        elsewhere: 0,
        unknown: objects - proved.min(objects),
        verified: verify_at.is_none(),
        removable,
        kept,
    }
}

/// Whether every object is proved to be stored at the storage version, so that a version could go.
pub fn proves_all(report: &StoredVersionsReport) -> bool {
    report.verified && !report.removable.is_empty()
}

/// Where the objects could not be read.
pub fn unread(crd: &Crd, error: &CallError) -> StoredVersionsReport {
    let why = match error.code() {
        Some(403) => "Etch may not list the objects: see `etch rbac`",
        _ => "Etch could not list the objects",
    };
    let (removable, kept) = split(crd, &[why.to_owned()]);
    StoredVersionsReport { removable, kept, ..StoredVersionsReport::default() }
}

/// The same where the versions that could go were not taken out, for this reason.
#[must_use]
pub fn hindered(report: StoredVersionsReport, why: &str) -> StoredVersionsReport {
    let StoredVersionsReport { removable, mut kept, .. } = report;
    let reasons = vec![why.to_owned()];
    kept.extend(removable.into_iter().map(|name| KeptVersion { name, reasons: reasons.clone() }));
    StoredVersionsReport { removable: Vec::new(), kept, ..report }
}

/// The old versions that could go, and those that stay for these reasons.
fn split(crd: &Crd, reasons: &[String]) -> (Vec<String>, Vec<KeptVersion>) {
    let names = || crd.versions_elsewhere().map(str::to_owned);
    match reasons.is_empty() {
        true => (names().collect(), Vec::new()),
        false => {
            let kept = names().map(|name| KeptVersion { name, reasons: reasons.to_vec() });
            (Vec::new(), kept.collect())
        }
    }
}

/// The objects that no write has proved to be stored at the storage version, by their state.
fn open(counts: Counts) -> impl Iterator<Item = String> {
    let Counts {
        held, rejected, ignored, terminating, too_deep, not_selected, due, unproved, unknown, ..
    } = counts;
    let open = [
        (held, "held"),
        (rejected, "rejected"),
        (ignored, "ignored by annotation"),
        (terminating, "being deleted"),
        (too_deep, "nested too deeply"),
        (not_selected, "not selected by the policy"),
        (due + unproved, "not written"),
        (unknown, "not processed yet"),
    ];
    let open = open.into_iter().filter(|(objects, _)| *objects > 0);
    open.map(|(objects, why)| match objects {
        1 => format!("1 object is {why}"),
        _ => format!("{objects} objects are {why}"),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::crd::sample::{things_document, with_spec};
    use crate::stored_versions::Whereabouts;

    fn crd() -> Crd {
        let mut document = things_document(with_spec(json!({ "size": { "type": "integer", "default": 1 } })));
        document["status"] = json!({ "storedVersions": ["v1beta1", "v1"] });
        Crd::read(&document.into()).expect("a CRD")
    }

    fn kept(report: &StoredVersionsReport) -> Vec<String> {
        let kept = report.kept.iter();
        kept.map(|version| format!("{}: {}", version.name, version.reasons.join("; "))).collect()
    }

    #[test]
    fn a_pass_that_stored_every_object_lets_old_versions_go() {
        let counts = Counts { objects: 5, written: 2, already_stored: 3, ..Counts::default() };
        let report = of_counts(&crd(), counts, None);
        assert_eq!((report.proved, report.unknown, report.verified), (5, 0, true));
        assert_eq!((&report.removable[..], kept(&report)), (&["v1beta1".to_owned()][..], Vec::new()));
    }

    #[test]
    fn each_object_that_was_not_written_keeps_them() {
        let all = Counts { objects: 3, written: 2, ..Counts::default() };
        for (counts, why) in [
            (Counts { held: 1, ..all }, "1 object is held"),
            (Counts { rejected: 1, ..all }, "1 object is rejected"),
            (Counts { ignored: 1, ..all }, "1 object is ignored by annotation"),
            (Counts { terminating: 1, ..all }, "1 object is being deleted"),
            (Counts { too_deep: 1, ..all }, "1 object is nested too deeply"),
            (Counts { due: 1, ..all }, "1 object is not written"),
            (Counts { unproved: 1, ..all }, "1 object is not written"),
            (Counts { unknown: 1, ..all }, "1 object is not processed yet"),
        ] {
            let report = of_counts(&crd(), counts, None);
            assert_eq!((report.proved, report.unknown, report.removable.len()), (2, 1, 0));
            assert_eq!(kept(&report), [format!("v1beta1: {why}")]);
        }
    }

    #[test]
    fn nothing_is_proved_while_servers_may_lag_behind() {
        let counts = Counts { objects: 2, written: 2, ..Counts::default() };
        let report = of_counts(&crd(), counts, "2026-01-01T12:00:00Z".parse().ok());
        assert_eq!((report.proved, report.unknown, report.verified), (0, 2, false));
        assert!(kept(&report)[0].contains("verifies all objects at 2026-01-01T12:00:00Z"), "{report:?}");
    }

    #[test]
    fn reads_let_old_versions_go_only_where_they_prove_every_object() {
        let mut tally = VersionTally::default();
        tally.add(&Whereabouts::Storage);
        let report = of_tally(&crd(), &tally);
        assert_eq!((&report.removable[..], report.verified), (&["v1beta1".to_owned()][..], false));
        tally.add(&Whereabouts::Unknown);
        let report = of_tally(&crd(), &tally);
        assert_eq!((report.proved, report.unknown, report.removable.len()), (1, 1, 0));
        assert_eq!(kept(&report), ["v1beta1: 1 object is not proved to be stored at v1"]);
    }
}
