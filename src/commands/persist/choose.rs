//! Which CRDs are to be processed.
//! It must not hold their schemas: each is read again when it is its turn.

use std::io::{self, Write};

use etch::api::Policies;
use etch::cluster::{Cluster, Scope};
use etch::domain::crd::{Crd, Resource};

use super::{Persist, heed};
use crate::commands::{crds_named, scope};

/// A CRD that is to be processed.
pub(super) struct Chosen {
    pub(super) name: String,
    /// Where its objects are; none where it cannot be read, which is told when it is its turn.
    pub(super) resource: Option<Resource>,
    pub(super) is_namespaced: bool,
    /// What policies say against it.
    pub(super) warnings: Vec<String>,
}

impl Persist {
    /// The CRDs that were named, or all that have defaults and objects in the scope.
    ///
    /// # Errors
    /// One that was named is none, or cannot have objects in the scope: nothing is to be done at all then.
    pub(super) async fn choose(&self, cluster: &Cluster, scope: &Scope) -> anyhow::Result<Vec<Chosen>> {
        let is_named = !self.crds.is_empty();
        let (policies, unread) = match heed::policies(cluster).await {
            Ok(policies) => (policies, None),
            Err(error) => (Policies::default(), Some(error)),
        };
        let mut chosen = Vec::new();
        for name in crds_named(cluster, &self.crds).await? {
            let document = cluster.crd(&name).await.ok().flatten();
            let read = document.and_then(|document| Some((Crd::read(&document).ok()?, document)));
            let Some((crd, document)) = read else {
                chosen.push(Chosen { name, resource: None, is_namespaced: false, warnings: Vec::new() });
                continue;
            };
            if !is_named && !crd.compiled().has_defaults() || !scope::covers(scope, &crd, is_named)? {
                continue;
            }
            let warnings = heed::against(&policies, &document, &self.terms());
            let (resource, is_namespaced) = (Some(crd.resource()), crd.is_namespaced());
            chosen.push(Chosen { name, resource, is_namespaced, warnings });
        }
        // Where nothing else can be read either, the error says it.
        if let Some(error) = unread.filter(|_| chosen.iter().any(|chosen| chosen.resource.is_some())) {
            writeln!(io::stderr(), "note: the policies of the cluster cannot be read: {error}")?;
        }
        Ok(chosen)
    }
}
