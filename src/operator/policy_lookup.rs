//! Which policy governs a CRD, for code on this replica that answers requests about CRDs.
//! It only reads: the operator keeps the index.

use std::time::Duration;

use serde_json::Value;
use tokio::sync::broadcast;

use super::context::SharedIndex;
use etch_core::object::Object;
use etch_core::policy_index::{Change, GoverningPolicy};

/// The operator's index of policies; cheap to clone.
#[derive(Clone)]
pub struct PolicyLookup {
    index: SharedIndex,
    changes: broadcast::Sender<Change>,
    settle: Duration,
}

impl PolicyLookup {
    pub(super) fn new(index: SharedIndex, changes: broadcast::Sender<Change>, settle: Duration) -> Self {
        Self { index, changes, settle }
    }

    /// See [`etch_core::policy_index::Index::governing`].
    pub fn of(&self, crd: &Value) -> Option<GoverningPolicy> {
        self.index.read().governing(crd, self.settle)
    }

    /// See [`etch_core::policy_index::Index::governing_known`].
    pub(super) fn of_known(&self, name: &str) -> Option<GoverningPolicy> {
        self.index.read().governing_known(name, self.settle)
    }

    /// See [`etch_core::policy_index::Index::withheld`].
    pub(super) fn withheld(&self, crd: &Value) -> Option<(&'static str, String)> {
        self.index.read().withheld(crd, self.settle)
    }

    /// Whether the policy that governs a CRD as this document has it selects one of its objects; all are
    /// selected if no policy governs the CRD.
    pub(super) fn selects(&self, crd: &Value, object: &Object) -> bool {
        self.of(crd).is_none_or(|governing| governing.settings.terms.selection.selects(object))
    }

    /// Whether any policy asks for upgrades to be checked; `None` while policies are not known.
    pub(super) fn asks_for_guard(&self) -> Option<bool> {
        self.index.read().asks_for_guard()
    }

    /// The changes from now on.
    pub(super) fn changes(&self) -> broadcast::Receiver<Change> {
        self.changes.subscribe()
    }
}

/// Waits until policies may have changed; forever without a receiver.
pub(super) async fn changed(changes: &mut Option<broadcast::Receiver<Change>>) {
    if let Some(changes) = changes {
        loop {
            match changes.recv().await {
                Ok(Change::All) | Err(broadcast::error::RecvError::Lagged(_)) => return,
                Ok(_) => {}
                Err(broadcast::error::RecvError::Closed) => break,
            }
        }
    }
    std::future::pending().await
}
