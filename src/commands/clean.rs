//! `etch clean`: removes Etch's conditions, reports and webhooks from a cluster.

use std::io::{self, Write};

use anyhow::{Context, bail};
use clap::Args;
use etch::cluster::{Cluster, Leader, Target, WebhookConfiguration, crds, reports};
use etch::report::plain;
use etch_admission::{CONFIGURATION, MANAGED_BY};
use etch_core::api::RESUME_ANNOTATION;
use etch_core::condition;
use etch_core::plan::PERSISTED_ANNOTATION;

use super::each;
use crate::commands::outcome::Outcome;

/// Remove Etch's conditions from CRDs, its reports, and its webhooks
///
/// Use this command to uninstall Etch. Stop the operator first: while one runs, it would create them again,
/// so the command removes nothing. Objects do not change: they keep their stored defaults.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  etch clean --dry-run
  etch clean")]
pub(crate) struct Clean {
    /// Show what the command would remove, and remove nothing
    #[arg(long)]
    dry_run: bool,
    /// Remove them also while an operator runs
    #[arg(long)]
    force: bool,
}

/// The name of the operator's Lease.
const LEASE: &str = "etch";

impl Clean {
    /// Fails if an operator leads: it would create again what this removes. Returns a warning, if there is
    /// one to print.
    async fn refuse_while_running(&self, cluster: &Cluster) -> anyhow::Result<Option<String>> {
        match cluster.leader(LEASE).await {
            Ok(None) => Ok(None),
            Ok(Some(Leader { namespace, instance, since: _ })) => {
                let running = format!(
                    "Etch is running: {instance} renews the Lease {namespace}/{LEASE}, and would create everything again; stop it first: \
                     kubectl -n {namespace} scale deployment etch --replicas=0"
                );
                if self.dry_run { Ok(Some(running)) } else { bail!(running) }
            }
            Err(error) if error.code() == Some(403) => {
                Ok(Some("cannot list Leases; if Etch still runs, it creates everything again".to_owned()))
            }
            Err(error) => Err(error).context("list Leases"),
        }
    }

    pub(crate) async fn run(&self, target: &Target, out: &mut dyn Write) -> anyhow::Result<Outcome> {
        let cluster = Cluster::connect(target).await?;
        let note = if self.force { None } else { self.refuse_while_running(&cluster).await? };
        let done = if self.dry_run { "would be removed" } else { "removed" };
        let mut found = 0;
        let mut marked = Vec::new();
        each(&cluster, &crds(), &mut |crd| {
            let conditions = !condition::present(crd.json()).is_empty();
            let annotations = &crd.json()["metadata"]["annotations"];
            let [persisted, resumed] = [PERSISTED_ANNOTATION, RESUME_ANNOTATION]
                .map(|annotation| annotations.get(annotation).is_some());
            if conditions || persisted || resumed {
                marked.push((crd.name().to_owned(), crd.uid().to_owned(), conditions, persisted, resumed));
            }
        })
        .await?;
        for (name, uid, conditions, persisted, resumed) in &marked {
            if *conditions {
                if !self.dry_run {
                    let removed = cluster.set_conditions(name, uid, None, &[]).await;
                    removed.with_context(|| format!("the conditions of {name}"))?;
                }
                writeln!(out, "crd/{name}: conditions {done}")?;
                found += 1;
            }
            if *persisted {
                if !self.dry_run {
                    let removed = cluster.set_persisted(name, uid, None).await;
                    removed.with_context(|| format!("the annotation of {name}"))?;
                }
                writeln!(out, "crd/{name}: annotation {PERSISTED_ANNOTATION} {done}")?;
                found += 1;
            }
            if *resumed {
                if !self.dry_run {
                    let removed = cluster.set_resumed(name, uid, None).await;
                    removed.with_context(|| format!("the annotation of {name}"))?;
                }
                writeln!(out, "crd/{name}: annotation {RESUME_ANNOTATION} {done}")?;
                found += 1;
            }
        }
        for report in cluster.all_reports().await.with_context(|| format!("list {}", reports()))? {
            if !self.dry_run {
                let deleted = cluster.delete_report(report.name(), report.uid()).await;
                deleted.with_context(|| format!("the report {}", report.name()))?;
            }
            writeln!(out, "defaultsreport/{}: {done}", report.name())?;
            found += 1;
        }
        for which in WebhookConfiguration::BOTH {
            let there = cluster.webhook_configuration(which).await;
            let there = there.with_context(|| format!("get the {}", which.resource()))?;
            let text = |pointer: &str| {
                let value = there.as_ref().and_then(|there| there.pointer(pointer)?.as_str());
                value.unwrap_or_default().to_owned()
            };
            // An object of another application may have the name.
            if text(&format!("/metadata/labels/{}", MANAGED_BY.0.replace('/', "~1"))) != MANAGED_BY.1 {
                continue;
            }
            if !self.dry_run {
                let deleted = cluster.delete_webhook_configuration(which, &text("/metadata/uid")).await;
                deleted.with_context(|| format!("the {} {CONFIGURATION}", which.resource()))?;
            }
            writeln!(out, "{}/{CONFIGURATION}: {done}", which.resource())?;
            found += 1;
        }
        if found == 0 {
            writeln!(out, "No conditions or reports of Etch found.")?;
        }
        if let Some(note) = note {
            writeln!(io::stderr(), "note: {}", plain(&note))?;
        }
        Ok(Outcome::Clean)
    }
}
