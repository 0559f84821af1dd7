//! The list that the checks write to.

use std::fmt::Display;

use go_text::strconv::quote;
use kube_structural_schema::finding::{Finding, Kind};

/// Findings, in the server's order.
#[derive(Debug, Default)]
pub(super) struct Report(pub(super) Vec<Finding>);

impl Report {
    pub(super) fn add(&mut self, kind: Kind, at: impl Display, detail: impl Into<String>) {
        self.0.push(Finding::new(kind, at.to_string(), detail));
    }

    pub(super) fn required(&mut self, at: impl Display, detail: impl Into<String>) {
        self.add(Kind::Required, at, detail);
    }

    pub(super) fn invalid(&mut self, at: impl Display, detail: impl Into<String>) {
        self.add(Kind::Invalid, at, detail);
    }

    pub(super) fn forbidden(&mut self, at: impl Display, detail: impl Into<String>) {
        self.add(Kind::Forbidden, at, detail);
    }

    /// A value that is none of those listed.
    pub(super) fn not_supported(&mut self, at: impl Display, supported: &[&str]) {
        let supported: Vec<String> = supported.iter().map(|value| quote(value)).collect();
        self.add(Kind::NotSupported, at, format!("supported values: {}", supported.join(", ")));
    }

    /// All that is wrong with a name, as one finding.
    pub(super) fn malformed(&mut self, at: impl Display, before: &str, problems: &[String]) {
        if !problems.is_empty() {
            self.invalid(at, format!("{before}{}", problems.join(",")));
        }
    }
}
