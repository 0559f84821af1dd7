//! Runs of `etch` and other commands, to their end.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::operator::binary;

/// How a command ended, and what it printed.
#[derive(Debug)]
pub struct Ended {
    /// Its exit status; `None` if a signal ended it.
    pub code: Option<i32>,
    /// Its standard output.
    pub out: String,
    /// Its standard error.
    pub err: String,
}

impl Ended {
    /// Standard output as JSON.
    ///
    /// # Errors
    /// It is no JSON.
    pub fn json(&self) -> Result<Value> {
        serde_json::from_str(&self.out).with_context(|| format!("no JSON: {self:?}"))
    }

    /// What it has about the first CRD.
    ///
    /// # Errors
    /// It is no JSON.
    pub fn first(&self) -> Result<Value> {
        Ok(self.json()?["crds"][0].take())
    }
}

/// What a command printed as JSON, and its exit status.
#[derive(Debug)]
pub struct Printed {
    /// Its exit status; `None` if a signal ended it.
    pub code: Option<i32>,
    /// Its standard output.
    pub json: Value,
}

impl TryFrom<Ended> for Printed {
    type Error = anyhow::Error;

    fn try_from(ended: Ended) -> Result<Self> {
        Ok(Self { code: ended.code, json: ended.json()? })
    }
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
    }
}

/// `etch` as a user runs it with a kubeconfig, without input and colors.
///
/// # Errors
/// The binary does not build.
pub fn command(kubeconfig: &Path, arguments: &[&str]) -> Result<Command> {
    let mut command = Command::new(binary()?);
    command.args(arguments).env("KUBECONFIG", kubeconfig).env("NO_COLOR", "1");
    // Cargo sets it for tests, and no user does.
    command.env_remove("RUST_MIN_STACK");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Ok(command)
}

/// Runs a command to its end.
///
/// # Errors
/// It cannot be started.
pub fn ended(mut command: Command) -> Result<Ended> {
    Ok(command.output().context("it cannot be started")?.into())
}

/// Runs `etch` with the credentials of a kubeconfig.
///
/// # Errors
/// It cannot be started.
pub fn etch(kubeconfig: &Path, arguments: &[&str]) -> Result<Ended> {
    ended(command(kubeconfig, arguments)?)
}
