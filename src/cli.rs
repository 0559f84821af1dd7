//! The command line: commands, global options, and usage errors in one line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use etch_answers::plain;

use crate::commands::admit::Admit;
use crate::commands::audit::Audit;
use crate::commands::clean::Clean;
use crate::commands::completions::Completions;
use crate::commands::crds::Crds;
use crate::commands::explain::Explain;
use crate::commands::fill::Fill;
use crate::commands::global::Global;
use crate::commands::impact::Impact;
use crate::commands::lint::Lint;
use crate::commands::man::Man;
use crate::commands::persist::Persist;
use crate::commands::plan::Plan;
use crate::commands::rbac::Rbac;
use crate::commands::resume::Resume;
use crate::commands::revert::Revert;
use crate::commands::run::Run;
use crate::commands::status::Status;
use crate::commands::version::Version;

/// Store the defaults of Kubernetes CRDs in etcd
///
/// Exit status: 0 if there are no findings, 1 if there are findings, 2 if the command failed.
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
    Status(Status),
    Plan(Plan),
    Impact(Impact),
    Audit(Audit),
    Explain(Explain),
    Persist(Persist),
    Revert(Revert),
    Resume(Resume),
    Lint(Lint),
    Fill(Fill),
    Admit(Admit),
    Run(Run),
    Crds(Crds),
    Rbac(Rbac),
    Clean(Clean),
    Completions(Completions),
    Man(Man),
    Version(Version),
}

impl Command {
    /// Why a namespace cannot narrow it; `None` if one can.
    pub(crate) fn has_no_scope(&self) -> Option<&'static str> {
        match self {
            Self::Impact(_) | Self::Audit(_) | Self::Explain(_) | Self::Persist(_) | Self::Revert(_) => None,
            Self::Run(_) => Some("the operator works in all namespaces, and policies select the CRDs"),
            Self::Plan(_) => Some("an upgrade changes the objects of all namespaces"),
            Self::Clean(_) | Self::Rbac(_) | Self::Resume(_) | Self::Status(_) => {
                Some("CRDs are cluster-scoped")
            }
            Self::Lint(_)
            | Self::Fill(_)
            | Self::Admit(_)
            | Self::Crds(_)
            | Self::Completions(_)
            | Self::Man(_)
            | Self::Version(_) => Some("the command reads no objects in a namespace"),
        }
    }
}

impl Cli {
    /// Reads the arguments of the process. Where they only ask for help, it ends here.
    ///
    /// Under the name `kubectl-etch` this is a plugin, and is called `kubectl etch` wherever it is mentioned.
    ///
    /// # Errors
    /// What is wrong with them, in one line.
    pub(crate) fn read() -> Result<Self, String> {
        let program = std::env::args_os().next().map(PathBuf::from).unwrap_or_default();
        Self::read_from(program.file_stem().is_some_and(|name| name == "kubectl-etch"), std::env::args_os())
    }

    fn read_from(plugin: bool, arguments: impl IntoIterator<Item = OsString>) -> Result<Self, String> {
        let arguments: Vec<_> = arguments.into_iter().collect();
        let definition = Self::definition(plugin);
        let read = definition.clone().try_get_matches_from(&arguments);
        read.and_then(|matches| Self::from_arg_matches(&matches)).map_err(|error| match error.kind() {
            // Asked for, or in place of a command: nothing else would help more.
            ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => error.exit(),
            _ => {
                let command = arguments.iter().find_map(|word| definition.find_subcommand(word));
                let program = definition.get_bin_name().unwrap_or("etch");
                let command = command.map_or_else(String::new, |command| format!(" {}", command.get_name()));
                format!("{}; see `{program}{command} --help`", one_line(&error.render().to_string()))
            }
        })
    }

    /// The commands and their options, as a plugin of kubectl or by themselves.
    pub(crate) fn definition(plugin: bool) -> clap::Command {
        let command = Self::command();
        if plugin { command.bin_name("kubectl etch").display_name("kubectl etch") } else { command }
    }
}

/// Clap's message about wrong arguments, in one line and without its hints on where help is.
fn one_line(rendered: &str) -> String {
    let mut line = String::new();
    for part in rendered.lines().map(str::trim).filter(|part| !part.is_empty()) {
        if part.starts_with("Usage: ") || part.starts_with("For more information") {
            break;
        }
        let joint = match part {
            _ if line.is_empty() => "",
            part if part.starts_with("tip: ") => "; ",
            _ => " ",
        };
        line = format!("{line}{joint}{part}");
    }
    plain(line.strip_prefix("error: ").unwrap_or(&line)).into_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use clap::Arg;

    use super::*;

    /// Commands, their flags, and the values that those take: a test of the process tries the flags with
    /// values that they cannot use.
    type Flags = BTreeMap<String, BTreeMap<String, String>>;

    /// A flag, or a positional argument, as the help shows it.
    fn shown(argument: &Arg) -> String {
        let name = argument.get_value_names().and_then(|names| names.first()).map(ToString::to_string);
        argument.get_long().map_or_else(|| name.unwrap_or_default(), |long| format!("--{long}"))
    }

    #[test]
    fn each_flag_of_each_command_is_tried() {
        let tried: Flags =
            serde_json::from_str(include_str!("../e2e/tests/cli/flags.json")).expect("flags.json");
        let definition = Cli::definition(false);
        let commands = definition.get_subcommands().map(|command| (command.get_name(), command));
        let mut typed = Flags::new();
        for (name, command) in commands.chain([("", &definition)]) {
            assert!(
                name.is_empty() || !command.has_subcommands(),
                "{name}: flags.json knows one level of commands"
            );
            let flags = typed.entry(name.to_owned()).or_default();
            for argument in command.get_arguments() {
                let flag = shown(argument);
                let takes = tried.get(name).and_then(|flags| flags.get(&flag)).cloned().unwrap_or_default();
                assert_eq!(takes == "switch", !argument.get_action().takes_values(), "{name} {flag} {takes}");
                let is_choice =
                    argument.get_action().takes_values() && !argument.get_possible_values().is_empty();
                assert_eq!(takes == "choice", is_choice, "{name} {flag} {takes}");
                if let Some(variable) = argument.get_env().filter(|_| name == "run") {
                    let expected = flag.trim_start_matches("--").replace('-', "_").to_uppercase();
                    assert_eq!(variable.to_str(), Some(format!("ETCH_{expected}").as_str()));
                }
                flags.insert(flag, takes);
            }
        }
        typed.retain(|_, flags| !flags.is_empty());
        assert_eq!(typed, tried, "say in e2e/tests/cli/flags.json what each flag takes");
    }

    #[test]
    fn a_flag_that_would_change_nothing_is_refused() {
        let read = |line: &str| Cli::read_from(false, line.split(' ').map(OsString::from));
        for (base, flags) in [
            ("audit", &["--limit 3", "--etcd-prefix /x"][..]),
            ("audit --trust-owners", &["--etcd-snapshot a", "--etcd-endpoints a:1"]),
            ("explain a b", &["--etcd-prefix /x"]),
            ("explain --live a", &["--etcd-prefix /x", "--etcd-snapshot a"]),
            ("impact -f a --old b", &["--etcd-prefix /x"]),
            ("impact -f a --objects b", &["--etcd-snapshot c", "--etcd-endpoints a:1", "--live"]),
            ("impact --openapi a", &["--limit 3", "--etcd-prefix /x", "--etcd-snapshot b"]),
            ("lint --go a", &["--old b", "--kubernetes 1.36"]),
            (
                "lint --explain ETCH001",
                &["--severity error", "--allow ETCH012", "--kubernetes 1.36", "-o json", "--old a"],
            ),
        ] {
            assert!(read(&format!("etch {base}")).is_ok(), "{base}");
            for flag in flags {
                assert!(read(&format!("etch {base} {flag}")).is_err(), "{base} {flag}");
            }
        }
        for line in [
            "audit --objects --limit 3",
            "audit --stored-versions --objects --limit 3",
            "audit --etcd-snapshot a --etcd-prefix /x",
            "explain a b --etcd-endpoints a:1 --etcd-prefix /x",
            "impact -f a --live --limit 3",
            "lint a --go b --old c --kubernetes 1.36",
            "lint --live --kubernetes 1.36",
        ] {
            assert!(read(&format!("etch {line}")).is_ok(), "{line}");
        }
    }

    #[test]
    fn wrong_arguments_are_told_in_one_line() {
        for (arguments, expected) in [
            (
                "audit --object",
                "unexpected argument '--object' found; tip: a similar argument exists: '--objects'; see \
                 `etch audit --help`",
            ),
            (
                "audit -o tab\nle",
                "invalid value 'tab le' for '--output <OUTPUT>' [possible values: table, json, yaml]; tip: a \
                 similar value exists: 'table'; see `etch audit --help`",
            ),
            (
                "fill a.yaml",
                "the following required arguments were not provided: --crd <FILE>; see `etch fill --help`",
            ),
            (
                "audti",
                "unrecognized subcommand 'audti'; tip: some similar subcommands exist: 'admit', 'audit'; see \
                 `etch --help`",
            ),
        ] {
            let arguments = ["etch"].into_iter().chain(arguments.split(' ')).map(OsString::from);
            assert_eq!(Cli::read_from(false, arguments).expect_err("a refusal"), expected);
        }
        let plugin = ["kubectl-etch", "lint"].map(OsString::from);
        let refusal = Cli::read_from(true, plugin).expect_err("a refusal");
        assert!(refusal.ends_with("; see `kubectl etch lint --help`"), "{refusal}");
    }
}
