//! Reads what is compared: the CRDs before and after an upgrade, and their objects, and looks at each.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;

use anyhow::{Context, anyhow, bail};
use etch::cluster::etcd::{decode, definition};
use etch::cluster::{Cluster, ObjectSource, ReadError, Scope, Witnesses};
use etch::source;
use etch::source::{Origin, SourceError};
use etch_core::crd::{Crd, Resource, Version};
use etch_core::impact::{Problem, Upgrade};
use etch_core::object::Object;
use etch_core::plan::Record;
use etch_core::prediction::{record_of, upgrade_under_policy};
use etch_core::request::resources::crds;
use futures::TryStreamExt;
use jiff::Timestamp;
use kube_crd_validation::crd::Release;
use kube_structural_schema::json::{DEPTH, Json};
use kube_structural_schema::schema::DEEPEST;
use serde_json::{Value, json};

use super::super::etcd::{evidence, report_on};
use super::super::failures::{remedy, way_out};
use super::super::once::Once;
use super::super::policy::{Known, Labels, first, labels};
use super::super::skipped::without_parts;
use super::super::{Before, documents_before, none_of, scope, serves_its_objects};
use super::crd_impact::CrdImpact;

use crate::commands::streams::note;

/// The sources of everything except the CRDs after the upgrade.
pub(crate) struct Sources<'a> {
    /// The CRDs before, from files; `None` if they are those of the cluster or the snapshot.
    pub(crate) old: Option<BTreeMap<String, Given>>,
    /// Objects from files.
    pub(crate) objects: ObjectSource,
    pub(crate) scope: &'a Scope,
    /// Whether the command can be limited to one namespace.
    pub(crate) can_be_narrowed: bool,
    /// Whether the objects of the cluster are looked at.
    pub(crate) live: bool,
    /// What etcd holds, where there is access to it.
    pub(crate) bytes: Option<ObjectSource>,
    pub(crate) policies: Known,
    /// `None` if the command needs no cluster.
    pub(crate) cluster: Option<Cluster>,
    /// How many objects are named.
    pub(crate) limit: Option<usize>,
}

/// What an upgrade of one CRD does, and the CRDs that were compared.
pub(crate) struct Looked {
    pub(crate) impact: CrdImpact,
    pub(crate) new: Given,
    /// The CRD as the cluster or the snapshot has it.
    pub(crate) present: Option<(Json, Crd)>,
    /// The options of `etch persist` that have it settle before the upgrade what etcd holds, with a space
    /// before each. `None` where it writes no object: no version gives defaults.
    pub(crate) settling: Option<&'static str>,
    /// The option that limits a command to the namespace that was looked at, with a space before it.
    pub(crate) within: String,
}

/// See [`Looked::settling`].
fn settling(impact: &CrdImpact, old: &Crd, new: &Crd) -> Option<&'static str> {
    let of_place_in_etcd: Vec<Problem> = Problem::of_place_in_etcd(old, new).collect();
    match impact.tally.summary.keys().any(|place| place.is_one_of(&of_place_in_etcd)) {
        true => Some(" --every-object"),
        false => old.gives_defaults().then_some(""),
    }
}

impl Sources<'_> {
    /// What the upgrade to these CRDs does.
    pub(crate) async fn look_at(&self, new: BTreeMap<String, Given>) -> anyhow::Result<Vec<Looked>> {
        let (mut all, mut witnesses) = (Vec::new(), Witnesses::default());
        for (name, given) in new {
            all.push(self.look_at_one(&name, given, &mut witnesses).await?);
        }
        Ok(all)
    }

    async fn look_at_one(
        &self,
        name: &str,
        given: Given,
        witnesses: &mut Witnesses,
    ) -> anyhow::Result<Looked> {
        let Given { crd: new, labels, written, .. } = &given;
        let present = self.present(name).await?;
        let read = present.as_ref().map(Crd::read).transpose();
        let read = read.with_context(|| format!("the CRD {name}"))?;
        let of_file = self.given_before(name).map(|given| before_upgrade(&given.written, present.as_ref()));
        let of_file =
            of_file.as_ref().map(Crd::read).transpose().with_context(|| format!("the CRD {name}"))?;
        let (old, before) = match self.given_before(name) {
            Some(given) => (of_file.as_ref(), Some(&given.written)),
            None if self.old.is_none() || self.live => (read.as_ref(), present.as_ref()),
            None => (None, None),
        };
        let labels = labels_after(present.as_ref(), labels);
        let rules = self.policies.rules(old.unwrap_or(new), &labels);
        let mut impact = CrdImpact::new(name, old, new, self.limit, rules);
        impact.in_cluster = !self.live || read.is_some();
        impact.refuse(etch_lint::refusals(written, before, &Release::ALL));
        if let Some(before) = before {
            impact.compare(etch_lint::compatibility(before, written));
        }
        if let Some(old) = old {
            self.look(&mut impact, old, new, present.as_ref().zip(read.as_ref()), witnesses).await?;
        }
        let settling = old.and_then(|old| settling(&impact, old, new));
        let within = self.scope.namespace().map(|namespace| format!(" -n {namespace}")).unwrap_or_default();
        Ok(Looked { impact, new: given, present: present.zip(read), settling, within })
    }

    /// The CRD before, where a file has it. Where the files lack it, the cluster that is looked at may have
    /// it.
    pub(crate) fn given_before(&self, name: &str) -> Option<&Given> {
        self.old.as_ref()?.get(name)
    }

    /// The CRD as the cluster has it, or the snapshot.
    async fn present(&self, name: &str) -> anyhow::Result<Option<Json>> {
        match (&self.cluster, &self.bytes) {
            (Some(cluster), _) => cluster.crd(name).await.with_context(|| format!("the CRD {name}")),
            (None, Some(snapshot)) if self.old.is_none() => {
                let value = snapshot.stored(&crds(), None, name).await?;
                let document = value.map(|value| decode(&value.bytes)).transpose();
                Ok(document.with_context(|| format!("the CRD {name} in the snapshot"))?.map(definition))
            }
            _ => Ok(None),
        }
    }

    /// Looks at each object. `present` is the CRD as the cluster has it.
    async fn look(
        &self,
        impact: &mut CrdImpact,
        old: &Crd,
        new: &Crd,
        present: Option<(&Json, &Crd)>,
        witnesses: &mut Witnesses,
    ) -> anyhow::Result<()> {
        let (name, scope) = (old.name(), self.scope);
        let report = match (&self.cluster, present) {
            (Some(cluster), Some((_, served))) => report_on(cluster, served).await?,
            _ => None,
        };
        let settings = impact.rules.settings();
        let document = present.map(|(document, _)| document);
        let upgrade = upgrade_under_policy(Upgrade::new(old, new), settings, report.as_ref(), document);
        let live = self.cluster.clone().filter(|_| self.live).map(ObjectSource::from);
        let source = self.bytes.as_ref().or(live.as_ref());
        // What proves objects to be stored, and so that the operator has no reason to write them.
        let record = match (source, &self.cluster, present) {
            (Some(ObjectSource::Cluster(_)), Some(cluster), Some((document, served))) => {
                let is_of_file = self.given_before(name).is_some();
                if is_of_file {
                    is_served(old, served)?;
                }
                serves_its_objects(cluster, old).await.context(name.to_owned())?;
                match is_of_file {
                    true => record_of(report.as_ref(), &Json::default(), old, Timestamp::now()),
                    false => evidence(cluster, document, old, report.as_ref(), scope, witnesses).await,
                }
            }
            // A snapshot may be older than what is on record now.
            (Some(ObjectSource::Etcd(..)), Some(_), Some((document, _))) => {
                record_of(report.as_ref(), document, old, Timestamp::now())
            }
            // What etcd holds needs no proof; but what `etch persist` does, which does not read it, is
            // another matter.
            (_, _, Some((document, _))) => {
                record_of(report.as_ref(), document, old, Timestamp::now()).of_hidden()
            }
            _ => Record::default(),
        };
        let failed = |error| match (error, present) {
            (ReadError::Call(error), Some((document, _))) => {
                let remedy = remedy(&error, old, document);
                let error = error.to_string();
                let way_out = if self.can_be_narrowed { way_out(&error, scope) } else { "" };
                anyhow!("{name}: cannot list the objects: {error}{remedy}{way_out}")
            }
            (error, _) => error.into(),
        };
        let is_there =
            |source: &&ObjectSource| !matches!(source, ObjectSource::Cluster(_)) || present.is_some();
        for source in [Some(&self.objects), source.filter(is_there)].into_iter().flatten() {
            let mut pages = source.pages(vec![old.resource()], scope);
            while let Some(page) = pages.try_next().await.map_err(failed)? {
                for shown in page.objects {
                    impact.look(&upgrade, old, &record, shown);
                }
            }
        }
        Ok(())
    }
}

/// The CRD of a file as the cluster has it before the upgrade, with the versions at which objects may be
/// stored. Only `status.storedVersions` shows these: where it lists none, as in manifests, any served version
/// is one.
fn before_upgrade(written: &Json, present: Option<&Json>) -> Json {
    let mut crd = match present {
        Some(present) => with_status(written, present),
        None => written.clone(),
    };
    if crd["status"]["storedVersions"].as_array().is_none_or(Vec::is_empty) {
        let versions = written["spec"]["versions"].as_array().into_iter().flatten();
        let is_stored = |version: &&Value| version["served"] == true || version["storage"] == true;
        let names: Vec<Value> = versions.filter(is_stored).map(|version| version["name"].clone()).collect();
        crd["status"] = json!({ "storedVersions": names });
    }
    crd
}

/// A CRD from a file with the status that the cluster has.
pub(crate) fn with_status(crd: &Json, installed: &Json) -> Json {
    let mut crd = crd.clone();
    if let Some(fields) = crd.as_object_mut() {
        fields.insert("status".to_owned(), installed["status"].clone());
    }
    crd
}

/// The labels that a CRD has after the upgrade: those of the cluster stay, except where the upgrade has
/// others.
fn labels_after(present: Option<&Json>, new: &Labels) -> Labels {
    let mut labels = present.map(|present| labels(present)).unwrap_or_default();
    labels.extend(new.clone());
    labels
}

/// Makes sure that the cluster serves objects in the terms of the old CRD, where that came from a file.
fn is_served(old: &Crd, served: &Crd) -> anyhow::Result<()> {
    let version = &old.storage().name;
    if !served.version(version).is_some_and(|version| version.served) {
        bail!(
            "{}: the cluster does not serve {version}, the storage version of --old; without --old the CRD \
             of the cluster is the one that is compared",
            old.name()
        );
    }
    Ok(())
}

/// A CRD from a file.
pub(crate) struct Given {
    pub(crate) crd: Crd,
    pub(crate) labels: Labels,
    pub(crate) written: Json,
    /// The document.
    pub(crate) origin: Origin,
}

/// The CRDs before, by name: those of files, or of a revision at the paths of the files after; `None` if no
/// file is named.
pub(crate) fn given_before(
    paths: &[PathBuf],
    new: &[PathBuf],
    stdin: &mut dyn io::Read,
) -> anyhow::Result<Option<BTreeMap<String, Given>>> {
    if paths.is_empty() {
        return Ok(None);
    }
    let Before { documents, lacks } = documents_before(paths, new, stdin)?;
    match documents.is_empty() && !lacks.is_empty() {
        true => Ok(Some(BTreeMap::new())),
        false => among(documents, paths).map(Some),
    }
}

/// The CRDs in files, by name.
pub(crate) fn given(paths: &[PathBuf], stdin: &mut dyn io::Read) -> anyhow::Result<BTreeMap<String, Given>> {
    among(source::documents(paths, stdin)?, paths)
}

fn among(documents: Vec<source::Document>, paths: &[PathBuf]) -> anyhow::Result<BTreeMap<String, Given>> {
    let (mut found, mut once) = (BTreeMap::new(), Once::default());
    let other = documents.first().map(source::Document::what);
    for document in without_parts(documents)?.into_iter().filter(source::Document::is_crd) {
        let crd = source::crd(&document)?;
        if !once.is_first(format!("CRD {}", crd.name()), &document)? {
            continue;
        }
        if let Some(Version { name, .. }) =
            crd.versions().iter().find(|version| version.schema.depth() > DEEPEST)
        {
            bail!(
                "{}: the schema of version {name} is nested more than {DEEPEST} levels deep",
                document.origin
            );
        }
        let labels = labels(&document.json);
        let source::Document { json: written, origin, .. } = document;
        found.insert(crd.name().to_owned(), Given { crd, labels, written, origin });
    }
    if found.is_empty() {
        bail!(none_of("CustomResourceDefinition", paths, other));
    }
    Ok(found)
}

/// The CRDs that only the old files have.
pub(crate) fn gone(old: Option<&BTreeMap<String, Given>>, new: &BTreeMap<String, Given>) -> Vec<String> {
    let gone = old.into_iter().flat_map(BTreeMap::keys).filter(|name| !new.contains_key(*name));
    gone.cloned().collect()
}

/// What their absence may mean: where a tool prunes what its manifests no longer have, it is their end.
pub(crate) fn about_gone(gone: &[String]) -> Option<String> {
    let names = first(gone);
    let means = "which --old has: a tool that prunes deletes such a CRD with all its objects";
    (!gone.is_empty()).then(|| format!("-f lacks {names}, {means}"))
}

/// Takes out the CRDs that have no objects in the scope.
pub(super) fn left_out(crds: &mut BTreeMap<String, Given>, scope: &Scope) -> anyhow::Result<()> {
    let beyond = crds.extract_if(.., |_, given| !scope::reaches(scope, &given.crd));
    let beyond: Vec<String> = beyond.map(|(name, _)| name).collect();
    if beyond.is_empty() {
        return Ok(());
    }
    let beyond = beyond.join(", ");
    if crds.is_empty() {
        bail!(
            "-f: {beyond}: cluster-scoped, so nothing is in {}",
            scope::in_words(scope).trim_start_matches("in ")
        );
    }
    note(&format!("skipped, because they are cluster-scoped: {beyond}"))?;
    Ok(())
}

/// The objects of these CRDs among the documents that are in the scope, each once. One that names no
/// namespace may come to be in any.
pub(super) fn objects(
    paths: &[PathBuf],
    crds: &BTreeMap<String, Given>,
    scope: &Scope,
    stdin: &mut dyn io::Read,
) -> anyhow::Result<ObjectSource> {
    let mut found = Found::default();
    let mut other = None;
    let crd_of = |api_version: &str, kind: &str| {
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        let mut all = crds.values().map(|given| &given.crd);
        all.find(|crd| crd.group() == group && crd.kind() == kind)
    };
    let mut take = |document: Result<source::Document, SourceError>| {
        let document = match document {
            Ok(document) => document,
            Err(error) => {
                let origin = error.origin.clone();
                let object = error.too_deep()?;
                let text = |field: &str| object.json()[field].as_str().unwrap_or_default();
                let kind = text("kind");
                match crd_of(text("apiVersion"), kind) {
                    Some(crd) => found.add(origin, object, crd, scope)?,
                    None => {
                        let what = if kind.is_empty() { "something without a kind" } else { kind };
                        let deep = || Some(format!("{what}, nested more than {DEPTH} levels deep"));
                        other = other.take().or_else(deep);
                    }
                }
                return Ok(());
            }
        };
        match crd_of(document.api_version(), document.kind()) {
            Some(crd) => {
                let (origin, object) = source::object(document)?;
                found.add(origin, object, crd, scope)?;
            }
            None => other = other.take().or_else(|| Some(document.what())),
        }
        anyhow::Ok(())
    };
    let mut taken = Ok(());
    source::each(paths, stdin, &mut |document| {
        taken = take(document);
        if taken.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    taken?;
    if found.objects.is_empty() && !paths.is_empty() {
        bail!(none_of("object of the CRDs that are upgraded", paths, other));
    }
    Ok(ObjectSource::Files(found.objects))
}

/// The name of the CRD of an object, and the object's namespace and name.
type ObjectKey = (String, Option<String>, String);

/// The objects of files, by group and plural.
#[derive(Default)]
struct Found {
    objects: BTreeMap<(String, String), Vec<Object>>,
    /// The place of each object among those of its resource, and the document that it is from.
    known: BTreeMap<ObjectKey, (usize, Origin)>,
}

impl Found {
    /// Handles an object, if it is in the scope. Another document of the same object counts once with it.
    ///
    /// # Errors
    /// The other document differs: nothing shows which of them the cluster has.
    fn add(&mut self, origin: Origin, object: Object, crd: &Crd, scope: &Scope) -> anyhow::Result<()> {
        let Resource { group, plural, .. } = crd.resource();
        let objects = self.objects.entry((group, plural)).or_default();
        if object.namespace().is_some() && !scope.contains(object.namespace()) {
            return Ok(());
        }
        let namespace = object.namespace().map(str::to_owned);
        match self.known.entry((crd.name().to_owned(), namespace, object.name().to_owned())) {
            Entry::Occupied(known) => {
                let (index, first) = known.get();
                if *objects[*index].json() != *object.json() {
                    let (kind, name) = (crd.kind(), object.identity());
                    bail!(
                        "{origin}: {kind} {name} is also in {first}, with another content; give one of them"
                    );
                }
            }
            Entry::Vacant(new) => {
                new.insert((objects.len(), origin));
                objects.push(object);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_versions_that_may_be_stored_are_those_of_the_cluster_or_else_all_that_are_served() {
        let version = |name: &str, served: bool, storage: bool| {
            let schema = json!({ "openAPIV3Schema": { "type": "object" } });
            json!({ "name": name, "served": served, "storage": storage, "schema": schema })
        };
        let versions =
            [version("v1alpha1", false, false), version("v1beta1", true, false), version("v1", true, true)];
        let file = Json::from(json!({
            "metadata": { "name": "things.example.com" },
            "spec": {
                "group": "example.com", "names": { "kind": "Thing", "plural": "things" },
                "versions": versions,
            },
        }));
        let elsewhere = |file: &Json, present: Option<&Json>| {
            let crd = Crd::read(&before_upgrade(file, present)).expect("a CRD");
            crd.versions_elsewhere().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(elsewhere(&file, None), ["v1beta1"]);
        let with = |stored: Value| {
            let mut crd = file.clone();
            crd["status"] = json!({ "storedVersions": stored });
            crd
        };
        let (only, old) = (with(json!(["v1"])), with(json!(["v1alpha1", "v1"])));
        assert_eq!(elsewhere(&with(json!([])), None), ["v1beta1"], "as older controller-gen writes it");
        assert_eq!(elsewhere(&only, None), [""; 0]);
        assert_eq!(elsewhere(&file, Some(&old)), ["v1alpha1"]);
        assert_eq!(elsewhere(&only, Some(&old)), ["v1alpha1"], "the cluster knows better than the file");
    }
}
