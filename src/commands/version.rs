//! `etch version`: which Etch this is.

use std::io::Write;

use clap::Args;
use etch::SUPPORTED_KUBERNETES;
use serde_json::json;

use crate::commands::emit::emit;
use crate::commands::global::Output;
use crate::commands::outcome::Outcome;

/// Print the version, and the supported Kubernetes versions
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  etch version
  etch version -o json")]
pub(crate) struct Version {
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
}

impl Version {
    pub(crate) fn run(&self, out: &mut dyn Write) -> anyhow::Result<Outcome> {
        let version = env!("CARGO_PKG_VERSION");
        let (oldest, newest) = SUPPORTED_KUBERNETES;
        let document = || json!({ "version": version, "kubernetes": { "oldest": oldest, "newest": newest } });
        emit(out, self.output, document, |out| {
            writeln!(out, "etch {version}, for Kubernetes {oldest} to {newest}")
        })?;
        Ok(Outcome::Clean)
    }
}
