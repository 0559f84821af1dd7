//! Finding the CRD that users mean by what they call its objects.
//! It must not take a built-in type for a custom resource.

use serde::Deserialize;

use super::crds::accepting;
use super::{CallError, Cluster};
use etch_lint::published::TypeName;

/// Everything that is served, in one answer for each of the two roots.
const DISCOVERY: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
/// How many types are named that may have been meant.
const NEAR: usize = 3;
/// How many letters may be wrong in a type that may have been meant.
const WRONG: usize = 2;

/// Why no CRD is meant by a text.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// Nothing that is served is called so.
    #[error("the server doesn't have a resource type {name:?}{}", suggested(near))]
    Unknown {
        /// The text.
        name: String,
        /// CRDs with a similar name.
        near: Vec<String>,
    },
    /// What is called so is built in, or comes from an aggregated API.
    #[error(
        "{resource} ({kind}) is not a custom resource: no CRD defines it, and Etch works on the objects of CRDs only"
    )]
    NotCustom {
        /// Plural and group; the plural alone in the core group.
        resource: String,
        /// The kind.
        kind: String,
    },
    /// More than one CRD is called so.
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

fn suggested(near: &[String]) -> String {
    match near {
        [] => String::new(),
        near => format!("; did you mean {}?", near.join(" or ")),
    }
}

#[derive(Deserialize)]
struct Groups {
    #[serde(default)]
    items: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    /// The core group has none.
    #[serde(default)]
    metadata: Name,
    #[serde(default)]
    versions: Vec<GroupVersion>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Name {
    name: String,
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

/// A type that a text may mean.
#[derive(Debug, PartialEq, Eq)]
struct Candidate {
    /// Plural and group: the name of its CRD, if there is one.
    resource: String,
    kind: String,
}

impl Cluster {
    /// The name of the CRD whose objects are called so, as kubectl understands it: by plural, singular, short
    /// name or kind, with `.group` or `.version.group` behind it where that is needed.
    ///
    /// # Errors
    /// See [`ResolveError`].
    pub async fn resolve(&self, name: &str) -> Result<String, ResolveError> {
        if name.contains('.') && self.has_crd(name).await? {
            return Ok(name.to_owned());
        }
        let groups = self.served("/apis").await?;
        let mut others = Vec::new();
        let mut found = Vec::new();
        for candidate in candidates(name, &groups) {
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
            others = candidates(name, &self.served("/api").await?);
        }
        if let Some(Candidate { resource, kind }) = others.into_iter().next() {
            return Err(ResolveError::NotCustom { resource, kind });
        }
        let crds = self.crd_names().await?;
        let mut near = near(name, &groups);
        near.retain(|resource| crds.contains(resource));
        near.truncate(NEAR);
        Err(ResolveError::Unknown { name: name.to_owned(), near })
    }

    /// All types that are called so, of CRDs or not, by plural, singular, short name or kind.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn types_called(&self, word: &str) -> Result<Vec<TypeName>, CallError> {
        let word = word.to_lowercase();
        let mut found = Vec::new();
        for root in ["/api", "/apis"] {
            let groups = self.served(root).await?;
            for (served, version, group, _) in groups.all().filter(|(served, ..)| served.is_called(&word)) {
                let api_version =
                    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
                found.push(TypeName { api_version, kind: served.kind().to_owned() });
            }
        }
        Ok(found)
    }

    async fn served(&self, root: &str) -> Result<Groups, CallError> {
        let body = self.call(accepting(root, DISCOVERY)).await?;
        serde_json::from_slice(&body).map_err(CallError::malformed)
    }
}

impl Groups {
    /// All that is served: with its version, its group, and the name that a CRD of it would have.
    fn all(&self) -> impl Iterator<Item = (&Served, &str, &str, String)> {
        self.items.iter().flat_map(|Group { metadata: Name { name: group }, versions }| {
            let served = versions.iter().flat_map(|GroupVersion { version, resources }| {
                resources.iter().map(move |served| (served, version.as_str()))
            });
            served.map(move |(served, version)| {
                let dot = if group.is_empty() { "" } else { "." };
                (served, version, group.as_str(), format!("{}{dot}{group}", served.resource))
            })
        })
    }
}

/// The types that a text may mean, each of them once.
fn candidates(name: &str, groups: &Groups) -> Vec<Candidate> {
    let lower = name.to_lowercase();
    let (word, rest) = lower.split_once('.').unwrap_or((&lower, ""));
    let mut found: Vec<Candidate> = Vec::new();
    for (served, version, group, resource) in groups.all() {
        let is_meant = rest.is_empty() || rest == group || rest == format!("{version}.{group}");
        let is_new = found.iter().all(|other| other.resource != resource);
        if is_meant && is_new && !word.is_empty() && served.is_called(word) {
            found.push(Candidate { resource, kind: served.kind().to_owned() });
        }
    }
    found
}

/// The types whose names are almost this one, the most similar first.
fn near(name: &str, groups: &Groups) -> Vec<String> {
    let lower = name.to_lowercase();
    let mut found: Vec<(usize, String)> = Vec::new();
    for (served, _, _, resource) in groups.all() {
        let kind = served.kind().to_lowercase();
        let names = [&served.resource, &served.singular_resource, &kind, &resource];
        let names = names.into_iter().filter(|name| name.len() > WRONG);
        let Some(wrong) = names.map(|name| distance(name, &lower)).min() else { continue };
        if wrong <= WRONG && found.iter().all(|(_, other)| *other != resource) {
            found.push((wrong, resource));
        }
    }
    found.sort();
    found.into_iter().map(|(_, resource)| resource).collect()
}

/// How many letters are to be changed, added or left out to make one text of another.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, a) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in b.iter().enumerate() {
            let changed = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

impl Served {
    fn is_called(&self, word: &str) -> bool {
        self.resource == word
            || self.singular_resource == word
            || self.short_names.iter().any(|short| short == word)
            || self.kind().to_lowercase() == word
    }

    fn kind(&self) -> &str {
        self.response_kind.as_ref().map_or("", |kind| &kind.kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served() -> Groups {
        let text = r#"{"items": [
            {"versions": [{"version": "v1", "resources": [{"resource": "pods", "responseKind": {"kind": "Pod"}}]}]},
            {"metadata": {"name": "stable.example.com"}, "versions": [
                {"version": "v1", "resources": [{"resource": "crontabs", "singularResource": "crontab",
                    "shortNames": ["ct"], "responseKind": {"kind": "CronTab"}}]},
                {"version": "v1beta1", "resources": [{"resource": "crontabs", "responseKind": {"kind": "CronTab"}}]}]},
            {"metadata": {"name": "other.io"}, "versions": [
                {"version": "v1", "resources": [{"resource": "crontabs"}, {"resource": "tabs"}]}]}]}"#;
        serde_json::from_str(text).expect("discovery")
    }

    #[test]
    fn a_type_is_understood_as_kubectl_does() {
        let groups = served();
        let stable = &["crontabs.stable.example.com"][..];
        for (name, expected) in [
            ("ct", stable),
            ("CronTab", stable),
            ("crontab.stable.example.com", stable),
            ("crontabs.v1beta1.stable.example.com", stable),
            ("crontabs.v2.stable.example.com", &[]),
            ("crontabs", &["crontabs.stable.example.com", "crontabs.other.io"]),
            ("tabs.other.io", &["tabs.other.io"]),
            ("pod", &["pods"]),
            ("secrets", &[]),
            ("", &[]),
        ] {
            let found: Vec<_> =
                candidates(name, &groups).into_iter().map(|candidate| candidate.resource).collect();
            assert_eq!(found, expected, "{name}");
        }
        assert_eq!(candidates("pods", &groups)[0].kind, "Pod");
    }

    #[test]
    fn a_name_that_is_almost_right_is_recognised() {
        let groups = served();
        for (name, expected) in [
            ("contab", &["crontabs.stable.example.com", "crontabs.other.io"][..]),
            ("CronTabz", &["crontabs.other.io", "crontabs.stable.example.com"]),
            ("tabs.othr.io", &["tabs.other.io"]),
            ("podds", &["pods"]),
            ("widgets", &[]),
            ("", &[]),
        ] {
            assert_eq!(near(name, &groups), expected, "{name}");
        }
    }

    #[test]
    fn the_distance_is_the_number_of_wrong_letters() {
        for (a, b, expected) in [
            ("", "", 0),
            ("tab", "", 3),
            ("tab", "tab", 0),
            ("tab", "tub", 1),
            ("tab", "at", 2),
            ("kit", "sitting", 5),
        ] {
            assert_eq!((distance(a, b), distance(b, a)), (expected, expected), "{a} {b}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_as_kubectl_says_it() {
        let unknown = |near: &[&str]| {
            let near = near.iter().map(|near| (*near).to_owned()).collect();
            ResolveError::Unknown { name: "x".to_owned(), near }.to_string()
        };
        assert_eq!(unknown(&[]), "the server doesn't have a resource type \"x\"");
        assert_eq!(
            unknown(&["a.b", "c.d"]),
            "the server doesn't have a resource type \"x\"; did you mean a.b or c.d?"
        );
    }
}
