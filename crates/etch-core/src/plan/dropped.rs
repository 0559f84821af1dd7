//! Fields that a write has taken from an object because the server that answered no longer knows them (fact
//! W12). Values that etcd did not hold, such as a default that only the read view showed, do not count.

use std::collections::BTreeSet;

use serde_json::Value;

use super::places::each_unclaimed;
use crate::absent::absent;
use crate::crd::Crd;
use crate::object::Object;
use crate::ownership::{MANAGER, owners};
use kube_structural_schema::path::{Path, Trail};
use kube_structural_schema::prune::{Field, Pruner};

/// The fields that the object showed before a write and the answer lacks, the topmost ones in order, apart
/// from those that the write `moved` and those that may have been defaults which etcd did not hold.
///
/// Every write names the resource version that it is for, so no other client has removed them in between.
pub(super) fn dropped(before: &Object, answer: &Object, crd: &Crd, moved: &[Path]) -> Vec<Path> {
    let mut found = absent(before.json(), answer.json(), &crd.storage().schema);
    if !found.is_empty() {
        // An owner shows that a client wrote the value.
        found.retain(|path| !moved.iter().any(|moved| moved.contains(path)));
        let mut phantoms = BTreeSet::new();
        each_unclaimed(before, crd, |trail| {
            let place = trail.to_path();
            let below = found.partition_point(|path| *path < place);
            phantoms.extend(found[below..].iter().take_while(|path| place.contains(path)).cloned());
        });
        found.retain(|path| !phantoms.contains(path));
    }
    found
}

/// The fields that others own and neither the object nor the answer shows, though the schema knows them: a
/// server with a newer schema may have shown the object, and the write dropped them. Owners also keep naming
/// fields that are long gone (fact R5), so only the CRD, read again, shows whether it did.
pub(super) fn unseen(before: &Object, answer: &Object, crd: &Crd) -> Vec<Path> {
    let mut found = BTreeSet::new();
    let root = Pruner::root(&crd.storage().schema);
    for owner in owners(before) {
        if owner.manager != MANAGER && crd.names_fields_alike(owner.version()) {
            let shown = [Some(&**before.json()), Some(&**answer.json())];
            owned(owner.fields, shown, root, &Trail::ROOT, &mut found);
        }
    }
    found.into_iter().collect()
}

fn owned(
    fields: &Value,
    shown: [Option<&Value>; 2],
    pruner: Pruner<'_>,
    at: &Trail<'_>,
    found: &mut BTreeSet<Path>,
) {
    let Value::Object(elements) = fields else { return };
    for (name, inner) in
        elements.iter().filter_map(|(element, inner)| Some((element.strip_prefix("f:")?, inner)))
    {
        let Field::Pruned(inside) = pruner.field(name) else { continue };
        let values = shown.map(|value| value.and_then(|value| value.get(name)));
        match values {
            [None, None] => drop(found.insert(at.join(pruner.step(name)).to_path())),
            values => owned(inner, values, inside, &at.join(pruner.step(name)), found),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::crd::sample::{things, with_spec};

    fn crd() -> Crd {
        let legacy = json!({ "type": "string" });
        let port =
            json!({ "type": "object", "properties": { "old": legacy, "port": { "type": "integer" } } });
        things(with_spec(json!({
            "legacy": legacy,
            "size": { "type": "integer", "default": 1 },
            "ports": { "type": "array", "items": port },
            "labels": { "type": "object", "additionalProperties": port },
            "any": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
        })))
    }

    fn object(owned: Value, spec: Value) -> Object {
        let owner = json!({
            "manager": "user", "operation": "Apply", "apiVersion": "example.com/v1", "fieldsType": "FieldsV1",
            "fieldsV1": { "f:spec": owned },
        });
        let metadata = json!({ "name": "a", "uid": "u", "resourceVersion": "7", "managedFields": [owner] });
        Object::from(
            json!({ "apiVersion": "example.com/v1", "kind": "Thing", "metadata": metadata, "spec": spec }),
        )
    }

    fn texts(paths: Vec<Path>) -> Vec<String> {
        paths.iter().map(|path| path.without_keys().to_string()).collect()
    }

    #[test]
    fn what_the_answer_lacks_and_etcd_held_was_dropped_by_the_write() {
        let before = object(
            json!({ "f:legacy": {} }),
            json!({
                "legacy": "x", "size": 1, "ports": [{ "old": "x", "port": 1 }],
                "labels": { "alice": { "old": "x" } }, "any": { "bob": 1 },
            }),
        );
        let same = before.clone();
        assert_eq!(texts(dropped(&before, &same, &crd(), &[])), [""; 0]);
        let answer = object(
            json!({ "f:legacy": {} }),
            json!({ "ports": [{ "port": 1 }], "labels": { "alice": {} }, "any": {} }),
        );
        let found = texts(dropped(&before, &answer, &crd(), &[]));
        assert_eq!(
            found,
            [r#".spec.any["*"]"#, r#".spec.labels["*"].old"#, ".spec.legacy", ".spec.ports[0].old"]
        );
        let moved: Path = ".spec.legacy".parse().expect("a path");
        assert!(!texts(dropped(&before, &answer, &crd(), &[moved])).contains(&".spec.legacy".to_owned()));
    }

    #[test]
    fn a_default_that_somebody_owns_was_stored() {
        let before = object(json!({ "f:size": {} }), json!({ "size": 1 }));
        let answer = object(json!({ "f:size": {} }), json!({}));
        assert_eq!(texts(dropped(&before, &answer, &crd(), &[])), [".spec.size"]);
    }

    #[test]
    fn what_owners_name_and_nobody_shows_is_in_doubt() {
        let owned = json!({ "f:legacy": {}, "f:gone": {}, "f:any": { "f:x": {} }, "f:ports": { ".": {} } });
        let (without, with) = (json!({ "any": {} }), json!({ "legacy": "x", "any": {}, "ports": [] }));
        let (before, answer) = (object(owned.clone(), without), object(owned, with));
        assert_eq!(texts(unseen(&before, &before, &crd())), [".spec.legacy", ".spec.ports"]);
        assert_eq!(texts(unseen(&before, &answer, &crd())), [""; 0]);
    }
}
