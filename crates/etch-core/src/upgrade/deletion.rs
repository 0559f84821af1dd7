//! What the deletion of a CRD deletes with it: all its objects.

use super::named::NamedObjects;
use super::{Extent, Findings, ObjectFindings};
use crate::crd::{Crd, Version};
use crate::object::Object;
use crate::plan::{Record, StoredAt, stored_at};

/// The objects of a CRD that is to be deleted. Those that are being deleted anyway do not count.
#[derive(Debug, Default)]
pub struct DeletionBuilder {
    objects: NamedObjects,
    /// Those whose finalizers a user or controller has to remove before the CRD can go.
    with_finalizers: NamedObjects,
    at_storage: u64,
    at_another: u64,
    at_unknown: u64,
}

impl ObjectFindings for DeletionBuilder {
    /// Any version that is served shows which objects there are.
    fn read_at(crd: &Crd) -> Option<&Version> {
        let storage = Some(crd.storage()).filter(|storage| storage.served);
        storage.or_else(|| crd.versions().iter().find(|version| version.served))
    }

    fn add(&mut self, object: &Object, crd: &Crd, record: &Record) {
        if object.is_terminating() {
            return;
        }
        self.objects.add(object);
        let finalizers = object.json()["metadata"]["finalizers"].as_array();
        if finalizers.is_some_and(|finalizers| !finalizers.is_empty()) {
            self.with_finalizers.add(object);
        }
        // Only what is read at the storage version shows where it is stored.
        let at = if crd.storage().served { stored_at(object, crd, record) } else { StoredAt::Unknown };
        let at = match at {
            StoredAt::Storage => &mut self.at_storage,
            StoredAt::Another => &mut self.at_another,
            StoredAt::Unknown => &mut self.at_unknown,
        };
        *at += 1;
    }

    fn findings(&self, crd: &Crd, extent: &Extent) -> Findings {
        let mut lines = Vec::new();
        let found = self.objects.objects;
        let least = if *extent == Extent::Whole { "" } else { "at least " };
        if found > 0 {
            let objects = if found == 1 { "object is" } else { "objects are" };
            lines.push(format!("{least}{found} {objects} deleted with it: {}", self.objects.listed()));
            lines.extend(self.versions(crd).map(|versions| format!("stored at {versions}")));
        }
        if self.with_finalizers.objects > 0 {
            lines.push(format!(
                "{least}{} of them with finalizers, which the deletion waits for: {}",
                self.with_finalizers.objects,
                self.with_finalizers.listed()
            ));
        }
        Findings { lines, does_harm: found > 0, unchecked: self.unchecked(crd, extent) }
    }

    fn unknown(crd: &str, why: &str) -> Findings {
        Findings { unchecked: Some(uncounted(crd, "", why)), ..Findings::default() }
    }
}

impl DeletionBuilder {
    /// How many objects that were.
    pub fn objects(&self) -> u64 {
        self.objects.objects
    }

    /// At which versions they are stored; `None` if the CRD has had only one.
    fn versions(&self, crd: &Crd) -> Option<String> {
        let has_one = crd.versions().len() == 1 && !crd.stored_elsewhere();
        let storage = &crd.storage().name;
        let counted = [
            (self.at_storage, storage.as_str()),
            (self.at_another, "another version"),
            (self.at_unknown, "a version that nothing shows"),
        ];
        let counted = counted.iter().filter(|(objects, _)| *objects > 0);
        let counted: Vec<String> = counted.map(|(objects, at)| format!("{at}: {objects}")).collect();
        (!has_one).then(|| counted.join(", "))
    }

    fn unchecked(&self, crd: &Crd, extent: &Extent) -> Option<String> {
        let Extent::Part { why, of } = extent else { return None };
        let about = of.map(|of| format!(" of about {of}")).unwrap_or_default();
        Some(uncounted(crd.name(), &format!(", {}{about}", self.objects()), why))
    }
}

fn uncounted(crd: &str, counted: &str, why: &str) -> String {
    format!("not all objects counted{counted}: {why}; `kubectl get {crd} -A` lists them")
}
