//! Measures the schema engine; one JSON line per measurement.

use std::io::{self, Write};

use clap::Parser;
use e2e::bench::{inputs, measure};

/// Filling and deciding, beside Go's `Default` and `DeepCopyJSONValue`, a deep copy and serde_json's parse.
#[derive(Parser)]
struct Arguments {
    /// Only inputs whose name holds one of these texts.
    names: Vec<String>,
}

fn main() -> anyhow::Result<()> {
    let Arguments { names } = Arguments::parse();
    let mut inputs = inputs()?;
    inputs.retain(|input| names.is_empty() || names.iter().any(|name| input.name.contains(name)));
    let mut output = io::stdout().lock();
    for measurement in measure(&inputs)? {
        serde_json::to_writer(&mut output, &measurement)?;
        writeln!(output)?;
    }
    Ok(())
}
