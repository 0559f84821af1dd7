//! What two releases of an API publish: which defaults come, change and go, and which kinds.
//! Fields without a default do not count.
//!
//! Kinds share definitions: that of a pod is in those of all workloads. A default is reported once, at the
//! definition that declares it, with the kinds that it reaches.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::view::{own_defaults, references};
use super::{Document, TypeName};
use etch_core::impact::Kind;
use kube_structural_schema::json::{Json, is_zero, same};
use kube_structural_schema::path::{Path, Step};

/// What is different between two releases.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// Kinds that only the new release has.
    pub added: Vec<TypeName>,
    /// Kinds that only the old release has.
    pub removed: Vec<TypeName>,
    /// Defaults, by the API version at home, definition and place.
    pub defaults: Vec<DefaultChange>,
}

/// A default that comes, changes or goes.
#[derive(Clone, Debug, PartialEq)]
pub struct DefaultChange {
    /// The API version whose package declares the definition: `v1` for the parts of a pod. Of what belongs to
    /// none, such as the metadata of all objects, that of the kinds if they agree, else empty.
    pub api_version: String,
    /// The name of the definition: `io.k8s.api.core.v1.ServicePort`.
    pub definition: String,
    /// The place in it; the root for a default of the whole definition.
    pub path: Path,
    /// The previous value; `None` if the default is new.
    pub old: Option<Json>,
    /// The present value; `None` if the default is gone.
    pub new: Option<Json>,
    /// The kinds that it reaches, in their order.
    pub kinds: Vec<TypeName>,
    /// Whether these kinds have the definition in both releases: otherwise it comes or goes together with a
    /// field or a kind.
    pub stays: bool,
}

impl Changes {
    /// Whether nothing is different.
    pub fn is_none(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.defaults.is_empty()
    }
}

impl DefaultChange {
    /// Whether it comes, changes or goes.
    pub fn kind(&self) -> Kind {
        match (&self.old, &self.new) {
            (None, _) => Kind::Addition,
            (Some(_), None) => Kind::Loss,
            (Some(_), Some(_)) => Kind::Change,
        }
    }

    /// Whether it stands in for nulls only: a list has no absent items, and a map no absent values.
    pub fn is_for_nulls(&self) -> bool {
        matches!(self.path.steps().last(), Some(Step::Items | Step::Values))
    }

    /// Whether users can ignore it: it is a zero value before and after, and replaces nulls only, or comes
    /// and goes with the field that it is below. Go reads a null or a missing field as the zero value anyway.
    pub fn is_minor(&self) -> bool {
        let is_zero = |default: &Option<Json>| default.as_ref().is_none_or(|default| is_zero(default));
        is_zero(&self.old) && is_zero(&self.new) && (self.is_for_nulls() || !self.stays)
    }
}

/// Compares what two releases publish.
pub fn changes(old: &[Document], new: &[Document]) -> Changes {
    changes_without(old, new, &BTreeSet::new())
}

/// Compares what two releases publish, apart from some types of the old one.
pub fn changes_without(old: &[Document], new: &[Document], left_out: &BTreeSet<TypeName>) -> Changes {
    let (mut old, new) = (Release::of(old), Release::of(new));
    old.kinds.retain(|kind, _| !left_out.contains(*kind));
    let only = |of: &Release<'_>, other: &Release<'_>| {
        of.kinds.keys().filter(|kind| !other.kinds.contains_key(*kind)).map(|kind| (*kind).clone()).collect()
    };
    let mut found = BTreeMap::new();
    let kinds: BTreeSet<&TypeName> = old.kinds.keys().chain(new.kinds.keys()).copied().collect();
    for kind in kinds {
        compare(kind, &old, &new, &mut found);
    }
    let homes = homes(&[&old, &new]);
    let mut defaults: Vec<DefaultChange> = found
        .into_iter()
        .map(|(Place { definition, path, stays, .. }, Found { old, new, kinds })| DefaultChange {
            api_version: home(definition, &kinds, &homes),
            definition: definition.to_owned(),
            path,
            old: old.map(|old| old.clone().into()),
            new: new.map(|new| new.clone().into()),
            kinds: kinds.into_iter().cloned().collect(),
            stays,
        })
        .collect();
    defaults.sort_by(|a, b| {
        let key = |change: &DefaultChange| {
            (change.api_version.clone(), change.definition.clone(), change.path.clone())
        };
        key(a).cmp(&key(b))
    });
    Changes { added: only(&new, &old), removed: only(&old, &new), defaults }
}

/// The kinds of a release, each with the document that describes it.
struct Release<'d> {
    kinds: BTreeMap<&'d TypeName, &'d Document>,
}

/// What distinguishes one change from another. Documents that disagree about a definition have a change each.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Place<'d> {
    definition: &'d str,
    path: Path,
    stays: bool,
    old: Option<Vec<u8>>,
    new: Option<Vec<u8>>,
}

struct Found<'d> {
    old: Option<&'d Value>,
    new: Option<&'d Value>,
    kinds: BTreeSet<&'d TypeName>,
}

impl<'d> Release<'d> {
    fn of(documents: &'d [Document]) -> Self {
        let mut kinds = BTreeMap::new();
        for document in documents {
            for kind in document.kinds() {
                kinds.entry(kind).or_insert(document);
            }
        }
        Self { kinds }
    }

    /// The definitions that a kind is made of, with their schemas.
    fn made_of(&self, kind: &TypeName) -> BTreeMap<&'d str, &'d Value> {
        let mut all = BTreeMap::new();
        let Some(document) = self.kinds.get(kind) else { return all };
        let mut open: Vec<(&'d str, &'d Value)> = document.schema_of(kind).into_iter().collect();
        while let Some((name, schema)) = open.pop() {
            if all.insert(name, schema).is_none() {
                references(schema, &mut |name| {
                    open.extend(document.definition(name).map(|schema| (name, schema)));
                });
            }
        }
        all
    }
}

fn compare<'d>(
    kind: &'d TypeName,
    old: &Release<'d>,
    new: &Release<'d>,
    found: &mut BTreeMap<Place<'d>, Found<'d>>,
) {
    let (before, after) = (old.made_of(kind), new.made_of(kind));
    let names: BTreeSet<&str> = before.keys().chain(after.keys()).copied().collect();
    for definition in names {
        let (before, after) = (before.get(definition).copied(), after.get(definition).copied());
        if before.is_some_and(|before| after == Some(before)) {
            continue;
        }
        let stays = before.is_some() && after.is_some();
        let defaults = |definition: Option<&'d Value>| definition.map(own_defaults).unwrap_or_default();
        let (before, after) = (defaults(before), defaults(after));
        let paths: BTreeSet<&Path> = before.keys().chain(after.keys()).collect();
        for path in paths {
            let (old, new) = (before.get(path).copied(), after.get(path).copied());
            if old.zip(new).is_some_and(|(old, new)| same(old, new)) {
                continue;
            }
            let text = |value: &Value| Json::from(value.clone()).to_vec();
            let place =
                Place { definition, path: path.clone(), stays, old: old.map(text), new: new.map(text) };
            let found = found.entry(place).or_insert_with(|| Found { old, new, kinds: BTreeSet::new() });
            found.kinds.insert(kind);
        }
    }
}

/// The API versions whose kinds are declared in a package, by the package.
fn homes<'d>(releases: &[&Release<'d>]) -> BTreeMap<&'d str, BTreeSet<&'d str>> {
    let mut homes: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (kind, document) in releases.iter().flat_map(|release| &release.kinds) {
        if let Some((definition, _)) = document.schema_of(kind) {
            homes.entry(package(definition)).or_default().insert(&kind.api_version);
        }
    }
    homes
}

/// `io.k8s.api.core.v1` of `io.k8s.api.core.v1.ServicePort`
fn package(definition: &str) -> &str {
    definition.rsplit_once('.').map_or("", |(package, _)| package)
}

fn home(definition: &str, kinds: &BTreeSet<&TypeName>, homes: &BTreeMap<&str, BTreeSet<&str>>) -> String {
    let one = |versions: &BTreeSet<&str>| match versions.len() {
        1 => versions.first().map(|version| (*version).to_owned()),
        _ => None,
    };
    let of_package = homes.get(package(definition)).and_then(one);
    let of_kinds = || one(&kinds.iter().map(|kind| kind.api_version.as_str()).collect());
    of_package.or_else(of_kinds).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A document of `g/v1` with these kinds, each with a pod's spec, and definitions.
    fn document(version: &str, kinds: &[&str], more: Value) -> Document {
        let mut schemas = more;
        for kind in kinds {
            let spec = json!({"allOf": [{"$ref": "#/components/schemas/io.g.v1.PodSpec"}], "default": {}});
            schemas[format!("io.g.{version}.{kind}")] = json!({
                "type": "object", "properties": {"metadata": {}, "spec": spec},
                "x-kubernetes-group-version-kind": [{"group": "g", "version": version, "kind": kind}],
            });
        }
        Document::read(json!({"openapi": "3.0.0", "components": {"schemas": schemas}}).into())
            .expect("a document")
    }

    fn spec(properties: Value) -> Value {
        json!({"io.g.v1.PodSpec": {"type": "object", "properties": properties}})
    }

    fn lines(changes: &Changes) -> Vec<String> {
        let line = |change: &DefaultChange| {
            let DefaultChange { api_version, definition, path, old, new, kinds, .. } = change;
            let shown =
                |value: &Option<Json>| value.as_ref().map_or("-".to_owned(), |value| value.to_string());
            let kinds: Vec<_> = kinds.iter().map(|kind| kind.kind.as_str()).collect();
            let minor = if change.is_minor() { " minor" } else { "" };
            format!(
                "{api_version} {definition}{path} {} > {} {}{minor}",
                shown(old),
                shown(new),
                kinds.join(",")
            )
        };
        changes.defaults.iter().map(line).collect()
    }

    #[test]
    fn a_shared_definition_changes_once() {
        let before = spec(json!({
            "a": {"default": 1}, "b": {"default": "x"}, "c": {"items": {"default": 0}}, "d": {
                "default": 2.0,
            },
        }));
        let after = spec(json!({
            "a": {"default": 5}, "c": {}, "d": {"default": 2}, "e": {"default": {}}, "f": {
                "type": "string",
            },
        }));
        let kinds = &["Pod", "Job"][..];
        let found = changes(&[document("v1", kinds, before)], &[document("v1", kinds, after)]);
        assert_eq!(
            lines(&found),
            [
                "g/v1 io.g.v1.PodSpec.a 1 > 5 Job,Pod",
                "g/v1 io.g.v1.PodSpec.b \"x\" > - Job,Pod",
                "g/v1 io.g.v1.PodSpec.c[] 0 > - Job,Pod minor",
                "g/v1 io.g.v1.PodSpec.e - > {} Job,Pod",
            ]
        );
        let kinds: Vec<Kind> = found.defaults.iter().map(DefaultChange::kind).collect();
        assert_eq!(kinds, [Kind::Change, Kind::Loss, Kind::Loss, Kind::Addition]);
    }

    #[test]
    fn kinds_come_and_go_with_their_defaults() {
        let definitions = || spec(json!({"a": {"default": 1}}));
        let old = [document("v1beta1", &["Pod"], definitions())];
        let new = [document("v1", &["Pod"], definitions())];
        let found = changes(&old, &new);
        let of = |version: &str| TypeName { api_version: format!("g/{version}"), kind: "Pod".to_owned() };
        assert_eq!((&found.added, &found.removed), (&vec![of("v1")], &vec![of("v1beta1")]));
        assert_eq!(
            lines(&found),
            [
                "g/v1 io.g.v1.Pod.spec - > {} Pod minor",
                "g/v1 io.g.v1.PodSpec.a - > 1 Pod",
                "g/v1 io.g.v1.PodSpec.a 1 > - Pod",
                "g/v1beta1 io.g.v1beta1.Pod.spec {} > - Pod minor",
            ]
        );
        assert!(changes(&old, &old).is_none());
    }

    #[test]
    fn servers_that_disagree_about_a_definition_are_told_apart() {
        let old = [document("v1", &["Pod"], spec(json!({"a": {"default": 1}})))];
        let other = |default: i64| document("v2", &["Other"], spec(json!({"a": {"default": default}})));
        let mut both = vec![other(7)];
        both.extend(old);
        let after = [document("v1", &["Pod"], spec(json!({"a": {"default": 1}}))), other(8)];
        assert_eq!(lines(&changes(&both, &after)), ["g/v1 io.g.v1.PodSpec.a 7 > 8 Other"]);
    }
}
