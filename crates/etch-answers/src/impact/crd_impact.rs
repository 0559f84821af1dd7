//! What is reported of one CRD: its schemas, the numbers of its objects, and the objects by name.

use std::collections::BTreeSet;

use etch_core::crd::Crd;
use etch_core::impact::{
    Counted, Effect, Kind, Problem, SchemaChanges, Tally, Upgrade, compare_crds, compare_other_defaults,
};
use etch_core::object::{Identity, Object};
use etch_core::plan::{Record, Skip};
use etch_core::stored::decode;
use etch_lint::Finding;

use crate::policy::Rules;
use crate::sample::Sample;

/// What is reported of one CRD.
pub struct CrdImpact {
    /// Its name.
    pub crd: String,
    /// The storage version before; `None` if the CRD is new.
    pub old_version: Option<String>,
    /// The storage version after.
    pub new_version: String,
    /// What changes in the schema of the storage version.
    pub schemas: SchemaChanges,
    /// What changes about the defaults of other versions, by their names.
    pub other_defaults: Vec<(String, SchemaChanges)>,
    /// How the operator treats the objects.
    pub rules: Rules,
    /// What the API server refuses the upgrade for.
    pub refusals: Vec<Finding>,
    /// What is incompatible between the schemas, whether or not there are objects.
    pub incompatible: Vec<Finding>,
    /// The part of it that can make the server refuse objects that were valid.
    pub narrowed: Vec<Finding>,
    /// Whether the cluster has the CRD, as far as it was asked.
    pub in_cluster: bool,
    /// The numbers of its objects.
    pub tally: Tally,
    /// The first objects to which something happens.
    pub details: Sample<Detail>,
    /// The sorts of everything that happens to objects, or keeps them from being valid.
    kinds: BTreeSet<Kind>,
    /// Whether of each object that was looked at it is known what happens to it.
    is_exact: bool,
}

/// An object to which something happens.
pub struct Detail {
    /// What happens to it.
    pub effect: Effect,
    /// Whether that is known, and not presumed from the owners.
    pub exact: bool,
    /// Why Etch skips it, if it does.
    pub skipped: Option<Skip>,
}

impl CrdImpact {
    /// Begins with the schemas. `limit` is how many objects are named; `None` for all.
    pub fn new(name: &str, old: Option<&Crd>, new: &Crd, limit: Option<usize>, rules: Rules) -> Self {
        let schemas = compare_crds(old, new);
        Self {
            crd: name.to_owned(),
            old_version: old.map(|old| old.storage().name.clone()),
            new_version: new.storage().name.clone(),
            kinds: BTreeSet::new(),
            is_exact: true,
            schemas,
            other_defaults: old.map(|old| compare_other_defaults(old, new)).unwrap_or_default(),
            tally: Tally::new(rules.terms()),
            rules,
            refusals: Vec::new(),
            incompatible: Vec::new(),
            narrowed: Vec::new(),
            in_cluster: true,
            details: Sample::new(limit),
        }
    }

    /// Notes what the API server refuses the upgrade for.
    pub fn refuse(&mut self, refusals: Vec<Finding>) {
        if !refusals.is_empty() {
            self.kinds.insert(Kind::Problem);
        }
        self.refusals = refusals;
    }

    /// Notes what is incompatible. Removed fields are in the comparison of the schemas instead.
    pub fn compare(&mut self, findings: Vec<Finding>) {
        let is_gone = |finding: &Finding| {
            finding.rule.name == "field-removed" && self.schemas.fields_removed.contains(&finding.path)
        };
        let narrows = |finding: &&Finding| finding.rule.can_refuse_objects() && !is_gone(finding);
        self.narrowed = findings.iter().filter(narrows).cloned().collect();
        if !self.narrowed.is_empty() {
            self.kinds.insert(Kind::Change);
        }
        // Of a version other than the storage version: what its clients send there is dropped from now on.
        if self.narrowed.iter().any(|finding| finding.rule.name == "field-removed") {
            self.kinds.insert(Kind::Loss);
        }
        self.incompatible = findings;
    }

    /// Adds what happens to an object that the API server shows.
    pub fn view(&mut self, upgrade: &Upgrade<'_>, old: &Crd, record: &Record, object: &Object) {
        let (effect, exact) = upgrade.on_record(object, record);
        self.add(object.identity(), effect, exact, Some((object, old, record)));
    }

    /// Adds what happens to an object of a file.
    pub fn written(&mut self, upgrade: &Upgrade<'_>, old: &Crd, record: &Record, object: &Object) {
        let effect = upgrade.object(object);
        self.add(object.identity(), effect, false, Some((object, old, record)));
    }

    /// Adds what happens to an object that etcd holds as these bytes, since a revision.
    pub fn stored(
        &mut self,
        upgrade: &Upgrade<'_>,
        old: &Crd,
        record: &Record,
        identity: Identity,
        (bytes, revision): (&[u8], u64),
    ) {
        let looked = match decode(bytes) {
            Ok(stored) => upgrade.stored(stored, revision, record).map_err(Problem::Unreadable),
            Err(opaque) => Err(Problem::Opaque { why: opaque.to_string() }),
        };
        match looked {
            Ok((object, effect)) => self.add(identity, effect, true, Some((&object, old, record))),
            Err(problem) => {
                let effect = Effect { problems: vec![problem], ..Effect::default() };
                self.add(identity, effect, true, None);
            }
        }
    }

    /// Adds what happens to an object; `read` is the object as it is read before the upgrade, if it can be
    /// read, with what is on record.
    fn add(
        &mut self,
        identity: Identity,
        mut effect: Effect,
        exact: bool,
        read: Option<(&Object, &Crd, &Record)>,
    ) {
        let Counted { skipped, .. } = self.tally.add(&mut effect, read);
        self.is_exact &= exact;
        if effect.is_none() {
            return;
        }
        self.kinds.extend(effect.kinds());
        self.details.add(identity, Detail { effect, exact, skipped });
    }

    /// The sorts of everything that happens, to the schema and to objects. Other defaults count by what they
    /// do to objects, where that is known of all there are.
    pub fn kinds(&self) -> BTreeSet<Kind> {
        let of_schema = |(_, changes): (_, &SchemaChanges)| match self.is_exact && self.tally.counts.total > 0
        {
            true => changes.kinds_beside_defaults(),
            false => changes.kinds(),
        };
        self.schema_changes().flat_map(of_schema).chain(self.kinds.iter().copied()).collect()
    }

    /// What changes in the schemas: in that of the storage version, and in those of other versions, with
    /// their names.
    pub fn schema_changes(&self) -> impl Iterator<Item = (Option<&str>, &SchemaChanges)> {
        let others = self.other_defaults.iter().map(|(version, changes)| (Some(version.as_str()), changes));
        std::iter::once((None, &self.schemas)).chain(others)
    }

    /// Whether nothing changes in the schemas.
    pub fn has_same_schemas(&self) -> bool {
        self.schema_changes().all(|(_, changes)| changes.is_none())
    }

    /// Whether nothing changes: neither for the objects that there are, nor for those that will be created.
    pub fn is_same(&self) -> bool {
        self.is_quiet() && !self.moves()
    }

    /// Whether objects are stored at another version after the upgrade.
    fn moves(&self) -> bool {
        self.old_version.as_ref().is_some_and(|old| *old != self.new_version)
    }

    /// Whether only that changes.
    pub fn only_moves(&self) -> bool {
        self.is_quiet() && self.moves()
    }

    fn is_quiet(&self) -> bool {
        self.kinds().is_empty() && self.has_same_schemas()
    }

    /// The storage version before and after the upgrade, in words.
    pub fn versions(&self) -> String {
        match &self.old_version {
            None => format!("{}, new", self.new_version),
            Some(old) if self.moves() => format!("{old} to {}", self.new_version),
            Some(old) => old.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn crd(default: i64) -> Crd {
        let spec =
            json!({ "type": "object", "properties": { "size": { "type": "integer", "default": default } } });
        let schema = json!({ "type": "object", "properties": { "spec": spec } });
        let document = json!({
            "metadata": { "name": "things.example.com" },
            "spec": {
                "group": "example.com", "names": { "kind": "Thing", "plural": "things" },
                "versions": [{
                    "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema },
                }],
            },
        });
        Crd::read(&document.into()).expect("a CRD")
    }

    /// Objects at another version are read by its schema, and clients create them by it.
    #[test]
    fn a_default_of_another_version_counts_where_the_version_is_served_or_may_be_stored() {
        let crd = |default: i64, served: bool, stored: bool| {
            let schema = |size| {
                let spec = json!({ "type": "object", "properties": { "size": size } });
                json!({ "openAPIV3Schema": { "type": "object", "properties": { "spec": spec } } })
            };
            let document = json!({
                "metadata": { "name": "things.example.com" },
                "spec": {
                    "group": "example.com", "names": { "kind": "Thing", "plural": "things" },
                    "versions": [
                        { "name": "v1beta1", "served": served, "storage": false,
                          "schema": schema(json!({ "type": "integer", "default": default })) },
                        {
                            "name": "v1", "served": true, "storage": true, "schema": schema(json!({
                                "type": "integer",
                            })),
                        },
                    ],
                },
                "status": { "storedVersions": if stored { json!(["v1beta1", "v1"]) } else { json!(["v1"]) } },
            });
            Crd::read(&document.into()).expect("a CRD")
        };
        for (served, stored, is_same) in [(true, false, false), (false, true, false), (false, false, true)] {
            let (old, new) = (crd(1, served, stored), crd(5, served, false));
            let impact = CrdImpact::new("things.example.com", Some(&old), &new, None, Rules::Assumed);
            assert_eq!(impact.is_same(), is_same, "served: {served}, stored: {stored}");
            assert_eq!(impact.kinds().contains(&Kind::Change), !is_same);
            assert!(impact.schemas.is_none(), "those of the storage version stay");
        }
    }

    #[test]
    fn a_changed_default_is_reported_though_no_object_shows_it() {
        for (new, is_same) in [(1, true), (5, false)] {
            let (old, new) = (crd(1), crd(new));
            let mut impact = CrdImpact::new("things.example.com", Some(&old), &new, None, Rules::Assumed);
            impact.add(Object::from(json!({})).identity(), Effect::default(), true, None);
            assert!(impact.kinds().is_empty(), "nothing happens to the object");
            assert_eq!(impact.is_same(), is_same);
        }
    }
}
