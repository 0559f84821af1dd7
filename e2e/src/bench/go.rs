//! The Go benchmarks of `e2e/oracle`, run over the same inputs.
//! It builds nothing into the project's folders.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};

use super::clock::{ROUND, ROUNDS};
use super::{Input, Nanoseconds};
use crate::differential::{Program, Release, build};

/// The best time of each Go benchmark, by its name below `Benchmark`.
pub(super) struct Results(BTreeMap<String, Nanoseconds>);

impl Results {
    /// The time of one benchmark.
    pub(super) fn of(&self, benchmark: &str, input: &str, state: &str) -> anyhow::Result<Nanoseconds> {
        let name = format!("{benchmark}/{input}/{state}");
        self.0.get(&name).copied().with_context(|| format!("Go did not measure {name}"))
    }
}

pub(super) fn measure(inputs: &[Input]) -> anyhow::Result<Results> {
    let program = build(Release::V1_37, Program::Benchmarks)?;
    let folder = tempfile::tempdir().context("create a folder for the inputs")?;
    for Input { name, schema, object } in inputs {
        fs::write(folder.path().join(format!("{name}.schema.json")), schema.to_vec())?;
        fs::write(folder.path().join(format!("{name}.object.json")), object.to_vec())?;
    }
    let output = Command::new(program)
        .args(["-test.run=^$", "-test.bench=.", "-test.cpu=1"])
        .arg(format!("-test.benchtime={}ms", ROUND.as_millis()))
        .arg(format!("-test.count={ROUNDS}"))
        .current_dir(folder.path())
        .env("ORACLE_BENCH_INPUTS", folder.path())
        .stderr(Stdio::inherit())
        .output()
        .context("run the Go benchmarks")?;
    ensure!(output.status.success(), "the Go benchmarks ended with {}", output.status);
    Ok(parse(&String::from_utf8_lossy(&output.stdout)))
}

/// Reads lines like `BenchmarkDefault/name/stored   1000   123.4 ns/op   …`.
fn parse(output: &str) -> Results {
    let mut best = BTreeMap::new();
    for line in output.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        let [name, _, time, "ns/op", ..] = words.as_slice() else { continue };
        let (Some(name), Ok(time)) = (name.strip_prefix("Benchmark"), time.parse::<Nanoseconds>()) else {
            continue;
        };
        let known = best.entry(name.to_owned()).or_insert(time);
        *known = known.min(time);
    }
    Results(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_of_several_runs_is_kept() {
        let results = parse(
            "goos: linux\nBenchmarkDefault/a.b/stored \t 100\t 12.5 ns/op\t 0 B/op\t 0 allocs/op\n\
             BenchmarkDefault/a.b/stored \t 100\t 11.5 ns/op\nPASS\n",
        );
        assert_eq!(results.of("Default", "a.b", "stored").ok(), Some(11.5));
        assert!(results.of("Default", "a.b", "filled").is_err());
    }
}
