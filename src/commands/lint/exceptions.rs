//! Findings that the user accepts, from a file.
//! Each needs a reason.

use std::io;
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail};
use etch::source;
use kube_structural_schema::mismatch::without_values;
use serde::Deserialize;

use super::check::Located;

/// The file: a list of exceptions.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    exceptions: Vec<Exception>,
}

/// One exception.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Exception {
    /// The code or the name of the rule.
    code: String,
    /// The place, as the finding shows it; empty for a finding about the CRD as a whole.
    path: String,
    /// The CRD; any if left out.
    crd: Option<String>,
    /// The version; any if left out.
    version: Option<String>,
    /// Why it is accepted.
    reason: String,
}

/// The exceptions in files.
pub(super) fn read(paths: &[PathBuf]) -> Result<Vec<Exception>> {
    let mut all = Vec::new();
    for document in source::documents(paths, &mut io::stdin().lock()).context("--exceptions")? {
        let origin = document.origin;
        let File { exceptions } = File::deserialize(&*document.json)
            .map_err(|error| anyhow!("--exceptions: {origin}: {}", without_values(&error)))?;
        for (index, exception) in exceptions.iter().enumerate() {
            if etch_lint::rule(&exception.code).is_none() {
                bail!(
                    "--exceptions: {origin}: exceptions[{index}].code is no rule; see \
                     `etch lint --explain all`"
                );
            }
            if exception.reason.trim().is_empty() {
                bail!(
                    "--exceptions: {origin}: exceptions[{index}].reason is empty; say why the finding is \
                     accepted"
                );
            }
        }
        all.extend(exceptions);
    }
    Ok(all)
}

/// Marks the findings that are accepted. What remains are the exceptions that no finding needs.
pub(super) fn apply(exceptions: &[Exception], findings: &mut [Located]) -> Vec<String> {
    let mut unused = Vec::new();
    for exception in exceptions {
        let mut is_used = false;
        for located in findings.iter_mut().filter(|located| exception.is_about(located)) {
            located.accepted = Some(exception.reason.clone());
            is_used = true;
        }
        if !is_used {
            let Exception { code, path, crd, version, reason: _ } = exception;
            let parts = [crd.as_deref(), version.as_deref(), Some(path.as_str())];
            let place: Vec<_> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
            unused.push(format!("{code} {}", place.join(" ")).trim_end().to_owned());
        }
    }
    unused
}

impl Exception {
    fn is_about(&self, Located { crd, finding, .. }: &Located) -> bool {
        let is_rule = etch_lint::rule(&self.code).is_some_and(|rule| rule.code == finding.rule.code);
        let is_there = self.path == finding.place()
            || self.path == finding.path.to_string()
            || self.path.is_empty() && finding.path.is_root();
        is_rule
            && is_there
            && self.crd.as_ref().is_none_or(|name| name == crd)
            && self.version.as_ref().is_none_or(|version| *version == finding.version)
    }
}
