//! Finds the CRD that users mean by a name of its objects.
//! A built-in type is not taken for a custom resource.

use super::{CallError, Cluster};
use etch_core::discovery::resolve_error::{ResolveError, may_be_crd};
use etch_core::discovery::{Candidate, Discovery};
use etch_core::request::accepting;
use etch_lint::published::TypeName;

/// Everything that is served, in one answer for each of the two roots.
const DISCOVERY: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
/// How many types are named that may have been meant.
const NEAR: usize = 3;

impl Cluster {
    /// The name of the CRD whose objects have this name, as kubectl understands it: by plural, singular,
    /// short name or kind, with `.group` or `.version.group` behind it where that is needed.
    ///
    /// # Errors
    /// See [`ResolveError`].
    pub async fn resolve(&self, name: &str) -> Result<String, ResolveError> {
        if may_be_crd(name) && self.has_crd(name).await? {
            return Ok(name.to_owned());
        }
        let groups = self.served("/apis").await?;
        let mut others = Vec::new();
        let mut found = Vec::new();
        for candidate in groups.meant(name) {
            match self.has_crd(&candidate.resource).await? {
                true => found.push(candidate.resource),
                false => others.push(candidate),
            }
        }
        match found.len() {
            0 => {}
            1 => return Ok(found.remove(0)),
            _ => return Err(ResolveError::Ambiguous { name: name.to_owned(), candidates: found }),
        }
        if others.is_empty() {
            others = self.served("/api").await?.meant(name);
        }
        if let Some(Candidate { resource, kind }) = others.into_iter().next() {
            return Err(ResolveError::NotCustom { resource, kind });
        }
        // Without the permission to list CRDs there are no suggestions.
        let crds = self.crd_names().await.unwrap_or_default();
        let mut near = groups.near(name);
        near.retain(|resource| crds.contains(resource));
        near.truncate(NEAR);
        Err(ResolveError::Unknown { name: name.to_owned(), near })
    }

    /// All types with this name, of CRDs or not, by plural, singular, short name or kind.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn types_called(&self, word: &str) -> Result<Vec<TypeName>, CallError> {
        let mut found = Vec::new();
        for root in ["/api", "/apis"] {
            let called = self.served(root).await?.called(word);
            found.extend(called.into_iter().map(|(api_version, kind)| TypeName { api_version, kind }));
        }
        Ok(found)
    }

    async fn served(&self, root: &str) -> Result<Discovery, CallError> {
        self.call_for(accepting(root, DISCOVERY)).await
    }
}
