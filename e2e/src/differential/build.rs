//! Builds the Go programs of `e2e/oracle` when they are missing or older than their sources.
//! It leaves no half-written program behind, even if another process builds at the same time.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, ensure};
use kube_crd_validation::crd::Release as Known;
use sha2::{Digest, Sha256};

use crate::go::go;
use crate::target::target_folder;

/// Whose API server code answers: the newest release, or the oldest that Etch supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// The newest.
    V1_37,
    /// The oldest supported.
    V1_34,
}

impl Release {
    /// The version, without patch.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V1_37 => "1.37",
            Self::V1_34 => "1.34",
        }
    }

    /// The same release as Etch knows it.
    pub fn known(self) -> Known {
        match self {
            Self::V1_37 => Known::NEWEST,
            Self::V1_34 => Known::OLDEST,
        }
    }

    /// The module file that pins the API server's code, and the arguments with which `go` uses it.
    fn module(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Self::V1_37 => ("go.mod", &[]),
            Self::V1_34 => ("go-1.34.mod", &["-modfile=go-1.34.mod", "-tags=kubernetes_1_34"]),
        }
    }
}

impl std::str::FromStr for Release {
    type Err = anyhow::Error;

    fn from_str(version: &str) -> Result<Self, Self::Err> {
        [Self::V1_37, Self::V1_34]
            .into_iter()
            .find(|release| release.as_str() == version)
            .with_context(|| format!("no oracle of Kubernetes {version}: there are 1.37 and 1.34"))
    }
}

/// Which program of the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// Answers vectors on standard input.
    Oracle,
    /// The module's Go benchmarks.
    Benchmarks,
}

impl Program {
    fn name(self) -> &'static str {
        match self {
            Self::Oracle => "oracle",
            Self::Benchmarks => "benchmarks",
        }
    }

    fn verb(self) -> &'static [&'static str] {
        match self {
            Self::Oracle => &["build"],
            Self::Benchmarks => &["test", "-c"],
        }
    }
}

/// The path of a program that is up to date with its sources, built first where need be; progress goes to
/// standard error.
///
/// Programs live in `oracle/<version>/` of cargo's target folder, named by a hash of their sources.
///
/// # Errors
/// Go is missing or fails, or the target folder cannot be written.
pub fn build(release: Release, program: Program) -> anyhow::Result<PathBuf> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("oracle");
    let folder = target_folder()?.join("oracle").join(release.as_str());
    fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
    let finished = folder.join(format!("{}-{}", program.name(), digest(&sources, release)?));
    if finished.exists() {
        return Ok(finished);
    }
    let lock = File::create(folder.join("lock")).context("create the build lock")?;
    lock.lock().context("wait for the build lock")?;
    if finished.exists() {
        return Ok(finished);
    }
    writeln!(io::stderr(), "building the {} of Kubernetes {}", program.name(), release.as_str())?;
    let unfinished = finished.with_extension("new");
    let (_, flags) = release.module();
    let status = go()
        .args(program.verb())
        .args(flags)
        .arg("-o")
        .arg(&unfinished)
        .arg(".")
        .current_dir(&sources)
        .stdin(Stdio::null())
        .stdout(io::stderr())
        .status()
        .context("run go")?;
    ensure!(status.success(), "go could not build the {}: {status}", program.name());
    remove_others(&folder, program)?;
    fs::rename(&unfinished, &finished).with_context(|| format!("rename to {}", finished.display()))?;
    Ok(finished)
}

/// Programs of other sources are never asked for again.
fn remove_others(folder: &Path, program: Program) -> anyhow::Result<()> {
    for entry in folder.read_dir()? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(program.name()) && !name.ends_with(".new") {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// A hash of everything that goes into a release's programs.
fn digest(sources: &Path, release: Release) -> anyhow::Result<String> {
    let (module, _) = release.module();
    let sums = module.replace(".mod", ".sum");
    let mut names = Vec::new();
    for entry in sources.read_dir().with_context(|| format!("read {}", sources.display()))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".go") || name == module || name == sums {
            names.push(name);
        }
    }
    names.sort();
    let mut hash = Sha256::new();
    for name in names {
        let content = fs::read(sources.join(&name)).with_context(|| format!("read {name}"))?;
        hash.update(name.as_bytes());
        hash.update((content.len() as u64).to_le_bytes());
        hash.update(content);
    }
    Ok(hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect())
}
