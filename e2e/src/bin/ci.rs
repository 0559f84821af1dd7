//! Every check of the project, one after the other; each is run, whatever became of those before it.
//!
//! It knows commands and nothing of what they check: each can be run by hand as it is shown. What failed
//! tests printed is repeated at the end, where it is looked for. Its last line is the sum of all tests:
//! `N passed, N failed`.

#![expect(clippy::print_stderr, clippy::print_stdout, reason = "a command line program talks to its user")]

use std::{
    io::{BufRead, BufReader},
    process::{Command, ExitCode, Stdio},
    time::Instant,
};

use e2e::cargo::forget_package;

/// The name of a step and its command, whose words hold no spaces. What fails fastest comes first, and the
/// tests on a control plane last.
const STEPS: &[(&str, &str)] = &[
    ("format", "cargo fmt --all --check"),
    ("lint", "cargo clippy --workspace --all-targets -- --deny warnings"),
    ("lint of otlp", "cargo clippy --package etch --features otlp --bins -- --deny warnings"),
    (
        "documentation",
        "cargo doc --workspace --no-deps --document-private-items --config build.rustdocflags=[\"-Dwarnings\"]",
    ),
    ("examples in it", "cargo test --workspace --doc --no-fail-fast"),
    ("unit tests", "cargo test --workspace --lib --bins --no-fail-fast"),
    // Minutes when go's build cache is cold, which no test should have to wait for.
    (
        "control plane",
        "cargo run --package e2e --bin control-plane -- --build-only --controllers clusterrole-aggregation-controller",
    ),
    ("demo", "cargo demo"),
    ("scenarios", "cargo test --workspace --test * --no-fail-fast"),
];

/// Tests, as the closing lines of their runners count them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tests {
    passed: u64,
    failed: u64,
}

fn main() -> ExitCode {
    let start = Instant::now();
    let (mut tests, mut failures) = (Tests::default(), Vec::new());
    let mut reports = Reports::default();
    for (index, (name, command)) in STEPS.iter().enumerate() {
        eprintln!("ci: {}/{} {name}: {}", index + 1, STEPS.len(), shown(command));
        let step = Instant::now();
        let result = run(command, &mut tests, &mut reports);
        let seconds = step.elapsed().as_secs();
        match result {
            Ok(()) => eprintln!("ci: {name} passed in {seconds} s"),
            Err(reason) => {
                eprintln!("ci: {name} failed after {seconds} s: {reason}");
                failures.push((name, command));
            }
        }
    }
    let minutes = start.elapsed().as_secs().div_ceil(60);
    for line in &reports.lines {
        eprintln!("{line}");
    }
    for (name, command) in &failures {
        eprintln!("ci: {name} failed; run it again with\n  {}", shown(command));
    }
    if !failures.is_empty() {
        // A linker says nothing of a disk that is full.
        let free = Command::new("df").args(["-h", env!("CARGO_MANIFEST_DIR")]).output();
        eprint!(
            "{}",
            free.map(|free| String::from_utf8_lossy(&free.stdout).into_owned()).unwrap_or_default()
        );
    }
    if failures.is_empty() {
        eprintln!("ci: all {} steps passed within {minutes} min", STEPS.len());
    }
    println!("{} passed, {} failed", tests.passed, tests.failed);
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs a command in the workspace, passes its output through, and counts its tests.
fn run(command: &str, tests: &mut Tests, reports: &mut Reports) -> Result<(), String> {
    let mut words = command.split_whitespace();
    let program = words.next().ok_or("an empty command")?;
    let mut process = Command::new(program);
    process.args(words).current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).stdout(Stdio::piped());
    forget_package(&mut process);
    let cannot_run = |error: std::io::Error| format!("{program} cannot be run: {error}");
    let mut child = process.spawn().map_err(cannot_run)?;
    // A test may print anything: what is no UTF-8 is shown as well as it can be.
    for line in child.stdout.take().into_iter().flat_map(|output| BufReader::new(output).split(b'\n')) {
        let line = line.map_err(cannot_run)?;
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        reports.read(&line);
        if let Some(Tests { passed, failed }) = closing_line(&line) {
            tests.passed += passed;
            tests.failed += failed;
        }
    }
    let status = child.wait().map_err(cannot_run)?;
    if status.success() { Ok(()) } else { Err(status.to_string()) }
}

/// What failed tests printed.
#[derive(Debug, Default)]
struct Reports {
    lines: Vec<String>,
    inside: bool,
}

impl Reports {
    /// Takes the next line of a test runner's output: reports stand between `failures:` and the names of the
    /// failed tests.
    fn read(&mut self, line: &str) {
        match line {
            "failures:" => self.inside = !self.inside,
            line if line.starts_with("test result: ") => self.inside = false,
            line if self.inside => self.lines.push(line.to_owned()),
            _ => {}
        }
    }
}

/// The numbers of a closing line, such as `test result: ok. 3 passed; 0 failed; 1 ignored; …`.
fn closing_line(line: &str) -> Option<Tests> {
    let numbers = line.strip_prefix("test result: ")?.split_once(". ")?.1;
    let count = |what: &str| {
        numbers.split("; ").find_map(|part| part.strip_suffix(what)?.strip_suffix(' ')?.parse().ok())
    };
    Some(Tests { passed: count("passed")?, failed: count("failed")? })
}

/// The command as a shell takes it.
fn shown(command: &str) -> String {
    command.replace('*', "'*'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_lines_of_test_runners_are_counted_and_nothing_else() {
        let line =
            "test result: ok. 81 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; finished in 2.13s";
        assert_eq!(closing_line(line), Some(Tests { passed: 81, failed: 0 }));
        let line = "test result: FAILED. 3 passed; 12 failed; 0 ignored; 0 measured; 0 filtered out";
        assert_eq!(closing_line(line), Some(Tests { passed: 3, failed: 12 }));
        assert_eq!(closing_line("test answers::x ... ok"), None);
        assert_eq!(closing_line("81 passed, 0 failed"), None);
    }

    #[test]
    fn what_failed_tests_printed_is_kept_and_their_names_are_not() {
        let output = "test a ... ok\ntest b ... FAILED\n\nfailures:\n---- b ----\nnot stored\nfailures:\n    b\n\ntest result: FAILED. 1";
        let mut reports = Reports::default();
        output
            .lines()
            .chain(["test c ... ok", "failures:", "---- d ----", "test result: FAILED. 0", "later"])
            .for_each(|line| reports.read(line));
        assert_eq!(reports.lines, ["---- b ----", "not stored", "---- d ----"]);
    }
}
