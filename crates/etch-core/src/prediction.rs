//! What the report on a CRD holds, for code that predicts what the operator does: commands, and the guard on
//! upgrades. It counts nothing: nothing has been done.

use std::sync::Arc;

use jiff::Timestamp;

use crate::api::{DefaultsReportStatus, Settings};
use crate::crd::Crd;
use crate::impact::Upgrade;
use crate::object::Object;
use crate::plan::{Change, HiddenEvidence, Record, Shown, changes, past_of, shown_former};
use crate::report::changed_defaults::ChangedDefaults;
use crate::report::checkpoint::on_record;
use crate::report::former_defaults;
use crate::report::state::ReportState;
use kube_structural_schema::json::Json;

/// The changed defaults of a CRD whose old values the operator has still to look for.
#[derive(Debug)]
pub struct PendingChanges {
    changes: ChangedDefaults,
    record: Record,
}

/// Which changes of defaults are due by the last report on a CRD, under the settings of its policy. The
/// report may be about earlier defaults of the CRD.
pub fn pending_changes(report: &DefaultsReportStatus, crd: &Crd, settings: &Settings) -> PendingChanges {
    PendingChanges { changes: changed_defaults(report, crd, settings), record: on_record(report, crd) }
}

fn changed_defaults(report: &DefaultsReportStatus, crd: &Crd, settings: &Settings) -> ChangedDefaults {
    // When it is opened decides nothing about changes.
    let state = ReportState::open(Some(report), crd, settings, "", Timestamp::UNIX_EPOCH);
    let about_this = Some(report).filter(|report| state.is_about(report));
    ChangedDefaults::open(about_this, state.previous(), crd, settings)
}

/// Which defaults have changed since the operator's last pass, for a pass by hand, which follows none of
/// them: it sends their values with its writes.
pub fn changes_by_hand(report: &DefaultsReportStatus, crd: &Crd) -> ChangedDefaults {
    changed_defaults(report, crd, &Settings::default())
}

impl PendingChanges {
    /// The changes that concern an object.
    pub fn of(&self, object: &Object) -> &[Change] {
        self.changes.for_object(object, &self.record)
    }
}

/// What is on record of the objects of a CRD: in its report and, where that does not cover all of them, on
/// the CRD itself; and a clock that has seen nothing yet.
pub fn record_of(
    report: Option<&DefaultsReportStatus>,
    document: &Json,
    crd: &Crd,
    now: Timestamp,
) -> Record {
    let of_report = report.map_or_else(|| Record::empty(crd), |report| on_record(report, crd));
    let Shown { record: on_crd, clock, former, .. } = Shown::by(document, crd, now);
    let mut hidden = HiddenEvidence::clone(&of_report.hidden);
    former_defaults::add(&mut hidden.former, former);
    let all_at_storage_version =
        [Some(&of_report), on_crd.as_ref()].into_iter().flatten().any(|record| record.all_at_storage_version);
    let adds = |on_crd: &Record| !of_report.is_of_all() || on_crd.asked_each && !of_report.asked_each;
    let record = match of_report.through {
        Some(_) => Record { beside: on_crd.filter(adds).map(Arc::new), ..of_report },
        None => on_crd.unwrap_or(of_report),
    };
    Record { clock, hidden: hidden.into(), all_at_storage_version, ..record }
}

/// The part of a record that decides what Etch writes: what is known of fields that no read shows, and not
/// what objects hold. The operator has no clock. Where no report shows that there is one, `etch persist`
/// decides, which has.
pub fn deciding(record: &Record, report: Option<&DefaultsReportStatus>) -> Record {
    match report {
        Some(_) => record.of_hidden(),
        None => Record { clock: record.clock.clone(), ..record.of_hidden() },
    }
}

/// An upgrade under the policy that governs its CRD, if one does. Which defaults have changed is compared
/// with the last report where that is about the CRD as it is, as for the operator. `document` is the CRD as
/// the cluster has it, if it is known.
pub fn upgrade_under_policy<'a>(
    upgrade: Upgrade<'a>,
    settings: Option<&Settings>,
    report: Option<&DefaultsReportStatus>,
    document: Option<&Json>,
) -> Upgrade<'a> {
    let Some(settings) = settings else { return upgrade };
    let (old, new) = upgrade.crds();
    let report = report.filter(|report| report.digest == old.digest());
    let changes = match report {
        Some(report) => pending_changes(report, new, settings).of(&Object::default()).to_vec(),
        None => changes(&past_of(old), new, &settings.follow),
    };
    let mut former = match report {
        Some(report) => former_defaults::of_report(report, new),
        None => former_defaults::of_upgrade(old, new),
    };
    if let Some(document) = document {
        former_defaults::add(&mut former, shown_former(document, new));
    }
    upgrade.under(settings.terms.clone(), changes, former, settings.writes())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use serde_json::{Value, json};

    use super::*;
    use crate::api::Exceptions;
    use crate::crd::sample::{things, things_document, with_spec};
    use crate::plan::{PERSISTED_ANNOTATION, Persisted, still_hidden};

    fn document() -> Value {
        things_document(with_spec(json!({ "size": { "type": "integer", "default": 1 } })))
    }

    /// After a pass of the operator over the objects of one namespace, or of all.
    fn report(crd: &Crd, selects: Option<Value>) -> DefaultsReportStatus {
        DefaultsReportStatus {
            digest: crd.digest(),
            storage_version: "v1".to_owned(),
            generation: 1,
            through: Some("10".to_owned()),
            finished: Some(Time(Timestamp::UNIX_EPOCH)),
            exceptions: Some(Exceptions::default()),
            objects: selects.map(|selects| serde_json::from_value(selects).expect("a selector")),
            ..DefaultsReportStatus::default()
        }
    }

    #[test]
    fn what_a_report_does_not_cover_is_on_record_on_the_crd() {
        let mut document = document();
        let crd = Crd::read(&Json::from(document.clone())).expect("a CRD");
        let team = Some(json!({ "namespaces": ["team"] }));
        let of_report = report(&crd, team);
        let stored = |document: &Value, namespace: &str, revision: u64| {
            let record = record_of(Some(&of_report), &document.clone().into(), &crd, Timestamp::MAX);
            let metadata = json!({
                "name": "a", "namespace": namespace, "uid": "u", "resourceVersion": revision.to_string(),
            });
            let object = Object::from(json!({ "metadata": metadata, "spec": { "size": 1 } }));
            assert!(record.of_nothing().covers(&object, &crd).is_none(), "nothing is on record then");
            record.covers(&object, &crd).is_some()
        };
        assert!(stored(&document, "team", 9) && !stored(&document, "other", 9));
        let persisted = Persisted::new(&crd, 20, None).annotation();
        document["metadata"]["annotations"] = json!({ PERSISTED_ANNOTATION: persisted });
        assert!(stored(&document, "team", 15) && stored(&document, "other", 15));
        // Of what is written later, the report continues to prove its part.
        assert!(stored(&document, "team", 25) && !stored(&document, "other", 25));
    }

    #[test]
    fn what_was_written_long_after_the_schema_hides_nothing_from_persist() {
        let mut document = document();
        let owner = |time: &str, fields: Value| {
            json!([{ "manager": "user", "operation": "Apply", "time": time,
            "apiVersion": "example.com/v1", "fieldsType": "FieldsV1", "fieldsV1": fields }])
        };
        document["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
        document["metadata"]["managedFields"] = owner("2026-01-01T00:00:00Z", json!({ "f:spec": {} }));
        let (before, crd) =
            (things(with_spec(json!({ "old": { "default": 1 } }))), Crd::read(&document.clone().into()));
        let crd = crd.expect("a CRD");
        let persisted = Persisted::new(&before, 20, None).with_places([".spec.old".parse().expect("a path")]);
        document["metadata"]["annotations"] = json!({ PERSISTED_ANNOTATION: persisted.annotation() });
        let object = Object::from(json!({
            "metadata": { "name": "a", "uid": "u", "resourceVersion": "30",
                "managedFields": owner("2026-01-02T00:00:00Z", json!({ "f:spec": { "f:size": {} } })) },
            "spec": { "size": 1 },
        }));
        let hides = |report: Option<&DefaultsReportStatus>| {
            let record = record_of(report, &document.clone().into(), &crd, Timestamp::MAX);
            !still_hidden(&object, &crd, &deciding(&record, report)).is_empty()
        };
        assert!(!hides(None), "as `etch persist` decides");
        assert!(hides(Some(&report(&crd, None))), "as the operator decides");
    }

    #[test]
    fn a_record_is_of_all_objects_where_none_is_left_out_and_no_write_is_in_doubt() {
        let crd = Crd::read(&document().into()).expect("a CRD");
        let is_of_all = |report: &DefaultsReportStatus| on_record(report, &crd).is_of_all();
        let whole = report(&crd, None);
        assert!(is_of_all(&whole));
        assert!(!is_of_all(&report(&crd, Some(json!({ "namespaces": ["team"] })))));
        assert!(!is_of_all(&DefaultsReportStatus {
            verify_at: Some(Time(Timestamp::UNIX_EPOCH)),
            ..whole.clone()
        }));
        assert!(!is_of_all(&DefaultsReportStatus { through: None, ..whole }));
    }

    #[test]
    fn the_operator_holds_for_a_former_default_that_only_a_pass_by_hand_has_recorded() {
        let with = |spec: Value| Crd::read(&things_document(with_spec(spec)).into()).expect("a CRD");
        let old = with(json!({ "old": { "type": "integer" } }));
        let new = with(json!({ "size": { "type": "integer", "default": 1 } }));
        let mut document = things_document(with_spec(json!({ "old": { "type": "integer" } })));
        let object = Object::from(json!({
            "apiVersion": "example.com/v1", "kind": "Thing",
            "metadata": { "name": "a", "uid": "u", "resourceVersion": "30", "managedFields": [] },
            "spec": { "old": 1 },
        }));
        let settings = Settings::default();
        let is_held = |document: &Value| {
            let document = Json::from(document.clone());
            let upgrade = Upgrade::new(&old, &new);
            let upgrade = upgrade_under_policy(upgrade, Some(&settings), None, Some(&document));
            upgrade.object(&object).held.is_some()
        };
        assert!(!is_held(&document), "nobody names the field");
        let persisted = Persisted::new(&old, 20, None).with_places([".spec.old".parse().expect("a path")]);
        document["metadata"]["annotations"] = json!({ PERSISTED_ANNOTATION: persisted.annotation() });
        assert!(is_held(&document));
    }
}
