//! Kustomize, Helm, promtool, kube-score, kube-storage-version-migrator, crane, krew, actionlint, and what
//! applies manifests as Argo CD and Flux do, at the versions that `e2e/build` pins; go builds them once and
//! keeps them. A tool that happens to be installed is not used.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use parking_lot::Mutex;

use super::root;
use crate::go::go;
use crate::target::target_folder;

/// A program of a module of `e2e/build`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tool {
    /// Checks workflows.
    Actionlint,
    /// Syncs a folder of manifests with the engine of Argo CD.
    ArgoSync,
    /// Pushes images and charts; `registry serve` is a registry.
    Crane,
    /// Reconciles Kustomizations with the libraries of Flux.
    FluxReconcile,
    /// Installs charts.
    Helm,
    /// Installs plugins of kubectl.
    Krew,
    /// Checks manifests.
    KubeScore,
    /// Builds overlays.
    Kustomize,
    /// Migrates objects, of kube-storage-version-migrator.
    Migrator,
    /// Tests alerts.
    Promtool,
}

impl Tool {
    /// The folder in `e2e/build`, and the package.
    fn source(self) -> (&'static str, &'static str) {
        match self {
            Self::Actionlint => ("actionlint", "github.com/rhysd/actionlint/cmd/actionlint"),
            Self::ArgoSync => ("argo-sync", "e2e/argo-sync"),
            Self::Crane => ("crane", "github.com/google/go-containerregistry/cmd/crane"),
            Self::FluxReconcile => ("flux-reconcile", "e2e/flux-reconcile"),
            Self::Helm => ("helm", "helm.sh/helm/v3/cmd/helm"),
            Self::Krew => ("krew", "sigs.k8s.io/krew/cmd/krew"),
            Self::KubeScore => ("kube-score", "github.com/zegl/kube-score/cmd/kube-score"),
            Self::Kustomize => ("kustomize", "sigs.k8s.io/kustomize/kustomize/v5"),
            Self::Migrator => ("migrator", "sigs.k8s.io/kube-storage-version-migrator/cmd/migrator"),
            Self::Promtool => ("prometheus", "github.com/prometheus/prometheus/cmd/promtool"),
        }
    }

    /// The program in `tools/` of cargo's target folder; this process asks go once whether it is up to date.
    ///
    /// # Errors
    /// There is no go, or it does not build.
    pub fn program(self) -> Result<PathBuf> {
        static BUILT: Mutex<BTreeMap<Tool, PathBuf>> = Mutex::new(BTreeMap::new());
        let mut built = BUILT.lock();
        if let Some(program) = built.get(&self) {
            return Ok(program.clone());
        }
        let folder = target_folder()?.join("tools");
        fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
        let (module, package) = self.source();
        let lock = File::create(folder.join(format!("{module}.lock"))).context("create the build lock")?;
        lock.lock().context("wait for the build lock")?;
        let program = folder.join(module);
        let mut go = go();
        go.args(["-C", &format!("{}/build/{module}", env!("CARGO_MANIFEST_DIR")), "build"]);
        if self == Self::Promtool {
            // No test of rules needs any of its many ways to find what to scrape, each with the library of a
            // cloud.
            go.arg("-tags=remove_all_sd");
        }
        output(go.arg("-o").arg(&program).arg(package))?;
        built.insert(self, program.clone());
        Ok(program)
    }

    fn command(self) -> Result<Command> {
        Ok(Command::new(self.program()?))
    }
}

/// What `kustomize build` makes of a folder, named from the root of the repository.
///
/// # Errors
/// There is no go, or kustomize refuses the folder.
pub fn kustomize(folder: &str) -> Result<String> {
    output(Tool::Kustomize.command()?.arg("build").arg(root().join(folder)))
}

/// What `helm template` makes of `config/chart`, CRDs included, installed as `etch` in `etch-system`, with
/// further flags.
///
/// # Errors
/// There is no go, or Helm refuses the chart or a value.
pub fn helm(flags: &[&str]) -> Result<String> {
    helm_template(&root().join("config/chart"), flags)
}

/// The same of another chart, such as a changed copy.
///
/// # Errors
/// There is no go, or Helm refuses the chart or a value.
pub fn helm_template(chart: &Path, flags: &[&str]) -> Result<String> {
    let mut helm = Tool::Helm.command()?;
    helm.args(["template", "etch"]).arg(chart);
    // Built without its own flags, it takes every cluster for one of 1.20.
    helm.args(["--namespace", "etch-system", "--include-crds", "--kube-version", "1.34.0"]).args(flags);
    // Nothing of the user's own settings.
    helm.env("HELM_NO_PLUGINS", "1");
    output(&mut helm)
}

/// What `crane` prints, which pushes images and charts.
///
/// # Errors
/// There is no go, or crane fails.
pub fn crane(arguments: &[&str]) -> Result<String> {
    output(Tool::Crane.command()?.args(arguments))
}

/// Fails with the findings if actionlint finds anything in a workflow.
///
/// # Errors
/// There is no go, or actionlint has findings.
pub fn actionlint<'a>(files: impl IntoIterator<Item = &'a Path>) -> Result<()> {
    output(Tool::Actionlint.command()?.args(files)).map(drop)
}

/// The result of `promtool test rules` for files with tests of alerts: whether all passed, and the lines with
/// the result of each.
///
/// # Errors
/// There is no go, or promtool does not build.
pub fn promtool_test_rules<'a>(files: impl IntoIterator<Item = &'a Path>) -> Result<(bool, String)> {
    let mut promtool = Tool::Promtool.command()?;
    let output = promtool.args(["test", "rules"]).args(files).output().context("run promtool")?;
    let wording =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(
        wording.contains("SUCCESS") || wording.contains("FAILED:"),
        "promtool has tested nothing: {wording}"
    );
    Ok((output.status.success(), wording))
}

/// What kube-score finds in a file with manifests, and whether it finds nothing.
///
/// # Errors
/// There is no go, or kube-score does not build.
pub fn kube_score(manifests: &Path) -> Result<(bool, String)> {
    let mut kube_score = Tool::KubeScore.command()?;
    kube_score.args(["score", "--kubernetes-version", "v1.34"]).arg(manifests);
    let output = kube_score.output().context("run kube-score")?;
    let wording = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(!wording.is_empty(), "kube-score: {}", String::from_utf8_lossy(&output.stderr));
    Ok((output.status.success(), wording))
}

/// What a command prints.
pub(super) fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("run {command:?}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?} ended with {}: {errors}", output.status);
    Ok(String::from_utf8(output.stdout)?)
}
