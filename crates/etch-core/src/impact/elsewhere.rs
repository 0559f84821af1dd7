//! What an upgrade does to an object that may be stored at another version than the storage version.

use super::removed::removed;
use super::{Effect, Problem, Upgrade, compare};
use crate::crd::Crd;
use crate::decode::Undecodable;
use crate::object::Object;
use crate::plan::{Record, StoredAt, stored_at};

impl Upgrade<'_> {
    /// Adds what is wrong with an object, as a server returned it, if it is stored at another version, where
    /// nothing shows that it is not. `status.storedVersions` does not: any client with permission may shorten
    /// that list.
    pub(super) fn add_maybe_stored_elsewhere(&self, object: &Object, record: &Record, effect: &mut Effect) {
        let is_unreadable = effect.problems.iter().any(|problem| matches!(problem, Problem::Unreadable(_)));
        if self.elsewhere.is_empty()
            || is_unreadable
            || stored_at(object, self.old, record) == StoredAt::Storage
        {
            return;
        }
        effect.problems.extend(self.elsewhere.iter().cloned());
        effect.open.problems.extend(self.elsewhere.iter().cloned());
    }
}

impl Problem {
    /// The problems that an object no longer has once it is stored at the storage version of `old`.
    pub fn of_place_in_etcd<'a>(old: &'a Crd, new: &'a Crd) -> impl Iterator<Item = Self> + 'a {
        let gone =
            removed(old, new).map(|version| Self::Unreadable(Undecodable::VersionGone(version.to_owned())));
        gone.chain(Self::if_stored_elsewhere(old, new))
    }

    /// Whether an object has it only if it is stored at another version than the storage version.
    pub fn is_if_stored_elsewhere(&self) -> bool {
        matches!(
            self,
            Self::MaybeStoredAt { .. } | Self::MaybeLosesFieldsAt { .. } | Self::MaybeUnconverted { .. }
        )
    }

    /// The problems of an object of which nothing shows at which version it is stored.
    pub(super) fn if_stored_elsewhere(old: &Crd, new: &Crd) -> Vec<Self> {
        let of_versions = [Self::maybe_stored_at_removed(old, new), Self::maybe_unconverted(old, new)]
            .into_iter()
            .flatten();
        of_versions.chain(Self::maybe_loses_fields(old, new)).collect()
    }

    /// `None` if there is no other version from which a webhook converts to the storage version and, after
    /// the upgrade, does not. Objects are then read as if that version named its fields as the storage
    /// version does.
    fn maybe_unconverted(old: &Crd, new: &Crd) -> Option<Self> {
        let storage = &old.storage().name;
        let others = old.versions().iter().map(|version| &version.name).filter(|name| *name != storage);
        let versions: Vec<String> = others.filter(|name| new.version(name).is_some()).cloned().collect();
        let is_any = old.is_converted_by_webhook() && !new.is_converted_by_webhook() && !versions.is_empty();
        is_any.then(|| Self::MaybeUnconverted { versions, storage: storage.clone() })
    }

    /// For each version at which objects may be stored, and that no longer has all its fields. Without a
    /// webhook, it is known which fields of an object these are.
    fn maybe_loses_fields<'a>(old: &'a Crd, new: &'a Crd) -> impl Iterator<Item = Self> + 'a {
        let is_converted = old.is_converted_by_webhook() && !new.preserves_unknown_fields();
        let loses_fields = |version: &str| {
            let (Some(old), Some(new)) = (old.version(version), new.version(version)) else { return false };
            let changes = compare(&old.schema, &new.schema);
            !changes.fields_removed.is_empty() || !changes.unknown_removed.is_empty()
        };
        let such = old.versions_elsewhere().filter(move |version| is_converted && loses_fields(version));
        such.map(|version| Self::MaybeLosesFieldsAt {
            version: version.to_owned(),
            storage: old.storage().name.clone(),
        })
    }
}
