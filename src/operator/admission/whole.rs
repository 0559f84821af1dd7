//! The check of a request that is about all objects of a CRD: each is counted by what is on record.
//! It only reads, and must not log what it finds.

use std::sync::Arc;

use tokio::time::{Instant, timeout_at};

use super::listing::{Listing, Objects};
use super::upgrades::UpgradeGuard;
use crate::operator::options::now;
use etch_core::call_error::unreadable;
use etch_core::crd::{Crd, Resource};
use etch_core::prediction::record_of;
use etch_core::upgrade::guarded::{is_stored, text, unserved};
use etch_core::upgrade::{Extent, Findings, ObjectFindings};
use kube_structural_schema::json::Json;

/// Where a CRD comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// The request has it: it may be another one than the one that is stored.
    Request,
    /// It was read from the API server.
    Cluster,
}

impl UpgradeGuard {
    /// What is found in all objects of a CRD, by what is known at `until`.
    pub(super) async fn of_all_objects<B: ObjectFindings>(
        &self,
        document: Json,
        origin: Origin,
        until: Instant,
    ) -> Findings {
        let unknown = |why: &str| B::unknown(text(&document, "/metadata/name"), why);
        let Ok(crd) = Crd::read(&document) else { return unknown("cannot read the CRD") };
        // Requests for its objects would be answered with built-in ones.
        if crd.is_shadowed() {
            return Findings::default();
        }
        let Some(version) = B::read_at(&crd) else { return unknown(&unserved(&crd.storage().name)) };
        let resource = Resource { version: version.name.clone(), ..crd.resource() };
        let Ok(Ok(place)) = timeout_at(until, self.places.clone().acquire_owned()).await else {
            return unknown("too many requests at once");
        };
        let checked = timeout_at(until, async {
            if origin == Origin::Request {
                match self.cluster.crd(crd.name()).await {
                    Ok(Some(stored)) if is_stored(&document, &stored) => {}
                    Ok(_) => return Err("the CRD in the request is not the stored one".to_owned()),
                    Err(error) => return Err(unreadable(error.code(), "the CRD")),
                }
            }
            self.report(&crd).await
        });
        let report = match checked.await {
            Ok(Ok(report)) => report,
            Ok(Err(why)) => return unknown(&why),
            Err(_) => return unknown("no time was left to check it"),
        };
        let listing = Listing { cluster: self.cluster.clone(), resource, until, place };
        let crd = Arc::new(crd);
        let evaluate = {
            let crd = crd.clone();
            move |objects: Objects<B>| {
                let record = record_of(report.as_ref(), &document, &crd, now());
                objects.each(record, |objects, object, record| {
                    objects.build(|builder| builder.add(object, &crd, record));
                });
            }
        };
        let findings = |builder: &B, extent: &Extent| builder.findings(&crd, extent);
        listing.evaluated(B::default(), evaluate, findings).await
    }
}
