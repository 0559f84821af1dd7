//! Reading what tells when resource versions were made: metadata of whatever lies in the same etcd as the objects of a CRD.
//! It must not trust a resource version of another etcd, nor fail where something may not be read.

use super::crds::{METADATA_LIST, accepting};
use super::read::collection;
use super::{CallError, Cluster, Form, Scope, crds, reports};
use crate::domain::crd::Resource;
use crate::domain::json::Json;
use crate::domain::plan::Clock;

/// How many witnesses of one kind are read, at least, where there are more.
const ENOUGH: usize = 2_000;

/// `leases.coordination.k8s.io`
fn leases() -> Resource {
    Resource {
        group: "coordination.k8s.io".to_owned(),
        version: "v1".to_owned(),
        plural: "leases".to_owned(),
    }
}

impl Cluster {
    /// Lets the clock of a CRD hear the objects of its `resource`, and then CRDs, reports and Leases, if these lie in the same etcd: the
    /// resource versions of lists then grow from one list to the next, whatever is listed (fact R11). What may not be read is passed over.
    ///
    /// # Errors
    /// Where the objects themselves cannot be read.
    pub async fn hear_witnesses(
        &self,
        resource: &Resource,
        scope: &Scope,
        clock: &mut Clock,
    ) -> Result<(), CallError> {
        if clock.is_blind() {
            return Ok(());
        }
        self.hear(resource, scope, usize::MAX, clock).await?;
        for witnesses in [crds(), reports(), leases()] {
            let mut heard = clock.clone();
            let before = self.revision_of(resource, scope).await?;
            let Ok(between) = self.hear(&witnesses, &Scope::All, ENOUGH, &mut heard).await else { continue };
            let after = self.revision_of(resource, scope).await?;
            if before
                .zip(between)
                .zip(after)
                .is_some_and(|((before, between), after)| (before..=after).contains(&between))
            {
                *clock = heard;
            }
        }
        Ok(())
    }

    /// Lets a clock hear all objects of a list; the resource version of its first page.
    async fn hear(
        &self,
        resource: &Resource,
        scope: &Scope,
        enough: usize,
        clock: &mut Clock,
    ) -> Result<Option<u64>, CallError> {
        let (mut after, mut began, mut heard) = (None, None, 0);
        loop {
            let page = self.raw_page(resource, scope, Form::Metadata, after.as_deref()).await?;
            heard += page.objects().len();
            for object in page.objects() {
                clock.hear(&object?);
            }
            began = began.or_else(|| page.resource_version.parse().ok());
            after = page.next;
            if after.is_none() || heard >= enough {
                return Ok(began);
            }
        }
    }

    /// The resource version of the etcd in which a resource lies.
    async fn revision_of(&self, resource: &Resource, scope: &Scope) -> Result<Option<u64>, CallError> {
        let path = format!("{}?limit=1", collection(resource, scope.namespace()));
        let list =
            Json::parse(&self.call(accepting(&path, METADATA_LIST)).await?).map_err(CallError::malformed)?;
        Ok(list["metadata"]["resourceVersion"].as_str().and_then(|revision| revision.parse().ok()))
    }
}
