//! `etch plan`: the steps of a CRD upgrade, from the server's answer to the old version's end.
//! The library decides which steps there are.

mod apply;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use etch::cluster::{Cluster, ObjectSource};
use etch_answers::impact::Looked;
use etch_answers::impact::given::{about_gone, gone};
use etch_answers::plan::{Planned, Typed, print};
use etch_answers::policy::Known;
use etch_core::call_error::CallError;
use etch_core::scope::Scope;
use etch_lint::upgrade_plan::{DryRun, applicable};

use super::impact::gather::{Sources, given, given_before};
use super::one_stdin;
use super::policy::{self, PolicyArg};
use super::program::program;
use crate::commands::emit::{emit, ended};
use crate::commands::global::{Discussed, Global};
use crate::commands::outcome::Outcome;
use crate::commands::streams::note;

/// The field manager of `kubectl apply --server-side`, by which the plan applies.
const MANAGER: &str = "kubectl";

/// Plan a CRD upgrade: what to do before, during and after it, with the commands
///
/// The plan combines what the API server answers to the new CRD, what is incompatible with the old one (etch
/// lint --old), and what happens to objects (etch impact): what to correct, store or save first, whether the
/// conversion webhook or the CRD comes first, and which versions to take out of status.storedVersions in the
/// end.
///
/// Without --live, files are compared and no cluster is asked; the plan lists what it cannot know. With
/// --live, the API server validates the CRD in a dry run, and the plan is about the CRD and the objects in
/// the cluster.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  etch plan -f new.yaml --old old.yaml
  etch plan -f new.yaml --live
  etch plan -f config/crd/ --old git:v1.2
  etch plan -f config/crd/ --old git:main --live -o markdown

Exit status: 0 if there is nothing to do, or only to apply the CRD; 1 if there are other steps; 2
if the command failed.")]
pub(crate) struct Plan {
    /// The CRDs after the upgrade: files, folders, or - for standard input
    #[arg(short = 'f', long = "filename", value_name = "NEW", required = true)]
    new: Vec<PathBuf>,
    /// The CRDs before the upgrade: files, folders, - for standard input, or git:REVISION for the same files
    /// in that revision of their repository [default with --live: those of the cluster]
    #[arg(long, value_name = "OLD", required_unless_present = "live")]
    old: Vec<PathBuf>,
    /// Ask the API server, and check all objects in the cluster
    #[arg(long)]
    live: bool,
    #[command(flatten)]
    policy: PolicyArg,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Discussed,
}

impl Plan {
    pub(crate) async fn run(self, global: &Global, out: &mut dyn Write) -> anyhow::Result<Outcome> {
        one_stdin([&self.new, &self.old, &self.policy.files].into_iter().flatten())?;
        let mut stdin = io::stdin().lock();
        let new = given(&self.new, &mut stdin).context("-f")?;
        let old = given_before(&self.old, &self.new, &mut stdin).context("--old")?;
        about_gone(&gone(old.as_ref(), &new)).map_or(Ok(()), |about| note(&about))?;
        let policies = self.policy.read(&mut stdin)?;
        drop(stdin);
        let cluster = match self.live {
            true => Some(Cluster::connect(&global.target()).await?),
            false => None,
        };
        let policies = match (policies, &cluster) {
            (Some(policies), _) => policies,
            (None, Some(cluster)) => policy::of(cluster).await?,
            (None, None) => Known::default(),
        };
        let sources = Sources {
            old,
            objects: ObjectSource::Files(BTreeMap::new()),
            scope: &Scope::All,
            can_be_narrowed: false,
            live: self.live,
            bytes: None,
            policies,
            cluster,
            limit: Some(0),
        };
        let typed = Typed {
            etch: program(),
            new: &self.new,
            old: &self.old,
            apply: apply::files(&self.new, new.values().map(|given| &given.origin)),
            cluster: global.flags_of_cluster(),
        };
        let looked = sources.look_at(new).await?;
        policy::announce(&sources.policies)?;
        let mut all = Vec::new();
        for looked in looked {
            let dry_run = match &sources.cluster {
                Some(cluster) => dry_run(cluster, &looked).await?,
                None => DryRun::NotAsked,
            };
            let name = looked.new.crd.name().to_owned();
            let given = sources.given_before(&name).map(|given| &given.written);
            let planned = Planned::new(looked, given, self.live, dry_run, &typed);
            all.push(planned.with_context(|| format!("the CRD {name}"))?);
        }
        emit(
            out,
            self.output.form(),
            || print::document(&all),
            |out| match self.output {
                Discussed::Markdown => print::markdown(out, &all),
                _ => print::table(out, &global.style(), &all),
            },
        )?;
        ended(Vec::new(), all.iter().all(Planned::is_clean))
    }
}

/// What the API server answers to the CRD.
async fn dry_run(cluster: &Cluster, looked: &Looked) -> anyhow::Result<DryRun> {
    let name = looked.new.crd.name();
    let crd = applicable(&looked.new.written);
    let mut conflicts = false;
    let mut answer = cluster.try_crd(name, &crd, MANAGER, false).await;
    if answer.as_ref().is_err_and(|error| error.code() == Some(409)) {
        conflicts = true;
        answer = cluster.try_crd(name, &crd, MANAGER, true).await;
    }
    Ok(match answer {
        Ok(answer) => {
            let present = looked.present.as_ref().map(|(present, _)| present);
            DryRun::answered(present, &answer, conflicts)
        }
        Err(CallError::Refused(refusal)) => DryRun::refused(&refusal, conflicts),
        Err(error) => return Err(error).with_context(|| format!("the CRD {name}: dry run")),
    })
}
