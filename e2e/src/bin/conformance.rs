//! Holds Etch against recorded answers of the API server.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use e2e::conformance::{Tally, admission, answer, run};

/// Runs every vector; ends with the line `N passed, M failed`, and with exit 1 if M is not 0.
#[derive(Parser)]
struct Arguments {
    /// Answer vectors of admission by the EmbeddedSchemas of this file or folder.
    #[arg(long, value_name = "SCHEMAS")]
    admission: Option<PathBuf>,
    /// Files of vectors (`.jsonl`, `.jsonl.gz`), or folders of such files.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
}

fn main() -> anyhow::Result<ExitCode> {
    let Arguments { admission, paths } = Arguments::parse();
    let mut output = BufWriter::new(io::stdout().lock());
    let Tally { passed, failed } = match admission {
        Some(schemas) => admission::run(&admission::Schemas::read(&[schemas])?, &paths, &mut output)?,
        None => run(&paths, answer, &mut output)?,
    };
    writeln!(output, "{passed} passed, {failed} failed")?;
    output.flush()?;
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
