//! The recipe for releases as a hook of Argo CD, written as one or as a chart's: it stores what objects show
//! before a CRD changes, and keeps it from being changed where it cannot.
//!
//! The engine of Argo CD, the API server and its garbage collector are real; the test plays the node that
//! runs the Job. The truth is the raw value in etcd.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use e2e::cluster::Cluster;
use e2e::control_plane::{ControlPlane, Options};
use e2e::install::Tool;
use e2e::pre_upgrade::{ended, recipe, values_stay};
use serde_json::Value;
use tokio::process::Command;

/// What the recipe has for Helm, and what the documentation puts in its place for Argo CD.
const ANNOTATIONS: [(&str, &str); 3] = [
    ("helm.sh/hook: pre-upgrade", "argocd.argoproj.io/hook: PreSync"),
    ("helm.sh/hook-weight:", "argocd.argoproj.io/sync-wave:"),
    (
        "helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded",
        "argocd.argoproj.io/hook-delete-policy: BeforeHookCreation,HookSucceeded",
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_sync_stores_what_it_is_about_to_change() -> Result<()> {
    let of_chart = recipe()?;
    let mut recipe = of_chart.clone();
    for (helm, argo_cd) in ANNOTATIONS {
        ensure!(recipe.contains(helm), "{helm} is not in the recipe");
        recipe = recipe.replace(helm, argo_cd);
    }
    ensure!(!recipe.contains("helm.sh"), "{recipe}");
    let program = Tool::ArgoSync.program()?;
    let (plain, chart) = tokio::join!(syncs(&program, &recipe), syncs(&program, &of_chart));
    plain.context("with Argo CD's annotations")?;
    chart.context("with Helm's annotations")
}

async fn syncs(program: &Path, recipe: &str) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let mut options = Options::new(dir.path().join("cluster"));
    // Argo CD has dependents of a hook deleted first.
    options.controllers = vec!["garbage-collector-controller".to_owned()];
    let control_plane = ControlPlane::start(options).await?;
    let cluster = Cluster::of(&control_plane).await?;
    let folder = dir.path().join("manifests");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("pre-upgrade.yaml"), recipe)?;
    let release = async |crd: Value| -> Result<Result<(), String>> {
        fs::write(folder.join("crd.yaml"), crd.to_string())?;
        let mut sync = Command::new(program);
        sync.arg(&folder).env("KUBECONFIG", control_plane.kubeconfig(0));
        ended(&mut sync).await
    };
    values_stay(&cluster, &control_plane, release).await
}
