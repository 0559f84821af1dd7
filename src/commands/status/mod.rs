//! `etch status`: the state of Etch in a cluster, on one screen.
//! It only reads.

mod overview;
mod print;
#[cfg(test)]
mod tests;

use std::io::Write;

use clap::Args;
use etch::cluster::{Cluster, WebhookConfiguration};
use etch_admission::api::EmbeddedSchemaStatus;
use etch_admission::unguarded;
use etch_answers::Style;
use etch_core::api::{DefaultsPolicyStatus, DefaultsReport};
use etch_core::call_error::CallError;
use etch_core::condition;
use etch_core::engine::leader::Leader;
use etch_core::object::Object;
use etch_core::request::resources::crds;
use jiff::Timestamp;
use kube_structural_schema::json::Json;
use kube_structural_schema::mismatch::without_values;
use serde::Deserialize;

use self::overview::{CrdFacts, Facts, LeaderView, overview};
use super::policy::{counted, labels};
use super::{each, error_text};
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

/// The name of the operator's Lease.
const LEASE: &str = "etch";

impl Status {
    pub(crate) async fn run(&self, global: &Global, out: &mut dyn Write) -> anyhow::Result<Outcome> {
        let cluster = Cluster::connect(&global.target()).await?;
        let facts = Facts { flags: global.flags_of_cluster(), ..read(&cluster, Timestamp::now()).await? };
        let (now, unread) = (facts.now, facts.unread.clone());
        let overview = overview(facts);
        let style: Style = global.style();
        emit(out, self.output, || &overview, |out| print::table(out, &style, &overview, now))?;
        ended(unread, overview.is_clean())
    }
}

/// Reads what may be read.
///
/// # Errors
/// The cluster does not answer.
async fn read(cluster: &Cluster, now: Timestamp) -> anyhow::Result<Facts> {
    let mut unread = Vec::new();
    let kubernetes = match cluster.kubernetes_version().await {
        // Where nothing answers, nothing else is worth an attempt.
        Err(error) if error.code().is_none() => return Err(error.into()),
        read => noted(&mut unread, "the version of Kubernetes", read),
    };
    let (leader, policies, reports, schemas, webhooks, crds) = tokio::join!(
        cluster.leader(LEASE),
        cluster.all_policies(),
        cluster.all_reports(),
        cluster.all_embedded_schemas(),
        cluster.webhook_configuration(WebhookConfiguration::Validating),
        crd_facts(cluster),
    );
    let leader = noted(&mut unread, "the Lease of the operator", leader);
    let policies = noted(&mut unread, "DefaultsPolicies", policies);
    let reports = noted(&mut unread, "DefaultsReports", reports);
    let schemas = noted(&mut unread, "EmbeddedSchemas", schemas);
    let webhooks = noted(&mut unread, "the ValidatingWebhookConfiguration etch", webhooks);
    let crds = match crds {
        Ok(crds) => Some(crds),
        Err(error) => {
            unread.push(format!("CRDs: {}", error_text(&error)));
            None
        }
    };
    let conditions_of = |policy: &Object| {
        let status = DefaultsPolicyStatus::deserialize(&policy.json()["status"]).unwrap_or_default();
        (policy.name().to_owned(), status.conditions)
    };
    let schema_conditions_of = |schema: &Object| {
        let status = EmbeddedSchemaStatus::deserialize(&schema.json()["status"]).unwrap_or_default();
        (schema.name().to_owned(), status.conditions)
    };
    let reports = reports.map(|reports| reports.map(|reports| readable(&reports, &mut unread)));
    Ok(Facts {
        flags: String::new(),
        kubernetes,
        leader: leader.map(|leader| leader.map(view)),
        policy_conditions: policies.iter().flatten().flatten().map(conditions_of).collect(),
        policies: policies.map(|policies| policies.map(|all| counted(all.iter().map(Object::json)))),
        unguarded: webhooks.map(|configuration| unguarded(configuration.as_deref())),
        schema_conditions: schemas.iter().flatten().flatten().map(schema_conditions_of).collect(),
        reports,
        crds,
        unread,
        now,
    })
}

/// The value; `None` if it cannot be read, which is noted.
fn noted<T>(unread: &mut Vec<String>, what: &str, read: Result<T, CallError>) -> Option<T> {
    read.map_err(|error| unread.push(format!("{what}: {error}"))).ok()
}

async fn crd_facts(cluster: &Cluster) -> anyhow::Result<Vec<CrdFacts>> {
    let mut found = Vec::new();
    each(cluster, &crds(), &mut |crd| found.push(crd_fact(crd.json()))).await?;
    Ok(found)
}

fn crd_fact(crd: &Json) -> CrdFacts {
    CrdFacts {
        name: crd["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
        group: crd["spec"]["group"].as_str().unwrap_or_default().to_owned(),
        labels: labels(crd),
        conditions: condition::present(crd),
        generation: crd["metadata"]["generation"].as_i64(),
        created: crd["metadata"]["creationTimestamp"].as_str().and_then(|created| created.parse().ok()),
    }
}

fn view(leader: Leader) -> LeaderView {
    let Leader { namespace, instance, since } = leader;
    LeaderView { namespace, instance, since: since.and_then(|since| since.parse().ok()) }
}

/// The reports that this version can read; the others are noted.
fn readable(reports: &[Object], unread: &mut Vec<String>) -> Vec<DefaultsReport> {
    let mut found = Vec::new();
    for object in reports {
        match serde_json::from_slice(&object.json().to_vec()) {
            Ok(report) => found.push(report),
            Err(error) => {
                unread.push(format!("DefaultsReport {}: {}", object.name(), without_values(&error)))
            }
        }
    }
    found
}
