//! Owners at versions that an upgrade no longer serves: it does them no harm, and yet their managers write
//! elsewhere from then on.

use super::named::NamedObjects;
use crate::crd::{Crd, Version};
use crate::object::Object;
use crate::ownership::owners;

/// The versions that the CRD still has and no longer serves, and the objects with an owner at one.
#[derive(Debug, Default)]
pub(super) struct Unserved {
    versions: Vec<String>,
    used: NamedObjects,
}

impl Unserved {
    pub(super) fn by(old: &Crd, new: &Crd) -> Self {
        let is_withdrawn = |version: &&Version| {
            version.served && new.version(&version.name).is_some_and(|version| !version.served)
        };
        let versions = old.versions().iter().filter(is_withdrawn);
        Self { versions: versions.map(|version| version.name.clone()).collect(), ..Self::default() }
    }

    pub(super) fn add(&mut self, object: &Object) {
        if owners(object).any(|owner| self.versions.iter().any(|version| version == owner.version())) {
            self.used.add(object);
        }
    }

    /// The line about those of `all` objects; `None` if there are none.
    pub(super) fn line(&self, all: &str) -> Option<String> {
        let Self { versions, used } = self;
        let versions = versions.join(" and ");
        (used.objects > 0).then(|| {
            format!(
                "{} of {all}: managedFields name {versions}, which is no longer served: {}",
                used.objects,
                used.listed()
            )
        })
    }
}
