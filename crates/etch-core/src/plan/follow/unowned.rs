//! Whether a value of an object has no owner.

use std::collections::HashMap;

use crate::crd::Crd;
use crate::object::Object;
use crate::ownership::{Claimants, are_readable, others, owners};
use crate::plan::{hidden, misfit};
use kube_structural_schema::path::Path;

/// An object, and what its owners claim.
pub(crate) struct Unowned<'a> {
    object: &'a Object,
    crd: &'a Crd,
    /// The owners other than Etch; `None` if they do not account for the whole object.
    others: Option<Claimants<'a>>,
}

impl<'a> Unowned<'a> {
    /// No value is free in an object without `managedFields`: a client has cleared them, and with them every
    /// claim. Nor if an owner's version cannot express the whole object: then the server keeps naming the old
    /// owners, and does not record who sets what.
    pub(crate) fn of(object: &'a Object, crd: &'a Crd) -> Self {
        let mut versions = HashMap::new();
        let mut is_understood =
            |version: &'a str| *versions.entry(version).or_insert_with(|| can_express(version, object, crd));
        let is_reported = are_readable(object.json())
            && owners(object).next().is_some()
            && owners(object).all(|owner| owner.fields.is_object() && is_understood(owner.version()));
        let others = || Claimants::of(others(object));
        Self { object, crd, others: is_reported.then(others) }
    }

    /// Whether the owners show who owns what.
    pub(crate) fn are_known(&self) -> bool {
        self.others.is_some()
    }

    /// Whether no manager owns the value at a place of the object. What Etch itself owns counts as unowned.
    pub(crate) fn has(&mut self, place: &Path) -> bool {
        let schema = &self.crd.storage().schema;
        self.others.as_mut().is_some_and(|others| !others.claim(self.object.json(), schema, place.steps()))
    }
}

/// Whether a version can express all of an object.
fn can_express(version: &str, object: &Object, crd: &Crd) -> bool {
    if version == crd.storage().name {
        return true;
    }
    let version = crd.version(version).filter(|version| crd.names_fields_alike(&version.name));
    version.is_some_and(|version| {
        !hidden::would_be_pruned(object, &version.schema)
            && misfit::misfits(object.json(), &version.schema).is_empty()
    })
}
