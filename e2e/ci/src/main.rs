//! Every check of the project, or the steps that are named; a failure stops none of those after it.
//!
//! It knows commands and nothing of what they check: each can be run by hand as it is shown. What failed
//! tests printed is repeated at the end, where it is looked for. Its last line is the sum of all tests:
//! `N passed, N failed`.

#![expect(clippy::print_stderr, clippy::print_stdout, reason = "a command line program talks to its user")]

mod report;
mod scenarios;

use std::env;
use std::io::{BufRead, BufReader};
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result};
use ci::cargo::forget_package;
use ci::root;

use crate::report::Report;

/// The name of a step and its command, whose words hold no spaces.
type Step = (&'static str, &'static str);

/// What needs nothing but cargo; what fails fastest comes first.
const CODE: &[Step] = &[
    ("format", "cargo fmt --all --check"),
    ("lint", "cargo clippy --workspace --all-targets -- --deny warnings"),
    // With --workspace it has the dependencies that the step before has checked.
    ("lint of otlp", "cargo clippy --workspace --bin etch --features etch/otlp -- --deny warnings"),
    (
        "documentation",
        "cargo doc --workspace --no-deps --document-private-items --config \
         build.rustdocflags=[\"-Dwarnings\"]",
    ),
    ("examples in it", "cargo test --workspace --doc --no-fail-fast"),
    ("unit tests", "cargo test --workspace --lib --bins --no-fail-fast"),
];

/// What the other steps need, made beside the first ones: the crates of the workspace wait for each other
/// when they are built, and leave a processor idle.
const TOOLS: &[Step] = &[
    // Compiled once, and kept beside what cargo builds.
    (
        "cargo-deny",
        "cargo install cargo-deny@0.20.2 --locked --debug --config profile.dev.debug=0 --root target/tools",
    ),
    // Minutes when go's build cache is cold, which no test should have to wait for.
    (
        "control plane",
        "cargo run --package ci --bin launch -- control-plane --build-only --controllers \
         clusterrole-aggregation-controller",
    ),
];

/// What needs the tools, and the tests on a control plane last.
const REST: &[Step] = &[
    ("dependencies", "target/tools/bin/cargo-deny --workspace check bans licenses sources"),
    ("demo", "cargo demo"),
    ("build of the scenarios", "cargo test --workspace --test * --no-run"),
    SCENARIOS,
];

/// What cargo would run one binary after the other.
const SCENARIOS: Step = ("scenarios", "cargo test --workspace --test * --no-fail-fast");

fn main() -> ExitCode {
    let names: Vec<String> = env::args().skip(1).collect();
    let all_steps = [CODE, TOOLS, REST].concat();
    if let Some(unknown) = names.iter().find(|name| all_steps.iter().all(|(step, _)| step != name)) {
        let steps: Vec<String> = all_steps.iter().map(|(step, _)| format!("{step:?}")).collect();
        eprintln!("ci: no step {unknown:?}: the steps are {}", steps.join(", "));
        return ExitCode::from(2);
    }
    let [code, tools, rest] = [CODE, TOOLS, REST].map(|steps| chosen(steps, &names));
    let start = Instant::now();
    let mut report = Report::default();
    let mut failures = thread::scope(|scope| {
        let running = scope.spawn(|| all(&tools, &mut Report::default()));
        let mut failures = all(&code, &mut report);
        failures.extend(running.join().unwrap_or_else(|_| {
            tools.iter().map(|(name, command)| (*name, (*command).to_owned())).collect()
        }));
        failures
    });
    failures.extend(all(&rest, &mut report));
    let minutes = start.elapsed().as_secs().div_ceil(60);
    for line in &report.failures {
        eprintln!("{line}");
    }
    for (name, command) in &failures {
        eprintln!("ci: {name} failed; run it again with\n  {}", shown(command));
    }
    if failures.is_empty() {
        eprintln!("ci: all {} steps passed within {minutes} min", code.len() + tools.len() + rest.len());
    } else {
        // A linker does not report that the disk is full.
        let free = Command::new("df").arg("-h").arg(root()).output();
        eprint!(
            "{}",
            free.map(|free| String::from_utf8_lossy(&free.stdout).into_owned()).unwrap_or_default()
        );
    }
    println!("{} passed, {} failed", report.tests.passed, report.tests.failed);
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The steps of these names, in their order; all of them without a name.
fn chosen(steps: &[Step], names: &[String]) -> Vec<Step> {
    let is_chosen = |step: &&Step| names.is_empty() || names.iter().any(|name| name == step.0);
    steps.iter().filter(is_chosen).copied().collect()
}

/// Takes these steps, one after the other; those that failed, with the commands that did.
fn all(steps: &[Step], report: &mut Report) -> Vec<(&'static str, String)> {
    let mut failures = Vec::new();
    for step in steps {
        let (name, command) = *step;
        eprintln!("ci: {name}: {}", shown(command));
        let begun = Instant::now();
        let failed = match *step {
            SCENARIOS => scenarios::run(report),
            _ => run(command, report),
        };
        let seconds = begun.elapsed().as_secs();
        let failed = failed.unwrap_or_else(|error| {
            eprintln!("ci: {name}: {error:#}");
            vec![command.to_owned()]
        });
        let verdict = if failed.is_empty() { "passed" } else { "failed" };
        eprintln!("ci: {name} {verdict} in {seconds} s");
        failures.extend(failed.into_iter().map(|command| (name, command)));
    }
    failures
}

/// Runs a command in the workspace and passes its output through; the command where it failed.
fn run(command: &str, report: &mut Report) -> Result<Vec<String>> {
    let mut words = command.split_whitespace();
    let program = words.next().context("an empty command")?;
    // A path is meant from the workspace, wherever this program was started.
    let path = if program.contains('/') { root().join(program) } else { program.into() };
    let mut process = Command::new(path);
    process.args(words).current_dir(root()).stdout(Stdio::piped());
    forget_package(&mut process);
    let mut child = process.spawn().with_context(|| format!("{program} cannot be run"))?;
    // A test may print anything: what is no UTF-8 is shown as well as it can be.
    for line in child.stdout.take().into_iter().flat_map(|output| BufReader::new(output).split(b'\n')) {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        report.read(&line);
    }
    Ok(if child.wait()?.success() { Vec::new() } else { vec![command.to_owned()] })
}

/// The command as a shell takes it.
fn shown(command: &str) -> String {
    command.replace('*', "'*'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_chosen_by_their_names_and_keep_their_order() {
        let names = |names: &[&str]| -> Vec<&str> {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            chosen(CODE, &names).iter().map(|step| step.0).collect()
        };
        assert_eq!(names(&["lint of otlp", "demo", "lint"]), ["lint", "lint of otlp"]);
        assert_eq!(names(&[]).len(), CODE.len());
    }
}
