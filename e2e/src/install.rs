//! The installation's generated files: what they are made from, and how.
//! kubectl and the tests apply them.

mod chart;
mod tool;
mod version;

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::operator;

pub use ci::root;
pub use tool::{Tool, actionlint, crane, helm, helm_template, kube_score, kustomize, promtool_test_rules};
pub use version::versioned;

/// A file that is kept in the repository and made from other files of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generated {
    /// The CRDs, as `etch crds` prints them.
    Crds,
    /// Everything in `config/default`, the CRDs included, as kustomize prints it.
    Install,
    /// The CRDs once more, where Helm looks for them.
    ChartCrds,
    /// The part of the installation that has nothing to be set, as templates of the Helm chart.
    ChartInstall,
    /// The role of `config/cluster-wide`, as a template of the Helm chart.
    ChartClusterWide,
    /// `config/flowcontrol`, as a template of the Helm chart.
    ChartFlowControl,
    /// `config/monitoring`, as a template of the Helm chart.
    ChartMonitoring,
    /// `config/status-guard`, as a template of the Helm chart.
    ChartStatusGuard,
    /// What `config/admission` and its variants add, as a template of the Helm chart.
    ChartAdmission,
}

impl Generated {
    /// All of them, each after what it is made from.
    pub const ALL: [Self; 9] = [
        Self::Crds,
        Self::Install,
        Self::ChartCrds,
        Self::ChartInstall,
        Self::ChartClusterWide,
        Self::ChartFlowControl,
        Self::ChartMonitoring,
        Self::ChartStatusGuard,
        Self::ChartAdmission,
    ];

    /// Where the file is, from the root of the repository.
    pub fn name(self) -> &'static str {
        match self {
            Self::Crds => "config/crd/crds.yaml",
            Self::Install => "yaml/install.yaml",
            Self::ChartCrds => "config/chart/crds/crds.yaml",
            Self::ChartInstall => "config/chart/templates/install.yaml",
            Self::ChartClusterWide => "config/chart/templates/cluster-wide.yaml",
            Self::ChartFlowControl => "config/chart/templates/flowcontrol.yaml",
            Self::ChartMonitoring => "config/chart/templates/monitoring.yaml",
            Self::ChartStatusGuard => "config/chart/templates/status-guard.yaml",
            Self::ChartAdmission => "config/chart/templates/admission.yaml",
        }
    }

    /// The same as a path that can be opened.
    pub fn path(self) -> PathBuf {
        root().join(self.name())
    }

    /// What the file should hold.
    ///
    /// # Errors
    /// `etch` or kustomize does not build or fails.
    pub fn text(self) -> Result<String> {
        let (source, text) = match self {
            Self::Crds => ("`etch crds`", tool::output(Command::new(operator::binary()?).arg("crds"))?),
            Self::Install => ("config/default", kustomize("config/default")?),
            Self::ChartCrds => ("config/default", chart::crds(&kustomize("config/default")?)?),
            Self::ChartInstall => ("config/default", chart::unconditional(&kustomize("config/default")?)?),
            Self::ChartClusterWide => {
                ("config/cluster-wide", chart::cluster_wide(&kustomize("config/cluster-wide")?)?)
            }
            Self::ChartFlowControl => {
                let all = kustomize("config/default")?;
                ("config/flowcontrol", chart::part(&all, chart::FLOW_CONTROL, ".Values.flowControl.enabled")?)
            }
            Self::ChartMonitoring => {
                let all = kustomize("config/monitoring")?;
                let kinds = ["ServiceMonitor", "PrometheusRule", "ConfigMap"];
                ("config/monitoring", chart::part(&all, &kinds, ".Values.monitoring.enabled")?)
            }
            Self::ChartStatusGuard => {
                let all = kustomize("config/status-guard")?;
                let kinds = ["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"];
                ("config/status-guard", chart::part(&all, &kinds, ".Values.statusGuard.enabled")?)
            }
            Self::ChartAdmission => ("config/admission", admission()?),
        };
        Ok(format!("# Generated from {source}; make it again with `just generate`.\n{text}"))
    }
}

/// What each source of certificates needs, and what all of them do.
fn admission() -> Result<String> {
    let base = kustomize("config/default")?;
    let cert_manager = kustomize("config/admission")?;
    let self_managed = kustomize("config/admission-self-managed")?;
    let service_ca = kustomize("config/admission-service-ca")?;
    let when = |comparison: &str, source: &str| {
        let certificates = format!("{comparison} .Values.admission.certificates \"{source}\"");
        format!("and .Values.admission.enabled ({certificates})")
    };
    let roles = ["ClusterRole", "ClusterRoleBinding"];
    let parts = [
        chart::added(&cert_manager, &base, &roles, ".Values.admission.enabled")?,
        chart::added(&cert_manager, &base, &["Service"], &when("ne", "ServiceCA"))?,
        chart::added(&service_ca, &base, &["Service"], &when("eq", "ServiceCA"))?,
        chart::added(&cert_manager, &base, &["Issuer", "Certificate"], &when("eq", "CertManager"))?,
        chart::added(&self_managed, &base, &["Role", "RoleBinding"], &when("eq", "SelfManaged"))?,
    ];
    Ok(parts.concat())
}

/// The object that has this kind and name.
///
/// # Errors
/// There is none.
pub fn named<'o>(objects: &'o [Value], kind: &str, name: &str) -> Result<&'o Value> {
    let found = objects.iter().find(|object| object["kind"] == kind && object["metadata"]["name"] == name);
    found.with_context(|| format!("no {kind} {name}"))
}
