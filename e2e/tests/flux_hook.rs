//! The recipe for releases as Kustomizations of Flux: they store what objects show before a CRD changes, and
//! keep it from being changed where they cannot.
//!
//! Flux's libraries and the API server are real; the test plays the node that runs the Job. The truth is the
//! raw value in etcd.

use std::fs;

use anyhow::{Context, Result, ensure};
use e2e::cluster::Cluster;
use e2e::control_plane::{ControlPlane, Options};
use e2e::install::{Tool, root};
use e2e::pre_upgrade::{ended, recipe, values_stay};
use serde_json::Value;
use tokio::process::Command;

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const JOB: &str = "/apis/batch/v1/namespaces/default/jobs/etch-pre-upgrade";

#[tokio::test(flavor = "multi_thread")]
async fn kustomizations_store_what_they_are_about_to_change() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let control_plane = ControlPlane::start(Options::new(dir.path().join("cluster"))).await?;
    let cluster = Cluster::of(&control_plane).await?;
    let program = Tool::FluxReconcile.program()?;
    let sample = root().join("config/samples/flux");
    let source = dir.path().join("source");
    for folder in ["pre-upgrade", "crds"] {
        fs::create_dir_all(source.join(folder))?;
    }
    fs::write(source.join("pre-upgrade/pre-upgrade.yaml"), recipe()?)?;
    let generator = "pre-upgrade/kustomization.yaml";
    fs::copy(sample.join(generator), source.join(generator)).context(generator)?;
    let reconcile = async |revision: u64| {
        let mut flux = Command::new(&program);
        flux.arg(sample.join("kustomizations.yaml")).arg(&source).arg(format!("main@{revision}"));
        flux.arg(dir.path().join("statuses.json")).env("KUBECONFIG", control_plane.kubeconfig(0));
        ended(&mut flux).await
    };
    let (crd_file, mut revision) = (source.join("crds/crd.yaml"), 0);
    let release = async |crd: Value| -> Result<Result<(), String>> {
        let crd = crd.to_string();
        if fs::read_to_string(&crd_file).is_ok_and(|released| released == crd) {
            // Flux does not create a Job again that has not changed, so the one that failed has to go.
            let why = reconcile(revision).await?.err().context("the Job has run once more by itself")?;
            ensure!(why.contains("Job/default/etch-pre-upgrade status: 'Failed'"), "{why}");
            ensure!(why.contains("crds: a dependency is not ready"), "{why}");
            cluster.delete(&format!("{JOB}?propagationPolicy=Background")).await?;
        } else {
            revision += 1;
            fs::write(&crd_file, crd)?;
        }
        let ended = reconcile(revision).await?;
        let config_maps = cluster.get(CONFIG_MAPS).await?;
        let names = config_maps["items"].as_array().into_iter().flatten();
        let names: Vec<&str> = names.filter_map(|map| map["metadata"]["name"].as_str()).collect();
        let hashed = names.iter().filter(|name| name.starts_with("etch-pre-upgrade-"));
        // What is not in the Kustomization any more is pruned.
        ensure!(hashed.count() == 1, "not the ConfigMap of this CRD alone: {names:?}; {ended:?}");
        Ok(ended)
    };
    values_stay(&cluster, &control_plane, release).await
}
