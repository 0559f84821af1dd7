//! Which defaults have changed.

use std::collections::BTreeMap;

use crate::crd::Crd;
use kube_structural_schema::compile::Compiled;
use kube_structural_schema::json::{Json, same};
use kube_structural_schema::path::{Path, Step};
use kube_structural_schema::schema::Schema;

/// How many values of one default are remembered: of releases that came faster than a pass could be made for
/// each.
const REMEMBERED: usize = 8;

/// What a default gave before, at one place of the schema.
#[derive(Clone, Debug, PartialEq)]
pub struct OldDefault {
    /// Where it stands or stood.
    pub path: Path,
    /// What was filled in there, the latest first.
    pub values: Vec<Json>,
}

/// A default that has changed or is gone.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    path: Path,
    past: Vec<Json>,
    present: Option<Json>,
    followed: bool,
}

impl Change {
    /// Where the default stands or stood.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The present value; `None` if it is gone.
    pub fn present(&self) -> Option<&Json> {
        self.present.as_ref()
    }

    /// Whether values are to follow it.
    pub fn is_followed(&self) -> bool {
        self.followed
    }

    /// Whether a value is what the default gave before.
    pub(super) fn is_past(&self, value: &serde_json::Value) -> bool {
        self.past.iter().any(|past| same(past, value))
    }
}

/// The past of the defaults that come after `defaults`, by what is on record about these: whether objects
/// were processed for them, and what their own past was.
///
/// Where they were, nothing older is left to be moved. Where not, objects may hold values of either: other
/// writers store what the server shows, whether Etch has settled or not.
pub fn past(defaults: Vec<OldDefault>, is_finished: bool, older: Vec<OldDefault>) -> Vec<OldDefault> {
    let mut all: BTreeMap<Path, Vec<Json>> = BTreeMap::new();
    let older = older.into_iter().filter(|_| !is_finished);
    for OldDefault { path, values } in defaults.into_iter().chain(older) {
        let known = all.entry(path).or_default();
        for value in values {
            if known.len() < REMEMBERED && !known.iter().any(|other| same(other, &value)) {
                known.push(value);
            }
        }
    }
    all.into_iter().map(|(path, values)| OldDefault { path, values }).collect()
}

/// What the defaults of a CRD give, as the past of those that come after them.
pub fn past_of(crd: &Crd) -> Vec<OldDefault> {
    given(crd.compiled()).into_iter().map(|(path, value)| OldDefault { path, values: vec![value] }).collect()
}

/// The defaults that have changed, in the order of their paths. `follow` are the paths that a policy names.
///
/// A default is compared as it is filled in, with those below it. One that is itself invalid is not followed.
pub fn changes(past: &[OldDefault], crd: &Crd, follow: &[Path]) -> Vec<Change> {
    let mut present = given(crd.compiled());
    let mut changes: Vec<Change> = past
        .iter()
        .filter_map(|OldDefault { path, values }| {
            let present = present.remove(path);
            let past: Vec<Json> =
                values.iter().filter(|value| present.as_ref() != Some(*value)).cloned().collect();
            let followed = follow.contains(path)
                && is_followable(path, crd)
                && !crd
                    .invalid_defaults()
                    .iter()
                    .any(|invalid| path.contains(invalid) || invalid.contains(path));
            (!past.is_empty()).then(|| Change { path: path.clone(), past, present, followed })
        })
        .collect();
    changes.sort_by(|a, b| a.path.cmp(&b.path));
    changes
}

/// Whether values at a place of a schema can follow its default.
///
/// - Not in `status`, which belongs to a controller and is written elsewhere, nor in `metadata` or the type.
/// - Not an item or a map's value itself: it is there because a client put it there.
/// - Not what identifies an item, in a list map or a set: another value would be another item.
/// - Not what a scale subresource writes: it may have no owner, whichever client sets it (fact W34).
pub fn is_followable(path: &Path, crd: &Crd) -> bool {
    let schema = &crd.storage().schema;
    if crd.is_scaled(path) {
        return false;
    }
    let Some((Step::Field(first), _)) = path.steps().split_first() else { return false };
    if matches!(first.as_str(), "apiVersion" | "kind" | "metadata" | "status") {
        return false;
    }
    let mut list: Option<&Schema> = None;
    let mut at = Some(schema);
    for step in path.steps() {
        let keys = list.take().map_or(&[][..], |list| &list.list_map_keys);
        match step {
            Step::Field(name) if keys.contains(name) => return false,
            Step::Field(name) => at = at.and_then(|schema| schema.child(name)),
            Step::Values => at = at.and_then(Schema::additional_schema),
            Step::Items if at.is_some_and(|list| list.list_type.as_deref() == Some("set")) => return false,
            Step::Items => {
                list = at;
                at = at.and_then(|schema| schema.items.as_deref());
            }
            Step::Key(_) | Step::Index(_) => return false,
        }
    }
    matches!(path.steps().last(), Some(Step::Field(_)))
}

/// What each default gives, with the defaults below it.
fn given(compiled: &Compiled) -> BTreeMap<Path, Json> {
    compiled.defaults().into_iter().map(|site| (site.path.clone(), site.value())).collect()
}
