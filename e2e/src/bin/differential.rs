//! Holds Etch, or an older release, against the API server's own code over random schemas and objects.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Parser;
use e2e::conformance::{Case, Op, answer_on};
use e2e::differential::{Campaign, Release, Report, Seeds, Subject};

/// Differential fuzzing of the schema engine. Ends with exit 1 if there was a mismatch.
#[derive(Parser)]
struct Arguments {
    /// Where all cases come from: the same seed makes the same cases.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The first case's number, to run a part of a campaign again.
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Cases of each op.
    #[arg(long, default_value_t = 100_000)]
    pairs: u64,
    /// Which ops.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "read,structural,defaults,validate,crd-create,crd-update"
    )]
    ops: Vec<Op>,
    /// Whose answers are right: 1.37 or 1.34. Etch answers questions about CRDs as that release.
    #[arg(long, default_value = "1.37")]
    kubernetes: Release,
    /// Question this release's code instead of Etch, to list how two releases differ.
    #[arg(long)]
    against: Option<Release>,
    /// Stop each op after that many seconds.
    #[arg(long)]
    seconds: Option<u64>,
    /// Stop each op after that many kinds of mismatches.
    #[arg(long, default_value_t = 20)]
    kinds: usize,
    /// Cores to use; all by default.
    #[arg(long)]
    workers: Option<NonZeroUsize>,
    /// Take the CRDs in the YAML files below this folder, whole, instead of making schemas up.
    #[arg(long)]
    crds: Option<PathBuf>,
    /// Append a reproducing vector of each kind of mismatch to this file.
    #[arg(long)]
    out: Option<PathBuf>,
}

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let seeds = arguments.crds.as_deref().map_or_else(Seeds::load, Seeds::of_crds)?;
    let mut output = io::stdout().lock();
    let mut clean = true;
    let known = arguments.kubernetes.known();
    let etch = |case: &Case| answer_on(known, case);
    for op in &arguments.ops {
        let started = Instant::now();
        let campaign = Campaign {
            release: arguments.kubernetes,
            subject: arguments.against.map_or(Subject::Function(&etch), Subject::Release),
            seed: arguments.seed,
            seeds: &seeds,
            first: arguments.first,
            pairs: arguments.pairs,
            until: arguments.seconds.map(|seconds| started + Duration::from_secs(seconds)),
            kinds: arguments.kinds,
            workers: arguments.workers,
        };
        let report = campaign.run(*op)?;
        clean &= report.mismatches.is_empty();
        write_report(&mut output, *op, &arguments, &report, started.elapsed())?;
    }
    Ok(if clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn write_report(
    output: &mut impl Write,
    op: Op,
    arguments: &Arguments,
    report: &Report,
    took: Duration,
) -> anyhow::Result<()> {
    let mut file = match &arguments.out {
        Some(path) => {
            let opened = OpenOptions::new().create(true).append(true).open(path);
            Some(opened.with_context(|| format!("open {}", path.display()))?)
        }
        None => None,
    };
    for (kind, mismatch) in &report.mismatches {
        let line = mismatch.vector.to_line();
        writeln!(output, "MISMATCH {op}, {} times: {kind}\n{}", mismatch.count, mismatch.diff)?;
        writeln!(output, "{}", String::from_utf8_lossy(&line))?;
        if let Some(file) = &mut file {
            file.write_all(&[line.as_slice(), b"\n"].concat())?;
        }
    }
    for (why, count) in &report.unanswered {
        writeln!(output, "no answer, {count} times: {why}")?;
    }
    let mismatched: u64 = report.mismatches.values().map(|mismatch| mismatch.count).sum();
    writeln!(
        output,
        "{op}: {} pairs of seed {} against Kubernetes {}, {mismatched} mismatched in {} ways, {} with \
         wavering answers, {} without an answer, {:.0} s",
        report.compared,
        arguments.seed,
        arguments.kubernetes.as_str(),
        report.mismatches.len(),
        report.wavering,
        report.unanswered.values().sum::<u64>(),
        took.as_secs_f64(),
    )?;
    Ok(())
}
