//! `etch clean`: removes Etch's conditions, reports and webhooks from a cluster.

use std::io::{self, Write};

use anyhow::{Context, bail};
use clap::Args;
use etch::cluster::{Cluster, WebhookConfiguration};
use etch_admission::CONFIGURATION;
use etch_answers::clean::{Marked, names_former_defaults, running, stays, uid_of_own};
use etch_answers::failures::error_text;
use etch_core::api::RESUME_ANNOTATION;
use etch_core::call_error::CallError;
use etch_core::engine::lease;
use etch_core::plan::PERSISTED_ANNOTATION;
use etch_core::request::resources::{crds, reports};
use futures::TryFutureExt;

use super::each;
use crate::commands::emit::ended;
use crate::commands::global::Global;
use crate::commands::outcome::Outcome;
use crate::commands::streams::note;

/// Remove Etch's conditions from CRDs, its reports, and its webhooks
///
/// Use this command to uninstall Etch. Stop the operator first: while one runs, it would create them again,
/// so the command removes nothing. Objects do not change: they keep their stored defaults.
///
/// Reports stay that name fields which once had a default, and so do the annotations of `etch persist`: etcd
/// may still hold their values, reads may no longer show them, and a later Etch learns of them from there
/// alone.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  etch clean --dry-run
  etch clean")]
pub(crate) struct Clean {
    /// Show what the command would remove, and remove nothing
    #[arg(long)]
    dry_run: bool,
    /// Remove them also while an operator runs, and all reports and annotations
    #[arg(long)]
    force: bool,
}

impl Clean {
    /// Fails if an operator leads: it would create again what this removes. Returns a warning, if there is
    /// one to print.
    async fn refuse_while_running(&self, cluster: &Cluster, flags: &str) -> anyhow::Result<Option<String>> {
        match cluster.leader(lease::NAME).await {
            Ok(None) => Ok(None),
            Ok(Some(leader)) => {
                let running = running(&leader.namespace, &leader.instance, flags);
                if self.dry_run { Ok(Some(running)) } else { bail!(running) }
            }
            Err(error) if error.code() == Some(403) => {
                Ok(Some("cannot list Leases; if Etch still runs, it creates everything again".to_owned()))
            }
            Err(error) => Err(error).context("list Leases"),
        }
    }

    /// Removes all that it can. A failure for one object does not stop the others.
    pub(crate) async fn run(&self, global: &Global, out: &mut dyn Write) -> anyhow::Result<Outcome> {
        let cluster = Cluster::connect(&global.target()).await?;
        let flags = global.flags_of_cluster();
        let doubt = if self.force { None } else { self.refuse_while_running(&cluster, &flags).await? };
        let mut removal = Removal { dry_run: self.dry_run, out, found: 0, failures: Vec::new() };
        // Without Etch nothing answers these webhooks, and with `failurePolicy: Fail` they block requests.
        for which in WebhookConfiguration::BOTH {
            let there = cluster.webhook_configuration(which).await;
            match there.map(|there| there.as_deref().and_then(uid_of_own)) {
                Ok(None) => {}
                Ok(Some(uid)) => {
                    let deleted = cluster.delete_webhook_configuration(which, &uid);
                    removal.remove(&format!("{}/{CONFIGURATION}", which.resource()), "", deleted).await?;
                }
                Err(error) => removal.failed(&format!("get the {}", which.resource()), &error),
            }
        }
        let marked = marked(&cluster).await.unwrap_or_else(|error| {
            removal.failures.push(error_text(&*error));
            Vec::new()
        });
        let mut kept = Vec::new();
        for Marked { name, uid, conditions, persisted, names_former, resumed } in marked {
            let crd = format!("crd/{name}");
            if conditions {
                let removed = cluster.set_conditions(&name, &uid, None, &[]);
                removal.remove(&crd, "conditions ", removed.map_ok(drop)).await?;
            }
            if names_former && !self.force {
                kept.push(format!("{crd}: annotation {PERSISTED_ANNOTATION}"));
            } else if persisted {
                let what = format!("annotation {PERSISTED_ANNOTATION} ");
                removal.remove(&crd, &what, cluster.set_persisted(&name, &uid, None)).await?;
            }
            if resumed {
                let what = format!("annotation {RESUME_ANNOTATION} ");
                removal.remove(&crd, &what, cluster.set_resumed(&name, &uid, None)).await?;
            }
        }
        match cluster.all_reports().await {
            Ok(reports) => {
                for report in reports.into_iter().flatten() {
                    if !self.force && names_former_defaults(&report) {
                        kept.push(format!("defaultsreport/{}", report.name()));
                        continue;
                    }
                    let deleted = cluster.delete_report(report.name(), report.uid());
                    removal.remove(&format!("defaultsreport/{}", report.name()), "", deleted).await?;
                }
            }
            Err(error) => removal.failed(&format!("list {}", reports()), &error),
        }
        let Removal { out, found, failures, .. } = removal;
        for name in &kept {
            note(&stays(name, &flags))?;
        }
        if found == 0 && failures.is_empty() && kept.is_empty() {
            writeln!(out, "No conditions or reports of Etch found.")?;
        }
        if let Some(doubt) = doubt {
            note(&doubt)?;
        }
        ended(failures, true)
    }
}

/// What is removed, and what cannot be.
struct Removal<'a> {
    dry_run: bool,
    out: &'a mut dyn Write,
    found: u64,
    failures: Vec<String>,
}

impl Removal<'_> {
    /// Removes something of an object with this request, and prints it.
    async fn remove(
        &mut self,
        object: &str,
        what: &str,
        request: impl Future<Output = Result<(), CallError>>,
    ) -> io::Result<()> {
        if self.dry_run {
            self.found += 1;
            return writeln!(self.out, "{object}: {what}would be removed");
        }
        match request.await {
            Ok(()) => {
                self.found += 1;
                writeln!(self.out, "{object}: {what}removed")
            }
            // It is gone, or another object has its name.
            Err(error) if matches!(error.code(), Some(404 | 409)) => Ok(()),
            Err(error) => {
                self.failed(&format!("{object}: {what}not removed"), &error);
                Ok(())
            }
        }
    }

    fn failed(&mut self, what: &str, error: &CallError) {
        self.failures.push(format!("{what}: {error}"));
    }
}

async fn marked(cluster: &Cluster) -> anyhow::Result<Vec<Marked>> {
    let mut marked = Vec::new();
    each(cluster, &crds(), &mut |crd| marked.extend(Marked::read(&crd))).await?;
    Ok(marked)
}
