//! `etch plan`: the steps of a CRD upgrade, from the server's answer to the old version's end.
//! The library decides which steps there are.

mod apply;
mod print;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use etch::cluster::{Cluster, ObjectSource};
use etch_answers::impact::given::{about_gone, gone, with_status};
use etch_answers::impact::print::persist_flags;
use etch_answers::impact::{CrdImpact, Looked};
use etch_answers::policy::Known;
use etch_core::call_error::CallError;
use etch_core::crd::Crd;
use etch_core::scope::Scope;
use etch_core::shell::quoted;
use etch_lint::upgrade_plan::{DryRun, Policy, Upgrade, UpgradePlan, Words, applicable};

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

/// What is planned for one CRD.
struct Planned {
    impact: CrdImpact,
    /// Whether the objects were looked at.
    has_objects: bool,
    dry_run: DryRun,
    plan: UpgradePlan,
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
        let apply = apply::files(&self.new, new.values().map(|given| &given.origin));
        let looked = sources.look_at(new).await?;
        policy::announce(&sources.policies)?;
        let mut all = Vec::new();
        for looked in looked {
            let dry_run = match &sources.cluster {
                Some(cluster) => dry_run(cluster, &looked).await?,
                None => DryRun::NotAsked,
            };
            all.push(self.planned(global, &sources, looked, dry_run, apply.as_deref())?);
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
        ended(Vec::new(), all.iter().all(|planned| planned.plan.is_clean()))
    }

    fn planned(
        &self,
        global: &Global,
        sources: &Sources<'_>,
        looked: Looked,
        dry_run: DryRun,
        apply: Option<&str>,
    ) -> anyhow::Result<Planned> {
        let Looked { impact, new, present, .. } = looked;
        let name = new.crd.name();
        let from_file = sources.given_before(name).map(|given| &given.written);
        let installed = present.as_ref().map(|(document, _)| document);
        let old = match (from_file, installed) {
            // It is new there.
            (_, None) if self.live => None,
            // Only a cluster knows which versions are stored.
            (Some(written), Some(installed)) => Some(with_status(written, installed)),
            (Some(written), None) => Some(written.clone()),
            (None, installed) => installed.cloned(),
        };
        let read = old.as_ref().map(Crd::read).transpose().with_context(|| format!("the CRD {name}"))?;
        let objects = Some(&impact.tally).filter(|_| self.live && present.is_some());
        let rules = &impact.rules;
        let settings = rules.settings();
        let policy = Policy {
            name: settings.map(|settings| settings.policy.as_str()),
            writes: settings.is_some() && rules.idle().is_none(),
            idle: rules.idle(),
            terms: rules.terms(),
            follow: settings.map(|settings| &settings.follow[..]).unwrap_or_default(),
            settle: settings.map(|settings| settings.settle).unwrap_or_default(),
            canary: settings.and_then(|settings| settings.canary),
        };
        let is_from_cluster = from_file.is_none() && old.is_some();
        let words = Words {
            apply: apply.map(str::to_owned),
            ..self.words(global, persist_flags(&rules.terms()).to_owned(), is_from_cluster.then_some(name))
        };
        let plan = UpgradePlan::new(&Upgrade {
            old: old.as_ref().zip(read.as_ref()),
            new: (&new.written, &new.crd),
            refusals: &impact.refusals,
            dry_run: &dry_run,
            incompatible: &impact.incompatible,
            schemas: &impact.schemas,
            objects,
            policy,
            words: &words,
        });
        Ok(Planned { impact, has_objects: self.live, dry_run, plan })
    }

    /// The words of the commands that a plan names. `installed` is the CRD that the cluster has, if the new
    /// one is compared with that.
    fn words(&self, global: &Global, persist: String, installed: Option<&str>) -> Words {
        let path = |path: &PathBuf| quoted(&path.display().to_string());
        let listed = |option: &str, paths: &[PathBuf]| -> String {
            paths.iter().map(|file| format!(" {option} {}", path(file))).collect()
        };
        let cluster = global.flags_of_cluster();
        let (etch, old) = (program(), listed("--old", &self.old));
        let read = installed.map(|name| format!("kubectl get crd {}{cluster} --output yaml", quoted(name)));
        let lint = lint_command(&etch, read.as_deref(), &old, &self.new);
        let new = listed("-f", &self.new).trim_start().to_owned();
        Words { etch, new, apply: None, lint, cluster, old, persist }
    }
}

/// The comparison by `etch lint` with the CRD that a command reads from the cluster, or else with the `old`
/// ones.
fn lint_command(etch: &str, read: Option<&str>, old: &str, new: &[PathBuf]) -> String {
    // Standard input is read once.
    let is_taken = new.iter().any(|file| file == Path::new("-"));
    let new: String = new.iter().map(|file| format!(" {}", quoted(&file.display().to_string()))).collect();
    match read {
        Some(read) if is_taken => format!("{etch} lint --old <({read}){new}"),
        Some(read) => format!("{read} | {etch} lint --old -{new}"),
        None => format!("{etch} lint{old}{new}"),
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

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::lint_command;

    #[test]
    fn the_lint_command_reads_standard_input_once() {
        let command = |read, new: &str| lint_command("etch", read, " --old old.yaml", &[PathBuf::from(new)]);
        let read = Some("kubectl get crd things.example.com --output yaml");
        assert_eq!(
            command(read, "new.yaml"),
            "kubectl get crd things.example.com --output yaml | etch lint --old - new.yaml"
        );
        assert_eq!(
            command(read, "-"),
            "etch lint --old <(kubectl get crd things.example.com --output yaml) -"
        );
        assert_eq!(command(None, "new.yaml"), "etch lint --old old.yaml new.yaml");
    }
}
