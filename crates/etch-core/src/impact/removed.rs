//! What an upgrade that removes versions does to an object that is stored at one, or has owners at one.

use super::{Effect, Problem, Upgrade};
use crate::decode::Undecodable;
use crate::object::Object;
use crate::ownership::owners;
use crate::plan::{Record, StoredAt, stored_at};

impl Upgrade<'_> {
    /// Adds that no apply to an object goes through where an owner's entry names a removed version (fact
    /// W18).
    pub fn add_owners_at_removed(&self, object: &Object, effect: &mut Effect) {
        let is_named = |version: &&str| owners(object).any(|owner| owner.version() == *version);
        let named = self.removed().filter(is_named);
        effect.problems.extend(named.map(|version| Problem::OwnedAt { version: version.to_owned() }));
    }

    /// Adds that an object, as a server returned it, can no longer be read if it is stored at a removed
    /// version: nothing on record shows that it is not.
    pub fn add_maybe_unreadable(&self, object: &Object, record: &Record, effect: &mut Effect) {
        let is_unreadable = effect.problems.iter().any(|problem| matches!(problem, Problem::Unreadable(_)));
        if is_unreadable || stored_at(object, self.old, record) == StoredAt::Storage {
            return;
        }
        for version in self.removed() {
            let problem = Problem::Unreadable(Undecodable::VersionGone(version.to_owned()));
            effect.problems.push(problem.clone());
            effect.open.problems.push(problem);
        }
    }

    fn removed(&self) -> impl Iterator<Item = &str> {
        let old = self.old.versions().iter().map(|version| version.name.as_str());
        old.filter(|version| self.new.version(version).is_none())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::crd::Crd;

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
                "group": "example.com", "names": { "kind": "Thing", "plural": "things" }, "versions": versions,
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
        let (mut effect, _) = upgrade.on_record(&object, record);
        upgrade.add_owners_at_removed(&object, &mut effect);
        upgrade.add_maybe_unreadable(&object, record, &mut effect);
        (effect.problems.iter().map(ToString::to_string).collect(), effect.open.problems.len())
    }

    #[test]
    fn an_object_that_may_be_stored_at_a_removed_version_may_become_unreadable() {
        let unreadable = "it cannot be read: stored at v1, which the CRD does not have".to_owned();
        assert_eq!(texts("v2", &Record::default()), (vec![unreadable.clone()], 1));
        let owned = "managedFields name v1, which is removed: every apply fails until each entry names another \
                     version";
        assert_eq!(texts("v1", &Record::default()), (vec![owned.to_owned(), unreadable], 1));
        // A write after a pass has stored it at the present storage version.
        let through = Record { through: Some(5), ..Record::default() };
        assert_eq!(texts("v2", &through), (Vec::new(), 0));
    }
}
