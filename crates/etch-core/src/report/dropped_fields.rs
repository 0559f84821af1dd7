//! Fields that the schema no longer knows and that writes have dropped under `hiddenFields: Drop`. No value
//! of an object may appear here, and a field that only managedFields name does not count as held in etcd.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::api::{ClearedObject, DefaultsReportStatus, DroppedField};
use crate::condition::list;
use crate::crd::Crd;
use crate::object::Identity;
use crate::plan::Cleared;
use crate::words::counted;
use kube_structural_schema::path::Path;
use kube_structural_schema::prune::keeps;

/// How many objects are remembered that no longer hold any of these fields.
const CLEARED: usize = 500;
/// How many fields the report names.
const LISTED: usize = 50;

/// What was dropped so far, and which objects are known to be without it.
#[derive(Clone, Debug, Default)]
pub struct DroppedFields {
    objects: u64,
    /// In how many objects a field was dropped, by its place in the schema.
    places: BTreeMap<String, u64>,
    /// Places in the schema: a write leaves nothing at any of them.
    cleared: BTreeMap<Identity, BTreeSet<Path>>,
    /// Hashes of the uids of objects that are counted, and of each field: there may be more than are
    /// remembered by name.
    counted: BTreeSet<u64>,
    /// In how many objects a field was dropped against the policy since Etch started, by its place in the
    /// schema.
    lost: BTreeMap<String, u64>,
}

impl DroppedFields {
    /// Reads a report.
    ///
    /// A field that was dropped cannot come back while no version of the CRD knows it. If Etch has missed a
    /// generation of the CRD, it may have come back.
    pub fn open(report: Option<&DefaultsReportStatus>, crd: &Crd) -> Self {
        let Some(report) = report else { return Self::default() };
        let is_gapless = crd.generation() <= report.generation + 1;
        let still_unknown =
            |path: &Path| !crd.versions().iter().any(|version| keeps(&version.schema, path.steps()));
        let cleared = report.cleared.iter().filter(|_| is_gapless).filter_map(|object| {
            let paths = object.paths.iter().filter_map(|path| path.parse().ok()).filter(still_unknown);
            let paths: BTreeSet<Path> = paths.collect();
            let ClearedObject { namespace, name, uid, .. } = object.clone();
            (!paths.is_empty()).then_some((Identity { namespace, name, uid }, paths))
        });
        Self {
            objects: report.counts.dropped,
            places: report.dropped.iter().map(|field| (field.path.clone(), field.objects)).collect(),
            cleared: cleared.collect(),
            counted: BTreeSet::new(),
            lost: BTreeMap::new(),
        }
    }

    /// Which objects are known to be without which of these fields.
    pub fn cleared(&self) -> Cleared {
        self.cleared.iter().map(|(identity, paths)| (identity.uid.clone(), paths.clone())).collect()
    }

    /// Which of these fields an object is known to be without.
    pub fn cleared_of(&self, identity: &Identity) -> BTreeSet<Path> {
        self.cleared.get(identity).cloned().unwrap_or_default()
    }

    /// Forgets which objects are without which fields: etcd may hold an earlier state of them.
    pub fn forget_cleared(&mut self) {
        self.cleared.clear();
    }

    /// Records that a write has left an object without these fields. `dropped` is whether the object was
    /// changed: then etcd may have held them until then.
    pub fn clear(&mut self, identity: &Identity, paths: &[Path], dropped: bool) {
        if paths.is_empty() {
            return;
        }
        if dropped {
            let places: BTreeSet<String> = paths.iter().map(|path| path.to_schema().to_string()).collect();
            self.count(identity, &places);
        }
        if self.cleared.len() < CLEARED || self.cleared.contains_key(identity) {
            self.cleared.entry(identity.clone()).or_default().extend(paths.iter().map(Path::to_schema));
        }
    }

    /// Records that a write has dropped these fields of an object, which the policy does not allow. Whether
    /// etcd holds them is not concluded from it: another server may know them still.
    pub fn lose(&mut self, identity: &Identity, paths: &[Path]) {
        let places: BTreeSet<String> = paths.iter().map(|path| path.to_schema().to_string()).collect();
        self.count(identity, &places);
        for place in places {
            *self.lost.entry(place).or_default() += 1;
        }
    }

    /// The fields that were dropped against the policy, as a sentence; `None` if there are none.
    pub fn lost(&self) -> Option<String> {
        let places =
            self.lost.iter().map(|(place, objects)| format!("{place} ({})", counted(*objects, "object")));
        let places: Vec<String> = places.collect();
        (!places.is_empty())
            .then(|| list(&places, "writes dropped fields, by a change of the CRD or by admission"))
    }

    /// Puts it all into a report.
    pub fn add_to_report(&self, status: &mut DefaultsReportStatus) {
        status.counts.dropped = self.objects;
        let places = self.places.iter().take(LISTED);
        status.dropped =
            places.map(|(path, objects)| DroppedField { path: path.clone(), objects: *objects }).collect();
        let cleared = self.cleared.iter().map(|(identity, paths)| ClearedObject {
            namespace: identity.namespace.clone(),
            name: identity.name.clone(),
            uid: identity.uid.clone(),
            paths: paths.iter().map(Path::to_string).collect(),
        });
        status.cleared = cleared.collect();
    }

    /// Counts an object that was written without the fields at these places, once.
    fn count(&mut self, identity: &Identity, places: &BTreeSet<String>) {
        self.objects += u64::from(self.counted.insert(hash(identity, "")));
        for place in places {
            let is_first = self.counted.insert(hash(identity, place));
            *self.places.entry(place.clone()).or_default() += u64::from(is_first);
        }
    }
}

fn hash(identity: &Identity, place: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&identity.uid, place).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::crd::sample::{things_document, with_spec};
    use kube_structural_schema::path::Step;

    fn crd(generation: i64, fields: &[&str]) -> Crd {
        let fields: serde_json::Map<_, _> =
            fields.iter().map(|name| ((*name).to_owned(), json!({ "type": "string" }))).collect();
        let mut document = things_document(with_spec(fields.into()));
        document["metadata"]["generation"] = generation.into();
        Crd::read(&document.into()).expect("a CRD")
    }

    fn of(name: &str) -> Identity {
        Identity { namespace: None, name: name.to_owned(), uid: name.to_owned() }
    }

    fn path(text: &str) -> Path {
        text.parse().expect("a path")
    }

    fn in_port(index: usize) -> Path {
        path(".spec.ports").join(Step::Index(index)).join(Step::Field("old".to_owned()))
    }

    fn report(dropped: &DroppedFields, generation: i64) -> DefaultsReportStatus {
        let mut status = DefaultsReportStatus { generation, ..DefaultsReportStatus::default() };
        dropped.add_to_report(&mut status);
        status
    }

    #[test]
    fn what_was_dropped_is_counted_by_place_and_what_was_not_there_is_known_to_be_gone_too() {
        let mut dropped = DroppedFields::open(None, &crd(1, &[]));
        dropped.clear(&of("a"), &[path(".spec.legacy"), in_port(0), in_port(1)], true);
        dropped.clear(&of("b"), &[path(".spec.legacy")], true);
        dropped.clear(&of("c"), &[path(".spec.legacy")], false);
        dropped.clear(&of("d"), &[], true);
        let status = report(&dropped, 1);
        let places: Vec<_> =
            status.dropped.iter().map(|field| (field.path.as_str(), field.objects)).collect();
        assert_eq!((status.counts.dropped, places), (2, vec![(".spec.legacy", 2), (".spec.ports[].old", 1)]));
        let names: Vec<_> = status.cleared.iter().map(|object| object.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c"]);
        assert!(dropped.cleared_of(&of("a")).contains(&in_port(2).to_schema()));
        assert_eq!(dropped.cleared_of(&of("c")), BTreeSet::from([path(".spec.legacy")]));
    }

    #[test]
    fn what_was_dropped_against_the_policy_is_counted_and_not_taken_for_gone() {
        let mut dropped = DroppedFields::default();
        dropped.lose(&of("a"), &[path(".spec.legacy")]);
        dropped.lose(&of("b"), &[path(".spec.legacy")]);
        let status = report(&dropped, 1);
        assert_eq!((status.counts.dropped, status.dropped[0].objects, status.cleared.len()), (2, 2, 0));
        let lost = "writes dropped fields, by a change of the CRD or by admission: .spec.legacy (2 objects)";
        assert_eq!(dropped.lost().as_deref(), Some(lost));
    }

    #[test]
    fn what_was_dropped_stays_known_while_no_schema_could_bring_it_back() {
        let mut dropped = DroppedFields::default();
        dropped.clear(&of("a"), &[path(".spec.legacy")], true);
        let status = report(&dropped, 3);
        let known = |crd: &Crd| DroppedFields::open(Some(&status), crd).cleared().contains_key("a");
        assert!(known(&crd(3, &["name"])) && known(&crd(4, &["name"])));
        assert!(!known(&crd(5, &["name"])), "nobody has seen generation 4");
        assert!(!known(&crd(4, &["name", "legacy"])), "it may be set again");
        let counted = report(&DroppedFields::open(Some(&status), &crd(5, &[])), 5);
        assert_eq!((counted.counts.dropped, counted.dropped), (1, status.dropped.clone()));
    }
}
