//! Writes that carry the values of defaults that have changed: a server that lags behind would fill in and store the old ones
//! (fact R6).
//! It must not send a value that the object does not show.

use serde_json::{Value, json};

use super::follow::{self, Change};
use super::{Ownership, Strategy, Terms, Write};
use crate::domain::crd::Crd;
use crate::domain::json::{Json, copy};
use crate::domain::object::Object;
use crate::domain::ownership::owners;

/// The same write, as a JSON patch that puts the value of each changed default where the object shows it already.
///
/// A server that shows these values too changes nothing by it but what etcd holds, and nobody owns more than before (fact W21). One
/// that lags behind shows the old default there: it stores the new one, and notes that it is ours. That entry is removed after it.
///
/// Left as it is: what carries the values already; and where an owner speaks in the terms of a version that names fields in
/// another way: a patch would cost that owner its fields (fact W8), where an apply is refused.
#[must_use]
pub fn pinned(write: Write, object: &Object, crd: &Crd, terms: &Terms, changes: &[Change]) -> Write {
    let may_patch = match write.strategy {
        Strategy::Follow | Strategy::Embed => false,
        Strategy::Rewrite => true,
        Strategy::Apply if terms.ownership == Ownership::Own => false,
        Strategy::Apply | Strategy::Merge => owners(object)
            .all(|owner| owner.version() == crd.storage().name || crd.names_fields_alike(owner.version())),
    };
    let values = if may_patch { follow::present(object, changes) } else { Vec::new() };
    if values.is_empty() {
        return write;
    }
    let put = |path: &str, value: Value| json!({ "op": "replace", "path": path, "value": value });
    let mut operations = vec![
        put("/metadata/uid", Value::from(object.uid())),
        put("/metadata/resourceVersion", Value::from(object.resource_version())),
    ];
    if let Some(entries) = write.body.pointer("/metadata/managedFields") {
        operations.push(put("/metadata/managedFields", copy(entries)));
    }
    operations.extend(values.into_iter().map(|(place, value)| put(&follow::pointer(&place), copy(value))));
    Write { body: Json::from(Value::from(operations)), ..write }
}

#[cfg(test)]
mod tests {
    use super::super::{Past, changes};
    use super::*;
    use crate::domain::crd::sample::{things, with_spec};

    const PLACE: &str = "/spec/size";

    fn crd() -> Crd {
        things(with_spec(json!({
            "size": { "type": "integer", "default": 5 }, "other": { "type": "integer", "default": 2 },
        })))
    }

    fn object(size: i64) -> Object {
        Object::from(json!({
            "metadata": { "name": "a", "uid": "u", "resourceVersion": "7", "managedFields": [
                { "manager": "user", "operation": "Update", "apiVersion": "example.com/v1", "fieldsV1": {} },
            ]},
            "spec": { "size": size, "other": 2 },
        }))
    }

    fn was(value: i64) -> Vec<Change> {
        let path = ".spec.size".parse().expect("a path");
        changes(&[Past { path, values: vec![json!(value).into()] }], &crd(), &[])
    }

    fn write(strategy: Strategy, body: Value) -> Write {
        Write { strategy, body: body.into(), prove: true, missing: Vec::new() }
    }

    fn sent(object: &Object, terms: &Terms, changes: &[Change]) -> Vec<(String, Value)> {
        let pinned = pinned(write(Strategy::Apply, json!({})), object, &crd(), terms, changes);
        let operations = pinned.body.as_array().into_iter().flatten();
        operations
            .map(|op| (op["path"].as_str().unwrap_or_default().to_owned(), copy(&op["value"])))
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
    fn a_rewrite_of_the_owners_takes_the_values_along() {
        let body = json!({ "metadata": { "managedFields": [{ "manager": "user" }] } });
        let pinned = pinned(write(Strategy::Rewrite, body), &object(5), &crd(), &Terms::default(), &was(1));
        let paths: Vec<&str> =
            pinned.body.as_array().expect("operations").iter().filter_map(|op| op["path"].as_str()).collect();
        let expected = ["/metadata/uid", "/metadata/resourceVersion", "/metadata/managedFields", PLACE];
        assert_eq!(paths, expected);
        assert_eq!((pinned.strategy, pinned.prove), (Strategy::Rewrite, true));
    }
}
