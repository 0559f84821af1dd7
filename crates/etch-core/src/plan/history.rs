//! The states that a CRD has had since it was created, and which defaults an object that was last written
//! under an early state cannot hold. A default is not absent if a client may have stored it: by hand, through
//! a webhook, or under a state that is not on record.

use std::sync::Arc;

use serde_json::Value;

use super::clock::{created, time};
use crate::crd::{Crd, STATUS};
use crate::object::Object;
use crate::ownership::{Owner, is_covered, is_named, owners};
use kube_structural_schema::compile::has_default;
use kube_structural_schema::json::Json;
use kube_structural_schema::path::{Path, Step};
use kube_structural_schema::prune::{Field, Pruner};
use kube_structural_schema::schema::Schema;

/// The states of a CRD, the first one that of its creation. The empty history proves nothing.
#[derive(Clone, Debug, Default)]
pub struct History {
    eras: Vec<Era>,
}

/// One state, from the resource version that brought it.
#[derive(Clone, Debug)]
struct Era {
    from: u64,
    crd: Arc<Crd>,
}

/// The states that are known so far, as they are read.
#[derive(Debug, Default)]
pub struct HistoryBuilder {
    eras: Vec<Era>,
    is_broken: bool,
}

/// What a state lets an object hold at a place, whichever client writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Holds {
    /// Nothing: no version has such a field, and the server prunes what it does not know.
    Nothing,
    /// A value that a client has written there.
    Written,
    /// The same, or a null that a client has written there or above: its owner owns the field, and a default
    /// takes its place as soon as the schema no longer allows it.
    WrittenOrNull,
    /// A value that a client has written, or a default; or it is unknown.
    Anything,
}

impl HistoryBuilder {
    /// Handles the CRD as it was from this resource version on. The first state must be that of its
    /// creation, and none may be left out.
    pub fn add(&mut self, revision: u64, document: &Json) {
        let generation = document["metadata"]["generation"].as_i64();
        let known = self.eras.last().map(|era| era.crd.generation());
        if generation.is_some() && generation == known {
            return;
        }
        let follows = generation == Some(known.map_or(1, |known| known + 1));
        match Crd::read(document) {
            Ok(crd) if follows => self.eras.push(Era { from: revision, crd: crd.into() }),
            _ => self.is_broken = true,
        }
    }

    /// The history of this CRD; `None` if one of its states is missing.
    pub fn of(self, crd: &Crd) -> Option<History> {
        let is_of = |era: &Era| era.crd.uid() == crd.uid();
        let is_whole = self.eras.last().is_some_and(|era| era.crd.generation() == crd.generation());
        (!self.is_broken && is_whole && self.eras.iter().all(is_of)).then_some(History { eras: self.eras })
    }
}

impl History {
    /// These states, each with the resource version that brought it.
    #[cfg(test)]
    pub(crate) fn of_states(states: impl IntoIterator<Item = (u64, Crd)>) -> Self {
        Self { eras: states.into_iter().map(|(from, crd)| Era { from, crd: crd.into() }).collect() }
    }

    /// The resource version of the first state; `None` for the empty history.
    pub fn since(&self) -> Option<u64> {
        self.eras.first().map(|era| era.from)
    }

    /// Whether etcd holds nothing at this place, where the object shows a default: it was last written before
    /// any version had a default there, and no client has set the field.
    ///
    /// No server knows a state before etcd holds it, and each write leaves out what no version declares (fact
    /// R12). The manager that created an object owns all that was in it, unless mutating admission put it
    /// there: nothing shows what a webhook may have changed.
    pub fn lacks(&self, object: &Object, path: &Path) -> bool {
        match self.before(object).flat_map(|crd| held(crd, path)).max() {
            Some(Holds::Nothing) => true,
            Some(Holds::Written | Holds::WrittenOrNull) => self.is_as_created(object, path, false),
            Some(Holds::Anything) | None => false,
        }
    }

    /// Whether etcd holds the value that the object shows at this place, although a default gives the same:
    /// the creator of the object set it, and the object was last written when every version declared the
    /// field, and none had a default there or allowed a null.
    pub fn gives(&self, object: &Object, path: &Path) -> bool {
        let mut before = self.before(object).flat_map(|crd| held(crd, path));
        before.all(|holds| holds == Holds::Written) && self.is_as_created(object, path, true)
    }

    /// Whether etcd may hold a null at this place, or above, whatever owners name it: a version allowed that
    /// until the object was last written.
    pub fn may_be_null(&self, object: &Object, path: &Path) -> bool {
        self.before(object).flat_map(|crd| held(crd, path)).any(|holds| holds == Holds::WrittenOrNull)
    }

    /// Like [`is_as_created`], by the schema under which the object was last written: owners name fields in
    /// that schema's terms.
    fn is_as_created(&self, object: &Object, path: &Path, is_given: bool) -> bool {
        let last = self.before(object).last();
        last.is_some_and(|crd| is_as_created(object, path, is_given, &crd.storage().schema))
    }

    /// The states up to an object's last write.
    fn before(&self, object: &Object) -> impl Iterator<Item = &Crd> {
        let revision = object.revision().unwrap_or_default();
        self.eras.iter().take_while(move |era| era.from <= revision).map(|era| &*era.crd)
    }

    /// Whether an object can be stored at this version alone.
    pub fn has_stored_only_at(&self, version: &str) -> bool {
        !self.eras.is_empty() && self.eras.iter().all(|era| era.crd.storage().name == version)
    }
}

/// What each version of a state lets an object hold.
fn held(crd: &Crd, path: &Path) -> impl Iterator<Item = Holds> {
    let is_converted = crd.versions().iter().any(|version| !crd.names_fields_alike(&version.name));
    let is_open = is_converted || crd.preserves_unknown_fields();
    crd.versions().iter().map(move |version| match is_open {
        true => Holds::Anything,
        false => holds_at(Pruner::root(&version.schema), path.steps()),
    })
}

fn holds_at(pruner: Pruner<'_>, steps: &[Step]) -> Holds {
    // Nothing is certain about a place without a schema of its own.
    let Some(schema) = pruner.schema() else { return Holds::Anything };
    if schema.default.is_some() || schema.preserve_unknown_fields {
        return Holds::Anything;
    }
    let Some((step, rest)) = steps.split_first() else {
        return match has_default(schema) {
            true => Holds::Anything,
            false if schema.nullable => Holds::WrittenOrNull,
            false => Holds::Written,
        };
    };
    // Owners name an atomic value as a whole, and nothing in it.
    let (inside, is_atomic) = match step {
        Step::Field(name) | Step::Key(name) => match pruner.field(name) {
            Field::Removed => return Holds::Nothing,
            Field::Kept => return Holds::Anything,
            Field::Pruned(inside) => (Some(inside), schema.map_type.as_deref() == Some("atomic")),
        },
        Step::Index(_) | Step::Items => (pruner.item(), schema.list_type.as_deref() != Some("map")),
        Step::Values => return Holds::Anything,
    };
    match inside.map_or(Holds::Anything, |inside| holds_at(inside, rest)) {
        Holds::Written | Holds::WrittenOrNull if is_atomic => Holds::Anything,
        Holds::Written if schema.nullable => Holds::WrittenOrNull,
        holds => holds,
    }
}

/// Whether the object is as it was created, and its creator set this field, or did not: the entry of that
/// request is unchanged, so no client has cleared the owners. The entry names the field, or a value that
/// contains it as a whole; or else no entry does.
fn is_as_created(object: &Object, path: &Path, is_given: bool, schema: &Schema) -> bool {
    let steps = path.steps();
    // No generation counts the changes of these.
    let is_counted =
        !matches!(steps.first(), Some(Step::Field(name)) if name == STATUS || name == "metadata");
    let metadata = &object.json()["metadata"];
    let entries = metadata["managedFields"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_of_creation = |entry: &&Value| {
        let both = time(entry.get("time")).zip(created(object));
        entry.get("subresource").is_none() && both.is_some_and(|(written, created)| written <= created)
    };
    let creators = || entries.iter().filter(is_of_creation).map(Owner::from_entry);
    let is_so = match is_given {
        true => is_covered(creators(), object.json(), schema, steps),
        false => {
            creators().next().is_some()
                && !is_named(owners(object), object.json(), schema, steps)
                && !is_covered(owners(object), object.json(), schema, steps)
        }
    };
    is_counted && metadata["generation"] == 1 && is_so
}
