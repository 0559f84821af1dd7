//! The check of a StorageVersionMigration, within the request that creates it: what it does to the objects of a CRD.
//! It must not write anything, nor log what is found.

use std::sync::Arc;

use tokio::time::{Instant, timeout_at};

use super::listing::{Listing, Objects};
use super::upgrades::{UpgradeGuard, text};
use crate::server::admission::Migration;
use etch_core::crd::Crd;
use etch_core::plan::Witness;
use etch_core::prediction::record_of;
use etch_core::upgrade::{Extent, Findings, GuardDecision, Guarded, MigrationBuilder, decide};
use kube_structural_schema::json::Json;

impl UpgradeGuard {
    /// Judges a migration by what is known of it at `until`, at the latest; nothing is said about other objects than
    /// those of a CRD.
    pub(super) async fn judge_migration(&self, migration: &Migration, until: Instant) -> GuardDecision {
        let Migration { crd: name, metadata } = migration;
        let document = match timeout_at(until, self.cluster.crd(name)).await {
            Ok(Ok(Some(document))) => document,
            // It is none of a CRD's, or nothing shows which policy governs it; and what is not known refuses nothing.
            Ok(Ok(None) | Err(_)) | Err(_) => return GuardDecision::default(),
        };
        let Some(governing) = self.guarded(&document) else { return GuardDecision::default() };
        let uid = text(&document, "/metadata/uid").to_owned();
        let findings = self.migration(document, until).await;
        let guarded = Guarded::Migration { uid: &uid };
        let allowed = metadata["annotations"][guarded.annotation()].as_str();
        decide(name, guarded, governing.guard_mode, &findings, allowed)
    }

    /// What a migration of the objects of a CRD does to them.
    async fn migration(&self, document: Json, until: Instant) -> Findings {
        let unknown = |why: &str| MigrationBuilder::unknown(text(&document, "/metadata/name"), why);
        let Ok(crd) = Crd::read(&document) else { return unknown("cannot read the CRD") };
        if crd.is_shadowed() {
            return Findings::default();
        }
        if !crd.storage().served {
            return unknown(&format!("the storage version {} is not served", crd.storage().name));
        }
        let Ok(Ok(place)) = timeout_at(until, self.places.clone().acquire_owned()).await else {
            return unknown("too many requests at once");
        };
        let Ok(report) = timeout_at(until, self.report(&crd)).await else {
            return unknown("no time was left to check it");
        };
        let listing = Listing { cluster: self.cluster.clone(), resource: crd.resource(), until, place };
        let crd = Arc::new(crd);
        let evaluate = {
            let crd = crd.clone();
            move |mut objects: Objects<MigrationBuilder>| {
                let mut record = record_of(report.as_ref(), &document, &crd);
                while let Some(object) = objects.next() {
                    Witness::of(&object).into_iter().for_each(|witness| record.clock.hear(witness));
                    objects.build(|builder| builder.add(&object, &crd, &record));
                }
            }
        };
        let findings = |builder: &MigrationBuilder, extent: &Extent| builder.findings(&crd, extent);
        listing.evaluated(MigrationBuilder::default(), evaluate, findings).await
    }
}
