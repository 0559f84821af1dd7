//! Every check of the project, one after the other; the first that fails ends it.
//!
//! It knows commands and nothing of what they check: each can be run by hand as it is shown.

#![expect(clippy::print_stderr, reason = "a command line program talks to its user")]

use std::{
    process::{Command, ExitCode},
    time::Instant,
};

use e2e::cargo::forget_package;

/// The name of a step and its command, whose words hold no spaces. What fails fastest comes first, and the tests on a
/// control plane last, so that their results end the output.
const STEPS: &[(&str, &str)] = &[
    ("format", "cargo fmt --all --check"),
    ("lint", "cargo clippy --workspace --all-targets -- --deny warnings"),
    ("lint of otlp", "cargo clippy --package etch --features otlp --bins -- --deny warnings"),
    ("documentation", "cargo test --workspace --doc"),
    ("unit tests", "cargo test --workspace --lib --bins"),
    // Minutes when go's build cache is cold, which no test should have to wait for.
    (
        "control plane",
        "cargo run --package e2e --bin control-plane -- --build-only --controllers clusterrole-aggregation-controller",
    ),
    ("demo", "cargo demo"),
    ("scenarios", "cargo test --workspace --test *"),
];

fn main() -> ExitCode {
    let start = Instant::now();
    for (index, (name, command)) in STEPS.iter().enumerate() {
        eprintln!("ci: {}/{} {name}: {}", index + 1, STEPS.len(), shown(command));
        let step = Instant::now();
        let result = run(command);
        let seconds = step.elapsed().as_secs();
        if let Err(reason) = result {
            eprintln!(
                "ci: {name} failed after {seconds} s: {reason}; run it again with\n  {}",
                shown(command)
            );
            return ExitCode::FAILURE;
        }
        eprintln!("ci: {name} passed in {seconds} s");
    }
    eprintln!("ci: all {} steps passed in {} s", STEPS.len(), start.elapsed().as_secs());
    ExitCode::SUCCESS
}

/// Runs a command in the workspace, with its output passed through.
fn run(command: &str) -> Result<(), String> {
    let mut words = command.split_whitespace();
    let program = words.next().ok_or("an empty command")?;
    let mut process = Command::new(program);
    process.args(words).current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    forget_package(&mut process);
    match process.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(status.to_string()),
        Err(error) => Err(format!("{program} cannot be run: {error}")),
    }
}

/// The command as a shell takes it.
fn shown(command: &str) -> String {
    command.replace('*', "'*'")
}
