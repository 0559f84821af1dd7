//! Makes a release of this commit, and publishes it.
//!
//! Everything but the command line is in `e2e::dist`.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line program talks to its user")]

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::{Parser, Subcommand};
use e2e::dist::{Binary, Release, VERSION, push};
use e2e::target::target_folder;

/// Makes a release of this commit, and publishes it.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Build a static binary for each architecture that the toolchain has, as
    /// `target/binaries/etch-ARCHITECTURE`
    Binaries,
    /// Make everything that is published, in `target/dist`
    Make {
        /// The tag that the release is for; it has to fit the version
        #[arg(long)]
        tag: Option<String>,
        /// The registry for the image and the chart
        #[arg(long, default_value = "registry.example.com")]
        registry: String,
        /// The URL of the repository
        #[arg(long, default_value = "https://example.com/etch")]
        source: String,
        /// A static binary; one for each architecture [default: those that the toolchain builds]
        #[arg(long = "binary", value_name = "FILE")]
        binaries: Vec<PathBuf>,
        /// The folder [default: target/dist]
        #[arg(long)]
        out: Option<PathBuf>,
    },
    /// Push the image and the chart to the registry of the release, and print their digests
    Push {
        /// The folder [default: target/dist]
        #[arg(long)]
        out: Option<PathBuf>,
    },
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("release: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<()> {
    let folder =
        |out: Option<PathBuf>| out.map_or_else(|| Ok(target_folder()?.join("dist")), Ok::<_, anyhow::Error>);
    match command {
        Command::Binaries => {
            let folder = target_folder()?.join("binaries");
            fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
            for binary in Binary::build_all()? {
                println!("{}", binary.save(&folder)?.display());
            }
        }
        Command::Make { tag, registry, source, binaries, out } => {
            let expected = format!("v{VERSION}");
            let fits = tag.as_ref().is_none_or(|tag| *tag == expected);
            ensure!(fits, "the tag has to be {expected}, the version in Cargo.toml");
            let mut read = if binaries.is_empty() { Binary::build_all()? } else { Vec::new() };
            for path in binaries {
                let binary = Binary::read(&path)?;
                binary.ensure_static().with_context(|| path.display().to_string())?;
                read.push(binary);
            }
            let folder = folder(out)?;
            Release::new(&registry, &source)?.make(&read, &folder)?;
            println!("{}", folder.display());
        }
        Command::Push { out } => push(&folder(out)?)?.iter().for_each(|reference| println!("{reference}")),
    }
    Ok(())
}
