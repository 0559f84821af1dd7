//! What an upgrade that removes versions does to an object that is stored at one, or has owners at one.

use super::{Effect, Problem, Upgrade};
use crate::crd::Crd;
use crate::object::Object;
use crate::ownership::owners;

impl Upgrade<'_> {
    /// Adds that no apply to an object goes through where an owner's entry names a removed version (fact
    /// W18).
    pub(super) fn add_owners_at_removed(&self, object: &Object, effect: &mut Effect) {
        let is_named = |version: &&str| owners(object).any(|owner| owner.version() == *version);
        let named = removed(self.old, self.new).filter(is_named);
        effect.problems.extend(named.map(|version| Problem::OwnedAt { version: version.to_owned() }));
    }
}

impl Problem {
    /// The problems of objects with owners at a removed version.
    pub fn of_owners<'a>(old: &'a Crd, new: &'a Crd) -> impl Iterator<Item = Self> + 'a {
        removed(old, new).map(|version| Self::OwnedAt { version: version.to_owned() })
    }

    /// `None` if no version is removed, or the storage version is.
    pub(super) fn maybe_stored_at_removed(old: &Crd, new: &Crd) -> Option<Self> {
        let storage = old.storage().name.clone();
        let removed: Vec<String> = removed(old, new).map(str::to_owned).collect();
        let is_any = !removed.is_empty() && !removed.contains(&storage);
        is_any.then_some(Self::MaybeStoredAt { removed, storage })
    }
}

pub(super) fn removed<'a>(old: &'a Crd, new: &'a Crd) -> impl Iterator<Item = &'a str> {
    let old = old.versions().iter().map(|version| version.name.as_str());
    old.filter(|version| new.version(version).is_none())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::plan::Record;

    fn crd(versions: &[&str]) -> Crd {
        let spec = json!({ "type": "object", "properties": { "size": { "type": "integer", "default": 1 } } });
        let schema = json!({ "type": "object", "properties": { "spec": spec } });
        let versions: Vec<_> = versions
            .iter()
            .map(|version| {
                json!({
                    "name": version, "served": true, "storage": *version == "v2",
                    "schema": { "openAPIV3Schema": schema },
                })
            })
            .collect();
        let document = json!({
            "metadata": { "name": "things.example.com", "generation": 2 },
            "spec": {
                "group": "example.com", "names": { "kind": "Thing", "plural": "things" },
                "versions": versions,
            },
        });
        Crd::read(&document.into()).expect("a CRD")
    }

    fn texts(owner: &str, record: &Record) -> (Vec<String>, usize) {
        let (old, new) = (crd(&["v1", "v2"]), crd(&["v2"]));
        let upgrade = Upgrade::new(&old, &new);
        let object = Object::from(json!({
            "apiVersion": "example.com/v2", "kind": "Thing",
            "metadata": { "name": "a", "uid": "u", "resourceVersion": "7", "managedFields": [{
                "manager": "user", "operation": "Update", "apiVersion": format!("example.com/{owner}"),
                "fieldsType": "FieldsV1", "fieldsV1": { "f:spec": {} },
            }] },
        }));
        let (effect, _) = upgrade.on_record(&object, record);
        (effect.problems.iter().map(ToString::to_string).collect(), effect.open.problems.len())
    }

    #[test]
    fn an_object_that_may_be_stored_at_a_removed_version_may_become_unreadable() {
        let unknown = "not known to be stored at v2: at v1 it cannot be read any more".to_owned();
        assert_eq!(texts("v2", &Record::default()), (vec![unknown.clone()], 1));
        let owned = "managedFields name v1, which is removed: every apply fails until each entry names \
            another version";
        assert_eq!(texts("v1", &Record::default()), (vec![owned.to_owned(), unknown], 1));
        let after_a_pass = Record { through: Some(5), ..Record::default() };
        let moved = Record { all_at_storage_version: true, ..Record::default() };
        for stored in [after_a_pass, moved] {
            assert_eq!(texts("v2", &stored), (Vec::new(), 0));
        }
    }
}
