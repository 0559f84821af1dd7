//! What a CRD itself carries of an earlier pass over its objects: an annotation of `etch persist`, and Etch's
//! own condition.

use jiff::Timestamp;
use k8s_openapi::ByteString;
use serde::{Deserialize, Serialize};

use super::{Clock, Exceptions, FormerDefault, Record};
use crate::bloom_filter::BloomFilter;
use crate::condition::{NOT_SELECTED, Reason, present};
use crate::crd::Crd;
use crate::ownership::MANAGER;
use kube_structural_schema::json::Json;
use kube_structural_schema::path::Path;

/// The annotation of a CRD in which `etch persist` leaves what it has proved.
pub const PERSISTED_ANNOTATION: &str = "etch-operator.io/persisted";

/// What a pass over all objects of a CRD has proved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Persisted {
    /// The CRD's uid: an annotation may be copied to another cluster.
    crd_uid: String,
    /// Its generation.
    generation: i64,
    storage_version: String,
    /// The digest of its defaults.
    digest: String,
    /// The resource version up to which every object stores its defaults, except the next.
    through: String,
    /// The uids of objects that were held or rejected, as a Bloom filter.
    #[serde(skip_serializing_if = "Option::is_none")]
    exceptions: Option<ByteString>,
    /// Whether each object but the exceptions was asked about, when every API server served this generation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    asked_each: bool,
    /// The same without any exception.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    every_object: bool,
    /// The places that have a default or had one: as many as fit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    defaults: Vec<String>,
}

/// How many bytes the places of defaults may take: all annotations of an object together have 256 KiB.
const PLACES: usize = 16 * 1024;

impl Persisted {
    /// What a pass has proved up to a resource version.
    pub fn new(crd: &Crd, through: u64, exceptions: Option<ByteString>) -> Self {
        Self {
            crd_uid: crd.uid().to_owned(),
            generation: crd.generation(),
            storage_version: crd.storage().name.clone(),
            digest: crd.digest(),
            through: through.to_string(),
            exceptions,
            asked_each: false,
            every_object: false,
            defaults: Vec::new(),
        }
    }

    /// The same of a pass that has asked about each object when every API server served the CRD, so that etcd
    /// holds each at the storage version but the exceptions; `every_object` where there was none.
    #[must_use]
    pub fn with_each_asked(self, every_object: bool) -> Self {
        Self { asked_each: true, every_object, ..self }
    }

    /// With the places that have a default or had one, each of which etcd may hold when the schema has no
    /// such field any more.
    #[must_use]
    pub fn with_places(self, places: impl IntoIterator<Item = Path>) -> Self {
        let mut room = PLACES;
        let fits = |place: &String| {
            room = room.saturating_sub(place.len() + 3);
            room > 0
        };
        let defaults = places.into_iter().map(|place| place.to_string()).take_while(fits).collect();
        Self { defaults, ..self }
    }

    fn former(&self, crd: &Crd) -> Vec<FormerDefault> {
        let is_this = self.crd_uid == crd.uid() && crd.names_fields_alike(&self.storage_version);
        let places = self.defaults.iter().filter(|_| is_this).filter_map(|place| place.parse().ok());
        places.map(FormerDefault::of_any_time).collect()
    }

    /// The value of the annotation.
    pub fn annotation(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    fn of(document: &Json) -> Option<Self> {
        let value = document.get("metadata")?.get("annotations")?.get(PERSISTED_ANNOTATION)?;
        serde_json::from_str(value.as_str()?).ok()
    }

    fn record(self, crd: &Crd) -> Option<Record> {
        let is_this = self.crd_uid == crd.uid()
            && self.storage_version == crd.storage().name
            && self.digest == crd.digest();
        let exceptions =
            self.exceptions.map(|filter| Exceptions::of_filter(BloomFilter::from_bytes(filter.0)));
        let through = Some(self.through.parse().ok()?);
        is_this.then(|| Record {
            through,
            exceptions: exceptions.unwrap_or_default(),
            storage_changed: self.generation != crd.generation(),
            all_at_storage_version: self.every_object && self.generation == crd.generation(),
            asked_each: self.asked_each,
            ..unproved_since(crd)
        })
    }
}

/// What a CRD itself shows of its objects.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    /// What an earlier pass has recorded there; `None` if that does not hold for the CRD as it is.
    pub record: Option<Record>,
    /// The resource version up to which Etch's own condition proves every object. The next condition takes
    /// that away.
    pub through: Option<u64>,
    /// The places that had a default when it was recorded, or before.
    pub former: Vec<FormerDefault>,
    /// Since when the schema is served, with no witness.
    pub clock: Clock,
}

impl Shown {
    /// What this CRD shows.
    pub fn by(document: &Json, crd: &Crd, now: Timestamp) -> Self {
        let through = proved_by_condition(document, crd);
        let former = shown_former(document, crd);
        let of_annotation = Persisted::of(document).and_then(|persisted| persisted.record(crd));
        let of_condition = || Some(Record { through: Some(through?), ..unproved_since(crd) });
        Self { record: of_annotation.or_else(of_condition), through, former, clock: Clock::of(document, now) }
    }
}

/// The places of which this CRD shows that they had a default once.
pub fn shown_former(document: &Json, crd: &Crd) -> Vec<FormerDefault> {
    Persisted::of(document).map(|persisted| persisted.former(crd)).unwrap_or_default()
}

/// Up to where Etch's condition proves every object: where it is about all of them, and nothing has happened
/// to the CRD since it was set, everything up to the CRD's resource version was processed. What is written
/// through another version may not have been, just before.
fn proved_by_condition(document: &Json, crd: &Crd) -> Option<u64> {
    let condition = present(document).into_iter().find(|condition| {
        (condition.status.as_str(), condition.reason.as_str()) == ("True", Reason::AllPersisted.as_str())
    })?;
    // It does not show which objects it is about otherwise, and the policy may select others by now.
    let is_of_all = !condition.message.contains(NOT_SELECTED);
    // Servers before 1.35 drop it. Without it, nothing shows that the schema has not changed since.
    let is_of_now = condition.observed_generation == Some(crd.generation());
    let metadata = document.get("metadata")?;
    let entries = metadata.get("managedFields")?.as_array()?;
    let time = |entry: &serde_json::Value| entry["time"].as_str().unwrap_or_default().to_owned();
    let wording =
        entries.iter().find(|entry| entry["manager"] == MANAGER && entry["subresource"] == "status")?;
    let is_last = entries.iter().all(|entry| time(entry) <= time(wording));
    let may_lack = crd.versions_disagree() || crd.creates_drop_status();
    let through = metadata.get("resourceVersion")?.as_str()?.parse().ok()?;
    Some(through).filter(|_| is_of_all && is_of_now && is_last && !may_lack)
}

/// A record that proves nothing of later writes: they may have been made through a server that did not serve
/// the schema yet.
fn unproved_since(crd: &Crd) -> Record {
    Record { servers_lag: true, ..Record::empty(crd) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::crd::sample::{things_document, with_spec};

    #[test]
    fn a_condition_proves_nothing_of_a_generation_that_it_does_not_name() {
        for (observed, expected) in [(json!(2), Some(7)), (json!(1), None), (json!(null), None)] {
            let mut document =
                things_document(with_spec(json!({ "size": { "type": "integer", "default": 1 } })));
            let entry = |manager: &str, subresource: &str, second: u8, fields: &str| {
                json!({ "manager": manager, "subresource": subresource, "fieldsV1": { fields: {} },
                        "time": format!("2026-01-01T00:00:0{second}Z") })
            };
            document["metadata"]["generation"] = json!(2);
            document["metadata"]["resourceVersion"] = json!("7");
            document["metadata"]["managedFields"] =
                json!([entry("user", "", 1, "f:spec"), entry(MANAGER, "status", 2, "f:status")]);
            document["status"]["conditions"] = json!([{
                "type": "DefaultsPersisted", "status": "True", "reason": "AllPersisted", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:02Z", "observedGeneration": observed,
            }]);
            let document = Json::from(document);
            let crd = Crd::read(&document).expect("a CRD");
            assert_eq!(Shown::by(&document, &crd, Timestamp::UNIX_EPOCH).through, expected, "{observed}");
        }
    }
}
