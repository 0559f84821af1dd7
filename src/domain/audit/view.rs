//! What the read view of an object shows of the bytes behind it.
//! It must not take an owner's claim for proof, unless it is asked to: a claim outlives its field.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::{Missing, State};
use crate::domain::crd::Crd;
use crate::domain::json::Json;
use crate::domain::object::Object;
use crate::domain::ownership::{is_covered, owners};
use crate::domain::path::{Path, Trail};
use crate::domain::plan::{Coverage, Record, filled_elsewhere, last_write_stores};

/// After this time every API server serves a changed schema (fact R6), whatever its clock says: no watch of CRDs lasts longer than ten
/// minutes.
const SERVED_EVERYWHERE: SignedDuration = SignedDuration::from_mins(11);

/// What is known beside the view.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// What Etch has on record.
    pub record: Record,
    /// When the CRD last changed; see [`schema_time`].
    pub schema_time: Option<Timestamp>,
    /// Whether a value that an owner names counts as stored.
    pub trust_owners: bool,
}

/// The defaults that etcd does not hold or may not hold, in order.
///
/// A value that is a default's is stored for certain only where a write is known to have met it: one of Etch's that is on record, which
/// covers no object that is ignored or being deleted; or anybody's after the schema was served, see [`last_write_stores`]. Where a served
/// version has another schema, a later write may have dropped it again (fact W10), and nothing is certain.
pub fn by_view(object: &Object, crd: &Crd, evidence: &Evidence) -> Vec<Missing> {
    let mut missing = Vec::new();
    crd.compiled().gaps(object.json(), &mut |at: &Trail<'_>, _: &Value| {
        missing.push(Missing { path: at.to_path(), state: State::Gap });
    });
    let mut coverage = None;
    let speaking = owners(object).filter(|owner| crd.names_fields_alike(owner.version()));
    crd.compiled().filled(object.json(), &mut |at: &Trail<'_>, _: &Value| {
        let path = at.to_path();
        let coverage = *coverage.get_or_insert_with(|| evidence.coverage(object, crd));
        if coverage.iter().any(|coverage| coverage.of_place(&path).is_some()) {
            return;
        }
        let schema = &crd.storage().schema;
        if !evidence.trust_owners || !is_covered(speaking.clone(), object.json(), schema, path.steps()) {
            missing.push(Missing { path, state: State::Possible });
        }
    });
    let coverage = coverage.unwrap_or_else(|| evidence.coverage(object, crd));
    let elsewhere = filled_elsewhere(object, crd);
    let is_proved = |path: &Path| coverage.iter().any(|coverage| coverage.of_place(path).is_some());
    let elsewhere = elsewhere.into_iter().filter(|path| !is_proved(path));
    missing.extend(elsewhere.map(|path| Missing { path, state: State::Possible }));
    missing.sort_by(|a, b| a.path.cmp(&b.path));
    missing.dedup_by(|next, missing| missing.path.contains(&next.path));
    if missing.is_empty() && crd.converts_defaults() && !is_proved(&Path::root()) {
        missing.push(Missing { path: Path::root(), state: State::Possible });
    }
    missing
}

/// When a CRD's spec was last changed, as its owners tell; none where they do not.
pub fn schema_time(crd: &Json) -> Option<Timestamp> {
    let metadata = crd.get("metadata")?;
    let created = time(metadata.get("creationTimestamp"))?;
    let entries = metadata.get("managedFields")?.as_array()?;
    let mut of_spec = entries.iter().filter(|entry| entry["fieldsV1"].get("f:spec").is_some()).peekable();
    // A spec that nobody owns may have been changed at any time.
    of_spec.peek()?;
    of_spec.try_fold(created, |latest, entry| Some(latest.max(time(entry.get("time"))?)))
}

impl Evidence {
    /// Whether etcd holds whatever default the object shows.
    pub fn proves(&self, object: &Object, crd: &Crd) -> bool {
        self.coverage(object, crd).iter().any(|coverage| coverage.of_all(object, crd).is_some())
    }

    /// Which defaults the record proves to be stored, and which the object's last write.
    fn coverage(&self, object: &Object, crd: &Crd) -> [Coverage; 2] {
        [self.record.coverage(object, crd), self.of_last_write(object, crd)]
    }

    /// Which defaults are stored because somebody has written the object since every API server served the schema.
    fn of_last_write(&self, object: &Object, crd: &Crd) -> Coverage {
        let is_since = |time: Option<Timestamp>| {
            let since = self.schema_time.zip(time);
            since.is_some_and(|(schema, time)| time.duration_since(schema) > SERVED_EVERYWHERE)
        };
        // The last write may be the one that moved the bytes to the storage version.
        let was_at_storage = !crd.has_version_that_may_drop_defaults() || is_since(created(object));
        match is_since(last_written(object)) && was_at_storage && !crd.versions_disagree() {
            true => last_write_stores(object, crd, crd.creates_drop_status()),
            false => Coverage::Nothing,
        }
    }
}

/// When an object was last written for certain; writes that change no owned value leave no trace.
fn last_written(object: &Object) -> Option<Timestamp> {
    let metadata = object.json().get("metadata")?;
    let entries = metadata.get("managedFields").and_then(Value::as_array).into_iter().flatten();
    let times = entries.filter_map(|entry| time(entry.get("time")));
    times.chain(created(object)).max()
}

fn created(object: &Object) -> Option<Timestamp> {
    time(object.json().get("metadata")?.get("creationTimestamp"))
}

fn time(value: Option<&Value>) -> Option<Timestamp> {
    value?.as_str()?.parse().ok()
}
