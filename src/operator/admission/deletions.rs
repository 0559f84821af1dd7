//! The check of the deletion of a CRD, within the request that asks for it: how many objects go with it.

use tokio::time::Instant;

use super::upgrades::UpgradeGuard;
use super::whole::Origin;
use etch_core::upgrade::guarded::{decided, text};
use etch_core::upgrade::{DeletionBuilder, GuardDecision, Guarded};
use kube_structural_schema::json::Json;

impl UpgradeGuard {
    /// Judges the deletion of a CRD by what is known about it at `until`, at the latest.
    pub(super) async fn judge_deletion(&self, document: Json, until: Instant) -> GuardDecision {
        let Some(governing) = self.guarded(&document) else { return GuardDecision::default() };
        let metadata: Json = document["metadata"].clone().into();
        let findings = self.of_all_objects::<DeletionBuilder>(document, Origin::Request, until).await;
        let guarded = Guarded::Deletion { uid: text(&metadata, "/uid") };
        decided(text(&metadata, "/name"), &metadata, guarded, governing.guard_mode, &findings)
    }
}
