//! Which CRDs are to be processed.
//! It must not hold their schemas: each is read again when it is its turn.

use etch::cluster::{Cluster, Scope};
use etch::domain::crd::{Crd, Resource};

use super::Persist;
use crate::commands::{crds_named, scope};

/// A CRD that is to be processed.
pub(super) struct Chosen {
    pub(super) name: String,
    /// Where its objects are; none where it cannot be read, which is told when it is its turn.
    pub(super) resource: Option<Resource>,
    pub(super) is_namespaced: bool,
}

impl Persist {
    /// The CRDs that were named, or all that have defaults and objects in the scope.
    ///
    /// # Errors
    /// One that was named is none, or cannot have objects in the scope: nothing is to be done at all then.
    pub(super) async fn choose(&self, cluster: &Cluster, scope: &Scope) -> anyhow::Result<Vec<Chosen>> {
        let is_named = !self.crds.is_empty();
        let mut chosen = Vec::new();
        for name in crds_named(cluster, &self.crds).await? {
            let document = cluster.crd(&name).await.ok().flatten();
            let Some(crd) = document.and_then(|document| Crd::read(&document).ok()) else {
                chosen.push(Chosen { name, resource: None, is_namespaced: false });
                continue;
            };
            if !is_named && !crd.compiled().has_defaults() || !scope::covers(scope, &crd, is_named)? {
                continue;
            }
            let (resource, is_namespaced) = (Some(crd.resource()), crd.is_namespaced());
            chosen.push(Chosen { name, resource, is_namespaced });
        }
        Ok(chosen)
    }
}
