//! `etch resume`: lets the passes continue that wait after their canaries.

use std::io::Write;

use anyhow::{Context, Error, bail};
use clap::Args;
use etch::cluster::{Cluster, Target};
use etch_answers::failures::error_text;
use etch_answers::policy::Known;
use etch_answers::resume::answer;
use etch_core::api::labels;
use etch_core::crd::Crd;

use super::policy;
use crate::commands::emit::ended;
use crate::commands::outcome::Outcome;

/// Write the remaining objects of a CRD after its canary
///
/// A policy with `canary` has Etch write only some objects after a schema change, and then wait: the
/// condition DefaultsPersisted has the reason CanaryWaiting, or CanaryRejected if a write was rejected. This
/// command sets an annotation on the CRD that names its current generation, so that the next schema change
/// begins with a canary again. It does not end a pause, and names one that is in force.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  etch resume certificates.cert-manager.io
  etch resume widgets gadgets.example.com

Needs permission to get the CRD and its DefaultsReport, and to patch the CRD; to name a pause,
also to list DefaultsPolicies.")]
pub(crate) struct Resume {
    /// The CRDs, named as for kubectl: plural, singular, short name, kind, or plural.group
    #[arg(required = true, value_name = "CRD")]
    crds: Vec<String>,
}

impl Resume {
    pub(crate) async fn run(&self, target: &Target, out: &mut dyn Write) -> anyhow::Result<Outcome> {
        let cluster = Cluster::connect(target).await?;
        // Without permission to read policies, the canary can be resumed all the same.
        let policies = policy::of(&cluster).await.unwrap_or_default();
        let mut failures = Vec::new();
        for name in super::crds_named(&cluster, &self.crds).await? {
            // A CRD whose canary does not wait does not stop the others.
            match resume(&cluster, &policies, &name).await {
                Ok(result) => writeln!(out, "crd/{name}: {result}")?,
                Err(error) => failures.push(error_text(&*error)),
            }
        }
        ended(failures, true)
    }
}

/// Lets the pass of a CRD continue; returns the message to print.
async fn resume(cluster: &Cluster, policies: &Known, name: &str) -> anyhow::Result<String> {
    let document = cluster.crd(name).await.with_context(|| format!("get the CRD {name}"))?;
    let Some(document) = document else { bail!("there is no CRD {name}") };
    let metadata = &document["metadata"];
    let uid = metadata["uid"].as_str().unwrap_or_default();
    let generation = metadata["generation"].as_i64().unwrap_or_default();
    let rules = Crd::read(&document).map(|crd| policies.rules(&crd, &labels(&document)));
    let rules = rules.unwrap_or_default();
    let report = cluster.report(name, uid).await.with_context(|| format!("get the DefaultsReport {name}"))?;
    let canary = report.and_then(|report| report.status?.canary);
    let (is_to_resume, answer) = answer(name, generation, canary.as_ref(), &rules).map_err(Error::msg)?;
    if is_to_resume {
        let resumed = cluster.set_resumed(name, uid, Some(generation)).await;
        resumed.with_context(|| format!("patch the CRD {name}"))?;
    }
    Ok(answer)
}
