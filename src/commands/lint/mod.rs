//! `etch lint`: what the API server refuses and rules about defaults, for CRDs from files or a cluster, and
//! for Go types.

mod check;
mod publishing;

use std::ffi::OsStr;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, ArgGroup, Args, Command, ValueEnum};
use etch_answers::lint::{Checked, Located, document, exceptions, print, sarif};
use etch_lint::{Rule, Severity};
use kube_crd_validation::crd::Release;

use self::check::{accepted, embedded, files, go, live, live_types, not_compared, old, openapi};
use super::skipped::note_skipped;
use super::{failure, one_stdin};
use crate::commands::emit::{emit_object, ended};
use crate::commands::global::{Format, Global};
use crate::commands::outcome::Outcome;
use crate::commands::streams::note;

/// The releases whose answers are known, as they are typed.
const RELEASES: [&str; 4] = ["1.34", "1.35", "1.36", "1.37"];

/// Check CRDs and EmbeddedSchemas for errors, and for defaults that are wrong or surprising
///
/// Exit status: 0 if there are only infos, 1 if there are warnings or errors, 2 if the command cannot read
/// something; it still checks the rest.
#[derive(Args, Debug)]
#[command(group = ArgGroup::new("crds").args(["files", "live"]))]
#[command(after_help = "Examples:
  etch lint crds.yaml
  etch lint config/crd/ --severity error
  etch lint provider.yaml crds/
  etch lint --old old.yaml new.yaml
  etch lint --old old.yaml new.yaml --exceptions exceptions.yaml
  kustomize build config/crd | etch lint -
  etch lint --live --allow ETCH012
  etch lint --go ./api/... config/crd/
  etch lint --openapi apps-v1.json
  etch lint crds.yaml -o github
  etch lint --explain ETCH005")]
pub(crate) struct Lint {
    /// Files, folders, or - for standard input
    #[arg(value_name = "FILE", conflicts_with = "live")]
    #[arg(required_unless_present_any = ["live", "explain", "go"])]
    files: Vec<PathBuf>,
    /// Check the CRDs and EmbeddedSchemas in the cluster
    #[arg(long)]
    live: bool,
    /// The existing CRDs, to check the new ones as updates of them: files, folders, - for standard input, or
    /// git:REVISION for the same files in that revision of their repository
    #[arg(long, value_name = "OLD", requires = "files", conflicts_with_all = ["live", "explain"])]
    old: Vec<PathBuf>,
    /// Findings to accept, each with its code, path and reason: files, folders, or - for standard input
    #[arg(long, value_name = "FILE", conflicts_with = "explain")]
    exceptions: Vec<PathBuf>,
    /// Check the Go types of these packages, such as ./api/... with all packages below it, and compare them
    /// with the CRDs
    #[arg(long, value_name = "PACKAGES", conflicts_with_all = ["live", "explain"])]
    go: Vec<PathBuf>,
    /// Check the types in OpenAPI v3 documents of an API server, including built-in ones: FILE names the
    /// documents, --live uses those of the cluster
    #[arg(long, conflicts_with_all = ["old", "go", "kubernetes", "explain"])]
    openapi: bool,
    /// A Kubernetes release, such as 1.36; repeatable [default: all supported releases]
    #[arg(long, value_name = "RELEASE", requires = "crds", value_parser = ReleaseParser)]
    kubernetes: Vec<Release>,
    /// The lowest severity to show and count [default: warning in tables, else info]
    #[arg(long, value_enum)]
    severity: Option<Level>,
    /// Skip this rule, by code or name; repeatable
    #[arg(long, value_name = "CODE", value_parser = rule)]
    allow: Vec<&'static Rule>,
    /// Explain a rule, by code or name, and check nothing; `all` lists the rules
    #[arg(
        long,
        value_name = "CODE",
        conflicts_with_all = ["files", "live", "kubernetes", "severity", "allow", "output"]
    )]
    explain: Option<String>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people
    #[default]
    Table,
    /// For programs; the keys do not change
    Json,
    /// The same as JSON, in YAML
    Yaml,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// Annotations in the log of a GitHub workflow
    Github,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Level {
    Info,
    Warning,
    Error,
}

impl Lint {
    pub(crate) fn run(self, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
        if let Some(code) = &self.explain {
            explain(code, out)?;
            return Ok(Outcome::Clean);
        }
        one_stdin(self.files.iter().chain(&self.old).chain(&self.exceptions))?;
        let exceptions = accepted(&self.exceptions).context("--exceptions")?;
        let releases =
            if self.kubernetes.is_empty() { Release::ALL.to_vec() } else { self.kubernetes.clone() };
        let with_lines = matches!(self.output, Output::Sarif | Output::Github);
        let mut checked = Checked::new(old(&self.old, &self.files)?, releases, with_lines);
        if self.openapi && self.live {
            live_types(&mut checked, global)?;
        } else if self.openapi {
            openapi(&mut checked, &self.files);
        } else if self.live {
            live(&mut checked, global)?;
        } else {
            files(&mut checked, &self.files, !self.go.is_empty());
            not_compared(&mut checked, &self.old)?;
        }
        if !self.openapi {
            embedded(&mut checked, &self.files)?;
        }
        go(&mut checked, &self.go);
        for part in &checked.parts {
            note_skipped(part)?;
        }
        let is_empty = checked.looked_at().all(|(count, _)| count == 0);
        if is_empty && !checked.failures.is_empty() {
            return Err(failure(checked.failures));
        }
        checked
            .findings
            .retain(|located| !self.allow.iter().any(|rule| rule.code == located.finding.rule.code));
        for unused in exceptions::apply(&exceptions, &mut checked.findings) {
            note(&format!("no finding needs the exception {unused}"))?;
        }
        let least = self.severity.map_or(Severity::Info, Severity::from);
        checked.findings.retain(|located| located.finding.rule.severity >= least);
        match self.output {
            Output::Table => print::table(out, &global.style(), &checked, self.severity.map(Severity::from))?,
            Output::Json => emit_object(out, Format::Json, &document::document(&checked))?,
            Output::Yaml => emit_object(out, Format::Yaml, &document::document(&checked))?,
            Output::Sarif => emit_object(out, Format::Json, &sarif::log(&checked.findings))?,
            Output::Github => print::github(out, &checked)?,
        }
        let is_serious =
            |located: &Located| located.accepted.is_none() && located.finding.rule.severity > Severity::Info;
        ended(checked.failures, !checked.findings.iter().any(is_serious))
    }
}

fn explain(code: &str, out: &mut dyn Write) -> Result<()> {
    match code {
        "all" => print::rules(out)?,
        code => print::rule(out, rule(code).map_err(anyhow::Error::msg)?)?,
    }
    Ok(())
}

fn rule(code: &str) -> Result<&'static Rule, String> {
    etch_lint::rule(code).ok_or_else(|| format!("no rule is called {code}; see `etch lint --explain all`"))
}

/// Reads the releases that are supported. In place of clap's own parser, which calls them possible values.
#[derive(Clone, Copy, Debug)]
struct ReleaseParser;

impl TypedValueParser for ReleaseParser {
    type Value = Release;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<Release, clap::Error> {
        let text = value.to_string_lossy();
        release(&text).ok_or_else(|| {
            let argument = argument.map(|argument| format!(" for '{argument}'")).unwrap_or_default();
            let supported = RELEASES.join(", ");
            let message = format!(
                "invalid value '{text}'{argument}: the supported releases of Kubernetes are {supported}"
            );
            clap::Error::raw(ErrorKind::ValueValidation, message).with_cmd(command)
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(RELEASES.iter().map(|release| PossibleValue::new(*release))))
    }
}

fn release(text: &str) -> Option<Release> {
    text.strip_prefix("1.").and_then(|minor| minor.parse().ok()).and_then(Release::of_minor)
}

impl From<Level> for Severity {
    fn from(level: Level) -> Self {
        match level {
            Level::Info => Self::Info,
            Level::Warning => Self::Warning,
            Level::Error => Self::Error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_release_whose_answers_are_known_can_be_asked_for() {
        assert_eq!(RELEASES.map(release), Release::ALL.map(Some));
    }
}
