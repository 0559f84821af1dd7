//! Options of every command: which cluster, which namespace, how to print.

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use anyhow::bail;
use clap::{Args, ColorChoice, ValueEnum};
use etch::cluster::Target;
use etch_answers::Style;
use etch_core::scope::Scope;
use etch_core::shell::quoted;

use super::values::namespace;

/// What every command understands.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// The kubeconfig context to use
    #[arg(long, global = true)]
    context: Option<String>,
    /// The kubeconfig file to use instead of KUBECONFIG
    #[arg(long, global = true, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Read and write objects in this namespace only
    #[arg(short, long, global = true, value_parser = namespace)]
    namespace: Option<String>,
    /// All namespaces: the default, except for `explain`, which uses the namespace of the context
    #[arg(short = 'A', long, global = true)]
    all_namespaces: bool,
    /// When to use colors; NO_COLOR disables them
    #[arg(long, global = true, value_name = "WHEN", default_value_t = ColorChoice::Auto)]
    color: ColorChoice,
    /// Log format
    #[arg(long, global = true, env = "ETCH_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub(crate) log_format: LogFormat,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people
    Text,
    /// One JSON object per line
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

/// How results are printed that people discuss in a pull request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Discussed {
    /// For people
    #[default]
    Table,
    /// For programs; the keys do not change
    Json,
    /// The same as JSON, in YAML
    Yaml,
    /// For a comment on a pull request
    Markdown,
}

impl Discussed {
    /// Whether it is for people or for programs.
    pub(crate) fn form(self) -> Output {
        match self {
            Self::Table | Self::Markdown => Output::Table,
            Self::Json => Output::Json,
            Self::Yaml => Output::Yaml,
        }
    }
}

/// How Kubernetes objects are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// One YAML document per object, for kubectl and people
    #[default]
    Yaml,
    /// One object, or a List if there are several
    Json,
}

impl Global {
    /// Which cluster is meant.
    pub(crate) fn target(&self) -> Target {
        Target { context: self.context.clone(), kubeconfig: self.kubeconfig.clone() }
    }

    /// Which objects are meant: those of a namespace that was named, or all. The context's namespace does not
    /// count.
    pub(crate) fn scope(&self) -> anyhow::Result<Scope> {
        match &self.namespace {
            Some(_) if self.all_namespaces => bail!("--namespace and --all-namespaces cannot be combined"),
            Some(namespace) => Ok(Scope::Namespace(namespace.clone())),
            None => Ok(Scope::All),
        }
    }

    /// The namespace of one object: the one that was named, or `default`, that of the context. An object of a
    /// cluster-scoped type has none.
    pub(crate) fn namespace_of_one<'a>(
        &'a self,
        is_namespaced: bool,
        default: &'a str,
    ) -> anyhow::Result<Option<&'a str>> {
        if !is_namespaced {
            return Ok(None);
        }
        if self.all_namespaces {
            bail!("an object is in one namespace: use --namespace instead of --all-namespaces");
        }
        Ok(Some(self.namespace.as_deref().unwrap_or(default)))
    }

    /// Makes sure that no scope was named, for a command that `cannot` be narrowed.
    pub(crate) fn has_no_scope(&self, cannot: &str) -> anyhow::Result<()> {
        let named = match (&self.namespace, self.all_namespaces) {
            (Some(_), _) => "--namespace",
            (None, true) => "--all-namespaces",
            (None, false) => return Ok(()),
        };
        bail!("{cannot}: remove {named}")
    }

    /// The options that lead to the same cluster and the same scope, as they can be typed.
    pub(crate) fn words(&self) -> Vec<String> {
        let Self { context, kubeconfig, namespace, all_namespaces, color, log_format } = self;
        let mut words = Vec::new();
        let mut option = |name: &str, value: Option<String>| {
            words.extend(value.map(|value| format!("--{name}={value}")));
        };
        option("context", context.clone());
        option("kubeconfig", kubeconfig.as_ref().map(|path| path.display().to_string()));
        option("namespace", namespace.clone());
        option("color", Some(color).filter(|color| **color != ColorChoice::Auto).map(ToString::to_string));
        let is_json = matches!(log_format, LogFormat::Json);
        option("log-format", is_json.then(|| "json".to_owned()));
        if *all_namespaces {
            words.push("--all-namespaces".to_owned());
        }
        words
    }

    /// The options that lead to the same cluster, as they can be typed for Etch and for kubectl.
    pub(crate) fn words_of_cluster(&self) -> Vec<String> {
        let mut words = Vec::new();
        words.extend(self.context.as_ref().map(|context| format!("--context={context}")));
        words.extend(self.kubeconfig.as_ref().map(|path| format!("--kubeconfig={}", path.display())));
        words
    }

    /// The same options for a shell, with a space before each.
    pub(crate) fn flags_of_cluster(&self) -> String {
        self.words_of_cluster().iter().map(|word| format!(" {}", quoted(word))).collect()
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

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::cli::Cli;

    #[test]
    fn one_object_is_in_one_namespace_or_in_none() {
        let namespace = |flags: &str, is_namespaced| {
            let line = format!("etch explain a b {flags}");
            let cli = Cli::try_parse_from(line.split_whitespace()).expect("arguments");
            let found = cli.global.namespace_of_one(is_namespaced, "default");
            found.map(|found| found.map(str::to_owned)).map_err(|error| error.to_string())
        };
        assert_eq!(namespace("", true), Ok(Some("default".to_owned())));
        assert_eq!(namespace("-n web", true), Ok(Some("web".to_owned())));
        assert!(namespace("-A", true).is_err_and(|error| error.contains("use --namespace")));
        assert_eq!((namespace("", false), namespace("-A", false)), (Ok(None), Ok(None)));
    }
}
