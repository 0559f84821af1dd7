//! Finds the CRD that users mean by a name of its objects.
//! A built-in type is not taken for a custom resource.

use super::{CallError, Cluster};
use etch_core::discovery::{Candidate, Discovery};
use etch_core::request::accepting;
use etch_lint::published::TypeName;
use kube_crd_validation::is_object_name;

/// Everything that is served, in one answer for each of the two roots.
const DISCOVERY: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
/// How many types are named that may have been meant.
const NEAR: usize = 3;

/// Why no CRD is meant by a text.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// No served type has this name.
    #[error("the server doesn't have a resource type {name:?}{}", suggested(name, near))]
    Unknown {
        /// The text.
        name: String,
        /// CRDs with a similar name.
        near: Vec<String>,
    },
    /// The type of this name is built in, or comes from an aggregated API.
    #[error(
        "{resource} ({kind}) is not a custom resource: no CRD defines it, and Etch works on the objects of \
         CRDs only"
    )]
    NotCustom {
        /// Plural and group; only the plural in the core group.
        resource: String,
        /// The kind.
        kind: String,
    },
    /// More than one CRD has this name.
    #[error("{name:?} may be any of {}; say which", candidates.join(", "))]
    Ambiguous {
        /// The text.
        name: String,
        /// What it may mean.
        candidates: Vec<String>,
    },
    /// See [`CallError`].
    #[error(transparent)]
    Call(#[from] CallError),
}

fn suggested(name: &str, near: &[String]) -> String {
    match near {
        [] if name.contains('/') => "; give the type alone, without an object".to_owned(),
        [] if name.contains(',') => "; separate types by spaces".to_owned(),
        [] => String::new(),
        near => format!("; did you mean {}?", near.join(" or ")),
    }
}

/// Whether a CRD can have this name. What is behind a slash would be a subresource of it.
fn may_be_crd(name: &str) -> bool {
    name.contains('.') && is_object_name(name)
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_crd_leads_to_no_other_path() {
        assert!(may_be_crd("things.example.com"));
        for name in ["things", "things.example.com/status", "crd/things.example.com", "a.b?c", "../a.b"] {
            assert!(!may_be_crd(name), "{name}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_as_kubectl_says_it() {
        let unknown = |name: &str, near: &[&str]| {
            let near = near.iter().map(|near| (*near).to_owned()).collect();
            ResolveError::Unknown { name: name.to_owned(), near }.to_string()
        };
        for (name, near, expected) in [
            ("x", &[][..], "\"x\""),
            ("x", &["a.b", "c.d"], "\"x\"; did you mean a.b or c.d?"),
            ("x/y", &[], "\"x/y\"; give the type alone, without an object"),
            ("x,y", &[], "\"x,y\"; separate types by spaces"),
        ] {
            assert_eq!(unknown(name, near), format!("the server doesn't have a resource type {expected}"));
        }
    }
}
