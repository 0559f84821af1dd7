//! The recipe for releases as a hook of a chart: it stores what objects show before the chart's CRD changes,
//! and keeps the chart from being upgraded where it cannot.
//!
//! Helm is real; the test plays the node that runs the Job. The truth is the raw value in etcd.

use std::fs;

use anyhow::Result;
use e2e::cluster::Cluster;
use e2e::control_plane::{ControlPlane, Options};
use e2e::install::Tool;
use e2e::pre_upgrade::{ended, recipe, values_stay};
use serde_json::Value;
use tokio::process::Command;

#[tokio::test(flavor = "multi_thread")]
async fn a_chart_stores_what_it_is_about_to_change() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let control_plane = ControlPlane::start(Options::new(dir.path().join("cluster"))).await?;
    let cluster = Cluster::of(&control_plane).await?;
    let chart = dir.path().join("chart");
    fs::create_dir_all(chart.join("templates"))?;
    fs::write(chart.join("Chart.yaml"), "apiVersion: v2\nname: crontabs\nversion: 1.0.0\n")?;
    fs::write(chart.join("templates/pre-upgrade.yaml"), recipe()?)?;
    let program = Tool::Helm.program()?;
    let release = async |crd: Value| -> Result<Result<(), String>> {
        fs::write(chart.join("templates/crd.yaml"), crd.to_string())?;
        let mut helm = Command::new(&program);
        helm.args(["upgrade", "--install", "crontabs"]).arg(&chart);
        helm.env("KUBECONFIG", control_plane.kubeconfig(0)).env("HOME", dir.path());
        ended(&mut helm).await
    };
    values_stay(&cluster, &control_plane, release).await
}
