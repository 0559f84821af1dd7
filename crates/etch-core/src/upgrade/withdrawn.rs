//! What an upgrade that takes versions away does to objects that are stored at them, or that have owners at
//! them. [`impact`](crate::impact) decides what happens to the fields of an object.

use super::named::NamedObjects;
use crate::crd::{Crd, Version};
use crate::impact::{Effect, Problem};
use crate::object::Object;
use crate::ownership::owners;
use crate::plan::{Record, StoredAt, stored_at};

/// The versions that an upgrade takes away, and the objects that this concerns.
#[derive(Debug, Default)]
pub(super) struct Withdrawn {
    /// Those that the CRD no longer has.
    removed: Vec<String>,
    /// Those that it has, and no longer serves.
    unserved: Vec<String>,
    /// The version at which objects are stored.
    storage: String,
    /// Objects of which nothing shows that they are stored at the storage version.
    unproved: NamedObjects,
    /// Objects with an owner at a version that is removed.
    owned: NamedObjects,
    /// Objects with an owner at a version that is no longer served.
    used: NamedObjects,
}

impl Withdrawn {
    pub(super) fn by(old: &Crd, new: &Crd) -> Self {
        let names = |is_meant: &dyn Fn(&Version) -> bool| -> Vec<String> {
            let meant = old.versions().iter().filter(|version| is_meant(version));
            meant.map(|version| version.name.clone()).collect()
        };
        Self {
            removed: names(&|version| new.version(&version.name).is_none()),
            unserved: names(&|version| {
                version.served && new.version(&version.name).is_some_and(|version| !version.served)
            }),
            storage: old.storage().name.clone(),
            ..Self::default()
        }
    }

    /// Takes in an object, with what else the upgrade does to it.
    pub(super) fn add(&mut self, object: &Object, old: &Crd, record: &Record, effect: &Effect) {
        let has_owner_at =
            |versions: &[String]| owners(object).any(|owner| versions.iter().any(|v| v == owner.version()));
        if has_owner_at(&self.removed) {
            self.owned.add(object);
        }
        if has_owner_at(&self.unserved) {
            self.used.add(object);
        }
        if self.removed.is_empty() {
            return;
        }
        // If it certainly becomes unreadable, the warning covers everything else.
        let is_unreadable = effect.problems.iter().any(|problem| matches!(problem, Problem::Unreadable(_)));
        if !is_unreadable && stored_at(object, old, record) != StoredAt::Storage {
            self.unproved.add(object);
        }
    }

    /// Whether objects are known to suffer: with an owner at a version that is gone, every apply fails (fact
    /// W18).
    pub(super) fn does_harm(&self) -> bool {
        self.owned.objects > 0
    }

    /// The lines about `all` objects, the worst first.
    pub(super) fn lines<'w>(&'w self, all: &'w str) -> impl Iterator<Item = String> + 'w {
        let Self { removed, unserved, storage, unproved, owned, used } = self;
        let (removed, unserved) = (removed.join(" and "), unserved.join(" and "));
        [
            (
                owned,
                "",
                format!(
                    "managedFields name {removed}, which is removed: every apply fails until each entry names \
                     another version"
                ),
            ),
            (
                unproved,
                "up to ",
                format!(
                    "not known to be stored at {storage}: at {removed} they become unreadable unless written \
                     before"
                ),
            ),
            (used, "", format!("managedFields name {unserved}, which is no longer served")),
        ]
        .into_iter()
        .filter(|(found, ..)| found.objects > 0)
        .map(move |(found, about, what)| {
            format!("{about}{} of {all}: {what}: {}", found.objects, found.listed())
        })
    }
}
