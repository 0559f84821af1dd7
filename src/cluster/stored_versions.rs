//! At which versions the objects of a CRD are stored, as far as a list shows it.
//! It must not call an object proved by anything but the evidence in what it reads.

use std::pin::pin;

use futures::TryStreamExt;
use jiff::Timestamp;

use super::scan::scan;
use super::{CallError, Cluster, Scope};
use etch_core::crd::Crd;
use etch_core::plan::{Clock, Record, Witness};
use etch_core::stored_versions::{Trim, VersionTally, Whereabouts, trim};
use kube_structural_schema::json::Json;

/// The field manager: the owner of our conditions must own nothing else.
const MANAGER: &str = "etch-stored-versions";

impl Cluster {
    /// Counts the objects of a CRD by where they are stored.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn stored_versions(&self, crd: &Crd) -> Result<VersionTally, CallError> {
        self.check_server(&crd.into()).await?;
        let mut record = Record::default();
        // Nothing is known about another generation: the caller is about to read the CRD again.
        let is_this = |document: &Json| {
            let metadata = &document["metadata"];
            metadata["uid"] == crd.uid() && metadata["generation"] == crd.generation()
        };
        if let Some(document) = self.crd(crd.name()).await?.filter(is_this) {
            record.clock = Clock::of(&document, Timestamp::now());
        }
        let mut tally = VersionTally::default();
        let mut pages = pin!(scan(self.clone(), crd.resource(), Scope::All));
        while let Some(page) = pages.try_next().await? {
            for object in page.objects {
                Witness::of(&object).into_iter().for_each(|witness| record.clock.add_witness(witness));
                tally.add(&Whereabouts::of_view(&object, crd, &record));
            }
        }
        Ok(tally)
    }

    /// Removes versions from a CRD's `status.storedVersions`, unless the CRD has changed since it was read.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn trim_stored_versions(&self, crd: &Crd, versions: &[String]) -> Result<Trim, CallError> {
        if self.is_migrated(crd).await? {
            return Ok(Trim::Migrated);
        }
        let trimmed = |document: &Json| trim(document, crd, versions);
        let (_, is_done) = self.patch_crd_status(crd.name(), MANAGER, trimmed).await?;
        Ok(if is_done { Trim::Done } else { Trim::Changed })
    }
}
