//! The programs of a control plane: found where the user keeps them, or built.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Context, Result};
pub use ci::programs::Kubernetes;
use ci::programs::Program;
use tokio::sync::oneshot;

/// Where the programs are.
#[derive(Clone, Debug)]
pub struct Binaries {
    /// The `etcd` server.
    pub etcd: PathBuf,
    /// The `kube-apiserver` of the release asked for, or the one that the user brought.
    pub kube_apiserver: PathBuf,
    /// The release that `kube_apiserver` reports.
    pub kubernetes: Kubernetes,
}

impl Binaries {
    /// Finds the programs, or builds what is missing, with progress on standard error.
    ///
    /// `KUBEBUILDER_ASSETS` comes first, whatever its version; then `<target>/control-plane/<version>/`.
    pub async fn ensure(kubernetes: &Kubernetes) -> Result<Self> {
        let etcd = ensured(Program::etcd()).await?;
        let kube_apiserver = ensured(Program::kubernetes("kube-apiserver", kubernetes)).await?;
        let found = release_of(&kube_apiserver).await?;
        if found != *kubernetes {
            let using = format!("using Kubernetes {found} of KUBEBUILDER_ASSETS in place of {kubernetes}");
            // Progress is for people and never the reason to fail.
            let _ = writeln!(io::stderr(), "control-plane: {using}");
        }
        Ok(Self { etcd, kube_apiserver, kubernetes: found })
    }

    /// Finds or builds the controller manager of the API server's release. It is no part of [`Self::ensure`],
    /// since few need it and it is as large as the API server.
    pub async fn kube_controller_manager(&self) -> Result<PathBuf> {
        ensured(Program::kubernetes("kube-controller-manager", &self.kubernetes)).await
    }
}

/// Finds or builds the `kubectl` of a release: the commands in the documentation are tried with the program
/// that users have.
///
/// # Errors
/// It does not build.
pub async fn kubectl(kubernetes: &Kubernetes) -> Result<PathBuf> {
    ensured(Program::kubernetes("kubectl", kubernetes)).await
}

/// Finds or builds a program on a thread of its own: unlike a task, it does not keep this process from
/// ending.
async fn ensured(program: Program) -> Result<PathBuf> {
    let (sender, built) = oneshot::channel();
    // This fails if nothing waits for it any more.
    thread::spawn(move || sender.send(program.ensure()));
    built.await.context("the build panicked")?
}

/// Asks a Kubernetes program for its release; the answer is `Kubernetes v1.37.1`.
async fn release_of(program: &Path) -> Result<Kubernetes> {
    let mut command = tokio::process::Command::new(program);
    let output = command.arg("--version").kill_on_drop(true).output().await;
    let output = output.with_context(|| format!("run {}", program.display()))?;
    let answer = String::from_utf8_lossy(&output.stdout);
    let version = answer.trim().rsplit_once(" v").map(|(_, version)| version);
    let release = version
        .and_then(|version| Kubernetes::parse(&version.split('.').take(2).collect::<Vec<_>>().join(".")));
    release.with_context(|| format!("{} --version does not name its release", program.display()))
}
