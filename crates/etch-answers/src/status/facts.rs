//! What counts of what was read from a cluster.

use std::fmt::Display;

use etch_admission::api::EmbeddedSchemaStatus;
use etch_admission::unguarded;
use etch_core::api::{DefaultsPolicyStatus, DefaultsReport, Labels, Policies, labels};
use etch_core::call_error::CallError;
use etch_core::condition::{self, Condition};
use etch_core::object::Object;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition as ServerCondition;
use kube_structural_schema::json::Json;
use kube_structural_schema::mismatch::without_values;
use serde::{Deserialize, Serialize};

use crate::policy::counted;

/// What was read from a cluster, or why it was not. Inside, `None` where the CRD of a resource is not
/// installed, or where there is no such object.
#[derive(Debug)]
pub struct Read {
    /// Its version.
    pub kubernetes: Result<String, CallError>,
    /// Which operator leads.
    pub leader: Result<Option<LeaderView>, CallError>,
    /// All policies.
    pub policies: Result<Option<Vec<Object>>, CallError>,
    /// All reports.
    pub reports: Result<Option<Vec<Object>>, CallError>,
    /// All EmbeddedSchemas.
    pub schemas: Result<Option<Vec<Object>>, CallError>,
    /// Etch's ValidatingWebhookConfiguration.
    pub webhooks: Result<Option<Json>, CallError>,
    /// All CRDs; otherwise the whole error in words.
    pub crds: Result<Vec<CrdFacts>, String>,
}

/// What was read from the cluster; `None` for parts that could not be read.
#[derive(Debug, Default)]
pub(super) struct Facts {
    /// The options that lead etch and kubectl to this cluster, with a space before each.
    pub(super) flags: String,
    pub(super) kubernetes: Option<String>,
    /// None inside where no operator leads.
    pub(super) leader: Option<Option<LeaderView>>,
    /// None inside where Etch's CRDs are not installed.
    pub(super) policies: Option<Option<Policies>>,
    /// The conditions of each policy, those included whose spec cannot be read.
    pub(super) policy_conditions: Vec<(String, Vec<ServerCondition>)>,
    /// Why API servers do not ask the guard; `None` inside if they do.
    pub(super) unguarded: Option<Option<String>>,
    /// The conditions of each EmbeddedSchema.
    pub(super) schema_conditions: Vec<(String, Vec<ServerCondition>)>,
    /// None inside where the CRD of reports is not installed.
    pub(super) reports: Option<Option<Vec<DefaultsReport>>>,
    pub(super) crds: Option<Vec<CrdFacts>>,
    /// What could not be read, with the reason.
    pub(super) unread: Vec<String>,
    pub(super) now: Timestamp,
}

/// What of a CRD counts here.
#[derive(Clone, Debug, Default)]
pub struct CrdFacts {
    pub(super) name: String,
    pub(super) group: String,
    pub(super) labels: Labels,
    pub(super) conditions: Vec<Condition>,
    /// Its generation; `None` where it shows none.
    pub(super) generation: Option<i64>,
    pub(super) created: Option<Timestamp>,
}

/// The operator that leads.
#[derive(Clone, Debug, Serialize)]
pub struct LeaderView {
    /// Where its Lease is.
    pub namespace: String,
    /// The pod, or the machine.
    pub instance: String,
    /// When it became the leader.
    pub since: Option<Timestamp>,
}

impl Read {
    /// What counts here. `flags` lead etch and kubectl to the cluster, with a space before each.
    pub(super) fn facts(self, flags: String, now: Timestamp) -> Facts {
        let Self { kubernetes, leader, policies, reports, schemas, webhooks, crds } = self;
        let mut unread = Vec::new();
        let kubernetes = noted(&mut unread, "the version of Kubernetes", kubernetes);
        let leader = noted(&mut unread, "the Lease of the operator", leader);
        let policies = noted(&mut unread, "DefaultsPolicies", policies);
        let reports = noted(&mut unread, "DefaultsReports", reports);
        let schemas = noted(&mut unread, "EmbeddedSchemas", schemas);
        let webhooks = noted(&mut unread, "the ValidatingWebhookConfiguration etch", webhooks);
        let crds = noted(&mut unread, "CRDs", crds);
        let conditions_of = |policy: &Object| {
            let status = DefaultsPolicyStatus::deserialize(&policy.json()["status"]).unwrap_or_default();
            (policy.name().to_owned(), status.conditions)
        };
        let schema_conditions_of = |schema: &Object| {
            let status = EmbeddedSchemaStatus::deserialize(&schema.json()["status"]).unwrap_or_default();
            (schema.name().to_owned(), status.conditions)
        };
        let reports = reports.map(|reports| reports.map(|reports| readable(&reports, &mut unread)));
        Facts {
            flags,
            kubernetes,
            leader,
            policy_conditions: policies.iter().flatten().flatten().map(conditions_of).collect(),
            policies: policies.map(|policies| policies.map(|all| counted(all.iter().map(Object::json)))),
            unguarded: webhooks.map(|configuration| unguarded(configuration.as_deref())),
            schema_conditions: schemas.iter().flatten().flatten().map(schema_conditions_of).collect(),
            reports,
            crds,
            unread,
            now,
        }
    }
}

impl CrdFacts {
    /// Reads the document of a CRD.
    pub fn read(crd: &Json) -> Self {
        Self {
            name: crd["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
            group: crd["spec"]["group"].as_str().unwrap_or_default().to_owned(),
            labels: labels(crd),
            conditions: condition::present(crd),
            generation: crd["metadata"]["generation"].as_i64(),
            created: crd["metadata"]["creationTimestamp"].as_str().and_then(|created| created.parse().ok()),
        }
    }
}

/// The value; `None` if it cannot be read, which is noted.
fn noted<T>(unread: &mut Vec<String>, what: &str, read: Result<T, impl Display>) -> Option<T> {
    read.map_err(|error| unread.push(format!("{what}: {error}"))).ok()
}

/// The reports that this version can read; the others are noted.
pub(super) fn readable(reports: &[Object], unread: &mut Vec<String>) -> Vec<DefaultsReport> {
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
