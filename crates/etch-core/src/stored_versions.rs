//! Which versions could go out of `status.storedVersions`, by where etcd holds the objects of a CRD.
//! A version stays as long as any doubt about it is open.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::crd::Crd;
use crate::object::Object;
use crate::plan::{Record, StoredAt, stored_at};
use kube_structural_schema::json::Json;

/// The version at which etcd holds one object: by its bytes, or by evidence in its view.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Whereabouts {
    /// At the storage version.
    Storage,
    /// At this version, as its bytes show (Proof::Bytes).
    At(String),
    /// At a version that is not the storage version; the view does not show which.
    Another,
    /// Nothing shows it.
    Unknown,
    /// At a version that cannot be read: the value is encrypted, or malformed.
    Unreadable,
}

impl Whereabouts {
    /// By the view of an object, read at the storage version.
    pub fn of_view(object: &Object, crd: &Crd, record: &Record) -> Self {
        match stored_at(object, crd, record) {
            StoredAt::Storage => Self::Storage,
            StoredAt::Another => Self::Another,
            StoredAt::Unknown => Self::Unknown,
        }
    }

    /// By what etcd holds of an object.
    pub fn of_bytes(stored: &Json, crd: &Crd) -> Self {
        let version = stored.get("apiVersion").and_then(Value::as_str).and_then(|text| text.split_once('/'));
        match version {
            Some((group, version)) if group == crd.group() => match version == crd.storage().name {
                true => Self::Storage,
                false => Self::At(version.to_owned()),
            },
            _ => Self::Unreadable,
        }
    }

    /// The word for it in reports, or the name of the version.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Storage => "storage version",
            Self::At(version) => version,
            Self::Another => "another version",
            Self::Unknown => "unknown",
            Self::Unreadable => "unreadable",
        }
    }
}

/// How many objects of a CRD are where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VersionTally {
    /// Objects that are proved to be stored at the storage version.
    pub proved: u64,
    /// Objects at other versions, by name.
    pub at: BTreeMap<String, u64>,
    /// Objects at another version of which the name is not known.
    pub another: u64,
    /// Objects of which nothing shows where they are.
    pub unknown: u64,
    /// Objects whose bytes cannot be read.
    pub unreadable: u64,
}

/// The result for one version that is not the storage version: `status.storedVersions` lists it, or objects
/// are stored at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OldVersion {
    /// Its name.
    pub name: String,
    /// Why it has to stay; empty if it could go.
    pub kept: Vec<String>,
}

/// The outcome of taking versions out of a CRD's `status.storedVersions`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trim {
    /// They are out.
    Done,
    /// The CRD is not the same one, has changed, or no longer lists them.
    Changed,
    /// A StorageVersionMigration of its objects waits or runs.
    Migrated,
}

impl VersionTally {
    /// Counts an object.
    pub fn add(&mut self, whereabouts: &Whereabouts) {
        let count = match whereabouts {
            Whereabouts::Storage => &mut self.proved,
            Whereabouts::At(version) => self.at.entry(version.clone()).or_default(),
            Whereabouts::Another => &mut self.another,
            Whereabouts::Unknown => &mut self.unknown,
            Whereabouts::Unreadable => &mut self.unreadable,
        };
        *count += 1;
    }

    /// All objects.
    pub fn objects(&self) -> u64 {
        self.proved + self.elsewhere() + self.unknown + self.unreadable
    }

    /// Objects that are not at the storage version.
    pub fn elsewhere(&self) -> u64 {
        self.at.values().sum::<u64>() + self.another
    }

    /// Whether every object is proved to be stored at the storage version.
    pub fn is_proved(&self) -> bool {
        self.objects() == self.proved
    }

    /// The result for each version of `status.storedVersions` but the storage version. A `doubt` that is not
    /// about an object, such as a list that was not read to its end, keeps all of them.
    pub fn old_versions(&self, crd: &Crd, doubt: Option<&str>) -> Vec<OldVersion> {
        let storage = &crd.storage().name;
        let of = |name: &str| {
            let at = self.at.get(name).copied().unwrap_or_default();
            let unproved = format!("not proved to be stored at {storage}");
            let counts = [
                (at, format!("stored at {name}")),
                (self.another, format!("stored at another version than {storage}")),
                (self.unknown, unproved),
                (self.unreadable, "unreadable in etcd".to_owned()),
            ];
            let counts = counts.into_iter().filter(|(objects, _)| *objects > 0);
            let kept = counts.map(|(objects, why)| match objects {
                1 => format!("1 object is {why}"),
                _ => format!("{objects} objects are {why}"),
            });
            OldVersion { name: name.to_owned(), kept: kept.chain(doubt.map(str::to_owned)).collect() }
        };
        crd.versions_elsewhere().map(of).collect()
    }

    /// The versions at which objects are stored, but which `status.storedVersions` does not list: the API
    /// server lets a CRD drop such a version, and can then no longer read these objects.
    pub fn unlisted(&self, crd: &Crd) -> Vec<OldVersion> {
        let listed: Vec<&str> = crd.versions_elsewhere().collect();
        let unlisted = self.at.iter().filter(|(name, _)| !listed.contains(&name.as_str()));
        let of = |(name, objects): (&String, &u64)| {
            let are = if *objects == 1 { "1 object is".to_owned() } else { format!("{objects} objects are") };
            let why = format!("{are} stored at {name}, which status.storedVersions does not list");
            OldVersion { name: name.clone(), kept: vec![why] }
        };
        unlisted.map(of).collect()
    }
}

/// The merge patch of the CRD's status that takes these versions out, for the CRD as it was read now; `None`
/// if it is not the same CRD as `crd`, has changed since, or no longer lists them. The API server refuses the
/// patch if the CRD changes in between.
pub fn trim(document: &Json, crd: &Crd, versions: &[String]) -> Option<Json> {
    let metadata = &document["metadata"];
    let is_this = metadata["uid"] == crd.uid()
        && metadata["generation"] == crd.generation()
        && metadata["deletionTimestamp"].is_null();
    let revision = metadata["resourceVersion"].as_str().filter(|revision| is_this && !revision.is_empty())?;
    let listed = document["status"]["storedVersions"].as_array()?;
    let is_trimmed = |name: &&Value| versions.iter().any(|version| **name == version.as_str());
    let kept: Vec<&Value> = listed.iter().filter(|name| !is_trimmed(name)).collect();
    let is_apt = kept.len() < listed.len() && kept.iter().any(|name| **name == crd.storage().name.as_str());
    let metadata = json!({ "uid": crd.uid(), "resourceVersion": revision });
    is_apt.then(|| Json::from(json!({ "metadata": metadata, "status": { "storedVersions": kept } })))
}

/// Whether one of these StorageVersionMigrations is about a CRD's objects and has not ended.
pub fn is_migrated(crd: &Crd, migrations: &Value) -> bool {
    of_crd(crd, migrations).any(|migration| !is_over(migration))
}

/// The name of one of these StorageVersionMigrations that writes a CRD's objects now. One that is only
/// pending may stay so forever: not every cluster runs the controller.
pub fn running_migration(crd: &Crd, migrations: &Value) -> Option<String> {
    let running = of_crd(crd, migrations).find(|migration| !is_over(migration) && has(migration, "Running"));
    running.map(|migration| migration["metadata"]["name"].as_str().unwrap_or_default().to_owned())
}

fn of_crd<'a>(crd: &'a Crd, migrations: &'a Value) -> impl Iterator<Item = &'a Value> {
    let migrations = migrations["items"].as_array().into_iter().flatten();
    migrations.filter(move |migration| {
        let resource = &migration["spec"]["resource"];
        resource["group"] == crd.group() && resource["resource"] == crd.resource().plural.as_str()
    })
}

fn is_over(migration: &Value) -> bool {
    has(migration, "Succeeded") || has(migration, "Failed")
}

/// Whether a condition of a migration is true.
fn has(migration: &Value, condition: &str) -> bool {
    let mut conditions = migration["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|other| other["type"] == condition && other["status"] == "True")
}

/// The names that could go.
pub fn removable(versions: &[OldVersion]) -> impl Iterator<Item = &str> {
    versions.iter().filter(|version| version.kept.is_empty()).map(|version| version.name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crd::sample::{things_document, with_spec};

    /// `things.example.com`, whose storage version is `v1`, with this list.
    fn crd(stored: &[&str]) -> Crd {
        let mut document = things_document(with_spec(json!({ "size": { "type": "integer" } })));
        document["status"] = json!({ "storedVersions": stored });
        Crd::read(&document.into()).expect("a CRD")
    }

    fn tally(all: &[Whereabouts]) -> VersionTally {
        let mut tally = VersionTally::default();
        all.iter().for_each(|whereabouts| tally.add(whereabouts));
        tally
    }

    fn kept(tally: &VersionTally, crd: &Crd, doubt: Option<&str>) -> Vec<String> {
        let all = tally.old_versions(crd, doubt);
        all.iter().map(|version| format!("{}: {}", version.name, version.kept.join("; "))).collect()
    }

    #[test]
    fn a_version_could_go_once_every_object_is_proved_to_be_elsewhere() {
        let crd = crd(&["v1alpha1", "v1beta1", "v1"]);
        let proved = tally(&[Whereabouts::Storage, Whereabouts::Storage]);
        assert_eq!(kept(&proved, &crd, None), ["v1alpha1: ", "v1beta1: "]);
        assert_eq!(removable(&proved.old_versions(&crd, None)).collect::<Vec<_>>(), ["v1alpha1", "v1beta1"]);
        assert!(proved.is_proved() && VersionTally::default().is_proved());
    }

    #[test]
    fn bytes_keep_the_version_that_they_are_in_alone() {
        let crd = crd(&["v1alpha1", "v1beta1", "v1"]);
        let some = tally(&[Whereabouts::Storage, Whereabouts::At("v1beta1".to_owned())]);
        assert_eq!(kept(&some, &crd, None), ["v1alpha1: ", "v1beta1: 1 object is stored at v1beta1"]);
        assert_eq!((some.objects(), some.elsewhere(), some.is_proved()), (2, 1, false));
    }

    #[test]
    fn what_is_open_keeps_every_version() {
        let crd = crd(&["v1beta1", "v1"]);
        for (whereabouts, why) in [
            (Whereabouts::Another, "v1beta1: 2 objects are stored at another version than v1"),
            (Whereabouts::Unknown, "v1beta1: 2 objects are not proved to be stored at v1"),
            (Whereabouts::Unreadable, "v1beta1: 2 objects are unreadable in etcd"),
        ] {
            let open = tally(&[Whereabouts::Storage, whereabouts.clone(), whereabouts]);
            assert_eq!(kept(&open, &crd, None), [why]);
            assert!(!open.is_proved());
        }
        let proved = tally(&[Whereabouts::Storage]);
        assert_eq!(kept(&proved, &crd, Some("not all were read")), ["v1beta1: not all were read"]);
    }

    #[test]
    fn objects_at_a_version_that_is_not_listed_keep_it() {
        let some = tally(&[
            Whereabouts::Storage,
            Whereabouts::At("v1alpha1".to_owned()),
            Whereabouts::At("v1beta1".to_owned()),
            Whereabouts::At("v1beta1".to_owned()),
        ]);
        let unlisted = |stored: &[&str]| {
            let all = some.unlisted(&crd(stored));
            all.iter().map(|version| version.kept.join("; ")).collect::<Vec<_>>()
        };
        let beta = "2 objects are stored at v1beta1, which status.storedVersions does not list";
        let alpha = "1 object is stored at v1alpha1, which status.storedVersions does not list";
        assert_eq!(unlisted(&["v1"]), [alpha, beta]);
        assert_eq!(unlisted(&["v1alpha1", "v1"]), [beta]);
        assert_eq!(unlisted(&["v1alpha1", "v1beta1", "v1"]), [""; 0]);
    }

    #[test]
    fn versions_are_taken_out_of_the_very_crd_that_was_proved() {
        let mut document = things_document(with_spec(json!({ "size": { "type": "integer" } })));
        document["metadata"]["resourceVersion"] = json!("7");
        document["status"] = json!({ "storedVersions": ["v1beta1", "v1"] });
        let crd = Crd::read(&document.clone().into()).expect("a CRD");
        let old = ["v1beta1".to_owned()];
        let metadata = json!({ "uid": "crd", "resourceVersion": "7" });
        let expected = json!({ "metadata": metadata, "status": { "storedVersions": ["v1"] } });
        assert_eq!(trim(&document.clone().into(), &crd, &old), Some(expected.into()));
        for (pointer, other) in [
            ("/metadata/uid", json!("other")),
            ("/metadata/generation", json!(2)),
            ("/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z")),
            ("/metadata/resourceVersion", json!("")),
            ("/status/storedVersions", json!(["v1"])),
            ("/status/storedVersions", json!(["v1beta1"])),
        ] {
            let mut changed = document.clone();
            let (parent, name) = pointer.rsplit_once('/').expect("a pointer");
            changed.pointer_mut(parent).expect("a parent")[name] = other;
            assert_eq!(trim(&changed.into(), &crd, &old), None, "{pointer}");
        }
    }

    #[test]
    fn a_migration_of_these_objects_is_waited_for_until_it_has_ended() {
        let of = |resource: &str, conditions: Value| {
            json!({ "items": [{
                "metadata": { "name": "move" },
                "spec": { "resource": { "group": "example.com", "resource": resource } },
                "status": { "conditions": conditions },
            }] })
        };
        let condition = |kind: &str, status: &str| json!([{ "type": kind, "status": status }]);
        let ended = json!([{ "type": "Running", "status": "True" }, { "type": "Failed", "status": "True" }]);
        for (migrations, is_open, runs) in [
            (Value::Null, false, false),
            (json!({ "items": null }), false, false),
            (of("others", condition("Running", "True")), false, false),
            (of("things", Value::Null), true, false),
            (of("things", condition("Running", "True")), true, true),
            (of("things", condition("Running", "False")), true, false),
            (of("things", condition("Succeeded", "False")), true, false),
            (of("things", condition("Succeeded", "True")), false, false),
            (of("things", ended), false, false),
        ] {
            let running = running_migration(&crd(&[]), &migrations);
            let found = (is_migrated(&crd(&[]), &migrations), running.as_deref());
            assert_eq!(found, (is_open, runs.then_some("move")), "{migrations}");
        }
    }

    #[test]
    fn bytes_name_their_version() {
        let crd = crd(&["v1"]);
        let at = |version: Value| Whereabouts::of_bytes(&json!({ "apiVersion": version }).into(), &crd);
        assert_eq!(at(json!("example.com/v1")), Whereabouts::Storage);
        assert_eq!(at(json!("example.com/v1beta1")), Whereabouts::At("v1beta1".to_owned()));
        for odd in [json!("v1"), json!("other.example.com/v1"), json!(1), Value::Null] {
            assert_eq!(at(odd), Whereabouts::Unreadable);
        }
    }

    #[test]
    fn views_show_it_by_their_evidence_only() {
        let object = Object::from(json!({ "metadata": { "name": "a", "uid": "a", "resourceVersion": "5" } }));
        let first = crd(&["v1"]);
        assert_eq!(Whereabouts::of_view(&object, &first, &Record::default()), Whereabouts::Storage);
        let mut document = things_document(with_spec(json!({ "size": { "type": "integer" } })));
        document["metadata"]["generation"] = json!(2);
        let mut old = document["spec"]["versions"][0].clone();
        (old["name"], old["storage"]) = (json!("v1beta1"), json!(false));
        document["spec"]["versions"].as_array_mut().expect("versions").push(old);
        let second = Crd::read(&document.into()).expect("a CRD");
        assert_eq!(Whereabouts::of_view(&object, &second, &Record::default()), Whereabouts::Unknown);
    }
}
