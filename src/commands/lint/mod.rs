//! `etch lint`: what the API server refuses and rules about defaults, for CRDs from files or a cluster.

mod place;
mod sarif;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Args, ValueEnum};
use etch::cluster::{Cluster, crds};
use etch::domain::finding::Kind;
use etch::domain::json::Json;
use etch::domain::lint::{self, Finding, RULES, Rule, Severity};
use etch::domain::validate::crd::Release;
use etch::report::{self, Align, Cell, Table, Tone, counted};
use etch::source::{self, Origin};
use serde::Serialize;

use super::{asynchronous, each, failure, none_of, one_stdin};
use crate::commands::global::Global;
use crate::commands::outcome::Outcome;

/// The releases whose answers are known, as they are typed.
const RELEASES: [&str; 4] = ["1.34", "1.35", "1.36", "1.37"];

/// Check CRDs for what the API server refuses, and for defaults that are wrong or surprising
///
/// Exit status: 0 if there are only infos, 1 if there are warnings or errors, 2 if something cannot be read; the rest is
/// checked all the same.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  etch lint crds.yaml
  etch lint config/crd/ --severity error
  etch lint --old old.yaml new.yaml
  kustomize build config/crd | etch lint -
  etch lint --live --allow ETCH012
  etch lint crds.yaml -o github
  etch lint --explain ETCH005")]
pub(crate) struct Lint {
    /// Files, folders, or - for standard input
    #[arg(value_name = "FILE", required_unless_present_any = ["live", "explain"], conflicts_with = "live")]
    files: Vec<PathBuf>,
    /// Check the CRDs in the cluster
    #[arg(long)]
    live: bool,
    /// The CRDs before, to check the others as updates of them: files, folders, or - for standard input
    #[arg(long, value_name = "OLD", conflicts_with_all = ["live", "explain"])]
    old: Vec<PathBuf>,
    /// A release of Kubernetes, such as 1.36; may be given several times [default: all supported releases]
    #[arg(long, value_name = "RELEASE", value_parser = PossibleValuesParser::new(RELEASES).try_map(release))]
    kubernetes: Vec<Release>,
    /// The lowest severity to show and count [default: warning in tables, else info]
    #[arg(long, value_enum)]
    severity: Option<Level>,
    /// Skip this rule, by code or name; may be given several times
    #[arg(long, value_name = "CODE", value_parser = rule)]
    allow: Vec<&'static Rule>,
    /// Explain a rule, by code or name, and check nothing; `all` lists the rules
    #[arg(long, value_name = "CODE", conflicts_with_all = ["files", "live"])]
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

/// A finding, and the CRD that it is about.
struct Located {
    /// The line in that document's file; none before it was looked for, or where it cannot be told.
    line: Option<usize>,
    /// The document; none where the CRD is from the cluster.
    origin: Option<Origin>,
    crd: String,
    finding: Finding,
}

/// The findings of a run, and what kept CRDs from being checked.
#[derive(Default)]
struct Checked {
    findings: Vec<Located>,
    failures: Vec<String>,
    crds: u64,
    /// The CRDs before, by name.
    old: BTreeMap<String, Json>,
    /// The releases that are asked.
    releases: Vec<Release>,
}

#[derive(Serialize)]
struct Document<'a> {
    findings: Vec<Entry<'a>>,
}

#[derive(Serialize)]
struct Entry<'a> {
    code: &'static str,
    rule: &'static str,
    severity: &'static str,
    crd: &'a str,
    version: &'a str,
    path: String,
    message: &'a str,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    refusal: Option<Refused<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    document: Option<usize>,
}

/// What the API server says, in its own terms.
#[derive(Serialize)]
struct Refused<'a> {
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    detail: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    releases: Vec<String>,
}

impl Lint {
    pub(crate) fn run(self, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
        if let Some(code) = &self.explain {
            explain(code, out)?;
            return Ok(Outcome::Clean);
        }
        one_stdin(self.files.iter().chain(&self.old))?;
        let releases =
            if self.kubernetes.is_empty() { Release::ALL.to_vec() } else { self.kubernetes.clone() };
        let mut checked = Checked { old: old(&self.old)?, releases, ..Checked::default() };
        if self.live {
            live(&mut checked, global)?;
        } else {
            files(&mut checked, &self.files);
        }
        if checked.crds == 0 && !checked.failures.is_empty() {
            return Err(failure(checked.failures));
        }
        checked
            .findings
            .retain(|located| !self.allow.iter().any(|rule| rule.code == located.finding.rule.code));
        let least = self.severity.map_or(Severity::Info, Severity::from);
        checked.findings.retain(|located| located.finding.rule.severity >= least);
        if matches!(self.output, Output::Sarif | Output::Github) {
            place::find_lines(&mut checked.findings);
        }
        match self.output {
            Output::Table => self.table(&checked, global, out)?,
            Output::Json => report::write_json(out, &document(&checked))?,
            Output::Yaml => report::write_yaml(out, &document(&checked))?,
            Output::Sarif => report::write_json(out, &sarif::log(&checked.findings))?,
            Output::Github => github(&checked, out)?,
        }
        if !checked.failures.is_empty() {
            out.flush()?;
            return Err(failure(checked.failures));
        }
        let is_serious = |located: &Located| located.finding.rule.severity > Severity::Info;
        Ok(if checked.findings.iter().any(is_serious) { Outcome::Findings } else { Outcome::Clean })
    }

    /// Infos are counted only, unless they are asked for: a CRD with copies of core types has dozens.
    fn table(&self, checked: &Checked, global: &Global, out: &mut dyn Write) -> io::Result<()> {
        let least = self.severity.map_or(Severity::Warning, Severity::from);
        let mut table = Table::new(
            ["SEVERITY", "CODE", "CRD", "VERSION", "PATH", "MESSAGE"].map(|head| (head, Align::Left)),
        );
        let (shown, hidden): (Vec<_>, Vec<_>) =
            checked.findings.iter().partition(|located| located.finding.rule.severity >= least);
        for Located { crd, finding, .. } in &shown {
            let Finding { rule, version, message, .. } = finding;
            table.row([
                Cell::new(rule.severity.as_str(), tone(rule.severity)),
                rule.code.into(),
                crd.into(),
                version.into(),
                finding.place().into(),
                message.into(),
            ]);
        }
        if !table.is_empty() {
            table.write(out, &global.style())?;
            writeln!(out)?;
        }
        let count = |severity| {
            shown.iter().filter(|located| located.finding.rule.severity == severity).count() as u64
        };
        write!(out, "{}: ", counted(checked.crds, "CRD"))?;
        match (count(Severity::Error), count(Severity::Warning), count(Severity::Info)) {
            (0, 0, 0) => write!(out, "nothing found")?,
            (errors, warnings, infos) => {
                let parts = [(errors, "error"), (warnings, "warning"), (infos, "info")];
                let parts: Vec<_> =
                    parts.into_iter().filter(|(n, _)| *n > 0).map(|(n, what)| counted(n, what)).collect();
                write!(out, "{}", parts.join(", "))?;
            }
        }
        if hidden.is_empty() {
            writeln!(out)
        } else {
            writeln!(out, "; {} not shown (--severity info)", counted(hidden.len() as u64, "info"))
        }
    }
}

/// Checks the CRDs in files; whatever else they hold is passed over.
fn files(checked: &mut Checked, paths: &[PathBuf]) {
    for path in paths {
        let (mut crds, mut others) = (0, BTreeSet::new());
        source::each(std::slice::from_ref(path), &mut io::stdin().lock(), &mut |document| {
            match document {
                Ok(document) if document.is_crd() => {
                    crds += 1;
                    // Its version is asked for here, so that an old CRD is not taken for a malformed one.
                    match document.crd().err().filter(|error| !matches!(error.reason, source::Reason::Crd(_)))
                    {
                        None => checked.crd(&document.json, Some(document.origin)),
                        Some(error) => checked.failures.push(error.to_string()),
                    }
                }
                Ok(document) => {
                    others.insert(document.what());
                }
                Err(error) => {
                    crds += 1;
                    checked.failures.push(error.to_string());
                }
            }
            ControlFlow::Continue(())
        });
        if crds == 0 {
            let none = none_of("CustomResourceDefinition", std::slice::from_ref(path), others.pop_first());
            checked.failures.push(none);
        }
    }
}

/// Checks the CRDs of the cluster.
fn live(checked: &mut Checked, global: &Global) -> Result<()> {
    asynchronous()?.block_on(async {
        let cluster = Cluster::connect(&global.target()).await?;
        each(&cluster, &crds(), &mut |crd| checked.crd(crd.json(), None)).await
    })
}

/// The CRDs before, by name.
fn old(paths: &[PathBuf]) -> Result<BTreeMap<String, Json>> {
    let documents = source::documents(paths, &mut io::stdin().lock()).context("--old")?;
    let other = documents.first().map(source::Document::what);
    let crds = documents.into_iter().filter(source::Document::is_crd);
    let crds: BTreeMap<_, _> = crds.map(|document| (name_of(&document.json), document.json)).collect();
    if crds.is_empty() && !paths.is_empty() {
        bail!(none_of("CustomResourceDefinition", paths, other));
    }
    Ok(crds)
}

fn name_of(crd: &Json) -> String {
    crd["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

impl Checked {
    fn crd(&mut self, json: &Json, origin: Option<Origin>) {
        self.crds += 1;
        let crd = name_of(json);
        // A server has let through what it gave out: that is judged as an update that changes nothing.
        let itself = json["metadata"]["uid"].is_string().then_some(json);
        let refusals = lint::refusals(json, self.old.get(&crd).or(itself), &self.releases);
        match lint::lint(json) {
            Ok(findings) => {
                self.findings.extend(findings.into_iter().chain(refusals).map(|finding| Located {
                    origin: origin.clone(),
                    line: None,
                    crd: crd.clone(),
                    finding,
                }))
            }
            Err(error) => {
                let place = origin.map_or(crd, |origin| origin.to_string());
                self.failures.push(format!("{place}: CustomResourceDefinition: {error}"));
            }
        }
    }
}

fn document(checked: &Checked) -> Document<'_> {
    let findings = checked.findings.iter().map(|Located { origin, crd, finding, .. }| Entry {
        code: finding.rule.code,
        rule: finding.rule.name,
        severity: finding.rule.severity.as_str(),
        crd,
        version: &finding.version,
        path: finding.place(),
        message: &finding.message,
        refusal: finding.refusal.as_ref().map(|refusal| Refused {
            kind: refusal.kind.map(Kind::as_str),
            detail: &refusal.detail,
            releases: refusal.releases.iter().map(Release::to_string).collect(),
        }),
        file: origin.as_ref().map(|origin| &*origin.file),
        document: origin.as_ref().map(|origin| origin.document),
    });
    Document { findings: findings.collect() }
}

/// Commands of the workflow log: <https://docs.github.com/actions/reference/workflow-commands-for-github-actions>.
fn github(checked: &Checked, out: &mut dyn Write) -> io::Result<()> {
    let escaped = |text: &str| text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    let property = |text: &str| escaped(text).replace(':', "%3A").replace(',', "%2C");
    for Located { origin, crd, line, finding } in &checked.findings {
        let Finding { rule, version, message, .. } = finding;
        let command = match rule.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "notice",
        };
        write!(out, "::{command} ")?;
        if let Some(origin) = origin {
            write!(out, "file={},", property(&origin.file))?;
        }
        if let Some(line) = line {
            write!(out, "line={line},")?;
        }
        let title = property(&format!("{} {}", rule.code, rule.name));
        let place = escaped(&format!("{crd} {version} {}: {message}", finding.place()));
        writeln!(out, "title={title}::{place}")?;
    }
    Ok(())
}

fn explain(code: &str, out: &mut dyn Write) -> Result<()> {
    if code == "all" {
        let mut table = Table::new(["CODE", "NAME", "SEVERITY", "FINDS"].map(|head| (head, Align::Left)));
        for rule in RULES {
            table.row([
                rule.code.into(),
                rule.name.into(),
                rule.severity.as_str().into(),
                rule.summary.into(),
            ]);
        }
        return Ok(table.write(out, &report::Style::default())?);
    }
    let Rule { code, name, severity, summary, help, .. } = rule(code).map_err(anyhow::Error::msg)?;
    Ok(writeln!(out, "{code} {name} ({severity}): {summary}\n\n{help}")?)
}

fn rule(code: &str) -> Result<&'static Rule, String> {
    lint::rule(code).ok_or_else(|| format!("no rule is called {code}; see `etch lint --explain all`"))
}

fn release(text: String) -> Result<Release, String> {
    let minor = text.strip_prefix("1.").and_then(|minor| minor.parse().ok());
    minor.and_then(Release::of_minor).ok_or_else(|| format!("the answers of {text} are not known"))
}

fn tone(severity: Severity) -> Tone {
    match severity {
        Severity::Error => Tone::Bad,
        Severity::Warning => Tone::Warning,
        Severity::Info => Tone::Faint,
    }
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
        assert_eq!(RELEASES.map(|text| release(text.to_owned())), Release::ALL.map(Ok));
    }
}
