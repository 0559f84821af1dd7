//! What an API server claims to serve, and which types a name stands for, as kubectl understands it.

pub mod resolve_error;

use serde::Deserialize;

/// How many letters may be wrong in a type that may have been meant.
const WRONG: usize = 2;

/// Everything that is served under one root, as discovery shows it.
#[derive(Debug, Deserialize)]
pub struct Discovery {
    #[serde(default)]
    items: Vec<Group>,
}

#[derive(Debug, Deserialize)]
struct Group {
    /// The core group has none.
    #[serde(default)]
    metadata: Name,
    #[serde(default)]
    versions: Vec<GroupVersion>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Name {
    name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct GroupVersion {
    version: String,
    resources: Vec<Served>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Served {
    resource: String,
    singular_resource: String,
    short_names: Vec<String>,
    response_kind: Option<Kind>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Kind {
    kind: String,
}

/// A type that a text may mean.
#[derive(Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Plural and group: the name of its CRD, if there is one.
    pub resource: String,
    /// The kind.
    pub kind: String,
}

impl Discovery {
    /// The types that a text may mean, each of them once.
    pub fn meant(&self, name: &str) -> Vec<Candidate> {
        let lower = name.to_lowercase();
        let (word, rest) = lower.split_once('.').unwrap_or((&lower, ""));
        let mut found: Vec<Candidate> = Vec::new();
        for (served, version, group, resource) in self.all() {
            let is_meant = rest.is_empty() || rest == group || rest == format!("{version}.{group}");
            let is_new = found.iter().all(|other| other.resource != resource);
            if is_meant && is_new && !word.is_empty() && served.is_called(word) {
                found.push(Candidate { resource, kind: served.kind().to_owned() });
            }
        }
        found
    }

    /// The types whose names are almost this one, the most similar first.
    pub fn near(&self, name: &str) -> Vec<String> {
        let lower = name.to_lowercase();
        let mut found: Vec<(usize, String)> = Vec::new();
        for (served, _, _, resource) in self.all() {
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

    /// API versions and kinds of all types that are called so, by plural, singular, short name or kind.
    pub fn called(&self, word: &str) -> Vec<(String, String)> {
        let word = word.to_lowercase();
        let called = self.all().filter(|(served, ..)| served.is_called(&word));
        let named = called.map(|(served, version, group, _)| {
            let api_version =
                if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
            (api_version, served.kind().to_owned())
        });
        named.collect()
    }

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

    fn served() -> Discovery {
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
            let found: Vec<_> = groups.meant(name).into_iter().map(|candidate| candidate.resource).collect();
            assert_eq!(found, expected, "{name}");
        }
        assert_eq!(groups.meant("pods")[0].kind, "Pod");
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
            assert_eq!(groups.near(name), expected, "{name}");
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
}
