//! What is known, beside what an object shows, of fields that only etcd may hold: what writes have left it
//! without, and the defaults of earlier schemas. Every write stores the defaults that its server shows, so
//! etcd may hold one without an owner: neither the owners of an object nor its last applied document name it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::crd::Crd;
use crate::object::Object;
use kube_structural_schema::path::{Path, Step};
use kube_structural_schema::prune::{Field, Pruner};

/// What is known, beside what the objects themselves show, of fields that only etcd may hold.
#[derive(Clone, Debug, Default)]
pub struct HiddenEvidence {
    /// What a write of Etch's is known to have left objects without.
    pub cleared: Cleared,
    /// The places that had a default once and have none now.
    pub former: Vec<FormerDefault>,
}

/// Fields that etcd holds no more, whatever the owners of an object go on naming (fact R5), by the object's
/// uid; as places in the schema.
pub type Cleared = BTreeMap<String, BTreeSet<Path>>;

/// A place in the schema that had a default once and has none now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormerDefault {
    /// The place.
    pub path: Path,
    /// Objects that were written after this resource version do not hold it: the schema had no such field any
    /// more (fact R12). `None` while a server that lags behind may still know the field (fact R6).
    pub until: Option<u64>,
}

impl FormerDefault {
    /// A default that objects of any age may hold.
    pub fn of_any_time(path: Path) -> Self {
        Self { path, until: None }
    }

    /// Whether etcd may hold it in an object, by when that was last written; of one that is not in etcd, it
    /// may.
    fn may_be_in(&self, object: &Object) -> bool {
        object.revision().zip(self.until).is_none_or(|(written, until)| written <= until)
    }
}

/// The places in the schema at which etcd may hold a former default, and that no read shows. Where an object
/// has no place for a default, none was stored there; and where a whole field of a user's is gone, with
/// defaults in it, the owner of that field names it.
///
/// A version that is not the storage version leaves none behind: what is written through it is stored as the
/// storage version has it (fact R12).
pub(super) fn hidden(object: &Object, crd: &Crd, former: &[FormerDefault]) -> Vec<Path> {
    let schema = Pruner::root(&crd.storage().schema);
    let is_hidden = |path: &&Path| is_without_field(object.json(), schema, path.steps());
    let of_earlier = former.iter().filter(|former| former.may_be_in(object)).map(|former| &former.path);
    of_earlier.filter(is_hidden).cloned().collect()
}

/// Whether the object has somewhere what these steps lead into, and the schema does not know the last step.
fn is_without_field(value: &Value, pruner: Pruner<'_>, steps: &[Step]) -> bool {
    let Some((step, rest)) = steps.split_first() else { return false };
    match (step, value) {
        (Step::Field(name) | Step::Key(name), Value::Object(fields)) => match pruner.field(name) {
            Field::Kept => false,
            Field::Pruned(inside) => {
                fields.get(name).is_some_and(|value| is_without_field(value, inside, rest))
            }
            Field::Removed => rest.is_empty(),
        },
        (Step::Values, Value::Object(fields)) => fields.iter().any(|(name, value)| {
            matches!(pruner.field(name), Field::Pruned(inside) if is_without_field(value, inside, rest))
        }),
        (Step::Items | Step::Index(_), Value::Array(items)) => pruner
            .item()
            .is_some_and(|inside| items.iter().any(|item| is_without_field(item, inside, rest))),
        _ => false,
    }
}
