//! The installation's generated files: what they are made from, and how.
//! It must not apply anything: that is for kubectl and the tests.

mod chart;
mod tool;
mod version;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::operator;

pub use tool::{
    actionlint, crane, crane_program, helm, helm_program, krew_program, kube_score, kustomize,
    migrator_program, promtool_test_rules,
};
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
    /// `config/networkpolicy`, as a template of the Helm chart.
    ChartNetworkPolicy,
    /// `config/monitoring`, as a template of the Helm chart.
    ChartMonitoring,
}

impl Generated {
    /// All of them, each after what it is made from.
    pub const ALL: [Self; 8] = [
        Self::Crds,
        Self::Install,
        Self::ChartCrds,
        Self::ChartInstall,
        Self::ChartClusterWide,
        Self::ChartFlowControl,
        Self::ChartNetworkPolicy,
        Self::ChartMonitoring,
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
            Self::ChartNetworkPolicy => "config/chart/templates/networkpolicy.yaml",
            Self::ChartMonitoring => "config/chart/templates/monitoring.yaml",
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
                let all = kustomize("config/cluster-wide")?;
                ("config/cluster-wide", chart::part(&all, &["etch-all-groups"], ".Values.rbac.clusterWide")?)
            }
            Self::ChartFlowControl => {
                let all = kustomize("config/default")?;
                ("config/flowcontrol", chart::part(&all, chart::FLOW_CONTROL, ".Values.flowControl.enabled")?)
            }
            Self::ChartNetworkPolicy => {
                let all = kustomize("config/default")?;
                let wanted = chart::NETWORK_POLICY;
                ("config/networkpolicy", chart::part(&all, wanted, ".Values.networkPolicy.enabled")?)
            }
            Self::ChartMonitoring => {
                let all = kustomize("config/monitoring")?;
                let kinds = ["ServiceMonitor", "PrometheusRule", "ConfigMap"];
                ("config/monitoring", chart::part(&all, &kinds, ".Values.monitoring.enabled")?)
            }
        };
        Ok(format!("# Generated from {source}; make it again with `just generate`.\n{text}"))
    }
}

/// The root of the repository.
pub fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}
