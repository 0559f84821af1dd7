//! Kustomize, Helm, promtool, kube-score, kube-storage-version-migrator, crane, krew, actionlint, and what
//! applies manifests as Argo CD and Flux do, at the versions that `e2e/build` pins; go builds them once and
//! keeps them. A tool that happens to be installed is not used.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::root;
use crate::go::go;

const FLAGS: &str = "-mod=readonly";

/// What `kustomize build` makes of a folder, named from the root of the repository.
///
/// # Errors
/// There is no go, or kustomize refuses the folder.
pub fn kustomize(folder: &str) -> Result<String> {
    output(tool("kustomize", "kustomize").arg("build").arg(root().join(folder)))
}

/// Kustomize itself, whose `edit` changes the folder that it runs in; built into a folder.
///
/// # Errors
/// There is no go, or kustomize does not build.
pub fn kustomize_program(folder: &Path) -> Result<PathBuf> {
    program("kustomize", "sigs.k8s.io/kustomize/kustomize/v5", folder)
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
    let mut helm = tool("helm", "helm");
    helm.args(["template", "etch"]).arg(chart);
    // Built without its own flags, it takes every cluster for one of 1.20.
    helm.args(["--namespace", "etch-system", "--include-crds", "--kube-version", "1.34.0"]).args(flags);
    // Nothing of the user's own settings.
    helm.env("HELM_NO_PLUGINS", "1");
    output(&mut helm)
}

/// Helm itself, for a cluster; built into a folder.
///
/// # Errors
/// There is no go, or Helm does not build.
pub fn helm_program(folder: &Path) -> Result<PathBuf> {
    program("helm", "helm.sh/helm/v3/cmd/helm", folder)
}

/// A program that syncs a folder of manifests with the engine of Argo CD; built into a folder.
///
/// # Errors
/// There is no go, or it does not build.
pub fn argo_sync_program(folder: &Path) -> Result<PathBuf> {
    program("argo-sync", "e2e/argo-sync", folder)
}

/// A program that reconciles Kustomizations with the libraries of Flux; built into a folder.
///
/// # Errors
/// There is no go, or it does not build.
pub fn flux_reconcile_program(folder: &Path) -> Result<PathBuf> {
    program("flux-reconcile", "e2e/flux-reconcile", folder)
}

/// kube-storage-version-migrator's `migrator`, which does the migrations; built into a folder.
///
/// # Errors
/// There is no go, or it does not build.
pub fn migrator_program(folder: &Path) -> Result<PathBuf> {
    program("migrator", "sigs.k8s.io/kube-storage-version-migrator/cmd/migrator", folder)
}

/// What `crane` prints, which pushes images and charts.
///
/// # Errors
/// There is no go, or crane fails.
pub fn crane(arguments: &[&str]) -> Result<String> {
    output(tool("crane", "crane").args(arguments))
}

/// `crane` itself, whose `registry serve` is a registry; built into a folder.
///
/// # Errors
/// There is no go, or it does not build.
pub fn crane_program(folder: &Path) -> Result<PathBuf> {
    program("crane", "github.com/google/go-containerregistry/cmd/crane", folder)
}

/// krew, which installs plugins of kubectl; built into a folder.
///
/// # Errors
/// There is no go, or it does not build.
pub fn krew_program(folder: &Path) -> Result<PathBuf> {
    program("krew", "sigs.k8s.io/krew/cmd/krew", folder)
}

/// Fails with the findings if actionlint finds anything in a workflow.
///
/// # Errors
/// There is no go, or actionlint has findings.
pub fn actionlint<'a>(files: impl IntoIterator<Item = &'a Path>) -> Result<()> {
    output(tool("actionlint", "actionlint").args(files)).map(drop)
}

/// Builds `package` of the module `e2e/build/NAME` as `folder/NAME`.
fn program(name: &str, package: &str, folder: &Path) -> Result<PathBuf> {
    let program = folder.join(name);
    let mut go = go();
    go.args(["-C", &module(name), "build", "-o"]).arg(&program).arg(package);
    output(pinned(&mut go))?;
    Ok(program)
}

/// The result of `promtool test rules` for files with tests of alerts: whether all passed, and the lines with
/// the result of each.
///
/// # Errors
/// There is no go, or promtool does not build.
pub fn promtool_test_rules<'a>(files: impl IntoIterator<Item = &'a Path>) -> Result<(bool, String)> {
    let mut promtool = tool("prometheus", "promtool");
    // Of its many ways to find what to scrape, each with the library of a cloud, no test of rules needs any.
    promtool.env("GOFLAGS", format!("{FLAGS} -tags=remove_all_sd"));
    let output = promtool.args(["test", "rules"]).args(files).output().context("run promtool")?;
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(said.contains("SUCCESS") || said.contains("FAILED:"), "promtool has tested nothing: {said}");
    Ok((output.status.success(), said))
}

/// What kube-score finds in a file with manifests, and whether it finds nothing.
///
/// # Errors
/// There is no go, or kube-score does not build.
pub fn kube_score(manifests: &Path) -> Result<(bool, String)> {
    let mut kube_score = tool("kube-score", "kube-score");
    kube_score.args(["score", "--kubernetes-version", "v1.34"]).arg(manifests);
    let output = kube_score.output().context("run kube-score")?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(!said.is_empty(), "kube-score: {}", String::from_utf8_lossy(&output.stderr));
    Ok((output.status.success(), said))
}

/// `go tool NAME` of the module `e2e/build/FOLDER`.
fn tool(folder: &str, name: &str) -> Command {
    let mut go = go();
    go.args(["-C", &module(folder), "tool", name]);
    pinned(&mut go);
    go
}

fn module(folder: &str) -> String {
    format!("{}/build/{folder}", env!("CARGO_MANIFEST_DIR"))
}

/// Exactly the pinned modules, whatever workspace or flags the user has set.
fn pinned(go: &mut Command) -> &mut Command {
    go.env("GOWORK", "off").env("GOFLAGS", FLAGS).env("CGO_ENABLED", "0")
}

/// What a command prints.
pub(super) fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("run {command:?}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?} ended with {}: {errors}", output.status);
    Ok(String::from_utf8(output.stdout)?)
}
