//! Writes that carry the values of defaults that have changed: a server that lags behind would fill in and
//! store the old ones (fact R6).

use serde_json::{Value, json};

use super::follow::{self, Change};
use super::{Body, Ownership, Strategy, Terms, Write, body, rewritten};
use crate::crd::Crd;
use crate::object::Object;
use crate::ownership::{Claimants, Owner, are_readable, others, owners};

/// The write, as a JSON patch that sets the value of each changed default where the object shows it already.
///
/// A server that shows these values too changes only what etcd holds by it, and no manager owns more than
/// before (fact W21). A server that lags behind shows the old default there: it stores the new one, and
/// records Etch as its owner. Etch removes that entry afterwards.
///
/// Where another manager claims the place, the patch only tests the value: a claim outlives its value (fact
/// R5), and on a server that shows another value the patch would take the place from its owner. There it is
/// refused, and Etch reads the object again.
///
/// The same patch moves an owner at another version to the storage version: on a server that lags behind,
/// that version may lack the default which it has elsewhere, and a patch would cost the owner its fields
/// there (fact W8).
///
/// Unchanged: a write that carries the values already; and one of an object with an owner whose version names
/// fields in another way, because the server refuses an apply where a patch would do that harm.
#[must_use]
pub fn pinned(write: Write, object: &Object, crd: &Crd, terms: &Terms, changes: &[Change]) -> Write {
    let is_foreign = |owner: &Owner<'_>| owner.version() != crd.storage().name;
    let may_patch = are_readable(object.json())
        && match write.strategy {
            Strategy::Embed | Strategy::Status => false,
            Strategy::Rewrite => true,
            Strategy::Apply if terms.ownership == Ownership::Own => false,
            Strategy::Apply | Strategy::Merge | Strategy::Follow => {
                owners(object).filter(is_foreign).all(|owner| crd.names_fields_alike(owner.version()))
            }
        };
    let values = if may_patch { follow::present(object, changes) } else { Vec::new() };
    if values.is_empty() {
        return write;
    }
    let write = match write.strategy {
        Strategy::Apply if owners(object).any(|owner| is_foreign(&owner)) => {
            rewritten(object, crd, terms, &write)
        }
        _ => write,
    };
    // What follows is such a patch already.
    let mut operations = match &write.body {
        Body::Operations(_) => write.body.operations().to_vec(),
        Body::Identity(_) | Body::Values(_) | Body::Metadata(_) => body::of_this(object),
    };
    if let Some(entries) = write.body.json().pointer("/metadata/managedFields") {
        operations.push(body::replace("/metadata/managedFields", entries.clone()));
    }
    let mut others = Claimants::of(others(object));
    operations.extend(values.into_iter().map(|(place, value)| {
        let pointer = place.pointer();
        match others.claim(object.json(), &crd.storage().schema, place.steps()) {
            true => json!({ "op": "test", "path": pointer, "value": value }),
            false => body::replace(&pointer, value.clone()),
        }
    }));
    Write { body: Body::Operations(Value::from(operations).into()), ..write }
}

#[cfg(test)]
mod tests {
    use super::super::{OldDefault, changes};
    use super::*;
    use crate::crd::sample::{things, with_spec};
    use kube_structural_schema::json::Json;

    const PLACE: &str = "/spec/size";

    fn crd() -> Crd {
        things(with_spec(json!({
            "size": { "type": "integer", "default": 5 }, "other": { "type": "integer", "default": 2 },
        })))
    }

    fn object(size: i64) -> Object {
        Object::from(json!({
            "metadata": { "name": "a", "uid": "u", "resourceVersion": "7", "managedFields": [
                {
                    "manager": "user", "operation": "Update", "fieldsType": "FieldsV1",
                    "apiVersion": "example.com/v1", "fieldsV1": {},
                },
            ]},
            "spec": { "size": size, "other": 2 },
        }))
    }

    fn was(value: i64) -> Vec<Change> {
        let path = ".spec.size".parse().expect("a path");
        changes(&[OldDefault { path, values: vec![json!(value).into()] }], &crd(), &[])
    }

    fn write(strategy: Strategy, body: Value) -> Write {
        let body = match strategy {
            Strategy::Apply | Strategy::Status => Body::Identity(body.into()),
            Strategy::Merge | Strategy::Rewrite => Body::Metadata(body.into()),
            Strategy::Follow | Strategy::Embed => Body::Operations(body.into()),
        };
        Write { prove: true, ..Write::new(strategy, body, Vec::new()) }
    }

    fn sent(object: &Object, terms: &Terms, changes: &[Change]) -> Vec<(String, Value)> {
        let pinned = pinned(write(Strategy::Apply, json!({})), object, &crd(), terms, changes);
        let operations = pinned.body.json().as_array().into_iter().flatten();
        operations
            .map(|op| (op["path"].as_str().unwrap_or_default().to_owned(), op["value"].clone()))
            .collect()
    }

    #[test]
    fn what_has_changed_is_sent_with_its_value_and_the_rest_is_not() {
        let sent = sent(&object(5), &Terms::default(), &was(1));
        let expected = [
            ("/metadata/uid".to_owned(), json!("u")),
            ("/metadata/resourceVersion".to_owned(), json!("7")),
            (PLACE.to_owned(), json!(5)),
        ];
        assert_eq!(sent, expected);
    }

    #[test]
    fn a_value_of_a_users_is_never_sent_nor_one_that_has_not_changed() {
        assert_eq!(sent(&object(9), &Terms::default(), &was(1)), []);
        assert_eq!(sent(&object(1), &Terms::default(), &was(1)), []);
        assert_eq!(sent(&object(5), &Terms::default(), &[]), []);
        let own = Terms { ownership: Ownership::Own, ..Terms::default() };
        assert_eq!(sent(&object(5), &own, &was(1)), [], "an apply of the values has them");
    }

    #[test]
    fn a_place_that_somebody_claims_is_tested_and_not_put() {
        let mut object = object(5).json().clone();
        object["metadata"]["managedFields"][0]["fieldsV1"] = json!({ "f:spec": { "f:size": {} } });
        let write = write(Strategy::Apply, json!({}));
        let pinned = pinned(write, &object.into(), &crd(), &Terms::default(), &was(1));
        assert_eq!(pinned.body.json()[2], json!({ "op": "test", "path": PLACE, "value": 5 }));
    }

    #[test]
    fn an_owner_at_another_version_is_moved_along() {
        let with_versions = |all: &[(&str, Value)]| {
            let versions = all.iter().map(|(name, size)| {
                let spec = json!({ "type": "object", "properties": { "size": size } });
                let schema = json!({ "type": "object", "properties": { "spec": spec } });
                json!({ "name": name, "served": true, "storage": *name == "v1",
                    "schema": { "openAPIV3Schema": schema } })
            });
            let versions: Vec<Value> = versions.collect();
            Crd::read(&Json::from(json!({
                "metadata": { "name": "things.example.com" },
                "spec": {
                    "group": "example.com", "names": { "kind": "Thing", "plural": "things" },
                    "versions": versions,
                },
            })))
            .expect("a CRD")
        };
        // v0 knows the field by now, and on a server that lags behind it may not.
        let crd = with_versions(&[
            ("v0", json!({ "type": "integer" })),
            ("v1", json!({ "type": "integer", "default": 5 })),
        ]);
        let mut object = object(5).json().clone();
        object["metadata"]["managedFields"][0]["apiVersion"] = json!("example.com/v0");
        let path = ".spec.size".parse().expect("a path");
        let changes = changes(&[OldDefault { path, values: vec![json!(1).into()] }], &crd, &[]);
        let terms = Terms::default();
        let pinned = pinned(write(Strategy::Apply, json!({})), &object.into(), &crd, &terms, &changes);
        assert_eq!((pinned.strategy, pinned.prove), (Strategy::Rewrite, true));
        let owners = &pinned.body.json()[2];
        assert_eq!(owners["path"], "/metadata/managedFields");
        assert_eq!(owners["value"][0]["apiVersion"], "example.com/v1");
        assert_eq!(
            (&pinned.body.json()[3]["path"], &pinned.body.json()[3]["value"]),
            (&json!(PLACE), &json!(5))
        );
    }

    #[test]
    fn a_rewrite_of_the_owners_takes_the_values_along() {
        let body = json!({ "metadata": { "managedFields": [{ "manager": "user" }] } });
        let pinned = pinned(write(Strategy::Rewrite, body), &object(5), &crd(), &Terms::default(), &was(1));
        let paths: Vec<&str> = pinned
            .body
            .json()
            .as_array()
            .expect("operations")
            .iter()
            .filter_map(|op| op["path"].as_str())
            .collect();
        let expected = ["/metadata/uid", "/metadata/resourceVersion", "/metadata/managedFields", PLACE];
        assert_eq!(paths, expected);
        assert_eq!((pinned.strategy, pinned.prove), (Strategy::Rewrite, true));
    }

    #[test]
    fn what_follows_takes_the_values_of_the_other_changes_along() {
        let moves = json!([
            { "op": "replace", "path": "/metadata/uid", "value": "u" },
            { "op": "replace", "path": "/metadata/resourceVersion", "value": "7" },
            { "op": "replace", "path": "/spec/other", "value": 2 },
        ]);
        let write = write(Strategy::Follow, moves.clone());
        let pinned = pinned(write, &object(5), &crd(), &Terms::default(), &was(1));
        let operations = pinned.body.json().as_array().expect("operations");
        assert_eq!(operations[..3], moves.as_array().expect("operations")[..]);
        assert_eq!(operations[3], json!({ "op": "replace", "path": PLACE, "value": 5 }));
        assert_eq!((operations.len(), pinned.strategy), (4, Strategy::Follow));
    }
}
