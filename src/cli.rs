//! What can be typed, and how it is told from what it means.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use etch::cluster::Target;
use etch::report::Style;

use crate::commands::audit::Audit;
use crate::commands::clean::Clean;
use crate::commands::completions::Completions;
use crate::commands::crds::Crds;
use crate::commands::explain::Explain;
use crate::commands::fill::Fill;
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

/// What every command understands.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// The kubeconfig context to use
    #[arg(long, global = true)]
    context: Option<String>,
    /// The kubeconfig file, instead of those that KUBECONFIG names
    #[arg(long, global = true, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The namespace [default: that of the context]
    #[arg(short, long, global = true)]
    pub(crate) namespace: Option<String>,
    /// When output has colours; NO_COLOR is honoured
    #[arg(long, global = true, value_name = "WHEN", default_value_t = ColorChoice::Auto)]
    color: ColorChoice,
    /// How logs are written
    #[arg(long, global = true, env = "ETCH_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub(crate) log_format: LogFormat,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people
    Text,
    /// One JSON object a line
    Json,
}

/// How results are printed, for commands that have all three.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people
    #[default]
    Table,
    /// For programs; the keys do not change
    Json,
    /// As JSON, for people and programs
    Yaml,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(Run),
    Lint(Lint),
    Fill(Fill),
    Rbac(Rbac),
    Clean(Clean),
    Impact(Impact),
    Audit(Audit),
    Persist(Persist),
    Explain(Explain),
    Crds(Crds),
    Completions(Completions),
    Version(Version),
}

/// How a command ended, where it did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// All is well.
    Clean,
    /// There is something to look at.
    Findings,
}

/// Exit status where the command itself failed.
pub(crate) const FAILURE: u8 = 2;

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Clean => Self::SUCCESS,
            Outcome::Findings => Self::from(1),
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

impl Global {
    /// Which cluster is meant.
    pub(crate) fn target(&self) -> Target {
        Target { context: self.context.clone(), kubeconfig: self.kubeconfig.clone() }
    }

    /// What standard output can show.
    pub(crate) fn style(&self) -> Style {
        let is_terminal = io::stdout().is_terminal();
        let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let color = match self.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => {
                is_terminal
                    && !is_set("NO_COLOR")
                    && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
            }
        };
        let width = terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| width.0.into());
        Style { color, width: width.filter(|_| is_terminal) }
    }
}
