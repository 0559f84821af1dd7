//! What can be typed, and how it is told from what it means.

use std::path::PathBuf;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::commands::audit::Audit;
use crate::commands::clean::Clean;
use crate::commands::completions::Completions;
use crate::commands::crds::Crds;
use crate::commands::explain::Explain;
use crate::commands::fill::Fill;
use crate::commands::global::Global;
use crate::commands::impact::Impact;
use crate::commands::lint::Lint;
use crate::commands::persist::Persist;
use crate::commands::rbac::Rbac;
use crate::commands::run::Run;
use crate::commands::version::Version;

/// Makes the defaults of Kubernetes CRDs stored facts
///
/// Exit status: 0 where all is well, 1 where something was found, 2 where the command failed.
#[derive(Debug, Parser)]
#[command(name = "etch", version, propagate_version = true, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Impact(Impact),
    Audit(Audit),
    Explain(Explain),
    Persist(Persist),
    Lint(Lint),
    Fill(Fill),
    Run(Run),
    Crds(Crds),
    Rbac(Rbac),
    Clean(Clean),
    Completions(Completions),
    Version(Version),
}

impl Command {
    /// Why a namespace cannot narrow it; none where one can.
    pub(crate) fn has_no_scope(&self) -> Option<&'static str> {
        match self {
            Self::Impact(_) | Self::Audit(_) | Self::Explain(_) | Self::Persist(_) => None,
            Self::Run(_) => Some("the operator works on all namespaces, and policies select the CRDs"),
            Self::Clean(_) | Self::Rbac(_) => Some("the command is about CRDs, which are in no namespace"),
            Self::Lint(_) | Self::Fill(_) | Self::Crds(_) | Self::Completions(_) | Self::Version(_) => {
                Some("the command is about nothing in a namespace")
            }
        }
    }
}

impl Cli {
    /// Reads the arguments of the process. Where they are wrong, or only ask for help, it ends here.
    ///
    /// Under the name `kubectl-etch` this is a plugin, and is called `kubectl etch` wherever it is mentioned.
    pub(crate) fn read() -> Self {
        let program = std::env::args_os().next().map(PathBuf::from).unwrap_or_default();
        let matches = Self::definition(program.file_stem().is_some_and(|name| name == "kubectl-etch"));
        Self::from_arg_matches(&matches.get_matches()).unwrap_or_else(|error| error.exit())
    }

    /// The commands and their options, as a plugin of kubectl or by themselves.
    pub(crate) fn definition(plugin: bool) -> clap::Command {
        let command = Self::command();
        if plugin { command.bin_name("kubectl etch").display_name("kubectl etch") } else { command }
    }
}
