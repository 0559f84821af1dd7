//! At which version etcd holds an object, as far as a read shows it. `status.storedVersions` is not proof:
//! any client with permission may shorten that list.

use super::clock::created;
use super::places::filled;
use super::record::Coverage;
use super::{Proof, Record, has_gap};
use crate::crd::Crd;
use crate::object::Object;

/// At which version etcd holds an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredAt {
    /// At the storage version.
    Storage,
    /// At another one.
    Another,
    /// Nothing shows it.
    Unknown,
}

/// At which version etcd holds an object that was read at the storage version.
///
/// A write through any version stores the object at the storage version. So an object is stored there if it
/// was last written since every API server serves the present CRD, or since a pass under a storage version
/// that has been the same since; and so is every object of a CRD whose spec has never changed, or that has no
/// other version: the server could not read one stored elsewhere. (One that is older than its CRD is of an
/// earlier CRD of that name.) A pass that asked about an object has it stored there too: the server compares
/// the bytes, which name their version (fact W1). One that lacks a default of the storage version is not
/// stored there (fact R2).
pub fn stored_at(object: &Object, crd: &Crd, record: &Record) -> StoredAt {
    let is_older_than_crd = crd.created().zip(created(object)).is_some_and(|(crd, object)| object < crd);
    let is_first_generation = crd.generation() == 1 && !is_older_than_crd;
    // Of one that is nested too deeply only the metadata were read.
    if !is_first_generation && !object.is_too_deep() && has_gap(object, crd) {
        return StoredAt::Another;
    }
    let is_since_pass = || {
        let both = object.revision().zip(record.through);
        let is_of_pass = !record.storage_changed && !record.servers_lag;
        is_of_pass && both.is_some_and(|(revision, through)| revision > through)
    };
    // A pass that moves no objects asks about those that show defaults, and leaves others alone.
    let is_asked_by = |record: &Record| {
        let is_unchanged = record.of_pass(object, crd) == Coverage::All(Proof::UnchangedSincePass);
        let was_due = || record.asked_each || !record.servers_lag && !filled(object, crd).is_empty();
        !record.storage_changed && is_unchanged && !object.is_too_deep() && was_due()
    };
    let is_asked = || record.passes().any(is_asked_by);
    let has_one_version = crd.versions().len() == 1 && !crd.stored_elsewhere();
    let is_known = is_first_generation || has_one_version || record.all_at_storage_version;
    match is_known || record.clock.is_since(object) || is_since_pass() || is_asked() {
        true => StoredAt::Storage,
        false => StoredAt::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::{Clock, Exceptions, Witness};
    use super::*;
    use kube_structural_schema::json::Json;

    fn document(generation: i64) -> Json {
        let schema = |fields: Value| {
            json!({ "openAPIV3Schema": { "type": "object", "properties": {
                "spec": { "type": "object", "properties": fields },
            } } })
        };
        let old = json!({ "name": "v1beta1", "served": true, "storage": false,
                          "schema": schema(json!({ "size": { "type": "integer" } })) });
        let new = json!({ "name": "v1", "served": true, "storage": true, "schema": schema(json!({
            "size": { "type": "integer" }, "color": { "type": "string", "default": "red" } })) });
        let of_spec = json!({ "time": "2026-01-01T12:00:00Z", "fieldsV1": { "f:spec": {} } });
        json!({
            "metadata": { "name": "tabs.example.com", "generation": generation,
                          "creationTimestamp": "2025-01-01T00:00:00Z", "managedFields": [of_spec] },
            "spec": { "group": "example.com", "names": { "kind": "Tab", "plural": "tabs" },
                      "versions": [old, new] },
            // Shortened by hand.
            "status": { "storedVersions": ["v1"] },
        })
        .into()
    }

    fn object(revision: u64, written: &str, spec: Value) -> Object {
        let owner = json!({ "manager": "user", "time": written, "fieldsV1": { "f:spec": {} } });
        json!({
            "apiVersion": "example.com/v1", "kind": "Tab",
            "metadata": { "name": "a", "uid": "a", "resourceVersion": revision.to_string(),
                          "creationTimestamp": "2025-06-01T00:00:00Z", "managedFields": [owner] },
            "spec": spec,
        })
        .into()
    }

    #[test]
    fn an_object_that_is_older_than_its_crd_is_of_another() {
        let read = object(5, EARLY, json!({ "color": "red" }));
        let mut document = document(1).into_inner();
        for (created, expected) in
            [("2025-01-01T00:00:00Z", StoredAt::Storage), ("2025-07-01T00:00:00Z", StoredAt::Unknown)]
        {
            document["metadata"]["creationTimestamp"] = created.into();
            let crd = Crd::read(&document.clone().into()).expect("a CRD");
            assert_eq!(stored_at(&read, &crd, &Record::default()), expected, "created {created}");
        }
    }

    const EARLY: &str = "2025-12-01T00:00:00Z";
    const LATE: &str = "2026-01-02T00:00:00Z";

    #[test]
    fn an_object_that_can_be_read_is_at_the_only_version() {
        let mut document = document(3).into_inner();
        document["spec"]["versions"].as_array_mut().expect("versions").remove(0);
        let crd = Crd::read(&document.into()).expect("a CRD");
        let read = object(5, EARLY, json!({ "color": "red" }));
        assert_eq!(stored_at(&read, &crd, &Record::default()), StoredAt::Storage);
    }

    #[test]
    fn only_a_late_write_proves_the_storage_version() {
        let document = document(2);
        let crd = Crd::read(&document).expect("a CRD");
        let mut record = Record { clock: Clock::of(&document, jiff::Timestamp::MAX), ..Record::default() };
        let red = || json!({ "color": "red" });
        let at = |record: &Record, object: &Object| stored_at(object, &crd, record);
        assert_eq!(at(&record, &object(5, EARLY, red())), StoredAt::Unknown);
        assert_eq!(at(&record, &object(5, EARLY, json!({ "size": 1 }))), StoredAt::Another);
        assert_eq!(at(&record, &object(5, LATE, red())), StoredAt::Storage);
        record.clock.add_witness(Witness::of(&object(4, LATE, red())).expect("a witness"));
        assert_eq!(at(&record, &object(5, EARLY, red())), StoredAt::Storage, "after something late");
        assert_eq!(at(&record, &object(3, EARLY, red())), StoredAt::Unknown);
    }

    #[test]
    fn what_was_written_since_a_pass_is_at_its_storage_version() {
        let crd = Crd::read(&document(2)).expect("a CRD");
        let record = Record { through: Some(4), ..Record::default() };
        let at = |record: &Record, revision| {
            stored_at(&object(revision, EARLY, json!({ "color": "red" })), &crd, record)
        };
        assert_eq!(at(&record, 5), StoredAt::Storage);
        for doubtful in
            [Record { storage_changed: true, ..record.clone() }, Record { servers_lag: true, ..record }]
        {
            assert_eq!(at(&doubtful, 5), StoredAt::Unknown);
        }
    }

    #[test]
    fn what_a_pass_asked_about_is_at_its_storage_version() {
        let crd = Crd::read(&document(2)).expect("a CRD");
        let record = Record { through: Some(4), ..Record::default() };
        let at = |record: &Record, spec: Value| stored_at(&object(4, EARLY, spec), &crd, record);
        assert_eq!(at(&record, json!({ "color": "red" })), StoredAt::Storage);
        assert_eq!(at(&record, json!({ "color": "blue" })), StoredAt::Unknown, "it shows no default");
        let open = Record { exceptions: Exceptions::from_iter(["a".to_owned()]), ..record.clone() };
        let changed = Record { storage_changed: true, ..record.clone() };
        let asked_too_early = Record { servers_lag: true, ..record.clone() };
        for doubtful in [open, changed, asked_too_early] {
            assert_eq!(at(&doubtful, json!({ "color": "red" })), StoredAt::Unknown);
        }
        let asked = Record { asked_each: true, ..record.clone() };
        assert_eq!(at(&asked, json!({ "color": "blue" })), StoredAt::Storage);
        let open = Record { exceptions: Exceptions::from_iter(["a".to_owned()]), ..asked.clone() };
        assert_eq!(at(&open, json!({ "color": "blue" })), StoredAt::Unknown);
        let beside = Record { beside: Some(asked.clone().into()), ..record.clone() };
        assert_eq!(at(&beside, json!({ "color": "blue" })), StoredAt::Storage, "another pass has asked");
        let lag_since = Record { servers_lag: true, ..asked.clone() };
        assert_eq!(at(&lag_since, json!({ "color": "blue" })), StoredAt::Storage, "it has asked before");
        let all = Record { all_at_storage_version: true, ..Record::default() };
        assert_eq!(at(&all, json!({ "color": "blue" })), StoredAt::Storage);
        assert_eq!(at(&all, json!({ "size": 1 })), StoredAt::Another, "it lacks a default");
    }

    #[test]
    fn a_crd_that_has_never_changed_stores_at_one_version() {
        let crd = Crd::read(&document(1)).expect("a CRD");
        let object = object(5, EARLY, json!({ "color": "red" }));
        assert_eq!(stored_at(&object, &crd, &Record::default()), StoredAt::Storage);
    }
}
