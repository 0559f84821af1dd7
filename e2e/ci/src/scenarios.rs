//! The integration tests: several binaries at once, since most of them wait for servers most of the time.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use ci::cargo::forget_package;
use ci::root;
use ci::target::target_folder;
use parking_lot::Mutex;
use serde_json::Value;

use crate::report::Report;

/// Binaries that run at once. Each starts control planes of its own, at ports of its own.
const AT_ONCE: usize = 3;

/// Binaries that take minutes, longest first: one of these that began late would run alone at the end.
const LONG: [&str; 12] = [
    "corpus",
    "answers",
    "libraries",
    "admission_server",
    "machines",
    "docs",
    "live",
    "isolation",
    "cli",
    "faults",
    "otlp",
    "facts",
];

/// What cargo built.
struct Built {
    name: String,
    executable: PathBuf,
    /// The folder of its package, in which cargo runs its tests.
    folder: PathBuf,
}

/// Builds the integration tests and runs them, and prints the whole output of each binary when it ends; the
/// commands that failed. Meanwhile a file beside the binaries contains the output.
pub(crate) fn run(report: &mut Report) -> Result<Vec<String>> {
    let (tests, etch) = build()?;
    let folder = target_folder()?.join("ci");
    fs::create_dir_all(&folder).context("a folder for output")?;
    // All tests run this copy. Otherwise each would ask cargo for `etch`, and wait while another test builds,
    // or run the `etch` with other features that a test builds into the same place.
    let copy = folder.join("etch");
    fs::copy(etch, &copy).context("a copy of etch")?;
    let waiting = Mutex::new(tests.into_iter());
    let ended = Mutex::new((report, Vec::new()));
    let next = || waiting.lock().next();
    let run_all = || {
        while let Some(test) = next() {
            let log = folder.join(format!("{}.log", test.name));
            eprintln!("ci: {} started; its output: {}", test.name, log.display());
            let start = Instant::now();
            let passed = test.run(&copy, &log);
            let seconds = start.elapsed().as_secs();
            let mut ended = ended.lock();
            let (report, failed) = &mut *ended;
            let output = fs::read(&log).unwrap_or_default();
            for line in String::from_utf8_lossy(&output).lines() {
                println!("{line}");
                report.read(line);
            }
            match passed {
                Ok(()) => println!("ci: {} passed in {seconds} s\n", test.name),
                Err(error) => {
                    println!("ci: {} failed in {seconds} s: {error:#}\n", test.name);
                    failed.push(format!("cargo test --workspace --test {}", test.name));
                }
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(run_all);
        }
    });
    Ok(ended.into_inner().1)
}

impl Built {
    fn run(&self, etch: &Path, log: &Path) -> Result<()> {
        let file = File::create(log).context("a file for output")?;
        let mut command = Command::new(&self.executable);
        // API servers are written in Go: they take more memory, and a fifth less time.
        command.current_dir(&self.folder).env("E2E_ETCH", etch).env("GOGC", "400");
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        forget_package(&mut command);
        let status = command.status().context("it cannot be run")?;
        ensure!(status.success(), "{status}");
        Ok(())
    }
}

/// The order in which binaries run.
fn rank(name: &str) -> (usize, &str) {
    (LONG.iter().position(|long| *long == name).unwrap_or(LONG.len()), name)
}

/// All integration tests in the order in which they run, and the `etch` that was built with them.
fn build() -> Result<(Vec<Built>, PathBuf)> {
    let mut command = Command::new("cargo");
    command.args(["test", "--workspace", "--test", "*", "--no-run"]);
    command.args(["--message-format", "json-render-diagnostics"]);
    command.current_dir(root()).stdout(Stdio::piped());
    forget_package(&mut command);
    let mut child = command.spawn().context("cargo cannot be run")?;
    let (mut tests, mut etch) = (Vec::new(), None);
    for line in child.stdout.take().into_iter().flat_map(|output| BufReader::new(output).lines()) {
        let message: Value = serde_json::from_str(&line?)?;
        let Some(executable) = message["executable"].as_str().map(PathBuf::from) else { continue };
        let text = |value: &Value| value.as_str().map(str::to_owned).context("what cargo built");
        let name = text(&message["target"]["name"])?;
        match message["target"]["kind"][0].as_str() {
            Some("test") => {
                let folder = Path::new(&text(&message["manifest_path"])?).with_file_name("");
                tests.push(Built { name, executable, folder });
            }
            Some("bin") if name == "etch" => etch = Some(executable),
            _ => {}
        }
    }
    ensure!(child.wait()?.success(), "the tests do not build");
    tests.sort_by(|one, other| rank(&one.name).cmp(&rank(&other.name)));
    Ok((tests, etch.context("cargo built no etch")?))
}
