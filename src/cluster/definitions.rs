//! Finding CRDs: all their names, one by its name, or one by what users call its objects.
//! It must not hold more than one CRD at a time: schemas are large.

use http::Request;
use http::header::ACCEPT;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::call::{encoded, get};
use super::{CallError, Cluster, crds};
use crate::domain::crd::Resource;
use crate::domain::json::Json;

/// Metadata only: no schemas.
const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
/// Everything that is served, in one answer.
const DISCOVERY: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Why no CRD is meant by a text.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// Nothing that is served is called so.
    #[error("the server has no resource type {0:?}; `kubectl api-resources` lists them all")]
    Unknown(String),
    /// More than one thing is called so.
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

#[derive(Deserialize)]
struct List<'a> {
    #[serde(default)]
    metadata: ListMeta,
    #[serde(borrow, default)]
    items: Vec<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ListMeta {
    r#continue: String,
}

#[derive(Deserialize)]
struct Named {
    metadata: Name,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Name {
    name: String,
}

#[derive(Deserialize)]
struct Groups {
    #[serde(default)]
    items: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    #[serde(default)]
    metadata: Name,
    #[serde(default)]
    versions: Vec<GroupVersion>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct GroupVersion {
    version: String,
    resources: Vec<Served>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Served {
    resource: String,
    singular_resource: String,
    short_names: Vec<String>,
    response_kind: Option<Kind>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Kind {
    kind: String,
}

impl Cluster {
    /// The namespace of the kubeconfig's context, or the one of the pod.
    pub fn default_namespace(&self) -> &str {
        self.client.default_namespace()
    }

    /// The names of all CRDs, in their order.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn crd_names(&self) -> Result<Vec<String>, CallError> {
        let Resource { group, version, plural } = crds();
        let mut names = Vec::new();
        let mut after = String::new();
        loop {
            let path = format!("/apis/{group}/{version}/{plural}?limit=500&continue={}", encoded(&after));
            let body = self.call(accepting(&path, METADATA)).await?;
            let list: List<'_> = serde_json::from_slice(&body).map_err(CallError::malformed)?;
            for item in list.items {
                let named: Named = serde_json::from_str(item.get()).map_err(CallError::malformed)?;
                names.push(named.metadata.name);
            }
            after = list.metadata.r#continue;
            if after.is_empty() {
                names.sort();
                return Ok(names);
            }
        }
    }

    /// A CRD by its name; none if there is none.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn crd(&self, name: &str) -> Result<Option<Json>, CallError> {
        let Resource { group, version, plural } = crds();
        match self.call(get(&format!("/apis/{group}/{version}/{plural}/{}", encoded(name)))).await {
            Ok(body) => Json::parse(&body).map(Some).map_err(CallError::malformed),
            Err(error) if error.code() == Some(404) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The name of the CRD whose objects are called so, as kubectl understands it: by plural, singular, short name or kind,
    /// with `.group` or `.version.group` behind it where that is needed.
    ///
    /// # Errors
    /// See [`ResolveError`]. What is served and is no CRD is unknown.
    pub async fn resolve(&self, name: &str) -> Result<String, ResolveError> {
        if name.contains('.') && self.crd(name).await?.is_some() {
            return Ok(name.to_owned());
        }
        let body = self.call(accepting("/apis", DISCOVERY)).await?;
        let groups: Groups = serde_json::from_slice(&body).map_err(CallError::malformed)?;
        let mut candidates = candidates(name, &groups);
        match candidates.len() {
            0 => Err(ResolveError::Unknown(name.to_owned())),
            1 => Ok(candidates.remove(0)),
            _ => Err(ResolveError::Ambiguous { name: name.to_owned(), candidates }),
        }
    }
}

/// The names of the CRDs that a text may mean.
fn candidates(name: &str, groups: &Groups) -> Vec<String> {
    let lower = name.to_lowercase();
    let (word, rest) = lower.split_once('.').unwrap_or((&lower, ""));
    let mut found = Vec::new();
    for group in &groups.items {
        let group_name = &group.metadata.name;
        for version in &group.versions {
            let is_meant =
                rest.is_empty() || rest == group_name || rest == format!("{}.{group_name}", version.version);
            for served in version.resources.iter().filter(|served| is_meant && served.is_called(word)) {
                let crd = format!("{}.{group_name}", served.resource);
                if !found.contains(&crd) {
                    found.push(crd);
                }
            }
        }
    }
    found
}

impl Served {
    fn is_called(&self, word: &str) -> bool {
        self.resource == word
            || self.singular_resource == word
            || self.short_names.iter().any(|short| short == word)
            || self.response_kind.as_ref().is_some_and(|kind| kind.kind.to_lowercase() == word)
    }
}

fn accepting(path: &str, media_type: &str) -> Request<Vec<u8>> {
    let mut request = get(path);
    if let Ok(value) = media_type.parse() {
        request.headers_mut().insert(ACCEPT, value);
    }
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_understood_as_kubectl_does() {
        let text = r#"{"items": [
            {"metadata": {"name": "stable.example.com"}, "versions": [
                {"version": "v1", "resources": [{"resource": "crontabs", "singularResource": "crontab",
                    "shortNames": ["ct"], "responseKind": {"kind": "CronTab"}}]},
                {"version": "v1beta1", "resources": [{"resource": "crontabs", "responseKind": {"kind": "CronTab"}}]}]},
            {"metadata": {"name": "other.io"}, "versions": [
                {"version": "v1", "resources": [{"resource": "crontabs"}, {"resource": "tabs"}]}]}]}"#;
        let groups: Groups = serde_json::from_str(text).expect("discovery");
        let stable = &["crontabs.stable.example.com"][..];
        for (name, expected) in [
            ("ct", stable),
            ("CronTab", stable),
            ("crontab.stable.example.com", stable),
            ("crontabs.v1beta1.stable.example.com", stable),
            ("crontabs.v2.stable.example.com", &[]),
            ("crontabs", &["crontabs.stable.example.com", "crontabs.other.io"]),
            ("tabs.other.io", &["tabs.other.io"]),
            ("pods", &[]),
        ] {
            assert_eq!(candidates(name, &groups), expected, "{name}");
        }
    }
}
