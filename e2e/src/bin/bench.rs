//! Measures the schema engine; one JSON line per measurement, and on standard error whether it is as fast as is wanted.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use e2e::bench::{WANTED, Worst, inputs, measure};

/// Filling and deciding, beside Go's `Default` and `DeepCopyJSONValue`, a deep copy and serde_json's parse. Ends with exit 1 if
/// filling is slower than is wanted.
#[derive(Parser)]
struct Arguments {
    /// Only inputs whose name holds one of these texts.
    names: Vec<String>,
}

fn main() -> anyhow::Result<ExitCode> {
    let Arguments { names } = Arguments::parse();
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
        "filling takes at most {:.3} of a deep copy (wanted: {}); Go's Default takes at least {:.1} times as long (wanted: {})",
        worst.fill_to_copy,
        WANTED.fill_to_copy,
        worst.go_default_to_fill,
        WANTED.go_default_to_fill,
    )?;
    Ok(if worst.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
