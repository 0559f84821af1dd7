//! Decides which writes were made under the schema that is served now, by resource versions and by the times
//! that owners leave. Such a time proves only that the object was written then or later.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::object::Object;
use kube_structural_schema::json::Json;

/// After this time every API server serves a changed schema (fact R6), whatever its clock shows: no watch of
/// CRDs lasts longer than ten minutes.
const SERVED_EVERYWHERE: SignedDuration = SignedDuration::from_mins(11);

/// Decides whether an object was last written after every API server served a CRD's present schema.
///
/// Resource versions of one etcd grow with each write in it, whatever the type (fact R11). A witness is an
/// object in that etcd whose owners' times show that it was written late enough: an object with the same or a
/// higher resource version was written no earlier.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// When the CRD's spec was last changed; `None` if nothing shows it.
    changed: Option<Timestamp>,
    /// Later times are those of no write: any client that may write an object may set them.
    now: Timestamp,
    /// The lowest resource version of a witness.
    served_since: Option<u64>,
}

impl Clock {
    /// The clock of a CRD, before any witness is known.
    pub fn of(crd: &Json, now: Timestamp) -> Self {
        Self { changed: schema_time(crd), now, served_since: None }
    }

    /// Records the write time of an object in the same etcd.
    pub fn add_witness(&mut self, witness: Witness) {
        let is_news = self.served_since.is_none_or(|since| witness.revision < since);
        if is_news && self.is_late(Some(witness.written)) {
            self.served_since = Some(witness.revision);
        }
    }

    /// Whether the object's last write was made after every API server served the schema.
    pub fn is_since(&self, object: &Object) -> bool {
        let by_revision = object.revision().zip(self.served_since);
        by_revision.is_some_and(|(revision, since)| revision >= since) || self.is_late(last_written(object))
    }

    /// Whether the object was created after every API server served the schema.
    pub fn is_created_since(&self, object: &Object) -> bool {
        self.is_late(created(object))
    }

    /// Whether API servers may still lag behind, so that no witness counts yet: the time of the last change
    /// is unknown or too recent.
    pub fn may_lag(&self, now: Timestamp) -> bool {
        !self.is_served_everywhere(now)
    }

    fn is_late(&self, time: Option<Timestamp>) -> bool {
        time.is_some_and(|time| time <= self.now && self.is_served_everywhere(time))
    }

    fn is_served_everywhere(&self, time: Timestamp) -> bool {
        self.changed.is_some_and(|changed| time.duration_since(changed) > SERVED_EVERYWHERE)
    }
}

/// A resource version, and a time at which it was made or later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Witness {
    revision: u64,
    written: Timestamp,
}

impl Witness {
    /// The witness that the owners of an object give; `None` if they give no time.
    pub fn of(object: &Object) -> Option<Self> {
        Some(Self { revision: object.revision()?, written: last_written(object)? })
    }
}

/// When a CRD's spec was last changed, by its owners' times; `None` if they do not show it.
fn schema_time(crd: &Json) -> Option<Timestamp> {
    let metadata = crd.get("metadata")?;
    let created = time(metadata.get("creationTimestamp"))?;
    let entries = metadata.get("managedFields")?.as_array()?;
    let mut of_spec = entries.iter().filter(|entry| entry["fieldsV1"].get("f:spec").is_some()).peekable();
    // A spec without an owner may have been changed at any time.
    of_spec.peek()?;
    of_spec.try_fold(created, |latest, entry| Some(latest.max(time(entry.get("time"))?)))
}

/// The latest time at which an object was certainly written; writes that change no owned value leave no
/// trace.
fn last_written(object: &Object) -> Option<Timestamp> {
    let metadata = object.json().get("metadata")?;
    let entries = metadata.get("managedFields").and_then(Value::as_array).into_iter().flatten();
    let times = entries.filter_map(|entry| time(entry.get("time")));
    times.chain(created(object)).max()
}

pub(super) fn created(object: &Object) -> Option<Timestamp> {
    time(object.json().get("metadata")?.get("creationTimestamp"))
}

pub(super) fn time(value: Option<&Value>) -> Option<Timestamp> {
    value?.as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const CHANGED: &str = "2026-01-01T12:00:00Z";
    const NOW: &str = "2026-03-01T12:00:00Z";

    fn crd(entries: Value) -> Json {
        let metadata = json!({ "creationTimestamp": "2025-01-01T00:00:00Z", "managedFields": entries });
        Json::from(json!({ "metadata": metadata }))
    }

    fn clock() -> Clock {
        Clock::of(
            &crd(json!([
                { "manager": "author", "time": CHANGED, "fieldsV1": { "f:spec": { "f:versions": {} } } },
                { "manager": "server", "time": "2027-01-01T00:00:00Z", "fieldsV1": { "f:status": {} } },
            ])),
            NOW.parse().expect("a time"),
        )
    }

    fn written(revision: u64, time: &str) -> Object {
        Object::from(json!({ "metadata": {
            "resourceVersion": revision.to_string(), "creationTimestamp": "2025-06-01T00:00:00Z",
            "managedFields": [{ "manager": "user", "time": time, "fieldsV1": { "f:spec": {} } }],
        } }))
    }

    #[test]
    fn the_time_of_a_schema_is_that_of_the_last_change_of_the_spec() {
        assert_eq!(clock().changed, CHANGED.parse().ok());
        assert_eq!(schema_time(&crd(json!([]))), None, "who says nothing proves nothing");
        let timeless = json!([{ "manager": "author", "fieldsV1": { "f:spec": {} } }]);
        assert_eq!(schema_time(&crd(timeless)), None);
    }

    #[test]
    fn what_is_written_after_a_witness_is_written_late_enough() {
        let mut clock = clock();
        let old = |revision| written(revision, "2025-12-01T00:00:00Z");
        let witness = |revision, time| Witness::of(&written(revision, time)).expect("a witness");
        assert!(!clock.is_since(&old(100)));
        // Too early, however high its resource version is: a server that lags behind may have written what
        // follows.
        clock.add_witness(witness(50, "2026-01-01T12:11:00Z"));
        assert!(!clock.is_since(&old(100)));
        clock.add_witness(witness(90, "2026-01-01T12:11:01Z"));
        clock.add_witness(witness(95, "2026-02-01T00:00:00Z"));
        assert!(clock.is_since(&old(90)) && !clock.is_since(&old(89)));
        // The times of an object's own owners need no witness.
        assert!(clock.is_since(&written(1, "2026-01-01T12:11:01Z")));
    }

    #[test]
    fn a_clock_that_does_not_know_when_the_schema_changed_tells_nothing() {
        let mut clock = Clock::of(&crd(json!([])), NOW.parse().expect("a time"));
        clock.add_witness(Witness::of(&written(1, "2026-02-01T00:00:00Z")).expect("a witness"));
        assert!(clock.may_lag("2026-02-01T00:00:00Z".parse().expect("a time")));
        assert!(!clock.is_since(&written(1, "2026-02-01T00:00:00Z")));
    }

    #[test]
    fn a_time_that_has_not_come_proves_nothing() {
        let mut clock = clock();
        let early = written(5, "2025-12-01T00:00:00Z");
        let forged = written(4, "2026-03-01T12:00:01Z");
        clock.add_witness(Witness::of(&forged).expect("a witness"));
        assert!(!clock.is_since(&early) && !clock.is_since(&forged));
        clock.add_witness(Witness::of(&written(4, NOW)).expect("a witness"));
        assert!(clock.is_since(&early));
    }
}
