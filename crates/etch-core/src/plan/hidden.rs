//! Fields that etcd may still hold and that no read shows: the owners and the last applied document name
//! them, or a default that was there may have been stored, and the schema does not know them, or a conversion
//! webhook leaves them out. They are only suspected: `managedFields` keeps naming a field that is long gone
//! (fact R5).

use std::collections::BTreeSet;

use super::Record;
use super::hidden_evidence::{self, FormerDefault, HiddenEvidence};
use super::places::gaps;
use super::undeclared::{unknown_owned, unknown_values};
use crate::crd::Crd;
use crate::object::{Object, version_of};
use crate::ownership::{is_named, others};
use kube_structural_schema::json::Json;
use kube_structural_schema::path::{Path, Trail};
use kube_structural_schema::prune::Pruner;
use kube_structural_schema::schema::Schema;

/// What kubectl's client-side apply keeps of the document it sent.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The hidden fields, without those that are known to be gone.
pub fn still_hidden(object: &Object, crd: &Crd, record: &Record) -> Vec<Path> {
    let HiddenEvidence { cleared, former } = &*record.hidden;
    // A write that every server made under the present schema has left none of them.
    let former = if record.clock.is_since(object) { &[][..] } else { former };
    let mut paths = hidden(object, crd, former);
    if let Some(cleared) = cleared.get(object.uid()) {
        paths.retain(|path| !cleared.contains(&path.to_schema()));
    }
    paths
}

/// The topmost fields that a write may destroy, in order.
pub fn hidden(object: &Object, crd: &Crd, former: &[FormerDefault]) -> Vec<Path> {
    if crd.preserves_unknown_fields() {
        return Vec::new();
    }
    let mut found = BTreeSet::new();
    let storage = Pruner::root(&crd.storage().schema);
    for owner in others(object) {
        let spoken = crd.version(owner.version()).map_or(storage, |version| Pruner::root(&version.schema));
        unknown_owned(owner.fields, spoken, &Trail::ROOT, &mut found);
        if crd.names_fields_alike(owner.version()) {
            unknown_owned(owner.fields, storage, &Trail::ROOT, &mut found);
        }
    }
    if let Some(applied) = object.annotation(LAST_APPLIED).and_then(|text| Json::parse(text.as_bytes()).ok())
        && crd.names_fields_alike(version_of(&applied))
    {
        unknown_values(&applied, storage, &Trail::ROOT, &mut found);
    }
    found.extend(replaced(object, crd));
    found.extend(hidden_evidence::hidden(object, crd, former));
    found.into_iter().collect()
}

/// The missing defaults that would take the place of a value. Where a webhook converts, it may leave out what
/// etcd holds at the version that the object is stored at: an owner names the value, and no read at the
/// storage version shows it. A write that stores the default destroys it, and takes the field from its owner.
fn replaced(object: &Object, crd: &Crd) -> Vec<Path> {
    if !crd.is_converted_by_webhook() || !crd.stored_elsewhere() {
        return Vec::new();
    }
    let mut paths = gaps(object, crd);
    if !paths.is_empty() {
        let mut filled = object.json().clone();
        crd.compiled().fill(&mut filled);
        let others = others(object);
        let schema = &crd.storage().schema;
        paths.retain(|path| is_named(others.clone(), &filled, schema, path.steps()));
    }
    paths
}

/// Whether an object has a field that a schema does not know.
pub(super) fn would_be_pruned(object: &Object, schema: &Schema) -> bool {
    let mut found = BTreeSet::new();
    unknown_values(object.json(), Pruner::root(schema), &Trail::ROOT, &mut found);
    !found.is_empty()
}
