//! Whether a pass for the defaults before proves those of the present schema as well: after a rollback all of them
//! are among those before, and nothing has to be written again. A write would destroy the fields that only the
//! schema before had.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::Value;

use crate::api::{DefaultValue, DefaultsReportStatus, PreviousDefaults, ServedVersion};
use crate::crd::Crd;
use crate::report::served::served_since;
use crate::report::state::{list, past};
use kube_structural_schema::json::{Json, same};

/// The pass for the defaults before those of the CRD, if it proves these as well, with what was served since. No
/// pass for these is on record in the report, which may be about them or still about those before.
pub(super) fn carried(
    report: &DefaultsReportStatus,
    crd: &Crd,
) -> Option<(PreviousDefaults, Vec<ServedVersion>)> {
    let is_about_these = (&report.digest, &report.storage_version) == (&crd.digest(), &crd.storage().name);
    let before = match is_about_these {
        true => report.previous.first().cloned(),
        false => Some(past(report)),
    };
    let before = before.filter(|before| has_all(before, crd))?;
    let served = served_since(report, crd).into_iter().chain(before.served.iter().cloned()).collect();
    Some((before, served))
}

/// Whether what is stored under one state of a CRD has all defaults of another.
pub(crate) fn has_all_of(old: &Crd, new: &Crd) -> bool {
    let (defaults, more_defaults) = list(old);
    let report = DefaultsReportStatus {
        storage_version: old.storage().name.clone(),
        through: Some(String::new()),
        finished: Some(Time(Timestamp::UNIX_EPOCH)),
        defaults,
        more_defaults,
        ..DefaultsReportStatus::default()
    };
    has_all(&past(&report), new)
}

/// Whether every server served these earlier defaults when they went, and what they store has all of the CRD's.
pub(super) fn stores_all(past: &PreviousDefaults, crd: &Crd) -> bool {
    past.verify_at.is_none() && has_all(past, crd)
}

/// Whether a pass has stored these earlier defaults, and the CRD's are among them: then an object that holds
/// the ones holds the others, whatever it was given since.
fn has_all(past: &PreviousDefaults, crd: &Crd) -> bool {
    if past.through.is_none() || past.more_defaults > 0 || past.storage_version != crd.storage().name {
        return false;
    }
    let earlier: BTreeMap<&str, &DefaultValue> =
        past.defaults.iter().map(|default| (default.path.as_str(), default)).collect();
    let (present, more) = list(crd);
    let is_among = |path: &str, value: &Option<String>, is_nullable: bool| {
        let Some(before) = earlier.get(path) else { return false };
        // Where the field could be null, etcd may hold a null, which such a default replaces.
        (!before.nullable || is_nullable) && is_part(value, &before.value)
    };
    let has_defaults = crd.compiled().has_defaults();
    has_defaults
        && more == 0
        && present.iter().all(|default| is_among(&default.path, &default.value, default.nullable))
}

/// Whether a default gives what another one gave, or a part of it. A changed value may have to be followed.
fn is_part(value: &Option<String>, before: &Option<String>) -> bool {
    let parse = |value: &Option<String>| Json::parse(value.as_ref()?.as_bytes()).ok();
    parse(value).zip(parse(before)).is_some_and(|(value, before)| within(&value, &before))
}

fn within(value: &Value, before: &Value) -> bool {
    match (value, before) {
        (Value::Object(fields), Value::Object(before)) => {
            fields.iter().all(|(name, value)| before.get(name).is_some_and(|before| within(value, before)))
        }
        (Value::Array(items), Value::Array(before)) => {
            items.len() == before.len() && items.iter().zip(before).all(|(item, before)| within(item, before))
        }
        _ => same(value, before),
    }
}
