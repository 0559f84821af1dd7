//! The recipe for releases, `config/samples/pre-upgrade.yaml`, whatever applies it: the CRD that is released,
//! its objects, and the node that runs the Job. The caller applies the CRD and the recipe.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::cluster::{CRDS, Cluster, GUARD, Patch, crd, eventually, with_spec};
use crate::control_plane::ControlPlane;
use crate::install::root;
use crate::operator::binary;

const GROUP: &str = "stable.example.com";
const CRD: &str = "crontabs.stable.example.com";
const OBJECTS: &str = "/apis/stable.example.com/v1/namespaces/default/crontabs";
const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";

/// The recipe as it is shipped.
///
/// # Errors
/// It cannot be read.
pub fn recipe() -> Result<String> {
    let path = root().join("config/samples/pre-upgrade.yaml");
    std::fs::read_to_string(&path).with_context(|| path.display().to_string())
}

/// The CRD of the recipe, whose objects have these fields.
fn released_crd(fields: &Value) -> Value {
    crd(GROUP, "CronTab", &[("v1", true, with_spec(fields))])
}

/// How a release by a program ended: the inner error has what the program printed.
///
/// # Errors
/// The program cannot be run.
pub async fn ended(program: &mut Command) -> Result<Result<(), String>> {
    let output = program.kill_on_drop(true).output().await?;
    Ok(match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    })
}

/// Releases the CRD again and again, the recipe beside it, while Jobs are run: `release` takes the CRD, and
/// returns why it was not applied.
///
/// The first release finds no CRD. Later ones must store what objects show before the CRD changes, and must
/// not change it where an object is held, until it is gone.
///
/// # Errors
/// Anything that is not as it should be.
pub async fn values_stay(
    cluster: &Cluster,
    control_plane: &ControlPlane,
    release: impl AsyncFnMut(Value) -> Result<Result<(), String>>,
) -> Result<()> {
    tokio::select! {
        ended = releases(cluster, release) => ended,
        error = run_jobs(cluster, control_plane) => Err(error),
    }
}

async fn releases(
    cluster: &Cluster,
    mut release: impl AsyncFnMut(Value) -> Result<Result<(), String>>,
) -> Result<()> {
    let text = json!({ "type": "string" });
    let size = |default: i64| json!({ "type": "integer", "default": default });
    let color = json!({ "type": "string", "default": "red" });
    let mut released = async |fields: Value| -> Result<Result<(), String>> {
        let what = fields.to_string();
        release(released_crd(&fields)).await.with_context(|| what)
    };
    let done = |ended: Result<(), String>| ended.map_err(anyhow::Error::msg);

    done(released(json!({ "legacy": text })).await?).context("the first release")?;
    for (name, spec) in [("plain", json!({})), ("hidden", json!({ "legacy": "x" }))] {
        let object = json!({
            "apiVersion": format!("{GROUP}/v1"), "kind": "CronTab", "metadata": { "name": name },
            "spec": spec,
        });
        // The API server begins to serve a CRD a moment after it is applied.
        let served = async || Ok(cluster.get(OBJECTS).await.ok().map(drop));
        eventually(GUARD, "the CRD is served", served).await?;
        cluster.create(OBJECTS, "user", &object).await?;
    }
    done(released(json!({ "legacy": text, "size": size(1) })).await?)?;
    ensure!(stored(cluster, "plain").await? == json!({}), "the default is a phantom at first");

    // What was shown is stored before the default changes: afterwards it would be 2.
    done(released(json!({ "size": size(2), "color": color })).await?)?;
    ensure!(default_of_size(cluster).await? == 2);
    let plain = stored(cluster, "plain").await?;
    ensure!(plain == json!({ "size": 1 }), "the value has changed with the default: {plain}");

    // What a write would destroy is held, and so is the release.
    let next = json!({ "size": size(3), "color": color });
    let refused = released(next.clone()).await?;
    ensure!(refused.is_err(), "released although an object is held");
    ensure!(default_of_size(cluster).await? == 2, "the CRD has changed");
    let plain = stored(cluster, "plain").await?;
    ensure!(plain == json!({ "size": 1, "color": "red" }), "the Job has stored nothing: {plain}");
    let hidden = stored(cluster, "hidden").await?;
    ensure!(hidden == json!({ "legacy": "x", "size": 1 }), "the hidden field is gone: {hidden}");

    cluster.delete(&format!("{OBJECTS}/hidden")).await?;
    done(released(next).await?).context("when no object is held any more")?;
    ensure!(default_of_size(cluster).await? == 3);
    ensure!(stored(cluster, "plain").await? == plain, "a value has changed");
    Ok(())
}

/// The spec of an object as etcd holds it.
async fn stored(cluster: &Cluster, name: &str) -> Result<Value> {
    Ok(cluster.raw(GROUP, "crontabs", Some("default"), name).await?["spec"].clone())
}

/// The default of one field in the CRD of the cluster.
async fn default_of_size(cluster: &Cluster) -> Result<Value> {
    let crd = cluster.get(&format!("{CRDS}/{CRD}")).await?;
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    Ok(schema["properties"]["spec"]["properties"]["size"]["default"].clone())
}

/// Runs Jobs as a node and the Job controller do, each once, with the image of Etch; ends with an error only.
async fn run_jobs(cluster: &Cluster, control_plane: &ControlPlane) -> anyhow::Error {
    loop {
        if let Err(error) = run_next_jobs(cluster, control_plane).await {
            return error.context("a Job");
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn run_next_jobs(cluster: &Cluster, control_plane: &ControlPlane) -> Result<()> {
    let jobs = cluster.get(JOBS).await?;
    let jobs = jobs["items"].as_array().into_iter().flatten();
    let waits = |job: &&Value| {
        job["status"]["conditions"].is_null() && job["metadata"]["deletionTimestamp"].is_null()
    };
    for job in jobs.filter(waits) {
        let pod = &job["spec"]["template"]["spec"];
        let account = pod["serviceAccountName"].as_str().context("a service account")?;
        let kubeconfig = control_plane.service_account_kubeconfig(0, "default", account).await?;
        let arguments = pod["containers"][0]["args"].as_array().context("arguments")?;
        let arguments = arguments.iter().filter_map(Value::as_str);
        let mut etch = Command::new(binary()?);
        let ended = etch.args(arguments).env("KUBECONFIG", kubeconfig).kill_on_drop(true).output().await?;
        let name = job["metadata"]["name"].as_str().context("a name")?;
        let status = status(ended.status.success());
        cluster.patch(&format!("{JOBS}/{name}/status"), Patch::Merge, "node", &status).await?.ok()?;
    }
    Ok(())
}

/// The status that the Job controller gives a Job that has ended.
fn status(has_succeeded: bool) -> Value {
    let now = "2026-01-01T00:00:00Z";
    let conditions = |types: [&str; 2]| types.map(|kind| json!({ "type": kind, "status": "True" }));
    match has_succeeded {
        true => json!({ "status": { "startTime": now, "completionTime": now, "succeeded": 1,
            "conditions": conditions(["SuccessCriteriaMet", "Complete"]) } }),
        false => json!({ "status": { "startTime": now, "failed": 1,
            "conditions": conditions(["FailureTarget", "Failed"]) } }),
    }
}
