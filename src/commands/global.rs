//! What every command understands: which cluster is meant, and how to print.
//! It must not connect, nor print.

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use clap::{Args, ColorChoice, ValueEnum};
use etch::cluster::Target;
use etch::report::Style;

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
    /// The same as JSON, in YAML
    Yaml,
}

/// How Kubernetes objects are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A YAML document each, for kubectl and people
    #[default]
    Yaml,
    /// One object, or a List of several
    Json,
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
