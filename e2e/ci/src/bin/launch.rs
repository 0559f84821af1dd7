//! Runs a program of `e2e`: `launch NAME [ARGUMENTS]`.
//!
//! Everything that it needs is built at once: the Rust of the project, which leaves a processor idle while
//! its crates wait for each other, and the control plane, which takes Go minutes.

#![expect(clippy::print_stderr, reason = "a command line program talks to its user")]

use std::convert::Infallible;
use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::thread;

use anyhow::{Context, Result, anyhow, ensure};
use ci::cargo::forget_package;
use ci::programs::{Kubernetes, Program};

fn main() -> ExitCode {
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    match launch(&arguments) {
        Ok(never) => match never {},
        Err(error) => {
            eprintln!("launch: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Becomes the program.
fn launch(arguments: &[OsString]) -> Result<Infallible> {
    let (name, arguments) = arguments.split_first().context("the name of a program is missing")?;
    let kubernetes = Kubernetes::meant()?;
    // Where the other build fails, this process ends at once, and what the thread has started ends with it.
    let servers = thread::spawn(move || {
        Program::etcd().ensure()?;
        Program::kubernetes("kube-apiserver", &kubernetes).ensure()
    });
    build(name)?;
    servers.join().map_err(|_| anyhow!("the build of the control plane panicked"))??;
    let mut program = cargo(&["run", "--quiet", "--package", "e2e", "--bin"]);
    program.arg(name).arg("--").args(arguments);
    Err(program.exec()).context("cargo cannot be run")
}

/// Builds the program, and the operator that it starts.
fn build(name: &OsString) -> Result<()> {
    let status = cargo(&["build", "--workspace", "--bin", "etch", "--bin"]).arg(name).status();
    let status = status.context("cargo cannot be run")?;
    ensure!(status.success(), "cargo build failed: {status}");
    Ok(())
}

fn cargo(arguments: &[&str]) -> Command {
    let mut cargo = Command::new("cargo");
    cargo.args(arguments);
    forget_package(&mut cargo);
    cargo
}
