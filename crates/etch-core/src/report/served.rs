//! What the API server served since the resource version of a report's record: a write is judged by what was
//! served when it was made.

use crate::api::{DefaultsReportStatus, ServedVersion};
use crate::crd::Crd;

/// Stands for all versions that were served at generations that Etch did not see.
const UNKNOWN: &str = "*";

/// The versions that are served now, as a report records them.
pub fn served(crd: &Crd) -> Vec<ServedVersion> {
    let versions = crd.versions().iter().filter(|version| version.served);
    let served = versions.map(|version| ServedVersion {
        name: version.name.clone(),
        may_drop_defaults: version.may_drop_defaults,
        status_subresource: version.status_subresource,
    });
    served.collect()
}

/// The versions that were served since a report, up to now.
///
/// Between its generation and the current one there may have been others. Reports of releases of Etch that
/// did not record what was served count as of a generation that Etch did not see, unless it is the current
/// one.
pub fn served_since(report: &DefaultsReportStatus, crd: &Crd) -> Vec<ServedVersion> {
    let is_unknown = misses_generations(report, crd);
    let unknown =
        ServedVersion { name: UNKNOWN.to_owned(), may_drop_defaults: true, status_subresource: true };
    let mut all = served(crd);
    for version in report.served.iter().chain(is_unknown.then_some(&unknown)) {
        match all.iter_mut().find(|known| known.name == version.name) {
            Some(known) => {
                known.may_drop_defaults |= version.may_drop_defaults;
                known.status_subresource |= version.status_subresource;
            }
            None => all.push(version.clone()),
        }
    }
    all
}

/// Whether the CRD may have had a generation since a report that Etch did not see.
pub fn misses_generations(report: &DefaultsReportStatus, crd: &Crd) -> bool {
    match crd.generation() - report.generation {
        0 => false,
        1 => report.served.is_empty(),
        _ => true,
    }
}

/// Whether a write through one of these versions may have dropped defaults.
pub fn may_drop_defaults(served: &[ServedVersion]) -> bool {
    served.iter().any(|version| version.may_drop_defaults)
}

/// Whether a generation is among these that Etch did not see.
pub fn has_unknown(served: &[ServedVersion]) -> bool {
    served.iter().any(|version| version.name == UNKNOWN)
}

/// Whether a create through one of these versions may have dropped defaults at or below `status`.
pub fn creates_drop_status(served: &[ServedVersion], crd: &Crd) -> bool {
    crd.has_status_default() && served.iter().any(|version| version.status_subresource)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use kube_structural_schema::json::Json;

    /// Generation 7, which serves `v1` alone, or `v1beta1` with another schema beside it.
    fn crd(serves_both: bool) -> Crd {
        let schema = |default| {
            let size = json!({ "type": "object", "properties": { "size": default } });
            json!({ "type": "object", "properties": { "spec": size, "status": size } })
        };
        let version = |name, storage, served, default| {
            json!({ "name": name, "storage": storage, "served": served, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": schema(default) } })
        };
        let document = json!({
            "metadata": { "name": "things.example.com", "uid": "crd", "generation": 7 },
            "spec": { "group": "example.com", "names": { "kind": "Thing", "plural": "things" }, "versions": [
                version("v1beta1", false, serves_both, json!({})), version("v1", true, true, json!({
                    "default": 1,
                })),
            ] },
        });
        Crd::read(&Json::from(document)).expect("a CRD")
    }

    fn report(generation: i64, served: Vec<ServedVersion>) -> DefaultsReportStatus {
        DefaultsReportStatus { generation, served, ..DefaultsReportStatus::default() }
    }

    fn reported(report: &DefaultsReportStatus, crd: &Crd) -> Vec<String> {
        let all = served_since(report, crd);
        all.iter().map(|version| format!("{} {}", version.name, version.may_drop_defaults)).collect()
    }

    #[test]
    fn a_version_that_is_served_no_more_counts_for_what_was_written_while_it_was() {
        let before = report(6, served(&crd(true)));
        assert_eq!(reported(&before, &crd(false)), ["v1 false", "v1beta1 true"]);
        assert!(may_drop_defaults(&served_since(&before, &crd(false))));
        assert!(creates_drop_status(&served_since(&before, &crd(false)), &crd(false)));
    }

    #[test]
    fn a_version_that_has_the_same_schema_by_now_counts_as_it_was() {
        let mut alike = served(&crd(true));
        alike.iter_mut().for_each(|version| version.may_drop_defaults = false);
        assert_eq!(reported(&report(6, alike), &crd(true)), ["v1beta1 true", "v1 false"]);
        let before = report(6, served(&crd(true)));
        assert_eq!(reported(&before, &crd(true)), ["v1beta1 true", "v1 false"]);
    }

    #[test]
    fn generations_that_nobody_saw_and_reports_without_versions_count_as_unknown() {
        assert_eq!(reported(&report(5, served(&crd(false))), &crd(false)), ["v1 false", "* true"]);
        assert_eq!(reported(&report(6, Vec::new()), &crd(false)), ["v1 false", "* true"]);
        // A generation that is higher than the current one is another past.
        assert_eq!(reported(&report(8, served(&crd(false))), &crd(false)), ["v1 false", "* true"]);
        assert_eq!(reported(&report(7, Vec::new()), &crd(false)), ["v1 false"]);
    }
}
