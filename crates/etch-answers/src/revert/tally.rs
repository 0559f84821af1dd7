//! The outcomes for objects, in numbers, and the first of them by name.
//! It holds no more than is printed.

use std::collections::BTreeMap;

use etch_core::object::Identity;
use etch_core::object_machine::{Failure, Reverted};
use etch_core::plan::{KeptBecause, Plan};
use kube_structural_schema::path::Path;
use serde_json::Value;

use crate::action::{Action, Places};
use crate::sample::Sample;

/// The action where a value stays.
const KEEP: &str = "keep";

/// What was done, or would be done, to an object at some places.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) action: Action,
    /// The reason in a sentence, where it needs one.
    pub(super) message: Option<String>,
}

/// How many objects there were.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) objects: u64,
    /// Objects from which a value would be removed.
    pub(super) removable: u64,
    /// Objects from which one was removed.
    pub(super) removed: u64,
    /// Removable ones that were not written since the pass.
    pub(super) unchanged: u64,
    /// Objects that keep a value.
    pub(super) kept: u64,
    pub(super) held: u64,
    pub(super) skipped: u64,
    pub(super) rejected: u64,
    pub(super) unknown: u64,
    /// Objects that were deleted meanwhile.
    pub(super) gone: u64,
}

impl Counts {
    /// Objects from which something is left to remove.
    pub(super) fn left(&self) -> u64 {
        self.removable + self.held + self.skipped + self.rejected + self.unknown
    }
}

/// The outcomes for all objects of a CRD.
#[derive(Debug)]
pub struct Tally {
    pub(super) counts: Counts,
    pub(super) summary: Places,
    pub(super) objects: Sample<Entry>,
}

impl Tally {
    /// Of no object yet; it names at most so many, and all without a limit.
    pub fn new(limit: Option<usize>) -> Self {
        Self { counts: Counts::default(), summary: Places::default(), objects: Sample::new(limit) }
    }

    /// Counts the outcome for an object.
    pub fn add(&mut self, identity: Identity, reverted: Reverted) {
        let Reverted { removed, left, failure, is_gone } = reverted;
        let counts = &mut self.counts;
        counts.objects += 1;
        if is_gone {
            counts.gone += 1;
            return;
        }
        counts.removed += u64::from(!removed.is_empty());
        counts.kept += u64::from(!left.kept.is_empty());
        let mut entries = Vec::new();
        let mut entry = |word, reason, paths, message: String| {
            let message = Some(message).filter(|message| !message.is_empty());
            entries.push(Entry { action: Action { word, reason, paths }, message });
        };
        if !removed.is_empty() {
            entry("removed", None, removed, String::new());
        }
        match (left.plan, failure) {
            (None, _) => {}
            (Some(_), Some(Failure::Rejected(rejection))) => {
                counts.rejected += 1;
                entry("rejected", Some("Rejected"), left.removed, rejection.message);
            }
            (Some(_), Some(Failure::Unknown(why))) => {
                counts.unknown += 1;
                entry("unknown", Some("Unknown"), left.removed, why.to_owned());
            }
            (Some(Plan::Hold(held)), None) => {
                counts.held += 1;
                let message = held.broken_in_short();
                entry("hold", Some(held.reason.as_str()), held.paths, message);
            }
            (Some(Plan::Skip(why)), None) => {
                counts.skipped += 1;
                entry("skip", Some(why.as_str()), left.removed, String::new());
            }
            (Some(Plan::Write(_) | Plan::Stored(_)), None) => {
                counts.removable += 1;
                counts.unchanged += u64::from(left.is_unchanged);
                let since = if left.is_unchanged { "UnchangedSincePass" } else { "WrittenSincePass" };
                entry("remove", Some(since), left.removed, String::new());
            }
        }
        let mut kept: BTreeMap<_, Vec<Path>> = BTreeMap::new();
        for (path, why) in left.kept {
            kept.entry(why).or_default().push(path);
        }
        for (why, paths) in kept {
            entry(KEEP, Some(why.as_str()), paths, String::new());
        }
        for entry in entries {
            self.summary.add(&entry.action);
            self.objects.add(identity.clone(), entry);
        }
    }

    /// Whether an object keeps a value at this place of the schema that no pass on record has stored.
    pub(super) fn keeps_another_value(&self, path: &Path) -> bool {
        self.summary.has_at(KEEP, KeptBecause::Changed.as_str(), path)
    }
}

impl Entry {
    pub(super) fn document(&self, identity: &Identity) -> Value {
        let mut document = self.action.document(identity);
        document["message"] = self.message.as_deref().into();
        document
    }
}

#[cfg(test)]
mod tests {
    use etch_core::object::Object;
    use etch_core::plan::{Held, Hold, Unstoring};

    use super::*;

    #[test]
    fn what_is_not_written_counts_among_no_objects_that_would_be() {
        let held = Held { reason: Hold::HiddenFields, paths: Vec::new(), broken: Vec::new() };
        let mut tally = Tally::new(None);
        for plan in [Plan::Hold(held), Plan::Skip(etch_core::plan::Skip::Ignored)] {
            let left = Unstoring { is_unchanged: true, plan: Some(plan), ..Unstoring::default() };
            tally.add(Object::default().identity(), Reverted { left, ..Reverted::default() });
        }
        let Counts { held, skipped, removable, unchanged, .. } = tally.counts;
        assert_eq!((held, skipped, removable, unchanged), (1, 1, 0, 0));
    }
}
