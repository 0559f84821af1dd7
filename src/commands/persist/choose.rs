//! Which CRDs are to be processed.
//! Their schemas are not held: each is read again when it is its turn.

use etch::cluster::Cluster;
use etch_answers::failures::error_text;
use etch_answers::persist::policy_warnings;
use etch_answers::policy::{Known, Unread};
use etch_answers::scope;
use etch_core::api::labels;
use etch_core::crd::{Crd, Resource};
use etch_core::discovery::resolve_error::ResolveError;
use etch_core::scope::Scope;

use super::Persist;
use crate::commands::crds_named;
use crate::commands::policy;
use crate::commands::streams::note;

/// A CRD that is to be processed.
pub(super) struct Chosen {
    pub(super) name: String,
    /// Where its objects are; or why it cannot be read, which is reported when it is its turn.
    pub(super) resource: Result<Resource, String>,
    pub(super) is_namespaced: bool,
    /// Warnings from policies about it.
    pub(super) warnings: Vec<String>,
}

impl Persist {
    /// The CRDs that were named, or all that have defaults and objects in the scope.
    ///
    /// # Errors
    /// One that was named is none, or cannot have objects in the scope: nothing is to be done at all then.
    pub(super) async fn choose(&self, cluster: &Cluster, scope: &Scope) -> anyhow::Result<Vec<Chosen>> {
        let is_named = !self.crds.is_empty();
        let (known, unread) = match policy::of(cluster).await {
            Ok(Known::Unread(Unread::Refused(error))) => (Known::default(), Some(error)),
            Ok(known) => (known, None),
            Err(error) => (Known::default(), Some(error_text(&*error))),
        };
        // Without any policy, Etch is not set up in this cluster.
        let has_policies = known.policies().is_some_and(|policies| !policies.is_empty());
        let mut chosen = Vec::new();
        for name in self.names(cluster).await? {
            let read = match cluster.crd(&name).await {
                // Deleted since it was listed.
                Ok(None) if !is_named => continue,
                Ok(None) => Err("the CRD was deleted".to_owned()),
                Ok(Some(document)) => {
                    Crd::read(&document).map(|crd| (crd, document)).map_err(|error| error.to_string())
                }
                Err(error) => Err(format!("cannot read the CRD: {error}")),
            };
            let (crd, document) = match read {
                Ok(read) => read,
                Err(why) => {
                    let (resource, warnings) = (Err(why), Vec::new());
                    chosen.push(Chosen { name, resource, is_namespaced: false, warnings });
                    continue;
                }
            };
            if !is_named && !crd.gives_defaults() || !scope::covers(scope, &crd, is_named)? {
                continue;
            }
            let rules = known.rules(&crd, &labels(&document));
            let warnings =
                if has_policies { policy_warnings::conflicts(&rules, &self.terms()) } else { Vec::new() };
            let (resource, is_namespaced) = (Ok(crd.resource()), crd.is_namespaced());
            chosen.push(Chosen { name, resource, is_namespaced, warnings });
        }
        // If the cluster is unreachable, the next error reports it.
        if let Some(error) = unread.filter(|_| chosen.iter().any(|chosen| chosen.resource.is_ok())) {
            note(&format!("cannot read DefaultsPolicies: {error}"))?;
        }
        Ok(chosen)
    }

    /// The names of the CRDs that were typed, or of all where none was.
    async fn names(&self, cluster: &Cluster) -> anyhow::Result<Vec<String>> {
        if !self.ignore_not_found {
            return crds_named(cluster, &self.crds).await;
        }
        let mut existing = Vec::new();
        for typed in &self.crds {
            match cluster.resolve(typed).await {
                Err(error @ ResolveError::Unknown { .. }) => {
                    note(&format!("{error}: skipped"))?;
                }
                name => {
                    let name = name?;
                    if !existing.contains(&name) {
                        existing.push(name);
                    }
                }
            }
        }
        Ok(existing)
    }
}
