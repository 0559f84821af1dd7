//! Programs that a release asks about the repository.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::cargo::forget_package;
use crate::install::root;

/// What a program prints, started at the root of the repository.
pub(super) fn output(program: &str, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root()).stderr(Stdio::inherit());
    forget_package(&mut command);
    let output = command.output().with_context(|| format!("run {program}"))?;
    ensure!(output.status.success(), "{program} {}: {}", arguments.join(" "), output.status);
    Ok(String::from_utf8(output.stdout)?)
}

/// What cargo prints.
pub(super) fn cargo(arguments: &[&str]) -> Result<String> {
    output(option_env!("CARGO").unwrap_or("cargo"), arguments)
}
