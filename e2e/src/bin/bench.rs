//! Measures the schema engine, or an audit; one JSON line per measurement, and on standard error whether it
//! is as fast as is wanted.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, ValueEnum};
use e2e::bench::{
    WANTED, Worst, admission, admission_server, audit, guard, inputs, judging, measure, memory, pass,
    restart, verdicts,
};

/// Filling and deciding, beside Go's `Default` and `DeepCopyJSONValue`, a deep copy and serde_json's parse.
/// Ends with exit 1 if filling is slower than is wanted.
#[derive(Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Arguments {
    /// Only inputs whose name holds one of these texts.
    names: Vec<String>,
    #[command(subcommand)]
    other: Option<Other>,
}

#[derive(Subcommand)]
enum Other {
    /// Deciding about objects with the schema as it is, beside the schema without rules: the price of judging
    /// objects before their defaults are stored.
    Judging,
    /// Saying what the API server makes of whole CRDs: those in the YAML files below a folder, and one of 1
    /// MB. Ends with exit 1 if that is slower than is wanted.
    Verdicts {
        /// The folder; the project's own CRDs by default.
        #[arg(default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/corpus"))]
        crds: PathBuf,
    },
    /// Reviewing the creation of a Machine of 10 kB by an EmbeddedSchema. Ends with exit 1 if one core does
    /// fewer than is wanted.
    Admission,
    /// The same over HTTPS, client included, beside an empty handler. Ends with exit 1 if it is slower or
    /// larger than is wanted.
    AdmissionServer {
        /// Only serve, until standard input ends.
        #[arg(long, hide = true)]
        serve: Option<admission_server::Side>,
    },
    /// `etch audit` over many objects of a control plane, beside a bare loop that lists and parses the same
    /// pages. Ends with exit 1 if it is slower or larger than is wanted.
    Audit {
        /// How many objects.
        #[arg(long, default_value_t = 100_000)]
        objects: u64,
        /// How often each of the two is measured, in turn.
        #[arg(long, default_value_t = 7)]
        rounds: usize,
    },
    /// How long an upgrade of a CRD with many objects takes with the guard, and without. Ends with exit 1 if
    /// it takes longer than is wanted.
    Guard(Many),
    /// What a restart costs where there are many objects that store their defaults. Ends with exit 1 if it
    /// takes longer than is wanted, or writes an object.
    Restart(Many),
    /// How much memory the operator takes where objects are large. Ends with exit 1 if that is more than is
    /// wanted.
    Memory {
        /// How many objects each of three CRDs has.
        #[arg(long, default_value_t = 20)]
        objects: usize,
        /// Their size in bytes.
        #[arg(long, default_value_t = 1_000_000)]
        bytes: usize,
        /// How often all of them change.
        #[arg(long, default_value_t = 4)]
        rounds: usize,
    },
    /// How long it takes until all objects of a CRD store a new default, and what another client notices of
    /// it: Etch, a bare loop that sends the same patches, and the migration that Kubernetes brings.
    Pass {
        /// How many objects.
        #[arg(long, default_value_t = 10_000)]
        objects: usize,
        /// Their sizes in bytes, each measured on a control plane of its own.
        #[arg(long, value_delimiter = ',', default_values_t = [1_000, 2_000, 10_000])]
        bytes: Vec<usize>,
        /// How often each writer is measured, in turn.
        #[arg(long, default_value_t = 3)]
        rounds: usize,
        /// Only these.
        #[arg(long, value_enum, value_delimiter = ',', default_values_t = pass::Writer::value_variants().iter().copied())]
        writers: Vec<pass::Writer>,
        /// Let the bare loop begin at most this many writes in a second, one at a time; of several, each in
        /// turn.
        #[arg(long, value_delimiter = ',')]
        bare_per_second: Vec<u32>,
    },
}

#[derive(Args)]
struct Many {
    /// How many objects.
    #[arg(long, default_value_t = 100_000)]
    objects: usize,
    /// Their size in bytes.
    #[arg(long, default_value_t = 1_000)]
    bytes: usize,
    /// How often it is measured.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
}

fn main() -> anyhow::Result<ExitCode> {
    let Arguments { names, other } = Arguments::parse();
    let is_good = match other {
        Some(Other::Audit { objects, rounds }) => audit(objects, rounds)?,
        Some(Other::Guard(many)) => guarded(&many)?,
        Some(Other::Restart(many)) => restarted(&many)?,
        Some(Other::Memory { objects, bytes, rounds }) => remembered(objects, bytes, rounds)?,
        Some(Other::Pass { objects, bytes, rounds, writers, bare_per_second }) => {
            let wanted = |bytes| pass::Wanted {
                objects,
                bytes,
                rounds,
                writers: writers.clone(),
                bare_per_second: bare_per_second.clone(),
            };
            passes(bytes.into_iter().map(wanted))?
        }
        Some(Other::Judging) => judge()?,
        Some(Other::Verdicts { crds }) => verdicts_on(&crds)?,
        Some(Other::Admission) => review()?,
        Some(Other::AdmissionServer { serve }) => serve_reviews(serve)?,
        None => engine(&names)?,
    };
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn verdicts_on(folder: &Path) -> anyhow::Result<bool> {
    let measured = verdicts::measure(folder)?;
    println(&measured)?;
    let (large, all) = verdicts::WANTED;
    writeln!(
        io::stderr(),
        "{} CRDs take {:.0} ms (wanted: {}), one of {} bytes {:.0} ms (wanted: {})",
        measured.crds,
        measured.all_ms,
        all.as_millis(),
        measured.large_bytes,
        measured.large_ms,
        large.as_millis(),
    )?;
    Ok(measured.is_good())
}

/// Reviews, of 10 kB each, that one core is wanted to do in a second: 5,000 on two.
const REVIEWS: u64 = 2_500;

fn review() -> anyhow::Result<bool> {
    let measured = admission::measure()?;
    println(&measured)?;
    Ok(measured.per_second >= REVIEWS)
}

fn serve_reviews(side: Option<admission_server::Side>) -> anyhow::Result<bool> {
    let runtime = tokio::runtime::Runtime::new()?;
    if let Some(side) = side {
        runtime.block_on(admission_server::serve_side(side))?;
        return Ok(true);
    }
    let measured = runtime.block_on(admission_server::measure())?;
    println(&measured)?;
    let wanted = admission_server::WANTED;
    writeln!(
        io::stderr(),
        "{} reviews per second (wanted: {}), 99 of 100 within {:.2} ms (wanted: {}), and {:.1} MiB at most \
         (wanted: {})",
        measured.per_second,
        wanted.per_second,
        measured.p99_ms,
        wanted.p99.as_millis(),
        measured.peak_rss as f64 / f64::from(1 << 20),
        wanted.peak_rss >> 20,
    )?;
    Ok(measured.is_good())
}

fn say(line: &str) {
    // The reader may be gone.
    drop(writeln!(io::stderr(), "{line}"));
}

fn println(measured: &impl serde::Serialize) -> anyhow::Result<()> {
    let mut output = io::stdout().lock();
    serde_json::to_writer(&mut output, measured)?;
    Ok(writeln!(output)?)
}

fn engine(names: &[String]) -> anyhow::Result<bool> {
    let mut inputs = inputs()?;
    inputs.retain(|input| names.is_empty() || names.iter().any(|name| input.name.contains(name)));
    let mut output = io::stdout().lock();
    let measurements = measure(&inputs)?;
    for measurement in &measurements {
        serde_json::to_writer(&mut output, measurement)?;
        writeln!(output)?;
    }
    let worst = Worst::of(&measurements);
    writeln!(
        io::stderr(),
        "filling takes at most {:.3} of a deep copy (wanted: {}); Go's Default takes at least {:.1} times as \
         long (wanted: {})",
        worst.fill_to_copy,
        WANTED.fill_to_copy,
        worst.go_default_to_fill,
        WANTED.go_default_to_fill,
    )?;
    Ok(worst.is_good())
}

fn judge() -> anyhow::Result<bool> {
    let mut output = io::stdout().lock();
    for measured in judging::measure(&inputs()?)? {
        serde_json::to_writer(&mut output, &measured)?;
        writeln!(output)?;
    }
    Ok(true)
}

fn audit(objects: u64, rounds: usize) -> anyhow::Result<bool> {
    let runtime = tokio::runtime::Runtime::new()?;
    let measured = runtime.block_on(audit::measure(objects, rounds, &say))?;
    let mut output = io::stdout().lock();
    serde_json::to_writer(&mut output, &measured)?;
    writeln!(output)?;
    writeln!(
        io::stderr(),
        "the audit has {:.2} of the bare loop's speed (wanted: {}), and {:.1} MiB at most (wanted: {})",
        measured.speed,
        audit::WANTED.speed,
        measured.peak_rss as f64 / f64::from(1 << 20),
        audit::WANTED.peak_rss >> 20,
    )?;
    Ok(measured.is_good())
}

fn guarded(many: &Many) -> anyhow::Result<bool> {
    let runtime = tokio::runtime::Runtime::new()?;
    let measured = runtime.block_on(guard::measure(many.objects, many.bytes, many.rounds, &say))?;
    println(&measured)?;
    writeln!(
        io::stderr(),
        "an upgrade takes {:.2} s at most with the guard (wanted: {:.0}), and {:.2} s without",
        measured.longest,
        guard::WANTED,
        measured.unguarded,
    )?;
    Ok(measured.is_good())
}

fn restarted(many: &Many) -> anyhow::Result<bool> {
    let runtime = tokio::runtime::Runtime::new()?;
    let measured = runtime.block_on(restart::measure(many.objects, many.bytes, many.rounds, &say))?;
    println(&measured)?;
    writeln!(
        io::stderr(),
        "ready within {:.2} s (wanted: {:.0}), all objects seen within {:.2} s, and {} writes (wanted: 0)",
        measured.ready,
        restart::WANTED,
        measured.passed,
        measured.writes,
    )?;
    Ok(measured.is_good())
}

fn remembered(objects: usize, bytes: usize, rounds: usize) -> anyhow::Result<bool> {
    let runtime = tokio::runtime::Runtime::new()?;
    let measured = runtime.block_on(memory::measure(objects, bytes, rounds, &say))?;
    println(&measured)?;
    writeln!(io::stderr(), "{} MiB at most (wanted: {})", measured.peak, memory::WANTED)?;
    Ok(measured.is_good())
}

fn passes(all: impl Iterator<Item = pass::Wanted>) -> anyhow::Result<bool> {
    let runtime = tokio::runtime::Runtime::new()?;
    for wanted in all {
        for measured in runtime.block_on(pass::measure(&wanted, &say))? {
            println(&measured)?;
        }
    }
    Ok(true)
}
