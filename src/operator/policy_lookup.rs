//! Which policy governs a CRD, for code on this replica that answers requests about CRDs.
//! It only reads: the operator keeps the index.

use std::time::Duration;

use serde_json::Value;
use tokio::sync::broadcast;

use super::context::SharedIndex;
use super::index::Change;
use etch_core::api::{Mode, Settings, labels};
use etch_core::object::Object;
use etch_core::upgrade::GuardMode;

/// The operator's index of policies; cheap to clone.
#[derive(Clone)]
pub struct PolicyLookup {
    index: SharedIndex,
    changes: broadcast::Sender<Change>,
    settle: Duration,
}

/// The settings of the policy that governs one CRD.
#[derive(Clone, Debug, PartialEq)]
pub struct GoverningPolicy {
    /// The settings of the policy that governs it.
    pub settings: Settings,
    /// What that policy asks for when the CRD is upgraded.
    pub guard_mode: GuardMode,
}

impl PolicyLookup {
    pub(super) fn new(index: SharedIndex, changes: broadcast::Sender<Change>, settle: Duration) -> Self {
        Self { index, changes, settle }
    }

    /// The settings for a CRD as this document has it, labels included; `None` if no policy selects it.
    pub fn of(&self, crd: &Value) -> Option<GoverningPolicy> {
        let name = crd["metadata"]["name"].as_str()?;
        let (settings, guard_mode) = self.index.read().guarded(name, &labels(crd), self.settle)?;
        Some(GoverningPolicy { settings, guard_mode })
    }

    /// The settings for a CRD by the labels that it was last seen with; `None` if there is no such CRD, or no
    /// policy selects it.
    pub(super) fn of_known(&self, name: &str) -> Option<GoverningPolicy> {
        let index = self.index.read();
        let (settings, guard_mode) = index.guarded(name, &index.crd(name)?.labels, self.settle)?;
        Some(GoverningPolicy { settings, guard_mode })
    }

    /// Why nothing may be written to the objects of a CRD as this document has it, as a reason and a
    /// sentence; `None` if they may be written, also if no policy selects the CRD.
    pub(super) fn withheld(&self, crd: &Value) -> Option<(&'static str, String)> {
        if !self.index.read().is_complete() {
            return Some(("Incomplete", "the policies are not known yet".to_owned()));
        }
        let Some(GoverningPolicy { settings, .. }) = self.of(crd) else {
            let pause = self.index.read().pause_all()?;
            return Some(("Paused", format!("writes are paused by {pause}")));
        };
        let Settings { policy, mode, pause, .. } = settings;
        match (mode, pause) {
            (_, Some(pause)) => Some(("Paused", format!("writes are paused by {pause}"))),
            (Mode::Persist, None) => None,
            (Mode::Audit, None) => Some(("AuditOnly", format!("DefaultsPolicy {policy} has mode: Audit"))),
            (Mode::Ignore, None) => Some(("Ignored", format!("DefaultsPolicy {policy} has mode: Ignore"))),
        }
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
