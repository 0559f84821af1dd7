//! The check of the deletion of a CRD, within the request that asks for it: how many objects go with it.
//! It must not write anything, nor log what is found.

use std::sync::Arc;

use tokio::time::{Instant, timeout_at};

use super::listing::{Listing, Objects, unreadable};
use super::upgrades::{UpgradeGuard, is_stored, text};
use etch_core::crd::Crd;
use etch_core::plan::Witness;
use etch_core::prediction::record_of;
use etch_core::upgrade::{DeletionBuilder, Extent, Findings, GuardDecision, Guarded, decide};
use kube_structural_schema::json::Json;

impl UpgradeGuard {
    /// Judges the deletion of a CRD by what is known of it at `until`, at the latest.
    pub(super) async fn judge_deletion(&self, document: Json, until: Instant) -> GuardDecision {
        let Some(governing) = self.guarded(&document) else { return GuardDecision::default() };
        let metadata: Json = document["metadata"].clone().into();
        let findings = self.deletion(document, until).await;
        let guarded = Guarded::Deletion { uid: text(&metadata, "/uid") };
        let allowed = metadata["annotations"][guarded.annotation()].as_str();
        decide(text(&metadata, "/name"), guarded, governing.guard_mode, &findings, allowed)
    }

    /// What the deletion of a CRD takes along, by what is known at `until`.
    async fn deletion(&self, document: Json, until: Instant) -> Findings {
        let unknown = |why: &str| DeletionBuilder::unknown(text(&document, "/metadata/name"), why);
        let Ok(crd) = Crd::read(&document) else { return unknown("cannot read the CRD") };
        // Requests for its objects would be answered with built-in ones.
        if crd.is_shadowed() {
            return Findings::default();
        }
        if !crd.storage().served {
            return unknown(&format!("the storage version {} is not served", crd.storage().name));
        }
        let Ok(Ok(place)) = timeout_at(until, self.places.clone().acquire_owned()).await else {
            return unknown("too many requests at once");
        };
        let checked = timeout_at(until, async {
            match self.cluster.crd(crd.name()).await {
                Ok(Some(stored)) if is_stored(&document, &stored) => Ok(self.report(&crd).await),
                Ok(_) => Err("the CRD in the request is not the stored one".to_owned()),
                Err(error) => Err(unreadable(error.code(), "the CRD")),
            }
        });
        let report = match checked.await {
            Ok(Ok(report)) => report,
            Ok(Err(why)) => return unknown(&why),
            Err(_) => return unknown("no time was left to check it"),
        };
        let listing = Listing { cluster: self.cluster.clone(), resource: crd.resource(), until, place };
        let crd = Arc::new(crd);
        let evaluate = {
            let crd = crd.clone();
            move |mut objects: Objects<DeletionBuilder>| {
                let mut record = record_of(report.as_ref(), &document, &crd);
                while let Some(object) = objects.next() {
                    Witness::of(&object).into_iter().for_each(|witness| record.clock.hear(witness));
                    objects.build(|builder| builder.add(&object, &crd, &record));
                }
            }
        };
        let findings = |builder: &DeletionBuilder, extent: &Extent| builder.findings(&crd, extent);
        listing.evaluated(DeletionBuilder::default(), evaluate, findings).await
    }
}
