//! The state of one object once all its writes are done: defaults are stored, and old values follow changed
//! defaults. It does not predict that a write is accepted.

use super::{Change, Held, Plan, Record, Terms, decide, follow};
use crate::crd::Crd;
use crate::object::Object;
use kube_structural_schema::path::Path;

/// What Etch would do with one object.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// What it would do about missing defaults.
    pub plan: Plan,
    /// The places whose value is an old default, and would follow it: to the new one, or away with a default
    /// that is gone.
    pub moved: Vec<Path>,
    /// The places whose value is an old default, and would stay.
    pub kept: Vec<Path>,
    /// Why values that would follow do not: a write would do harm.
    held: Option<Held>,
}

impl Prediction {
    /// Why the object is held, in whole or for what would follow; `None` if it is not.
    pub fn held(&self) -> Option<&Held> {
        match &self.plan {
            Plan::Hold(held) => Some(held),
            _ => self.held.as_ref(),
        }
    }

    /// Whether the object would be written.
    pub fn is_written(&self) -> bool {
        !self.moved.is_empty() || matches!(self.plan, Plan::Write(_))
    }
}

/// Decides about one object of a CRD, and about its values that are old defaults: `changes` are those that
/// concern it.
///
/// Owners that have to be moved to the storage version come before values that follow, in a separate write.
/// The result is the same.
pub fn predict(object: &Object, crd: &Crd, terms: &Terms, record: &Record, changes: &[Change]) -> Prediction {
    let plan = decide(object, crd, terms, record);
    let prediction = Prediction { plan, moved: Vec::new(), kept: Vec::new(), held: None };
    if changes.is_empty() || matches!(prediction.plan, Plan::Skip(_) | Plan::Hold(_)) {
        return prediction;
    }
    let following = follow(object, crd, terms, changes, record);
    let (moved, mut kept) = (following.moved, following.kept);
    match following.plan {
        Some(Plan::Hold(held)) => {
            kept.extend(moved);
            kept.sort();
            Prediction { kept, held: Some(held), ..prediction }
        }
        _ => Prediction { moved, kept, ..prediction },
    }
}
