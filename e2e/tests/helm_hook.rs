//! The recipe for releases, `config/samples/pre-upgrade.yaml`: a hook stores what objects show before a
//! chart's CRD changes, and keeps the chart from being upgraded where it cannot.
//!
//! Helm is real; the test plays the node that runs the Job. The truth is the raw value in etcd.

use std::fs;
use std::process::Output;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::cluster::{CRDS, Cluster, GUARD, Patch, crd, eventually};
use e2e::control_plane::{ControlPlane, Options};
use e2e::install::{helm_program, root};
use e2e::operator::binary;
use serde_json::{Value, json};
use tokio::process::Command;

const GROUP: &str = "stable.example.com";
const CRD: &str = "crontabs.stable.example.com";
const OBJECTS: &str = "/apis/stable.example.com/v1/namespaces/default/crontabs";
const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";

#[tokio::test(flavor = "multi_thread")]
async fn a_chart_stores_what_it_is_about_to_change() -> Result<()> {
    let release = Release::begin().await?;
    let cluster = &release.cluster;
    let legacy = json!({ "legacy": { "type": "string" } });
    release.release("install", &legacy).await?.done()?;
    for (name, spec) in [("plain", json!({})), ("hidden", json!({ "legacy": "x" }))] {
        let object = json!({ "apiVersion": format!("{GROUP}/v1"), "kind": "CronTab", "metadata": { "name": name }, "spec": spec });
        created(cluster, &object).await?;
    }
    let size = |default: i64| json!({ "type": "integer", "default": default });
    let both = json!({ "legacy": legacy["legacy"], "size": size(1) });
    release.release("upgrade", &both).await?.done()?;
    ensure!(release.stored("plain").await? == json!({}), "the default is a phantom at first");
    // The hook stores 1, and only then the chart has another default.
    release.release("upgrade", &json!({ "legacy": legacy["legacy"], "size": size(2) })).await?.done()?;
    ensure!(release.stored("plain").await? == json!({ "size": 1 }), "the value has changed with the default");
    // What a write would destroy is held, and so is the upgrade.
    let hides = json!({ "size": size(2), "color": { "type": "string", "default": "red" } });
    release.release("upgrade", &hides).await?.done()?;
    let failed = release.release("upgrade", &json!({ "size": size(3) })).await?;
    ensure!(failed.done().is_err(), "upgraded although an object is held: {}", failed.said());
    let plain = release.stored("plain").await?;
    ensure!(plain == json!({ "size": 1, "color": "red" }), "the hook has stored nothing: {plain}");
    let crd = cluster.get(&format!("{CRDS}/{CRD}")).await?;
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    ensure!(schema["properties"]["spec"]["properties"]["size"]["default"] == 2, "{schema}");
    ensure!(release.stored("hidden").await?["legacy"] == "x", "the hidden field is gone");
    Ok(())
}

/// A chart, and the cluster into which it is installed.
struct Release {
    cluster: Cluster,
    control_plane: ControlPlane,
    dir: tempfile::TempDir,
}

/// How a command of Helm's has ended.
struct Ended(Output);

impl Release {
    async fn begin() -> Result<Self> {
        let dir = tempfile::tempdir()?;
        let control_plane = ControlPlane::start(Options::new(dir.path().join("cluster"))).await?;
        let cluster = Cluster::of(&control_plane).await?;
        let templates = dir.path().join("chart/templates");
        fs::create_dir_all(&templates)?;
        fs::write(dir.path().join("chart/Chart.yaml"), "apiVersion: v2\nname: crontabs\nversion: 1.0.0\n")?;
        fs::copy(root().join("config/samples/pre-upgrade.yaml"), templates.join("pre-upgrade.yaml"))?;
        helm_program(dir.path())?;
        Ok(Self { cluster, control_plane, dir })
    }

    /// Installs or upgrades the chart, with a CRD that has these fields.
    async fn release(&self, verb: &str, fields: &Value) -> Result<Ended> {
        let spec = json!({ "type": "object", "properties": fields });
        let schema = json!({ "type": "object", "properties": { "spec": spec } });
        let crd = crd(GROUP, "CronTab", &[("v1", true, schema)]);
        fs::write(self.dir.path().join("chart/templates/crd.yaml"), serde_json::to_string(&crd)?)?;
        let mut helm = Command::new(self.dir.path().join("helm"));
        helm.args([verb, "crontabs"]).arg(self.dir.path().join("chart")).kill_on_drop(true);
        helm.env("KUBECONFIG", self.control_plane.kubeconfig(0)).env("HOME", self.dir.path());
        tokio::select! {
            output = helm.output() => Ok(Ended(output?)),
            error = self.run_jobs() => Err(error),
        }
    }

    /// Runs Jobs as a node and the Job controller do; ends with an error only.
    async fn run_jobs(&self) -> anyhow::Error {
        loop {
            if let Err(error) = self.run_next_job().await {
                return error.context("a Job");
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    async fn run_next_job(&self) -> Result<()> {
        let jobs = self.cluster.get(JOBS).await?;
        let jobs = jobs["items"].as_array().into_iter().flatten();
        for job in jobs.filter(|job| job["status"]["conditions"].is_null()) {
            let pod = &job["spec"]["template"]["spec"];
            let account = pod["serviceAccountName"].as_str().context("a service account")?;
            let kubeconfig = self.control_plane.service_account_kubeconfig(0, "default", account).await?;
            let arguments = pod["containers"][0]["args"].as_array().context("arguments")?;
            let arguments = arguments.iter().filter_map(Value::as_str);
            let ended =
                Command::new(binary()?).args(arguments).env("KUBECONFIG", kubeconfig).output().await?;
            let name = job["metadata"]["name"].as_str().context("a name")?;
            let status = status(ended.status.success());
            self.cluster
                .patch(&format!("{JOBS}/{name}/status"), Patch::Merge, "node", &status)
                .await?
                .ok()?;
        }
        Ok(())
    }

    /// The spec of an object as etcd holds it.
    async fn stored(&self, name: &str) -> Result<Value> {
        let raw = self.cluster.raw(GROUP, "crontabs", Some("default"), name).await?;
        Ok(raw["spec"].clone())
    }
}

impl Ended {
    fn said(&self) -> String {
        String::from_utf8_lossy(&self.0.stderr).into_owned()
    }

    fn done(&self) -> Result<()> {
        ensure!(self.0.status.success(), "{}", self.said());
        Ok(())
    }
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

/// Creates an object as soon as its CRD is served.
async fn created(cluster: &Cluster, object: &Value) -> Result<()> {
    eventually(GUARD, "the CRD is served", async || Ok(cluster.get(OBJECTS).await.ok().map(drop))).await?;
    cluster.create(OBJECTS, "user", object).await.map(drop)
}
