//! What a rule is, and what it finds.

use std::fmt;

use super::refusal::Refusal;
use super::subject::Subject;
use crate::go_types::Spot;
use kube_structural_schema::path::Path;

/// One rule.
#[derive(Debug)]
pub struct Rule {
    /// `ETCH001`
    pub code: &'static str,
    /// `non-structural`
    pub name: &'static str,
    /// How bad it is to break it.
    pub severity: Severity,
    /// What is wrong where it is broken, in one line.
    pub summary: &'static str,
    /// Why that matters and what to do, in some lines.
    pub help: &'static str,
    /// `None` for rules that are checked elsewhere: those about Go, EmbeddedSchemas and upgrades, and about
    /// what a server answers or publishes.
    pub(super) check: Option<fn(&Subject<'_>, &mut Report<'_>)>,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Nothing fails; it could be written better.
    Info,
    /// It is accepted and does something that its author may not expect.
    Warning,
    /// The server refuses the CRD, or every object that the default reaches.
    Error,
}

/// A rule that is broken somewhere.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The rule.
    pub rule: &'static Rule,
    /// The version of the CRD; empty where it is about the CRD as a whole.
    pub version: String,
    /// The version's place in the CRD's list; `None` if it is about the CRD as a whole.
    pub version_index: Option<usize>,
    /// The place in the schema.
    pub path: Path,
    /// What is wrong there. It may quote the schema.
    pub message: String,
    /// The API server's error that it stands for, if it is one.
    pub refusal: Option<Refusal>,
    /// The place in Go that it is about, if it is about one.
    pub go: Option<GoPlace>,
}

/// A field or a type in Go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoPlace {
    /// The import path of the package.
    pub package: String,
    /// `Type` or `Type.Field`.
    pub name: String,
    /// Where it stands.
    pub at: Spot,
    /// The CRD that it is compared with; empty if there is none.
    pub crd: String,
}

impl Finding {
    /// Something about a place in the schema of a version; empty where it is about the CRD as a whole.
    pub(super) fn new(rule: &'static Rule, version: &str, path: Path, message: impl Into<String>) -> Self {
        let (version, message) = (version.to_owned(), message.into());
        Self { rule, version, version_index: None, path, message, refusal: None, go: None }
    }

    /// Whether it is an error of the API server's validation, or of its decoding.
    pub fn is_of_server(&self) -> bool {
        !self.rule.code.starts_with("ETCH4")
    }

    /// The place as it is shown: in the schema or in Go, or as the server spells it.
    pub fn place(&self) -> String {
        match (&self.refusal, &self.go) {
            (Some(refusal), _) => refusal.field.clone(),
            (None, Some(go)) => go.name.clone(),
            (None, None) => self.path.to_string(),
        }
    }
}

/// Findings in the order of the versions, then of places, then of codes, each once.
pub(super) fn in_order(mut findings: Vec<Finding>) -> Vec<Finding> {
    findings.sort_by_cached_key(|finding| {
        (finding.version_index, finding.path.to_string(), finding.rule.code, finding.message.clone())
    });
    findings.dedup_by(|a, b| {
        a.rule.code == b.rule.code && a.version == b.version && a.path == b.path && a.message == b.message
    });
    findings
}

/// Collects the findings of one rule.
pub(super) struct Report<'a> {
    pub(super) rule: &'static Rule,
    pub(super) findings: &'a mut Vec<Finding>,
}

impl Report<'_> {
    pub(super) fn add(&mut self, version: &str, path: Path, message: impl Into<String>) {
        self.findings.push(Finding::new(self.rule, version, path, message));
    }
}

impl Severity {
    /// `error`, `warning` or `info`
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
