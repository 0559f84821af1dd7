//! `etch impact`: what an upgrade of CRDs will do, and what is different between two releases of an API
//! server.

pub(super) mod gather;

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use etch::cluster::Cluster;
use etch_answers::impact::given::{about_gone, gone};
use etch_answers::impact::{document, html, markdown, print, published};
use etch_answers::policy::Known;
use etch_answers::scope;
use etch_answers::{counted, plain};
use etch_core::impact::Kind;
use etch_lint::published::{Document, TypeName, changes_without, installed};

use self::gather::{Sources, given, given_before, left_out, objects};
use super::etcd::EtcdArgs;
use super::policy::{self, PolicyArg};
use super::values::LimitArg;
use super::{one_stdin, openapi};
use crate::commands::emit::{emit, ended};
use crate::commands::global::{Global, Output};
use crate::commands::namespace;
use crate::commands::outcome::Outcome;
use crate::commands::streams::note;

/// Show what a CRD upgrade changes
///
/// Compare the defaults and fields of the storage versions, and show for each object which values appear,
/// which change or disappear because etcd never held them, which are hidden because the new schema does not
/// have them, and what becomes invalid. What Etch does after the upgrade depends on the DefaultsPolicy that
/// governs the CRD.
///
/// With access to etcd, or to a snapshot of it, every answer is exact. Without it, Etch uses what proves that
/// a default is stored or missing: reports, managedFields and resource versions. Where nothing does, it shows
/// what may happen. An object from a file counts as stored as it is, or, if a server returned it (it has a
/// uid), by its managedFields: save objects with kubectl get -o yaml --show-managed-fields.
///
/// With --openapi, compare the defaults that two releases of Kubernetes or of an aggregated API publish for
/// their types.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  etch impact -f new.yaml --old old.yaml
  etch impact -f new.yaml --old old.yaml --objects objects/
  etch impact -f config/crd/ --old git:main -o markdown
  etch impact -f new.yaml --live -o html > impact.html
  etch impact -f new.yaml --live -o json
  etch impact -f new.yaml --live --fail-on changes
  etch impact -f new.yaml --etcd-snapshot backup.db
  etch impact --openapi v1.36/ --openapi v1.37/

Exit status: 0 if the upgrade does nothing that --fail-on names, 1 if it does, 2 if the command
failed.")]
pub(crate) struct Impact {
    /// The CRDs after the upgrade: files, folders, or - for standard input
    #[arg(short = 'f', long = "filename", value_name = "NEW", required_unless_present = "openapi")]
    new: Vec<PathBuf>,
    /// The CRDs before the upgrade: files, folders, - for standard input, or git:REVISION for the same files
    /// in that revision of their repository [default: those of the cluster]
    #[arg(long, value_name = "OLD")]
    old: Vec<PathBuf>,
    /// The objects to check: files, folders, or - for standard input
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["live", "etcd_endpoints", "etcd_snapshot"],
        num_args = 1..
    )]
    objects: Vec<PathBuf>,
    /// Check all objects in the cluster
    #[arg(long)]
    live: bool,
    /// The changes that set the exit status to 1
    #[arg(long, value_name = "WHAT", value_enum, ignore_case = true, default_value_t)]
    fail_on: FailOn,
    /// Compare the OpenAPI v3 documents of API servers instead: those before and after, each a file or
    /// folder. If set once, these are the documents after, and the cluster has those before
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["new", "old", "objects", "files", "limit", "etcd_endpoints", "etcd_snapshot"]
    )]
    openapi: Vec<PathBuf>,
    #[command(flatten)]
    policy: PolicyArg,
    #[command(flatten)]
    limit: LimitArg,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Form,
    #[command(flatten)]
    etcd: EtcdArgs,
}

/// How an impact is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Form {
    /// For people
    #[default]
    Table,
    /// For programs; the keys do not change
    Json,
    /// The same as JSON, in YAML
    Yaml,
    /// For a comment on a pull request
    Markdown,
    /// One page for a browser, which loads nothing
    Html,
}

impl Form {
    /// Whether it is for people or for programs.
    fn output(self) -> Output {
        match self {
            Self::Table | Self::Markdown | Self::Html => Output::Table,
            Self::Json => Output::Json,
            Self::Yaml => Output::Yaml,
        }
    }
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
                "--namespace selects objects, but only schemas are compared: add --live, --objects or access \
                 to etcd"
            );
        }
        one_stdin([&self.new, &self.old, &self.objects, &self.policy.files].into_iter().flatten())?;
        let mut stdin = io::stdin().lock();
        let mut new = given(&self.new, &mut stdin).context("-f")?;
        let old = given_before(&self.old, &self.new, &mut stdin).context("--old")?;
        let gone = gone(old.as_ref(), &new);
        left_out(&mut new, &scope)?;
        let objects = objects(&self.objects, &new, &scope, &mut stdin).context("--objects")?;
        let policies = self.policy.read(&mut stdin)?;
        drop(stdin);
        let is_asked = self.live || self.old.is_empty() && self.etcd.etcd_snapshot.is_none();
        let cluster = match is_asked {
            true => Some(Cluster::connect(&global.target()).await?),
            false => None,
        };
        if let (Some(cluster), true) = (&cluster, self.live) {
            namespace::exists(cluster, &scope).await?;
        }
        let sources = Sources {
            old,
            objects,
            scope: &scope,
            can_be_narrowed: true,
            live: self.live,
            bytes: self.etcd.open().await?,
            policies: match (policies, &cluster) {
                (Some(policies), _) => policies,
                (None, Some(cluster)) if self.has_objects() => policy::of(cluster).await?,
                (None, _) => Known::default(),
            },
            cluster,
            limit: self.limit.of(self.output.output()),
        };
        let all = sources.look_at(new).await?;
        let policies = &sources.policies;
        if all.iter().any(|looked| looked.impact.tally.counts.total > 0) {
            policy::announce(policies)?;
        }
        let of_snapshot = self.etcd.of_snapshot(sources.cluster.is_some() && sources.old.is_none());
        if of_snapshot.is_some() && all.iter().all(|looked| looked.impact.tally.counts.total == 0) {
            namespace::note_no_objects(&scope)?;
        }
        let about: Vec<String> = about_gone(&gone).into_iter().chain(of_snapshot).collect();
        emit(
            out,
            self.output.output(),
            || document::document(&all, &gone, &scope),
            |out| match self.output {
                Form::Markdown => markdown::write(out, &all, &scope, &about),
                Form::Html => html::write(out, &all, &scope, &about),
                _ => {
                    scope::write(out, &scope)?;
                    all.iter().try_for_each(|looked| print::table(out, &global.style(), looked))?;
                    about.iter().try_for_each(|sentence| writeln!(out, "{}", plain(sentence)))
                }
            },
        )?;
        let lost = gone.iter().map(|_| Kind::Loss);
        self.judged(all.iter().flat_map(|looked| looked.impact.kinds()).chain(lost))
    }

    /// Compares what two releases publish.
    async fn published(&self, global: &Global, out: &mut dyn Write) -> anyhow::Result<Outcome> {
        global.has_no_scope("published types have no namespace")?;
        if matches!(self.output, Form::Markdown | Form::Html) {
            bail!("-o markdown and -o html show CRDs; with --openapi use table, json or yaml");
        }
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
                    note(&format!("left out: {failure}"))?;
                }
                (old, live.crds().await?)
            }
        };
        let installed = left_out_of_release(&old, &new, &crds)?;
        let changes = changes_without(&old, &new, &installed);
        let document = || published::document(&changes);
        emit(out, self.output.output(), document, |out| published::table(out, &global.style(), &changes))?;
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

/// The types of installed CRDs, which a release does not have and does not remove. They are named once, on
/// standard error.
fn left_out_of_release(
    old: &[Document],
    new: &[Document],
    crds: &[String],
) -> anyhow::Result<BTreeSet<TypeName>> {
    let installed = installed(old, new, crds);
    if !installed.is_empty() {
        let count = counted(installed.len() as u64, "installed CRD");
        let names = etch_answers::first(installed.keys());
        note(&format!("left out: {count}, which these documents do not have: {}", names))?;
    }
    Ok(installed.into_values().flatten().collect())
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
