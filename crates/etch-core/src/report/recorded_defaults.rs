//! Which defaults the report on a CRD shows that passes have stored, and in which objects. A pass counts only
//! if it is known to have processed every object.

use std::collections::BTreeMap;

use crate::api::{DefaultsReportStatus, PreviousDefaults};
use crate::crd::Crd;
use crate::plan::{Exceptions, RecordedDefault, StoredDefault};
use crate::report::checkpoint::excepted;
use crate::report::schema::past;
use kube_structural_schema::json::Json;
use kube_structural_schema::path::Path;

/// The defaults that a report knows, in the order of their paths, and how many more there are than it lists.
///
/// A pass counts if the report names every object that it has not processed. Where a webhook converts, what
/// was stored at another version proves nothing about the fields of this one.
pub fn recorded_defaults(report: &DefaultsReportStatus, crd: &Crd) -> (Vec<RecordedDefault>, u64) {
    let latest = (!report.digest.is_empty()).then(|| past(report));
    let mut found: BTreeMap<Path, RecordedDefault> = BTreeMap::new();
    let mut more = 0;
    for schema in latest.iter().chain(&report.previous) {
        more = more.max(schema.more_defaults);
        let pass = Pass::of(schema).filter(|_| crd.names_fields_alike(&schema.storage_version));
        for default in &schema.defaults {
            let Ok(path) = default.path.parse::<Path>() else { continue };
            let known = found.entry(path.clone()).or_insert_with(|| RecordedDefault {
                path,
                stored: Vec::new(),
                is_too_long: false,
            });
            let Some(pass) = &pass else { continue };
            match default.value.as_ref().and_then(|value| Json::parse(value.as_bytes()).ok()) {
                Some(value) => known.stored.push(pass.stored(value)),
                None => known.is_too_long = true,
            }
        }
    }
    (found.into_values().collect(), more)
}

/// A pass that has processed every object but its exceptions.
struct Pass {
    through: u64,
    finished: jiff::Timestamp,
    exceptions: Exceptions,
}

impl Pass {
    fn of(schema: &PreviousDefaults) -> Option<Self> {
        Some(Self {
            through: schema.through.as_ref()?.parse().ok()?,
            finished: schema.finished.as_ref()?.0,
            exceptions: excepted(schema),
        })
    }

    fn stored(&self, value: Json) -> StoredDefault {
        StoredDefault {
            value,
            through: self.through,
            finished: self.finished,
            exceptions: self.exceptions.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use serde_json::json;

    use super::*;
    use crate::api::{Counts, DefaultPath, DefaultValue, Exceptions, ObjectProblem};
    use crate::bloom_filter::{BloomFilter, hash};
    use crate::crd::sample::{things, with_spec};

    fn schema(digest: &str, value: Option<&str>, through: Option<&str>) -> PreviousDefaults {
        PreviousDefaults {
            digest: digest.to_owned(),
            storage_version: "v1".to_owned(),
            finished: Some(Time(jiff::Timestamp::UNIX_EPOCH)),
            through: through.map(str::to_owned),
            exceptions: vec!["held".to_owned()],
            defaults: vec![DefaultValue {
                path: ".spec.size".to_owned(),
                value: value.map(str::to_owned),
                nullable: false,
            }],
            more_defaults: 2,
            ..PreviousDefaults::default()
        }
    }

    fn of(previous: Vec<PreviousDefaults>) -> Vec<RecordedDefault> {
        let crd = things(with_spec(json!({ "size": { "type": "integer" } })));
        let report = DefaultsReportStatus { previous, ..DefaultsReportStatus::default() };
        let (defaults, more) = recorded_defaults(&report, &crd);
        assert_eq!(more, 2);
        defaults
    }

    #[test]
    fn what_complete_passes_stored_is_known_with_its_exceptions() {
        let found = of(vec![schema("b", Some("5"), Some("9")), schema("a", Some("3"), Some("4"))]);
        let [size] = &found[..] else { panic!("{found:?}") };
        let stored: Vec<_> =
            size.stored.iter().map(|stored| (stored.value.to_string(), stored.through)).collect();
        assert_eq!(stored, [("5".to_owned(), 9), ("3".to_owned(), 4)]);
        assert!(size.stored[0].exceptions.contains("held"));
    }

    #[test]
    fn a_pass_that_was_not_complete_stored_nothing_that_is_known() {
        let found = of(vec![schema("b", Some("5"), None)]);
        assert_eq!((found.len(), found[0].stored.len(), found[0].is_too_long), (1, 0, false));
        let found = of(vec![schema("b", None, Some("9"))]);
        assert_eq!((found[0].stored.len(), found[0].is_too_long), (0, true));
    }

    #[test]
    fn the_report_itself_counts_before_the_operator_has_seen_the_rollback() {
        let crd = things(with_spec(json!({ "size": { "type": "integer" } })));
        let default = DefaultPath {
            path: ".spec.size".to_owned(),
            value: Some("3".to_owned()),
            ..DefaultPath::default()
        };
        let mut report = DefaultsReportStatus {
            digest: "b".to_owned(),
            storage_version: "v1".to_owned(),
            finished: Some(Time(jiff::Timestamp::UNIX_EPOCH)),
            through: Some("7".to_owned()),
            defaults: vec![default],
            ..DefaultsReportStatus::default()
        };
        let stored = |report: &DefaultsReportStatus| recorded_defaults(report, &crd).0[0].stored.len();
        assert_eq!(stored(&report), 1);
        // Audit writes nothing.
        report.counts = Counts { due: 1, ..Counts::default() };
        assert_eq!(stored(&report), 0);
        // What it leaves open is no part of what an earlier pass has stored.
        let uids = ByteString(BloomFilter::of([hash("open")].into_iter(), 1024).into_bytes());
        report.exceptions = Some(Exceptions { uids, ..Exceptions::default() });
        let recorded = &recorded_defaults(&report, &crd).0[0].stored;
        assert!(recorded[0].exceptions.contains("open") && !recorded[0].exceptions.contains("other"));
        report.exceptions = None;
        // More objects are held than the report names.
        report.counts = Counts { held: 2, ..Counts::default() };
        report.held = vec![ObjectProblem::default()];
        assert_eq!(stored(&report), 0);
    }
}
