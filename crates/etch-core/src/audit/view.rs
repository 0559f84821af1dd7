//! What the read view of an object shows of the bytes behind it. An owner's claim is proof only if the caller
//! accepts claims: a claim outlives its field.

use serde_json::Value;

use super::{Missing, State};
use crate::crd::Crd;
use crate::object::Object;
use crate::ownership::{is_covered, owners};
use crate::plan::{Record, Terms, Write, changes_owners, filled_elsewhere};
use kube_structural_schema::path::{Path, Trail};

/// Whether an object is known to need this write. Otherwise only the write shows it: the object may store its
/// defaults already.
pub fn is_due(object: &Object, crd: &Crd, terms: &Terms, record: &Record, write: &Write) -> bool {
    let is_missing = |missing: &Missing| missing.state != State::Unknown;
    changes_owners(object, crd, terms, write) || by_view(object, crd, record, false).iter().any(is_missing)
}

/// The defaults that etcd does not hold or may not hold, in order.
///
/// A value that is a default's is stored for certain only where a write is known to have met it: see
/// [`Record::coverage`], and absent only where no write can have: see [`History`](crate::plan::History),
/// which also knows what creators have given. With `trust_owners`, one that an owner names counts as stored
/// as well.
pub fn by_view(object: &Object, crd: &Crd, record: &Record, trust_owners: bool) -> Vec<Missing> {
    if object.is_too_deep() {
        return vec![Missing::anywhere()];
    }
    let mut missing = Vec::new();
    crd.compiled().gaps(object.json(), &mut |at: &Trail<'_>, _: &Value| {
        missing.push(Missing { path: at.to_path(), state: State::Gap });
    });
    let mut coverage = None;
    let of_unproved = |path: Path| {
        let is_absent = record.history.lacks(object, &path);
        Missing { path, state: if is_absent { State::Phantom } else { State::Unknown } }
    };
    let speaking = owners(object).filter(|owner| crd.names_fields_alike(owner.version()));
    crd.compiled().filled(object.json(), &mut |at: &Trail<'_>, _: &Value| {
        let path = at.to_path();
        let coverage = *coverage.get_or_insert_with(|| record.coverage(object, crd));
        if coverage.of_place(&path).is_some() || record.history.gives(object, &path) {
            return;
        }
        let schema = &crd.storage().schema;
        if !trust_owners || !is_covered(speaking.clone(), object.json(), schema, path.steps()) {
            missing.push(of_unproved(path));
        }
    });
    let coverage = coverage.unwrap_or_else(|| record.coverage(object, crd));
    let elsewhere = filled_elsewhere(object, crd);
    let is_proved = |path: &Path| coverage.of_place(path).is_some();
    let elsewhere = elsewhere.into_iter().filter(|path| !is_proved(path));
    missing.extend(elsewhere.map(of_unproved));
    missing.sort_by(|a, b| a.path.cmp(&b.path));
    missing.dedup_by(|next, missing| missing.path.contains(&next.path));
    if crd.converts_defaults() && !is_proved(&Path::root()) {
        missing.insert(0, Missing::anywhere());
    }
    missing
}
