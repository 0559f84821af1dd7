//! Rewriting the owners of an object: at the storage version, with the entries of one manager united, and
//! without Etch's own. Each owner keeps its fields, except names that mean nothing at any version.

use std::collections::{BTreeSet, HashMap};

use serde_json::{Map, Value, json};

use super::misfit::misfits;
use super::undeclared::unknown_owned;
use super::{Ownership, Terms};
use crate::crd::Crd;
use crate::object::Object;
use crate::ownership::{MANAGER, Owner, others, owners, unite};
use kube_structural_schema::json::Json;
use kube_structural_schema::path::{Path, Trail};
use kube_structural_schema::prune::{Field, Pruner, keeps};
use kube_structural_schema::schema::Schema;

/// Whether the object needs a rewrite because of an owner's version. That version is gone, or does not know
/// one of the missing defaults: the server would not store the default, and then refuse every apply (facts
/// W6, W18). Or that version has another type for a value that is there: the server cannot convert the object
/// to the owner's version, and refuses every apply.
///
/// Where a webhook converts, an owner's version may know the default by another name, or not know it: the
/// server asks the webhook for an object at the owner's version.
pub(super) fn is_needed<'a>(
    object: &Object,
    crd: &Crd,
    missing: impl Iterator<Item = &'a Path> + Clone,
) -> bool {
    let versions: BTreeSet<&str> = owners(object).map(|owner| owner.version()).collect();
    versions.into_iter().filter(|version| *version != crd.storage().name).any(|version| {
        let Some(version) = crd.version(version) else { return true };
        crd.names_fields_alike(&version.name)
            && (missing.clone().any(|path| !keeps(&version.schema, path.steps()))
                || !misfits(object.json(), &version.schema).is_empty())
    })
}

/// Whether an owner has a version that is no longer served. Once the CRD lacks that version the server
/// refuses every apply to the object (fact W18), and no owner can write at that version to leave it.
pub(super) fn is_outdated(object: &Object, crd: &Crd) -> bool {
    owners(object).any(|owner| crd.version(owner.version()).is_none_or(|version| !version.served))
}

/// The fields that appliers at other versions name there, and of which the storage version has none: a
/// conversion webhook may give them another name, and which one is not known. A rewrite would take them from
/// their owners, who could not remove them any more by an apply, and would get no conflict.
///
/// An owner at a version that the CRD no longer has can write there no more, and nothing converts from it.
/// The entry of an update stays at its version whatever its manager writes later, so waiting for that would
/// have no end.
pub fn renamed(object: &Object, crd: &Crd) -> Vec<Path> {
    let mut found = BTreeSet::new();
    let is_applier =
        |owner: &Owner<'_>| owner.operation == "Apply" && !crd.names_fields_alike(owner.version());
    for owner in others(object).filter(is_applier) {
        if let Some(version) = crd.version(owner.version()) {
            let mut unknown = BTreeSet::new();
            unknown_owned(owner.fields, Pruner::root(&crd.storage().schema), &Trail::ROOT, &mut unknown);
            found.extend(unknown.into_iter().filter(|path| keeps(&version.schema, path.steps())));
        }
    }
    found.into_iter().collect()
}

/// A merge patch that replaces the owners, on the very object that was read.
pub(super) fn body(object: &Object, crd: &Crd, terms: &Terms) -> Json {
    let storage = crd.api_version();
    let mut entries: Vec<Value> = Vec::new();
    let mut writers = HashMap::new();
    for entry in managed_fields(object) {
        let owner = Owner::from_entry(entry);
        if owner.manager == MANAGER && terms.ownership == Ownership::None {
            continue;
        }
        let index = *writers.entry(owner.writer()).or_insert(entries.len());
        match entries.get_mut(index).and_then(Value::as_object_mut) {
            Some(twin) => absorb(twin, entry),
            None => {
                let mut entry = entry.clone();
                if !crd.names_fields_alike(owner.version()) {
                    forget_unknown(&mut entry, &crd.storage().schema);
                }
                if let Value::Object(fields) = &mut entry {
                    fields.insert("apiVersion".to_owned(), Value::from(storage.as_str()));
                }
                entries.push(entry);
            }
        }
    }
    if entries.is_empty() {
        // This form means that there is no owner: the server takes an empty list for none given, and changes
        // nothing.
        entries.push(json!({}));
    }
    Json::from(json!({
        "metadata": {
            "uid": object.uid(),
            "resourceVersion": object.resource_version(),
            "managedFields": entries,
        },
    }))
}

/// A JSON patch that removes Etch's own entry from the object that a rewrite returned (fact W9); `None` if
/// there is no such entry.
///
/// It names the resource version that it was made for, and tests that the entry is still Etch's.
pub fn release(object: &Object) -> Option<Json> {
    let index = owners(object).position(|owner| owner.manager == MANAGER && owner.operation == "Update")?;
    let entry = format!("/metadata/managedFields/{index}");
    Some(Json::from(json!([
        { "op": "test", "path": "/metadata/uid", "value": object.uid() },
        { "op": "test", "path": "/metadata/resourceVersion", "value": object.resource_version() },
        { "op": "test", "path": format!("{entry}/manager"), "value": MANAGER },
        { "op": "test", "path": format!("{entry}/operation"), "value": "Update" },
        { "op": "remove", "path": entry },
    ])))
}

/// Leaves out of an entry what the storage version does not know, and its own version is gone, or does not
/// know either: it would look like a hidden field. An owner of nothing else keeps its entry unchanged.
fn forget_unknown(entry: &mut Value, schema: &Schema) {
    let Some(fields) = entry.get_mut("fieldsV1") else { return };
    let mut known = fields.clone();
    retain_known(&mut known, Pruner::root(schema));
    if known.as_object().is_some_and(|known| !known.is_empty()) {
        *fields = known;
    }
}

fn retain_known(fields: &mut Value, pruner: Pruner<'_>) {
    let Value::Object(elements) = fields else { return };
    elements.retain(|element, inner| {
        let inside = match element.strip_prefix("f:").map(|name| pruner.field(name)) {
            Some(Field::Removed) => return false,
            Some(Field::Pruned(inside)) => Some(inside),
            None if element != "." => pruner.item(),
            Some(Field::Kept) | None => None,
        };
        let was_empty = is_empty(inner);
        if let Some(inside) = inside {
            retain_known(inner, inside);
        }
        // An empty set would own the whole.
        was_empty || !is_empty(inner)
    });
}

fn is_empty(fields: &Value) -> bool {
    fields.as_object().is_none_or(Map::is_empty)
}

fn managed_fields(object: &Object) -> impl Iterator<Item = &Value> {
    let entries = object.json().get("metadata").and_then(|metadata| metadata.get("managedFields"));
    entries.and_then(Value::as_array).into_iter().flatten()
}

/// Two entries of one writer become one: the union of their fields, at the later of their times.
fn absorb(entry: &mut Map<String, Value>, other: &Value) {
    let theirs = Owner::from_entry(other);
    unite(entry.entry("fieldsV1").or_insert_with(|| json!({})), theirs.fields);
    let time = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let (mine, other_time) = (time(entry.get("time")), time(other.get("time")));
    if other_time > mine {
        entry.insert("time".to_owned(), Value::from(other_time));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::hidden;

    /// A CRD whose field `old` of `v1beta1` is `new` in `v1`, with this conversion.
    fn tabs(strategy: &str) -> Crd {
        let version = |name: &str, field: &str| {
            let properties = json!({ "a": { "type": "string" }, field: { "type": "string" } });
            let spec = json!({ "type": "object", "properties": properties });
            json!({ "name": name, "served": true, "storage": name == "v1",
                "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": spec } } } })
        };
        let crd = json!({
            "metadata": { "name": "tabs.example.com" },
            "spec": {
                "group": "example.com", "names": { "kind": "Tab", "plural": "tabs" },
                "conversion": { "strategy": strategy }, "versions": [
                    version("v1beta1", "old"), version("v1", "new"),
                ],
            },
        });
        Crd::read(&crd.into()).expect("a CRD")
    }

    #[test]
    fn what_a_webhook_has_renamed_does_not_look_hidden_after_a_rewrite() {
        let crd = tabs("Webhook");
        let entry = |manager: &str, owned: Value| {
            json!({
                "manager": manager, "operation": "Update", "fieldsType": "FieldsV1",
                "apiVersion": "example.com/v0", "fieldsV1": owned,
            })
        };
        let both =
            json!({ "f:metadata": { "f:labels": { "f:x": {} } }, "f:spec": { "f:a": {}, "f:old": {} } });
        let alone = json!({ "f:spec": { "f:old": {} } });
        let mut object = json!({ "apiVersion": "example.com/v1", "metadata": {
            "name": "a", "uid": "u", "resourceVersion": "1",
            "managedFields": [entry("one", both), entry("two", alone.clone())],
        } });
        let body = body(&Object::from(object.clone()), &crd, &Terms::default());
        let entries = &body["metadata"]["managedFields"];
        let known = json!({ "f:metadata": { "f:labels": { "f:x": {} } }, "f:spec": { "f:a": {} } });
        assert_eq!((&entries[0]["fieldsV1"], &entries[1]["fieldsV1"]), (&known, &alone));
        object["metadata"]["managedFields"] = json!([entries[0]]);
        assert_eq!(hidden(&Object::from(object), &crd, &[]), []);
    }

    #[test]
    fn what_a_webhook_may_have_renamed_is_taken_from_nobody() {
        let renamed_by = |strategy: &str, operation: &str, at: &str, owned: &str| {
            let object = json!({ "metadata": { "managedFields": [{ "manager": "user", "operation": operation,
                "apiVersion": format!("example.com/{at}"),
                "fieldsV1": { "f:spec": { "f:a": {}, owned: {} } } }] } });
            let paths = renamed(&Object::from(object), &tabs(strategy));
            paths.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(renamed_by("Webhook", "Apply", "v1beta1", "f:old"), [".spec.old"]);
        for (strategy, operation, at, owned) in [
            ("None", "Apply", "v1beta1", "f:old"),
            ("Webhook", "Update", "v1beta1", "f:old"),
            ("Webhook", "Apply", "v1", "f:old"),
            ("Webhook", "Apply", "v1beta1", "f:gone"),
            ("Webhook", "Apply", "v0", "f:old"),
        ] {
            assert_eq!(
                renamed_by(strategy, operation, at, owned),
                [""; 0],
                "{strategy} {operation} {at} {owned}"
            );
        }
    }
}
