//! At which versions the objects of a CRD are stored, as far as a list shows it.
//! It must not call an object proved by anything but the evidence in what it reads.

use std::pin::pin;

use futures::TryStreamExt;

use super::scan::scan;
use super::{CallError, Cluster, Scope};
use etch_core::crd::Crd;
use etch_core::plan::{Clock, Record, Witness};
use etch_core::stored_versions::{VersionTally, Whereabouts};
use kube_structural_schema::json::Json;

impl Cluster {
    /// Counts the objects of a CRD by where they are stored.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn stored_versions(&self, crd: &Crd) -> Result<VersionTally, CallError> {
        self.check_server(&crd.into()).await?;
        let mut record = Record::default();
        // Of another generation nothing is known: whoever asked is about to read the CRD again.
        let is_this = |document: &Json| {
            let metadata = &document["metadata"];
            metadata["uid"] == crd.uid() && metadata["generation"] == crd.generation()
        };
        if let Some(document) = self.crd(crd.name()).await?.filter(is_this) {
            record.clock = Clock::of(&document);
        }
        let mut tally = VersionTally::default();
        let mut pages = pin!(scan(self.clone(), crd.resource(), Scope::All));
        while let Some(page) = pages.try_next().await? {
            for object in page.objects {
                Witness::of(&object).into_iter().for_each(|witness| record.clock.hear(witness));
                tally.add(&Whereabouts::of_view(&object, crd, &record));
            }
        }
        Ok(tally)
    }
}
