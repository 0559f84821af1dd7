//! The programs of a control plane: found where the user keeps them, or built from the pinned Go modules of
//! `build/`.
//!
//! It decides nothing about versions: `build/kubernetes-X.Y/go.mod` and `build/etcd/go.mod` do.

use std::fs::{self, File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};
use std::{env, thread};

use anyhow::{Context, Result, bail, ensure};

use crate::go::go;
use crate::supervised::Supervised;
use crate::target::target_folder;

/// How often a build, or the wait for one, reports that it is still going on.
const PROGRESS: Duration = Duration::from_secs(10);

/// Holds the Go modules.
const MODULES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../build");

/// A supported minor release of Kubernetes; there is a module for each.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kubernetes {
    major: u32,
    minor: u32,
}

impl Kubernetes {
    /// All supported releases, the oldest first.
    pub fn supported() -> Result<Vec<Self>> {
        let entries = fs::read_dir(MODULES).with_context(|| format!("read {MODULES}"))?;
        let mut found = Vec::new();
        for entry in entries {
            let name = entry?.file_name();
            found.extend(
                name.to_str().and_then(|name| name.strip_prefix("kubernetes-")).and_then(Self::parse),
            );
        }
        found.sort();
        Ok(found)
    }

    /// The release that `E2E_KUBERNETES` names, or the newest supported one: the default, so that any test
    /// can run on any release.
    pub fn meant() -> Result<Self> {
        match env::var("E2E_KUBERNETES") {
            Ok(release) => Self::supported_release(&release).context("E2E_KUBERNETES"),
            Err(_) => Self::supported()?.pop().with_context(|| format!("no kubernetes-X.Y in {MODULES}")),
        }
    }

    /// The supported release `X.Y`.
    pub fn supported_release(release: &str) -> Result<Self> {
        let supported = Self::supported()?;
        let found = Self::parse(release).filter(|wanted| supported.contains(wanted));
        found.with_context(|| {
            let names: Vec<_> = supported.iter().map(Self::to_string).collect();
            format!("Kubernetes {release} is not supported; choose one of {}", names.join(", "))
        })
    }

    /// The release `X.Y`, supported or not.
    pub fn parse(release: &str) -> Option<Self> {
        let (major, minor) = release.split_once('.')?;
        Some(Self { major: major.parse().ok()?, minor: minor.parse().ok()? })
    }
}

impl std::fmt::Display for Kubernetes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// One program and the Go package it is built from.
#[derive(Clone, Debug)]
pub struct Program {
    name: &'static str,
    /// The folder of the Go module that pins the package, in [`MODULES`].
    folder: String,
    /// The path of the Go module whose version is the program's.
    module: &'static str,
    package: String,
    /// Kubernetes programs learn their own version from the linker.
    kubernetes: Option<Kubernetes>,
}

impl Program {
    /// The `etcd` server.
    pub fn etcd() -> Self {
        let module = "go.etcd.io/etcd/server/v3";
        Self { name: "etcd", folder: "etcd".into(), module, package: module.into(), kubernetes: None }
    }

    /// A program of a Kubernetes release: `kube-apiserver`, `kube-controller-manager` or `kubectl`.
    pub fn kubernetes(name: &'static str, release: &Kubernetes) -> Self {
        Self {
            name,
            folder: format!("kubernetes-{release}"),
            module: "k8s.io/kubernetes",
            package: format!("k8s.io/kubernetes/cmd/{name}"),
            kubernetes: Some(release.clone()),
        }
    }

    /// Finds the program, or builds it, with progress on standard error.
    ///
    /// `KUBEBUILDER_ASSETS` comes first, whatever its version; then `<target>/control-plane/<version>/`.
    ///
    /// # Errors
    /// It does not build.
    pub fn ensure(&self) -> Result<PathBuf> {
        if let Some(assets) = env::var_os("KUBEBUILDER_ASSETS") {
            let program = Path::new(&assets).join(self.name);
            if program.is_file() {
                return Ok(program);
            }
        }
        let (release, version) = (self.release_name(), self.version()?);
        let cache = target_folder()?.join("control-plane");
        let program = cache.join(format!("{release}-{version}")).join(self.name);
        if !program.is_file() {
            let what = format!("{} {version}", self.name);
            let _lock = lock(&cache, &what)?;
            if !program.is_file() {
                self.build(&version, &program).with_context(|| format!("build {what}"))?;
            }
        }
        Ok(program)
    }

    fn release_name(&self) -> &'static str {
        if self.kubernetes.is_some() { "kubernetes" } else { self.name }
    }

    /// The version that go.mod requires, with its `v`.
    fn version(&self) -> Result<String> {
        let path = Path::new(MODULES).join(&self.folder).join("go.mod");
        let go_mod = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        let version = go_mod.lines().find_map(|line| {
            let line = line.trim();
            let required = line.strip_prefix("require ").unwrap_or(line);
            let mut words = required.split_whitespace();
            (words.next() == Some(self.module))
                .then(|| words.next())
                .flatten()
                .filter(|word| word.starts_with('v'))
        });
        Ok(version
            .with_context(|| format!("{} does not require {}", path.display(), self.module))?
            .to_owned())
    }

    /// Builds next to the final place and renames, so that what is found there is always whole.
    fn build(&self, version: &str, program: &Path) -> Result<()> {
        let unfinished = program.with_extension("unfinished");
        if let Some(dir) = program.parent() {
            fs::create_dir_all(dir).with_context(|| format!("create {}", dir.display()))?;
        }
        // go build refuses to overwrite what is no whole program, as a killed build may have left it.
        let _ = fs::remove_file(&unfinished);
        let mut go = go();
        go.args(["build", "-ldflags", &self.linker_flags(version), "-o"]).arg(&unfinished);
        go.arg(&self.package).current_dir(Path::new(MODULES).join(&self.folder));
        let what = format!("{} {version}", self.name);
        report(&format!("building {what} with go, once; this takes minutes when go's build cache is cold"));
        let start = Instant::now();
        let mut child = Supervised::spawn(&go, Stdio::inherit())?;
        let mut wording = Instant::now();
        let status = loop {
            if let Some(status) = child.ended()? {
                break status;
            }
            if wording.elapsed() >= PROGRESS {
                wording = Instant::now();
                report(&format!("building {what}: {} s", start.elapsed().as_secs()));
            }
            thread::sleep(Duration::from_millis(100));
        };
        ensure!(
            status.code() != Some(127),
            "the go command was not found: install Go, or let KUBEBUILDER_ASSETS name a folder with {}",
            self.name
        );
        ensure!(status.success(), "go build failed: {status}");
        fs::rename(&unfinished, program).with_context(|| format!("write {}", program.display()))?;
        report(&format!("built {what} in {} s", start.elapsed().as_secs()));
        Ok(())
    }

    fn linker_flags(&self, version: &str) -> String {
        let strip = "-s";
        match &self.kubernetes {
            None => strip.into(),
            Some(Kubernetes { major, minor }) => {
                let variables = "k8s.io/component-base/version";
                format!(
                    "{strip} -X {variables}.gitVersion={version} -X {variables}.gitMajor={major} \
                     -X {variables}.gitMinor={minor} -X {variables}.gitTreeState=clean"
                )
            }
        }
    }
}

/// Waits until no other process builds.
fn lock(cache: &Path, what: &str) -> Result<File> {
    fs::create_dir_all(cache).with_context(|| format!("create {}", cache.display()))?;
    let path = cache.join("lock");
    let file = File::create(&path).with_context(|| format!("open {}", path.display()))?;
    let start = Instant::now();
    let mut wording = None::<Instant>;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => bail!("lock {}: {error}", path.display()),
        }
        if wording.is_none_or(|wording| wording.elapsed() >= PROGRESS) {
            wording = Some(Instant::now());
            report(&format!("waiting for another build before {what}: {} s", start.elapsed().as_secs()));
        }
        thread::sleep(Duration::from_millis(200));
    }
}

/// Progress is for people and never the reason to fail.
fn report(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "control-plane: {line}");
}
