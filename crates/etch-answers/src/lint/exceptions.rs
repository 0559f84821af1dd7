//! Findings that the user accepts, from a file.
//! Each needs a reason.

use kube_structural_schema::json::Json;
use kube_structural_schema::mismatch::without_values;
use serde::Deserialize;

use super::checked::Located;

/// The file: a list of exceptions.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    exceptions: Vec<Exception>,
}

/// One exception.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exception {
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

/// Why a document contains no exceptions that count.
#[derive(Debug, thiserror::Error)]
pub enum ExceptionsError {
    /// It is none of exceptions.
    #[error("{}", without_values(.0))]
    Malformed(serde_json::Error),
    /// An exception from no rule.
    #[error("exceptions[{0}].code is no rule; see `etch lint --explain all`")]
    NoRule(usize),
    /// An exception without a reason.
    #[error("exceptions[{0}].reason is empty; say why the finding is accepted")]
    NoReason(usize),
}

/// The exceptions in a document.
///
/// # Errors
/// See [`ExceptionsError`].
pub fn read(document: &Json) -> Result<Vec<Exception>, ExceptionsError> {
    let File { exceptions } = File::deserialize(&**document).map_err(ExceptionsError::Malformed)?;
    for (index, exception) in exceptions.iter().enumerate() {
        if etch_lint::rule(&exception.code).is_none() {
            return Err(ExceptionsError::NoRule(index));
        }
        if exception.reason.trim().is_empty() {
            return Err(ExceptionsError::NoReason(index));
        }
    }
    Ok(exceptions)
}

/// Marks the findings that are accepted. What remains are the exceptions that no finding needs.
pub fn apply(exceptions: &[Exception], findings: &mut [Located]) -> Vec<String> {
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
