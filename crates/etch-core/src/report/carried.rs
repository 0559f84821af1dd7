//! Whether a pass for the defaults before proves those of the present schema as well: after a rollback all of
//! them are among those before, and nothing has to be written again. A write would destroy the fields that
//! only the schema before had.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::api::{DefaultPath, DefaultValue, DefaultsReportStatus, PreviousDefaults, ServedVersion};
use crate::crd::Crd;
use crate::report::schema::{is_about, list, past};
use crate::report::served::served_since;
use kube_structural_schema::json::{Json, same};

/// The last pass that proves the defaults of the CRD as well as its own, with what was served since: the
/// schemas that came after it have all of them. No pass for these is on record in the report, which may be
/// about them or still about those before.
pub(super) fn carried(
    report: &DefaultsReportStatus,
    crd: &Crd,
) -> Option<(PreviousDefaults, Vec<ServedVersion>)> {
    let present = Present::of(crd)?;
    let mut served = served_since(report, crd);
    let latest = (!is_about(report, crd)).then(|| past(report));
    for earlier in latest.iter().chain(&report.previous).take_while(|earlier| present.are_among(earlier)) {
        served.extend(earlier.served.iter().cloned());
        if proves(earlier) {
            return Some((earlier.clone(), served));
        }
    }
    None
}

/// Whether an earlier pass proves anything now: one that was not verified may have read objects from a server
/// that lagged behind and showed no default to ask about.
pub(super) fn proves(earlier: &PreviousDefaults) -> bool {
    earlier.through.is_some() && earlier.verify_at.is_none()
}

/// Whether nothing that a server stores which lags behind lacks a default: each schema that one may still
/// serve has all of the CRD's. They are the earlier ones, newest first, up to one that every server served.
///
/// A create stores no default at or below `status` (fact D11), and such a server shows an earlier one there,
/// which hides that.
pub(super) fn is_lag_harmless(previous: &[PreviousDefaults], crd: &Crd) -> bool {
    if crd.has_status_default() {
        return false;
    }
    let served_by_all = previous.iter().position(|past| past.verify_at.is_none());
    Present::of(crd)
        .zip(served_by_all)
        .is_some_and(|(present, last)| previous[..=last].iter().all(|past| present.are_among(past)))
}

/// Whether what is stored under one state of a CRD has all defaults of another.
pub(crate) fn has_all_of(old: &Crd, new: &Crd) -> bool {
    let (defaults, more_defaults) = list(old);
    let report = DefaultsReportStatus {
        storage_version: old.storage().name.clone(),
        defaults,
        more_defaults,
        ..DefaultsReportStatus::default()
    };
    Present::of(new).is_some_and(|present| present.are_among(&past(&report)))
}

/// The defaults of a CRD that are looked for among earlier ones.
struct Present<'c> {
    storage_version: &'c str,
    defaults: Vec<DefaultPath>,
}

impl<'c> Present<'c> {
    /// `None` if the CRD has no defaults, or more than a report lists.
    fn of(crd: &'c Crd) -> Option<Self> {
        let (defaults, more) = list(crd);
        let are_all = more == 0 && crd.compiled().has_defaults();
        are_all.then(|| Self { storage_version: &crd.storage().name, defaults })
    }

    /// Whether these are among the earlier ones: then an object that holds the ones holds the others.
    fn are_among(&self, past: &PreviousDefaults) -> bool {
        if past.more_defaults > 0 || past.storage_version != self.storage_version {
            return false;
        }
        let earlier: BTreeMap<&str, &DefaultValue> =
            past.defaults.iter().map(|default| (default.path.as_str(), default)).collect();
        self.defaults.iter().all(|default| {
            let Some(before) = earlier.get(default.path.as_str()) else { return false };
            // Where the field could be null, etcd may hold a null, which such a default replaces.
            (!before.nullable || default.nullable) && is_part(&default.value, &before.value)
        })
    }
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
