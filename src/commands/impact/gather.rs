//! Reads what is compared: the CRDs before and after an upgrade, and their objects, and looks at each.

use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;

use anyhow::{Context, anyhow, bail};
use etch::cluster::{Cluster, ObjectSource, ReadError, Shown, Witnesses};
use etch::source;
use etch_answers::failures::{remedy, way_out};
use etch_answers::impact::given::{self, Given, before_upgrade, is_served, labels_after};
use etch_answers::impact::{CrdImpact, Found, Looked, settling};
use etch_answers::policy::Known;
use etch_answers::scope;
use etch_core::crd::Crd;
use etch_core::etcd::RawValue;
use etch_core::impact::Upgrade;
use etch_core::plan::Record;
use etch_core::prediction::{record_of, upgrade_under_policy};
use etch_core::request::resources::crds;
use etch_core::scope::Scope;
use etch_core::stored::{decode, definition};
use futures::TryStreamExt;
use jiff::Timestamp;
use kube_crd_validation::crd::Release;
use kube_structural_schema::json::Json;

use super::super::etcd::{evidence, report_on};
use super::super::skipped::without_parts;
use super::super::{Before, documents_before, none_of, serves_its_objects};
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
                    match shown {
                        Shown::View(object) => impact.view(&upgrade, old, &record, &object),
                        Shown::Written(object) => impact.written(&upgrade, old, &record, &object),
                        Shown::Stored(identity, RawValue { bytes, revision, .. }) => {
                            impact.stored(&upgrade, old, &record, identity, (&bytes, revision));
                        }
                    }
                }
            }
        }
        Ok(())
    }
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
    let other = documents.first().map(source::Document::what);
    let found = given::among(without_parts(documents)?)?;
    if found.is_empty() {
        bail!(none_of("CustomResourceDefinition", paths, other));
    }
    Ok(found)
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
    let mut taken = Ok(());
    source::each(paths, stdin, &mut |document| {
        taken = found.take(document, crds, scope);
        if taken.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    taken?;
    if found.objects.is_empty() && !paths.is_empty() {
        bail!(none_of("object of the CRDs that are upgraded", paths, found.other));
    }
    Ok(ObjectSource::Files(found.objects))
}
