//! Writes the generated files of the repository, or says which of them are not what they should be.
//!
//! What they are and how they are made is in `e2e::install`.

#![expect(clippy::print_stderr, reason = "a command line program talks to its user")]

use std::{fs, process::ExitCode};

use anyhow::{Context, Result};
use clap::Parser;
use e2e::install::Generated;

/// Writes the CRDs, yaml/install.yaml and the generated parts of config/chart.
#[derive(Parser)]
struct Arguments {
    /// Write nothing; exit with 1 if a file is not what it should be.
    #[arg(long)]
    check: bool,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("install-files: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Whether every file is what it should be, now.
fn run(arguments: &Arguments) -> Result<bool> {
    let mut clean = true;
    for file in Generated::ALL {
        let (name, path, text) = (file.name(), file.path(), file.text()?);
        let found = fs::read_to_string(&path).unwrap_or_default();
        if found == text {
            continue;
        }
        if arguments.check {
            clean = false;
            let line = 1 + found.lines().zip(text.lines()).take_while(|(found, text)| found == text).count();
            eprintln!(
                "install-files: {name} differs from line {line} on; run `just generate` and commit the result"
            );
        } else {
            fs::write(&path, text).with_context(|| format!("write {name}"))?;
            eprintln!("install-files: {name} is new");
        }
    }
    Ok(clean)
}
