//! The fields that had a default once and have none now, from one report to the next: etcd may hold a stored
//! default there that no owner names. A field stays remembered while the schema knows it without a default:
//! it may go later.

use std::collections::{BTreeMap, BTreeSet};

use crate::api::{self, DefaultPath, DefaultsReportStatus};
use crate::crd::Crd;
use crate::plan::FormerDefault;
use crate::report::schema::{is_about, list};
use kube_structural_schema::json::Json;
use kube_structural_schema::path::{Path, Step};
use kube_structural_schema::prune::keeps;
use serde_json::Value;

/// How many such fields are remembered.
const REMEMBERED: usize = 500;

/// The fields that a report remembers.
pub(super) fn of_status(report: &DefaultsReportStatus) -> Vec<FormerDefault> {
    let read = |former: &api::FormerDefault| {
        Some(FormerDefault {
            path: former.path.parse().ok()?,
            until: former.until.as_ref().and_then(|until| until.parse().ok()),
        })
    };
    report.former_defaults.iter().filter_map(read).collect()
}

/// The former defaults of a CRD by its report, which may still be about the defaults before.
pub fn of_report(report: &DefaultsReportStatus, crd: &Crd) -> Vec<FormerDefault> {
    remembered(report, crd, &list(crd).0, is_about(report, crd))
}

/// Adds what something else knows of former defaults, where it is news.
pub(crate) fn add(known: &mut Vec<FormerDefault>, others: Vec<FormerDefault>) {
    let news = others.into_iter().filter(|other| !known.iter().any(|known| known.path == other.path));
    let news: Vec<FormerDefault> = news.collect();
    known.extend(news);
}

/// The places that have a default by now, or had one.
pub fn places_of(crd: &Crd, former: &[FormerDefault]) -> BTreeSet<Path> {
    let present = list(crd).0;
    former.iter().map(|former| former.path.clone()).chain(present.iter().flat_map(places)).collect()
}

/// The former defaults of a CRD right after an upgrade of which no report shows anything.
pub fn of_upgrade(old: &Crd, new: &Crd) -> Vec<FormerDefault> {
    let (defaults, more_defaults) = list(old);
    let storage_version = old.storage().name.clone();
    let report =
        DefaultsReportStatus { storage_version, defaults, more_defaults, ..DefaultsReportStatus::default() };
    of_report(&report, new)
}

/// The fields as a report lists them.
pub(super) fn listed(former: &[FormerDefault]) -> Vec<api::FormerDefault> {
    let list = |former: &FormerDefault| api::FormerDefault {
        path: former.path.to_string(),
        until: former.until.map(|until| until.to_string()),
    };
    former.iter().map(list).collect()
}

/// The former defaults of a CRD whose defaults are `present`, after the report about those before, or about
/// these very ones; `is_about_these` is which. Since when every API server serves the schema without a field
/// is known only of fields of which the report knows it: a verification finds it out.
pub(super) fn remembered(
    report: &DefaultsReportStatus,
    crd: &Crd,
    present: &[DefaultPath],
    is_about_these: bool,
) -> Vec<FormerDefault> {
    let known = of_status(report).into_iter().map(|former| (former.path.clone(), former));
    let mut all: BTreeMap<Path, FormerDefault> = known.collect();
    // A webhook makes other fields of those of another version.
    if !is_about_these && crd.names_fields_alike(&report.storage_version) {
        for place in report.defaults.iter().flat_map(places) {
            all.insert(place.clone(), FormerDefault::of_any_time(place));
        }
    }
    // The report in between may have been about such a version.
    for past in report.previous.iter().filter(|past| crd.names_fields_alike(&past.storage_version)) {
        for place in past.defaults.iter().flat_map(|past| places_at(&past.path, past.value.as_deref())) {
            all.entry(place.clone()).or_insert_with(|| FormerDefault::of_any_time(place));
        }
    }
    if all.is_empty() {
        return Vec::new();
    }
    for path in present.iter().flat_map(places) {
        all.remove(&path);
    }
    let schema = &crd.storage().schema;
    // A generation that was not seen may have known the field again.
    let is_gapless = crd.generation() <= report.generation + 1;
    for former in all.values_mut() {
        if !is_gapless || keeps(schema, former.path.steps()) {
            former.until = None;
        }
    }
    all.into_values().take(REMEMBERED).collect()
}

/// The place of a default and, where its value has fields, their places: a write stores them all.
fn places(default: &DefaultPath) -> Vec<Path> {
    places_at(&default.path, default.value.as_deref())
}

fn places_at(path: &str, value: Option<&str>) -> Vec<Path> {
    let Ok(path) = path.parse::<Path>() else { return Vec::new() };
    let value = value.and_then(|value| Json::parse(value.as_bytes()).ok());
    let mut places = Vec::new();
    collect(&value.unwrap_or_default(), path, &mut places);
    places
}

fn collect(value: &Value, path: Path, places: &mut Vec<Path>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                collect(value, path.join(Step::Field(name.clone())), places);
            }
        }
        Value::Array(items) => {
            items.iter().for_each(|item| collect(item, path.join(Step::Items), places));
        }
        _ => {}
    }
    places.push(path);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::{DefaultValue, PreviousDefaults};
    use crate::crd::sample::{things_document, with_spec};

    #[test]
    fn a_default_outlives_a_report_about_another_version_that_a_webhook_converts() {
        let mut document = things_document(with_spec(json!({ "size": { "type": "integer" } })));
        document["spec"]["conversion"] = json!({ "strategy": "Webhook" });
        let crd = Crd::read(&document.into()).expect("a CRD");
        let default = DefaultValue { path: ".spec.gone".to_owned(), ..DefaultValue::default() };
        let report_after = |version: &str| DefaultsReportStatus {
            storage_version: "v2".to_owned(),
            previous: vec![PreviousDefaults {
                storage_version: version.to_owned(),
                defaults: vec![default.clone()],
                ..PreviousDefaults::default()
            }],
            ..DefaultsReportStatus::default()
        };
        let found = |version| of_report(&report_after(version), &crd).len();
        assert_eq!((found("v1"), found("v2")), (1, 0));
    }
}
