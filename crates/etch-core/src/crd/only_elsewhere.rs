//! The defaults of other versions whose fields the storage version does not know. A write through such a version
//! stores them, and every read at the storage version leaves them out.

use kube_structural_schema::path::{Path, Trail, TrailStep};
use kube_structural_schema::prune::{Field, Pruner};
use kube_structural_schema::schema::Schema;

use super::{Crd, Version};

/// One version, with the places of such defaults.
#[derive(Debug)]
pub(super) struct OnlyElsewhere {
    version: String,
    places: Vec<Path>,
}

impl OnlyElsewhere {
    /// Those of the versions but the storage version that have any. Where a webhook converts, nothing shows
    /// what it makes of a field.
    pub(super) fn of(versions: &[Version], storage: usize) -> Vec<Self> {
        let known = Pruner::root(&versions[storage].schema);
        let others = versions.iter().enumerate().filter(|(index, _)| *index != storage);
        let places = others.map(|(_, version)| {
            let mut places = Vec::new();
            collect(&version.schema, known, &Trail::ROOT, &mut places);
            Self { version: version.name.clone(), places }
        });
        places.filter(|other| !other.places.is_empty()).collect()
    }
}

impl Crd {
    /// The places of defaults that only these of the other versions have, and whose fields the storage version
    /// does not know: the topmost of these fields.
    pub fn defaults_of_other_versions(&self, is_meant: impl Fn(&str) -> bool) -> impl Iterator<Item = &Path> {
        self.only_elsewhere
            .iter()
            .filter(move |other| is_meant(&other.version))
            .flat_map(|other| &other.places)
    }
}

fn collect(schema: &Schema, known: Pruner<'_>, at: &Trail<'_>, places: &mut Vec<Path>) {
    for (name, property) in schema.properties.iter() {
        let step = TrailStep::Field(name);
        match known.field(name) {
            Field::Kept => {}
            Field::Pruned(inside) => collect(property, inside, &at.join(step), places),
            Field::Removed if property.default.is_some() => places.push(at.join(step).to_path()),
            Field::Removed => {}
        }
    }
    if let (Some(items), Some(inside)) = (&schema.items, known.item()) {
        collect(items, inside, &at.join(TrailStep::Items), places);
    }
    if let (Some(values), Field::Pruned(inside)) = (schema.additional_schema(), known.undeclared()) {
        collect(values, inside, &at.join(TrailStep::Values), places);
    }
}
