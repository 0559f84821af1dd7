//! One run of `etch`, from arguments and standard input to its end.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context, Result};
use e2e::operator::binary;
pub(crate) use e2e::process::Ended;

/// Runs it and waits for its end.
pub(crate) fn etch(arguments: &[&str]) -> Result<Ended> {
    etch_with(arguments, b"")
}

/// Runs it with something on its standard input.
pub(crate) fn etch_with(arguments: &[&str], input: &[u8]) -> Result<Ended> {
    let mut command = Command::new(binary()?);
    command.args(arguments);
    run(command, input)
}

/// Runs git in a folder, with a made-up author and without a configuration.
pub(crate) fn git(folder: &Path, arguments: &[&str]) -> Result<Ended> {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"]);
    command.args(arguments).current_dir(folder).env("HOME", folder).env("GIT_CONFIG_NOSYSTEM", "1");
    run(command, b"")
}

/// Runs it where it may use 256 MiB; ten minutes are a guard against hanging.
pub(crate) fn limited(arguments: &[&str], input: &[u8]) -> Result<Ended> {
    let mut command = Command::new("sh");
    command.args(["-c", r#"ulimit -d 262144; exec timeout 600 "$0" "$@""#]).arg(binary()?).args(arguments);
    run(command, input)
}

/// Runs a command that is, or ends in, `etch`; it finds no cluster.
pub(crate) fn run(mut command: Command, input: &[u8]) -> Result<Ended> {
    command.env("KUBECONFIG", "/nonexistent");
    finish(command, input)
}

/// Runs a command outside a cluster.
pub(crate) fn finish(mut command: Command, input: &[u8]) -> Result<Ended> {
    command.env_remove("KUBERNETES_SERVICE_HOST").env("NO_COLOR", "1");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().context("etch cannot be started")?;
    let mut stdin = child.stdin.take().context("its standard input")?;
    let output = thread::scope(|scope| {
        // It may end without reading everything.
        scope.spawn(move || drop(stdin.write_all(input)));
        child.wait_with_output()
    })?;
    Ok(output.into())
}

/// A file of this package.
pub(crate) fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// A path as an argument.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap_or_default()
}
