//! Reads what shows when objects were written: metadata of other objects in the same etcd as custom
//! resources, and past states of CRDs. It must not trust a resource version of another etcd. What it may not
//! read is left out.

use jiff::Timestamp;

use super::{CallError, Cluster, Form, Scope};
use etch_core::crd::{Crd, Resource};
use etch_core::plan::memory::Memory;
use etch_core::plan::{Clock, History, Witness};
use etch_core::request::resources::{crds, leases, reports};

/// How many witnesses of one kind are read, at least, where there are more.
const ENOUGH: usize = 2_000;

/// What else in a cluster shows when objects were written: CRDs, reports and Leases, and the past events that
/// the API server still has. Each is read once, when it is needed.
#[derive(Debug, Default)]
pub struct Witnesses {
    beside: Option<Vec<Witness>>,
    memory: Option<Memory>,
}

impl Witnesses {
    /// Feeds the clock of a CRD with the objects of its `resource` in a scope, and with all others. What
    /// cannot be read is left out.
    pub async fn feed(&mut self, cluster: &Cluster, resource: &Resource, scope: &Scope, clock: &mut Clock) {
        if clock.may_lag(Timestamp::now()) {
            return;
        }
        let Ok((_, own)) = cluster.witnesses(resource, scope, usize::MAX).await else { return };
        if self.beside.is_none() {
            self.beside = cluster.witnesses_beside(resource, scope).await.ok();
        }
        own.into_iter()
            .chain(self.beside.iter().flatten().copied())
            .for_each(|witness| clock.add_witness(witness));
    }

    /// The states that a CRD has had; nothing where the API server does not remember all of them.
    pub async fn history(&mut self, cluster: &Cluster, crd: &Crd) -> History {
        // Defaults that came with the CRD are in every object, or nothing can show it.
        if crd.generation() == 1 {
            return History::default();
        }
        let memory = match &mut self.memory {
            Some(memory) => memory,
            none => none.insert(cluster.memory().await),
        };
        memory.history(crd).unwrap_or_default()
    }
}

impl Cluster {
    /// CRDs, reports and Leases, if they lie in the same etcd as the objects of a custom resource, as those
    /// of all custom resources do: the resource versions of lists then grow from one list to the next,
    /// whatever is listed (fact R11).
    async fn witnesses_beside(&self, resource: &Resource, scope: &Scope) -> Result<Vec<Witness>, CallError> {
        let mut all = Vec::new();
        for others in [crds(), reports(), leases()] {
            let before = self.revision_of(resource, scope).await?;
            let Ok((between, found)) = self.witnesses(&others, &Scope::All, ENOUGH).await else { continue };
            let after = self.revision_of(resource, scope).await?;
            let is_same = before
                .zip(between)
                .zip(after)
                .is_some_and(|((before, between), after)| (before..=after).contains(&between));
            if is_same {
                all.extend(found);
            }
        }
        Ok(all)
    }

    /// What the objects of a list show about times, and the resource version of its first page.
    async fn witnesses(
        &self,
        resource: &Resource,
        scope: &Scope,
        enough: usize,
    ) -> Result<(Option<u64>, Vec<Witness>), CallError> {
        let (mut after, mut began, mut found) = (None, None, Vec::new());
        loop {
            let page = self.raw_page(resource, scope, Form::Metadata, after.as_deref()).await?;
            for object in page.objects() {
                found.extend(Witness::of(&object?));
            }
            began = began.or_else(|| page.resource_version.parse().ok());
            after = page.next;
            if after.is_none() || found.len() >= enough {
                return Ok((began, found));
            }
        }
    }

    /// The resource version of the etcd in which a resource lies.
    async fn revision_of(&self, resource: &Resource, scope: &Scope) -> Result<Option<u64>, CallError> {
        let namespace = scope.lists().into_iter().next().flatten();
        let list = self.list_of_one(resource, namespace).await?;
        Ok(list["metadata"]["resourceVersion"].as_str().and_then(|revision| revision.parse().ok()))
    }
}
