//! Writes what released API servers publish to `e2e/openapi/releases`, or says which of the files is not what it should be.
//!
//! What is left out, and where the documents are from, is in `e2e::releases`.

#![expect(clippy::print_stderr, reason = "a command line program talks to its user")]

use std::{fs, process::ExitCode};

use anyhow::{Context, Result};
use clap::Parser;
use e2e::releases::Release;

/// Makes the documents of all supported releases from the pinned Go modules, which are downloaded where they are not there.
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
            eprintln!("openapi-releases: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Whether every file is what it should be, now.
fn run(arguments: &Arguments) -> Result<bool> {
    let mut clean = true;
    for release in Release::all()? {
        let path = release.path();
        if fs::read_to_string(&path).unwrap_or_default() == release.document {
            continue;
        }
        let (name, version) = (path.display(), &release.version);
        if arguments.check {
            clean = false;
            eprintln!("openapi-releases: {name} is not what Kubernetes {version} publishes");
        } else {
            fs::write(&path, &release.document).with_context(|| name.to_string())?;
            eprintln!("openapi-releases: {name} is that of Kubernetes {version} now");
        }
    }
    Ok(clean)
}
