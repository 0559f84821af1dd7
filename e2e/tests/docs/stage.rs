//! A cluster, a folder and a shell as a reader of the docs has them.
//! It runs what it is given, and plays the node that runs the Deployment.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::cluster::{Cluster, GUARD, Patch, eventually};
use e2e::control_plane::{ControlPlane, Kubernetes, Options, kubectl};
use e2e::install::{Tool, root};
use e2e::operator::{Operator, binary};
use e2e::process::Ended;
use e2e::scene::{AGGREGATION, NAMESPACE, verify_now};
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Command;

use crate::files::{self, OBJECTS};

/// A command that takes longer than this hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// A cluster with some CRDs and objects, and a folder in which commands are typed.
pub(crate) struct Stage {
    pub(crate) cluster: Cluster,
    control_plane: ControlPlane,
    dir: TempDir,
    exports: Vec<String>,
    operator: Option<Operator>,
}

impl Stage {
    /// A cluster in which users have had custom resources for a while.
    pub(crate) async fn start() -> Result<Self> {
        let stage = Self::bare().await?;
        for crd in [files::crontabs(None), files::certificates(None), files::widgets()] {
            stage.cluster.apply_crd(&crd).await?;
        }
        for (path, object) in OBJECTS.iter().map(|object| object()) {
            stage.cluster.patch(&path, Patch::Apply, "user", &object).await?.ok()?;
        }
        // What upgrades have brought: these defaults are phantoms.
        for crd in [files::certificates(Some("Always"))] {
            stage.cluster.apply_crd(&crd).await?;
        }
        Ok(stage)
    }

    /// A cluster without anything, and the folder.
    pub(crate) async fn bare() -> Result<Self> {
        let dir = tempfile::tempdir()?;
        let mut options = Options::new(dir.path().join("cluster"));
        options.controllers = vec![AGGREGATION.to_owned(), "namespace-controller".to_owned()];
        let control_plane = ControlPlane::start(options).await?;
        let cluster = Cluster::of(&control_plane).await?;
        let stage = Self { cluster, control_plane, dir, exports: Vec::new(), operator: None };
        stage.prepare().await?;
        Ok(stage)
    }

    /// The folder: the repository's own files, those that examples name, and the programs.
    async fn prepare(&self) -> Result<()> {
        let (folder, programs) = (self.folder(), self.programs());
        std::fs::create_dir_all(&folder)?;
        std::fs::create_dir_all(&programs)?;
        for own in ["config", "yaml", "docs", "e2e", "README.md"] {
            symlink(root().join(own), folder.join(own))?;
        }
        files::write(&folder)?;
        symlink(binary()?, programs.join("etch"))?;
        symlink(binary()?, programs.join("kubectl-etch"))?;
        symlink(kubectl(&Kubernetes::meant()?).await?, programs.join("kubectl"))?;
        symlink(Tool::Helm.program()?, programs.join("helm"))?;
        Ok(())
    }

    fn folder(&self) -> PathBuf {
        self.dir.path().join("folder")
    }

    fn programs(&self) -> PathBuf {
        self.dir.path().join("bin")
    }

    /// Runs a command in a shell that has seen the exports before it.
    pub(crate) async fn run(&mut self, command: &str) -> Result<Ended> {
        if command.starts_with("export ") {
            self.exports.push(command.to_owned());
        }
        let script = [self.exports.join("\n").as_str(), command].join("\n");
        let path = format!("{}:{}", self.programs().display(), std::env::var("PATH")?);
        let mut shell = Command::new("bash");
        shell.args(["-o", "pipefail", "-c", &script]).current_dir(self.folder());
        shell.env("PATH", path).env("HOME", self.dir.path());
        shell.env("KUBECONFIG", self.control_plane.kubeconfig(0)).env("ETCD", self.control_plane.etcd_url());
        shell.stdin(Stdio::null()).kill_on_drop(true);
        let output = tokio::time::timeout(PATIENCE, shell.output()).await.context("it does not end")??;
        let ended = Ended::from(output);
        self.play_node().await?;
        Ok(ended)
    }

    /// Runs the operator if the cluster has a Deployment for it, with the arguments in it.
    async fn play_node(&mut self) -> Result<()> {
        let path = format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments/etch");
        let deployment = self.cluster.get(&path).await.unwrap_or_default();
        let wanted = deployment["spec"]["replicas"].as_i64().unwrap_or_default() > 0;
        match (wanted, self.operator.take()) {
            (true, None) => self.operator = Some(self.operate(&deployment).await?),
            (true, running) => self.operator = running,
            (false, Some(operator)) => operator.stop().await?,
            (false, None) => {}
        }
        Ok(())
    }

    async fn operate(&self, deployment: &Value) -> Result<Operator> {
        let kubeconfig = self.control_plane.service_account_kubeconfig(0, NAMESPACE, "etch").await?;
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        let arguments = container["args"].as_array().context("arguments")?;
        let arguments: Vec<&str> = arguments.iter().filter_map(Value::as_str).collect();
        ensure!(arguments.first() == Some(&"run"), "{arguments:?}");
        let mut flags = arguments[1..].to_vec();
        flags.push("--listen=127.0.0.1:0");
        let variables = container["env"].as_array().into_iter().flatten();
        let variables: Vec<(&str, &str)> = variables
            .filter_map(|variable| {
                let from_field = variable["valueFrom"].is_object().then_some(NAMESPACE);
                Some((variable["name"].as_str()?, variable["value"].as_str().or(from_field)?))
            })
            .collect();
        let log = self.dir.path().join("etch.log");
        Operator::start_of(binary()?, &kubeconfig, &log, &flags, &variables)
    }

    /// Waits until the operator reports that the defaults of a CRD are stored.
    pub(crate) async fn persisted(&self, crd: &str) -> Result<()> {
        self.cluster.persisted(crd, "AllPersisted", GUARD).await.map(drop)
    }

    /// Waits until there is a report on a CRD.
    pub(crate) async fn reported(&self, crd: &str) -> Result<()> {
        let path = format!("/apis/etch-operator.io/v1alpha1/defaultsreports/{crd}");
        eventually(GUARD, &format!("a report on {crd}"), async || {
            Ok(self.cluster.get(&path).await.ok().map(drop))
        })
        .await
    }

    /// Has the operator verify the objects of a CRD at once, as if eleven minutes had passed.
    pub(crate) async fn verify_now(&mut self, crd: &str) -> Result<()> {
        if let Some(operator) = self.operator.take() {
            operator.stop().await?;
        }
        verify_now(&self.cluster, crd).await?;
        self.play_node().await
    }

    /// A backup of etcd in the folder.
    pub(crate) async fn back_up(&self, name: &str) -> Result<()> {
        let snapshot = self.cluster.etcd().snapshot().await?;
        std::fs::write(self.folder().join(name), snapshot)?;
        Ok(())
    }

    /// A file in the folder.
    pub(crate) fn file(&self, name: &str, text: &str) -> Result<PathBuf> {
        write(&self.folder().join(name), text)
    }

    /// Ends everything.
    pub(crate) async fn stop(self) -> Result<()> {
        match self.operator {
            Some(operator) => operator.stop().await,
            None => Ok(()),
        }
    }
}

fn write(path: &Path, text: &str) -> Result<PathBuf> {
    std::fs::write(path, text)?;
    Ok(path.to_owned())
}
