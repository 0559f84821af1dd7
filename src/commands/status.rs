//! `etch status`: the state of Etch in a cluster, on one screen.
//! It only reads.

use std::io::Write;

use clap::Args;
use etch::cluster::{Cluster, WebhookConfiguration};
use etch_answers::failures::error_text;
use etch_answers::status::{CrdFacts, LeaderView, Read, overview, table};
use etch_core::engine::leader::Leader;
use etch_core::engine::lease;
use etch_core::request::resources::crds;
use jiff::Timestamp;

use super::each;
use crate::commands::emit::{emit, ended};
use crate::commands::global::{Global, Output};
use crate::commands::outcome::Outcome;

/// Show policies, passes, missing permissions, and objects that Etch does not write
///
/// The command reads the conditions of CRDs, DefaultsReports, DefaultsPolicies, EmbeddedSchemas, the Lease of
/// the operator, and the ValidatingWebhookConfiguration etch. It shows what it may read, and names what it
/// may not.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  etch status
  etch status -o json

Exit status: 0 if nothing needs attention, 1 if something does, 2 if something could not be read.")]
pub(crate) struct Status {
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
}

impl Status {
    pub(crate) async fn run(&self, global: &Global, out: &mut dyn Write) -> anyhow::Result<Outcome> {
        let cluster = Cluster::connect(&global.target()).await?;
        let now = Timestamp::now();
        let overview = overview(read(&cluster).await?, global.flags_of_cluster(), now);
        emit(out, self.output, || &overview, |out| table(out, &global.style(), &overview, now))?;
        let is_clean = overview.is_clean();
        ended(overview.unread, is_clean)
    }
}

/// Reads what may be read.
///
/// # Errors
/// The cluster does not answer.
async fn read(cluster: &Cluster) -> anyhow::Result<Read> {
    let kubernetes = match cluster.kubernetes_version().await {
        // Where nothing answers, nothing else is worth an attempt.
        Err(error) if error.code().is_none() => return Err(error.into()),
        read => read,
    };
    let (leader, policies, reports, schemas, webhooks, crds) = tokio::join!(
        cluster.leader(lease::NAME),
        cluster.all_policies(),
        cluster.all_reports(),
        cluster.all_embedded_schemas(),
        cluster.webhook_configuration(WebhookConfiguration::Validating),
        crd_facts(cluster),
    );
    let leader = leader.map(|leader| leader.map(view));
    let crds = crds.map_err(|error| error_text(&*error));
    Ok(Read { kubernetes, leader, policies, reports, schemas, webhooks, crds })
}

async fn crd_facts(cluster: &Cluster) -> anyhow::Result<Vec<CrdFacts>> {
    let mut found = Vec::new();
    each(cluster, &crds(), &mut |crd| found.push(CrdFacts::read(crd.json()))).await?;
    Ok(found)
}

fn view(leader: Leader) -> LeaderView {
    let Leader { namespace, instance, since } = leader;
    LeaderView { namespace, instance, since: since.and_then(|since| since.parse().ok()) }
}
