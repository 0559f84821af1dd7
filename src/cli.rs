//! What can be typed, and how it is told from what it means.

use clap::{Parser, Subcommand, ValueEnum};
use etch::cluster::Target;

use crate::commands::crds::Crds;
use crate::commands::run::Run;

/// Makes the defaults of Kubernetes CRDs stored facts
#[derive(Debug, Parser)]
#[command(name = "etch", version, propagate_version = true)]
pub(crate) struct Cli {
    /// The kubeconfig context to use
    #[arg(long, global = true)]
    context: Option<String>,
    /// How logs are written
    #[arg(long, global = true, env = "ETCH_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub(crate) log_format: LogFormat,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people
    Text,
    /// One JSON object a line
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(Run),
    Crds(Crds),
}

impl Cli {
    /// Which cluster is meant.
    pub(crate) fn target(&self) -> Target {
        Target { context: self.context.clone() }
    }
}
