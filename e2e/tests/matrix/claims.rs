//! What Etch concludes from an object that it reads: that any write at S stores what it shows, that what is
//! on record covers it.

use anyhow::Result;
use e2e::matrix::{Admission, S};
use etch_core::plan::{Clock, Plan, Record, Terms, decide, last_write_stores};
use kube_structural_schema::json::Json;
use serde_json::json;

use crate::{Differences, each_case, is_stored_elsewhere};

#[test]
fn what_any_write_is_said_to_store_is_in_etcd() -> Result<()> {
    let mut differences = Differences::default();
    each_case(|case| {
        // It claims nothing of bytes at another version.
        let is_plain = case.cell.version == S
            && case.world.admission == Admission::None
            && !is_stored_elsewhere(case.cell);
        let lacks = case.lacks();
        let stores = last_write_stores(&case.object, case.crd, case.crd.creates_drop_status());
        let stores = stores.of_all(&case.object, case.crd).is_some();
        if is_plain && case.outcome.written && !lacks.is_empty() && stores {
            differences.add("last_write_stores", case, &lacks);
        }
    })?;
    differences.none()
}

#[test]
fn what_the_record_covers_is_in_etcd() -> Result<()> {
    let mut differences = Differences::default();
    each_case(|case| {
        let lacks = case.lacks();
        if !case.outcome.written || lacks.is_empty() {
            return;
        }
        for record in case.records() {
            if record.covers(&case.object, case.crd).is_some() {
                differences.add("covers", case, &lacks);
            }
            if record.covers(&case.object, case.since).is_some() {
                differences.add("covers, with no other version served since", case, &lacks);
            }
        }
    })?;
    differences.none()
}

#[test]
fn what_is_decided_to_be_stored_is_in_etcd() -> Result<()> {
    let mut differences = Differences::default();
    each_case(|case| {
        let lacks = case.lacks();
        if !case.outcome.written || lacks.is_empty() {
            return;
        }
        for record in case.records() {
            let plan = decide(&case.object, case.crd, &Terms::default(), &record);
            if matches!(plan, Plan::Stored(_)) {
                differences.add("decide", case, &lacks);
            }
        }
    })?;
    differences.none()
}

#[test]
fn what_an_audit_takes_for_stored_is_in_etcd() -> Result<()> {
    // Long before the requests, and after the objects were made.
    let time = "2025-01-01T00:00:00Z";
    let entry = json!({ "time": time, "fieldsV1": { "f:spec": {} } });
    let crd = json!({ "metadata": { "creationTimestamp": time, "managedFields": [entry] } });
    let record = Record { clock: Clock::of(&Json::from(crd), jiff::Timestamp::now()), ..Record::default() };
    let mut differences = Differences::default();
    each_case(|case| {
        let lacks = case.lacks();
        // What leaves no entry leaves no time.
        let has_trace = case.outcome.after.iter().any(|entry| entry.owner.starts_with("user "));
        if has_trace && !lacks.is_empty() && record.covers(&case.object, case.crd).is_some() {
            differences.add("audit", case, &lacks);
        }
    })?;
    differences.none()
}
