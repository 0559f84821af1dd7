//! The check of a StorageVersionMigration, within the request that creates it: what it does to the objects of
//! a CRD.

use tokio::time::{Instant, timeout_at};

use super::upgrades::UpgradeGuard;
use super::whole::Origin;
use crate::server::admission::Migration;
use etch_core::call_error::unreadable;
use etch_core::upgrade::guarded::{decided, text};
use etch_core::upgrade::{GuardDecision, Guarded, MigrationBuilder, ObjectFindings};

impl UpgradeGuard {
    /// Judges a migration by what is known about it at `until`, at the latest. A migration of other objects
    /// than a CRD's is allowed without findings.
    pub(super) async fn judge_migration(&self, migration: &Migration, until: Instant) -> GuardDecision {
        let Migration { crd: name, metadata } = migration;
        let document = match timeout_at(until, self.cluster.crd(name)).await {
            Ok(Ok(Some(document))) => document,
            // It migrates no CRD's objects.
            Ok(Ok(None)) => return GuardDecision::default(),
            Ok(Err(error)) => return self.unknown_migration(migration, &unreadable(error.code(), "the CRD")),
            Err(_) => return self.unknown_migration(migration, "no time was left to check it"),
        };
        let Some(governing) = self.guarded(&document) else { return GuardDecision::default() };
        let uid = text(&document, "/metadata/uid").to_owned();
        let findings = self.of_all_objects::<MigrationBuilder>(document, Origin::Cluster, until).await;
        decided(name, metadata, Guarded::Migration { uid: &uid }, governing.guard_mode, &findings)
    }

    /// Decides about a migration of a CRD's objects that cannot be looked at.
    fn unknown_migration(&self, Migration { crd, metadata }: &Migration, why: &str) -> GuardDecision {
        let Some(governing) = self.policies.of_known(crd) else { return GuardDecision::default() };
        let findings = MigrationBuilder::unknown(crd, why);
        decided(crd, metadata, Guarded::Migration { uid: "" }, governing.guard_mode, &findings)
    }
}
