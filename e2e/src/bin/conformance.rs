//! Holds Etch against recorded answers of the API server.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use e2e::conformance::{Tally, answer, run};

/// Runs every vector; ends with the line `N passed, M failed`, and with exit 1 if M is not 0.
#[derive(Parser)]
struct Arguments {
    /// Files of vectors (`.jsonl`, `.jsonl.gz`), or folders of such files.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
}

fn main() -> io::Result<ExitCode> {
    let Arguments { paths } = Arguments::parse();
    let mut output = BufWriter::new(io::stdout().lock());
    let Tally { passed, failed } = run(&paths, answer, &mut output)?;
    writeln!(output, "{passed} passed, {failed} failed")?;
    output.flush()?;
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
