//! The operator as its users run it: the `etch` binary as a child process, with a kubeconfig and flags.

use std::env;
use std::fs::{self, File};
use std::path::{self, Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;

use anyhow::{Context, Result, bail, ensure};
use tokio::process::{Child, Command};

use crate::cargo::forget_package;
use crate::cluster::GUARD;

/// A running `etch run`; killed when dropped.
pub struct Operator {
    child: Child,
    log: PathBuf,
}

impl Operator {
    /// Starts `etch run` with the credentials of a kubeconfig; what it logs is appended to `log`.
    ///
    /// # Errors
    /// The binary cannot be built or started.
    pub fn start(kubeconfig: &Path, log: &Path, flags: &[&str]) -> Result<Self> {
        Self::start_of(binary()?, kubeconfig, log, flags, &[])
    }

    /// The same with another binary, and more in its environment.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start_of(
        binary: &Path,
        kubeconfig: &Path,
        log: &Path,
        flags: &[&str],
        environment: &[(&str, &str)],
    ) -> Result<Self> {
        let file = File::options().create(true).append(true).open(log).context("the operator's log")?;
        let child = Command::new(binary)
            .arg("run")
            .args(flags)
            .env("KUBECONFIG", kubeconfig)
            .env("ETCH_LOG", "debug")
            // Cargo sets it for tests, and no user does.
            .env_remove("RUST_MIN_STACK")
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .kill_on_drop(true)
            .spawn()
            .context("etch cannot be started")?;
        Ok(Self { child, log: log.to_owned() })
    }

    /// Everything logged so far.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn log(&self) -> Result<String> {
        fs::read_to_string(&self.log).context("the operator's log")
    }

    /// Asks it to end, as Kubernetes does, and waits until it has.
    ///
    /// # Errors
    /// It does not end with success within a minute.
    pub async fn stop(mut self) -> Result<()> {
        self.signal("TERM").await?;
        let ended = tokio::time::timeout(GUARD, self.child.wait()).await;
        let status = ended.with_context(|| {
            let log = self.log().unwrap_or_default();
            let from = log.lines().count().saturating_sub(20);
            let last: Vec<_> = log.lines().skip(from).collect();
            format!(
                "the operator did not end within {} s of SIGTERM; its last lines:\n{}",
                GUARD.as_secs(),
                last.join("\n")
            )
        })??;
        ensure!(status.success(), "the operator ended with {status}");
        Ok(())
    }

    /// Keeps it from doing anything, as a machine that is suspended would.
    ///
    /// # Errors
    /// It has ended.
    pub async fn pause(&self) -> Result<()> {
        self.signal("STOP").await
    }

    /// Lets it continue.
    ///
    /// # Errors
    /// It has ended.
    pub async fn resume(&self) -> Result<()> {
        self.signal("CONT").await
    }

    /// Its process id.
    ///
    /// # Errors
    /// It has ended.
    pub fn id(&self) -> Result<u32> {
        self.child.id().context("the operator has ended already")
    }

    async fn signal(&self, name: &str) -> Result<()> {
        let id = self.id()?.to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status().await?;
        ensure!(sent.success(), "the operator has ended already");
        Ok(())
    }

    /// Ends it between two instructions.
    ///
    /// # Errors
    /// It cannot be killed.
    pub async fn kill(mut self) -> Result<()> {
        self.child.kill().await.context("the operator cannot be killed")
    }
}

/// The `etch` binary that the variable `E2E_ETCH` names, such as one that was built for an image; else that
/// of this build, built if need be.
///
/// # Errors
/// It does not build.
pub fn binary() -> Result<&'static Path> {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    if let Some(binary) = BINARY.get() {
        return Ok(binary);
    }
    let built = match env::var_os("E2E_ETCH") {
        Some(named) => path::absolute(named).context("E2E_ETCH")?,
        None => build(&[])?,
    };
    Ok(BINARY.get_or_init(|| built))
}

/// The `etch` binary with more features, such as `etch/otlp`, in a file of its own: the next build puts the
/// one without them in the same place.
///
/// # Errors
/// It does not build, or cannot be copied.
pub fn binary_with(features: &str, folder: &Path) -> Result<PathBuf> {
    let built = build(&["--features", features])?;
    let copy = folder.join("etch");
    fs::copy(built, &copy).context("a copy of the binary")?;
    Ok(copy)
}

fn build(more: &[&str]) -> Result<PathBuf> {
    let cargo = option_env!("CARGO").unwrap_or("cargo");
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml");
    let mut command = std::process::Command::new(cargo);
    command.args([
        "build",
        "--workspace",
        "--quiet",
        "--bin",
        "etch",
        "--message-format",
        "json",
        "--manifest-path",
        manifest,
    ]);
    command.args(more);
    if !cfg!(debug_assertions) {
        command.arg("--release");
    }
    forget_package(&mut command);
    let output = command.stderr(Stdio::inherit()).output().context("cargo cannot be run")?;
    ensure!(output.status.success(), "etch does not build");
    let messages = String::from_utf8_lossy(&output.stdout);
    for message in messages.lines() {
        let message: serde_json::Value = serde_json::from_str(message)?;
        if message["target"]["name"] == "etch"
            && let Some(executable) = message["executable"].as_str()
        {
            return Ok(executable.into());
        }
    }
    bail!("cargo did not say where it put etch")
}
