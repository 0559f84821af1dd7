//! `etch impact`: what an upgrade of CRDs will do, and what is different between two releases of an API server.

mod crd_impact;
mod print;
mod published;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;

use anyhow::{Context, anyhow, bail};
use clap::{Args, ValueEnum};
use etch::cluster::etcd::{decode, definition};
use etch::cluster::{Cluster, ObjectSource, ReadError, Scope, Witnesses, crds};
use etch::source::SourceError;
use etch::{report, source};
use etch_core::crd::{Crd, Resource, Version};
use etch_core::impact::{Kind, Upgrade};
use etch_core::object::Object;
use etch_core::plan::Record;
use etch_core::prediction::{record_of, upgrade_under_policy};
use etch_lint::published::{Document, TypeName, changes_without, installed};
use futures::TryStreamExt;
use kube_crd_validation::crd::Release;
use kube_structural_schema::json::Json;
use kube_structural_schema::schema::DEEPEST;

use self::crd_impact::CrdImpact;
use super::etcd::{EtcdArgs, evidence, report_on};
use super::failures::way_out;
use super::policy::{Known, Labels, PolicyArg, labels};
use super::sample::LimitArg;
use super::{none_of, one_stdin, openapi, scope, serves_its_objects};
use crate::commands::emit::{emit, ended};
use crate::commands::global::{Global, Output};
use crate::commands::outcome::Outcome;

/// Show what a CRD upgrade changes
///
/// Compare the defaults and fields of the storage versions, and show for each object which values appear, which change or
/// disappear because etcd never held them, which are hidden because the new schema does not have them, and what becomes
/// invalid. What Etch does after the upgrade depends on the DefaultsPolicy that governs the CRD.
///
/// With access to etcd, or to a snapshot of it, every answer is exact. Without it, managedFields decide: a default without an
/// owner counts as not stored, unless somebody wrote the object after the CRD last changed. Objects from files count as stored as
/// they are.
///
/// With --openapi, compare the defaults that two releases of Kubernetes or of an aggregated API publish for their types.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  etch impact -f new.yaml --old old.yaml
  etch impact -f new.yaml --old old.yaml --objects objects/
  etch impact -f new.yaml --live -o json
  etch impact -f new.yaml --live --fail-on changes
  etch impact -f new.yaml --etcd-snapshot backup.db
  etch impact --openapi v1.36/ --openapi v1.37/

Exit status: 0 if the upgrade does nothing that --fail-on names, 1 if it does, 2 if the command failed.")]
pub(crate) struct Impact {
    /// The CRDs after the upgrade: files, folders, or - for standard input
    #[arg(short = 'f', long = "filename", value_name = "NEW", required_unless_present = "openapi")]
    new: Vec<PathBuf>,
    /// The CRDs before the upgrade [default: those of the cluster]
    #[arg(long, value_name = "OLD")]
    old: Vec<PathBuf>,
    /// The objects to check: files, folders, or - for standard input
    #[arg(long, value_name = "FILE", conflicts_with = "live", num_args = 1..)]
    objects: Vec<PathBuf>,
    /// Check all objects in the cluster
    #[arg(long)]
    live: bool,
    /// The changes that set the exit status to 1
    #[arg(long, value_name = "WHAT", value_enum, ignore_case = true, default_value_t)]
    fail_on: FailOn,
    /// Compare the OpenAPI v3 documents of API servers instead: those before and after, each a file or folder. If set once, these
    /// are the documents after, and the cluster has those before
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["new", "old", "objects", "files", "etcd_endpoints", "etcd_snapshot"]
    )]
    openapi: Vec<PathBuf>,
    #[command(flatten)]
    policy: PolicyArg,
    #[command(flatten)]
    limit: LimitArg,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
    #[command(flatten)]
    etcd: EtcdArgs,
}

/// What makes the exit status 1, in the schemas or on objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum FailOn {
    /// Anything, including additions
    #[default]
    Any,
    /// Defaults and values that change or disappear, fields that are removed, and objects that become invalid
    Changes,
    /// Defaults, fields and values that disappear, and objects that become invalid
    Losses,
}

impl FailOn {
    fn counts(self, kind: Kind) -> bool {
        match (self, kind) {
            (Self::Any, _) | (_, Kind::Loss | Kind::Problem) => true,
            (_, Kind::Change) => self == Self::Changes,
            (_, Kind::Addition | Kind::Known) => false,
        }
    }
}

impl Impact {
    pub(crate) async fn run(self, global: &Global, out: &mut dyn Write) -> anyhow::Result<Outcome> {
        if !self.openapi.is_empty() {
            return self.published(global, out).await;
        }
        let scope = global.scope()?;
        if scope.namespace().is_some() && !self.has_objects() {
            bail!(
                "--namespace selects objects, but only schemas are compared: add --live, --objects or access to etcd"
            );
        }
        one_stdin([&self.new, &self.old, &self.objects, &self.policy.files].into_iter().flatten())?;
        let mut stdin = io::stdin().lock();
        let mut new = given(&self.new, &mut stdin).context("-f")?;
        left_out(&mut new, &scope)?;
        let old = given(&self.old, &mut stdin).context("--old")?;
        let objects = objects(&self.objects, &new, &scope, &mut stdin).context("--objects")?;
        let policies = self.policy.read(&mut stdin)?;
        drop(stdin);
        let is_asked = self.live || self.old.is_empty() && self.etcd.etcd_snapshot.is_none();
        let cluster = match is_asked {
            true => Some(Cluster::connect(&global.target()).await?),
            false => None,
        };
        if let (Some(cluster), true) = (&cluster, self.live) {
            scope::exists(cluster, &scope).await?;
        }
        let bytes = self.etcd.open().await?;
        let policies = match (policies, &cluster) {
            (Some(policies), _) => policies,
            (None, Some(cluster)) if self.has_objects() => Known::of(cluster).await?,
            (None, _) => Known::default(),
        };
        let (mut all, mut witnesses) = (Vec::new(), Witnesses::default());
        let live = cluster.clone().filter(|_| self.live).map(ObjectSource::from);
        let source = bytes.as_ref().or(live.as_ref());
        for (name, Given { crd: new, labels, written }) in &new {
            let present = match (&cluster, &bytes) {
                (Some(cluster), _) => cluster.crd(name).await.with_context(|| format!("the CRD {name}"))?,
                (None, Some(snapshot)) if self.old.is_empty() => {
                    let value = snapshot.stored(&crds(), None, name).await?;
                    let document = value.map(|value| decode(&value.bytes)).transpose();
                    document.with_context(|| format!("the CRD {name} in the snapshot"))?.map(definition)
                }
                _ => None,
            };
            let read = present.as_ref().map(Crd::read).transpose();
            let read = read.with_context(|| format!("the CRD {name}"))?;
            let (from_file, before) = match old.get(name) {
                Some(Given { crd, written, .. }) => (Some(crd), Some(written)),
                None => (None, None),
            };
            let labels = labels_after(present.as_ref(), labels);
            let document = present.filter(|_| self.old.is_empty());
            let old = if self.old.is_empty() { read.as_ref() } else { from_file };
            let rules = policies.rules(old.unwrap_or(new), &labels);
            let mut impact = CrdImpact::new(name, old, new, self.limit.of(self.output), rules);
            impact.in_cluster = !self.live || read.is_some();
            impact.refuse(etch_lint::refusals(written, document.as_ref().or(before), &Release::ALL));
            if let Some(before) = document.as_ref().or(before) {
                impact.narrow(etch_lint::compatibility(before, written));
            }
            if let Some(old) = old {
                let report = match (&cluster, &read) {
                    (Some(cluster), Some(present)) => report_on(cluster, present).await,
                    _ => None,
                };
                let upgrade = upgrade_under_policy(
                    Upgrade::new(old, new),
                    old,
                    new,
                    impact.rules.settings(),
                    report.as_ref(),
                );
                // What proves objects to be stored that are shown as the API server reads them.
                let record = match (source, &cluster, &read) {
                    (Some(ObjectSource::Cluster(_)), Some(cluster), Some(served)) => {
                        is_served(old, served)?;
                        serves_its_objects(cluster, old).await.context(name.clone())?;
                        match &document {
                            Some(document) => {
                                evidence(cluster, document, old, report.as_ref(), &scope, &mut witnesses)
                                    .await
                            }
                            None => record_of(report.as_ref(), &Json::default(), old),
                        }
                    }
                    _ => Record::default(),
                };
                let source =
                    source.filter(|source| !matches!(source, ObjectSource::Cluster(_)) || read.is_some());
                for source in [Some(&objects), source].into_iter().flatten() {
                    let mut pages = source.pages(vec![old.resource()], &scope);
                    while let Some(page) =
                        pages.try_next().await.map_err(|error| failed(error, name, &scope))?
                    {
                        for shown in page.objects {
                            impact.look(&upgrade, old, &record, shown);
                        }
                    }
                }
            }
            all.push(impact);
        }
        if all.iter().any(|impact| impact.tally.counts.total > 0) {
            policies.announce()?;
        }
        emit(
            out,
            self.output,
            || print::document(&all, &scope),
            |out| {
                scope::write(out, &scope)?;
                all.iter().try_for_each(|impact| print::table(out, &global.style(), impact))
            },
        )?;
        self.judged(all.iter().flat_map(CrdImpact::kinds))
    }

    /// Compares what two releases publish.
    async fn published(&self, global: &Global, out: &mut dyn Write) -> anyhow::Result<Outcome> {
        global.has_no_scope("published types have no namespace")?;
        one_stdin(&self.openapi)?;
        let read = |path: &PathBuf| openapi::of_files(std::slice::from_ref(path), &mut io::stdin().lock());
        let (old, new) = match self.openapi.as_slice() {
            [new] => (None, new),
            [..] if self.live => {
                bail!("--live takes what the cluster publishes for the state before: give --openapi once")
            }
            [old, new] => (Some(read(old).context("--openapi")?), new),
            _ => bail!("--openapi takes two releases: give it twice, before and after"),
        };
        let new = read(new).context("--openapi")?;
        let (old, crds) = match old {
            Some(old) => (old, Vec::new()),
            None => {
                let live = openapi::Live::connect(global).await?;
                let (old, failures) = live.all().await;
                for failure in failures {
                    writeln!(io::stderr(), "note: left out: {}", report::plain(&failure))?;
                }
                (old, live.crds().await?)
            }
        };
        let installed = left_out_of_release(&old, &new, &crds)?;
        let changes = changes_without(&old, &new, &installed);
        let document = || published::document(&changes);
        emit(out, self.output, document, |out| published::table(out, &global.style(), &changes))?;
        self.judged(published::kinds(&changes))
    }

    /// How the command ended, by the sorts of what was found.
    fn judged(&self, kinds: impl IntoIterator<Item = Kind>) -> anyhow::Result<Outcome> {
        ended(Vec::new(), !kinds.into_iter().any(|kind| self.fail_on.counts(kind)))
    }

    /// Whether objects are looked at, and not the schemas alone.
    fn has_objects(&self) -> bool {
        self.live || !self.objects.is_empty() || self.etcd.is_given()
    }
}

/// The types of installed CRDs, which a release does not have and does not remove. They are named once, on standard error.
fn left_out_of_release(
    old: &[Document],
    new: &[Document],
    crds: &[String],
) -> anyhow::Result<BTreeSet<TypeName>> {
    let installed = installed(old, new, crds);
    if !installed.is_empty() {
        let names: Vec<&str> = installed.keys().copied().collect();
        let count = report::counted(names.len() as u64, "installed CRD");
        let names = super::policy::first(&names);
        writeln!(
            io::stderr(),
            "note: left out: {count}, which these documents do not have: {}",
            report::plain(&names)
        )?;
    }
    Ok(installed.into_values().flatten().collect())
}

/// The labels that a CRD has after the upgrade: those of the cluster stay, save where the upgrade has others.
fn labels_after(present: Option<&Json>, new: &Labels) -> Labels {
    let mut labels = present.map(labels).unwrap_or_default();
    labels.extend(new.clone());
    labels
}

/// Why the objects of a CRD cannot be read.
fn failed(error: ReadError, name: &str, scope: &Scope) -> anyhow::Error {
    match error {
        ReadError::Call(error) => {
            let error = error.to_string();
            anyhow!("{name}: the objects: {error}{}", way_out(&error, scope))
        }
        error => error.into(),
    }
}

/// Makes sure that the cluster serves objects in the terms of the old CRD, where that came from a file.
fn is_served(old: &Crd, served: &Crd) -> anyhow::Result<()> {
    let version = &old.storage().name;
    if !served.version(version).is_some_and(|version| version.served) {
        bail!(
            "{}: the cluster does not serve {version}, the storage version of --old; without --old the CRD of the cluster is \
             the one that is compared",
            old.name()
        );
    }
    Ok(())
}

/// A CRD from a file.
struct Given {
    crd: Crd,
    labels: Labels,
    written: Json,
}

/// The CRDs among the documents, by name.
fn given(paths: &[PathBuf], stdin: &mut dyn io::Read) -> anyhow::Result<BTreeMap<String, Given>> {
    let mut found = BTreeMap::new();
    let documents = source::documents(paths, stdin)?;
    for document in documents.iter().filter(|document| document.is_crd() && !document.is_part_of_crd()) {
        let crd = source::crd(document)?;
        if let Some(Version { name, .. }) =
            crd.versions().iter().find(|version| version.schema.depth() > DEEPEST)
        {
            bail!(
                "{}: the schema of version {name} is nested more than {DEEPEST} levels deep",
                document.origin
            );
        }
        if found.contains_key(crd.name()) {
            bail!("{}: CRD {} was given before", document.origin, crd.name());
        }
        let labels = labels(&document.json);
        found.insert(crd.name().to_owned(), Given { crd, labels, written: document.json.clone() });
    }
    if found.is_empty() && !paths.is_empty() {
        bail!(none_of("CustomResourceDefinition", paths, documents.first().map(source::Document::what)));
    }
    Ok(found)
}

/// Takes out the CRDs that have no objects in the scope.
fn left_out(crds: &mut BTreeMap<String, Given>, scope: &Scope) -> anyhow::Result<()> {
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
    writeln!(io::stderr(), "note: skipped, because they are cluster-scoped: {beyond}")?;
    Ok(())
}

/// The objects of these CRDs among the documents that are in the scope. One that names no namespace may
/// come to be in any.
fn objects(
    paths: &[PathBuf],
    crds: &BTreeMap<String, Given>,
    scope: &Scope,
    stdin: &mut dyn io::Read,
) -> anyhow::Result<ObjectSource> {
    let mut found: BTreeMap<_, Vec<Object>> = BTreeMap::new();
    let mut other = None;
    let mut add = |object: Object, crd: &Crd| {
        let Resource { group, plural, .. } = crd.resource();
        let found = found.entry((group, plural)).or_default();
        if object.namespace().is_none() || scope.contains(object.namespace()) {
            found.push(object);
        }
    };
    let crd_of = |api_version: &str, kind: &str| {
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        let mut all = crds.values().map(|given| &given.crd);
        all.find(|crd| crd.group() == group && crd.kind() == kind)
    };
    let mut take = |document: Result<source::Document, SourceError>| {
        let document = match document.map_err(SourceError::too_deep) {
            Ok(document) => document,
            Err(object) => {
                let object = object?;
                let text = |field: &str| object.json()[field].as_str().unwrap_or_default();
                if let Some(crd) = crd_of(text("apiVersion"), text("kind")) {
                    add(object, crd);
                }
                return Ok(());
            }
        };
        match crd_of(document.api_version(), document.kind()) {
            Some(crd) => add(source::object(document)?.1, crd),
            None => other = other.take().or_else(|| Some(document.what())),
        }
        Ok::<_, SourceError>(())
    };
    let mut taken = Ok(());
    source::each(paths, stdin, &mut |document| {
        taken = take(document);
        if taken.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    taken?;
    if found.is_empty() && !paths.is_empty() {
        bail!(none_of("object of the CRDs that are upgraded", paths, other));
    }
    Ok(ObjectSource::Files(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_is_what_was_named() {
        let kinds = [Kind::Addition, Kind::Known, Kind::Change, Kind::Loss, Kind::Problem];
        let counted = |fail_on: FailOn| kinds.map(|kind| fail_on.counts(kind));
        assert_eq!(counted(FailOn::Any), [true; 5]);
        assert_eq!(counted(FailOn::Changes), [false, false, true, true, true]);
        assert_eq!(counted(FailOn::Losses), [false, false, false, true, true]);
    }
}
