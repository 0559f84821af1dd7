//! Whether a value of an object belongs to nobody.
//! It must not say so where `managedFields` cannot be relied on.

use crate::domain::crd::Crd;
use crate::domain::object::Object;
use crate::domain::ownership::{MANAGER, Owner, is_claimed, owners};
use crate::domain::path::Path;
use crate::domain::plan::{hidden, misfit};

/// An object whose owners are asked about its values.
pub(super) struct Free<'a> {
    object: &'a Object,
    crd: &'a Crd,
    /// Whether what the owners say is all that there is to say.
    is_told: bool,
}

impl<'a> Free<'a> {
    /// Nothing is free in an object without `managedFields`, for somebody has cleared them and with them what was owned; nor
    /// where an owner speaks at a version that cannot express the whole object: the server goes on naming the old owners
    /// then, and does not record who sets what.
    pub(super) fn of(object: &'a Object, crd: &'a Crd) -> Self {
        let is_told =
            owners(object).next().is_some() && owners(object).all(|owner| is_understood(&owner, object, crd));
        Self { object, crd, is_told }
    }

    /// Whether nobody owns the value at a place of the object. What Etch itself owns is nobody's.
    pub(super) fn has(&self, place: &Path) -> bool {
        let others = owners(self.object).filter(|owner| owner.manager != MANAGER);
        self.is_told && !is_claimed(others, self.object.json(), &self.crd.storage().schema, place.steps())
    }
}

fn is_understood(owner: &Owner<'_>, object: &Object, crd: &Crd) -> bool {
    if !owner.fields.is_object() {
        return false;
    }
    if owner.version() == crd.storage().name {
        return true;
    }
    let version = crd.version(owner.version()).filter(|version| crd.names_fields_alike(&version.name));
    version.is_some_and(|version| {
        !hidden::would_be_pruned(object, &version.schema)
            && misfit::misfits(object.json(), &version.schema).is_empty()
    })
}
