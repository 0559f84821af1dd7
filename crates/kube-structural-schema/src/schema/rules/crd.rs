//! What the API server reports of a whole CRD: all versions, and `preserveUnknownFields`.
//!
//! Source: apiextensions-apiserver `pkg/controller/nonstructuralschema`.

use serde_json::Value;

use super::violation::Report;
use super::{Violation, violations};
use crate::schema::{ParseError, Place, Schema};

/// The server's judgement of a CRD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All schemas are structural: there is no `NonStructuralSchema` condition.
    Structural,
    /// The condition is `True` for these reasons, in the order of its message.
    Violations(Vec<Violation>),
    /// The schema of a version cannot be read: the condition is `Unknown`.
    Unreadable {
        /// The name of the version.
        version: String,
        /// What is wrong with its schema.
        error: ParseError,
    },
}

impl Verdict {
    /// What is wrong, each in the server's words.
    pub fn texts(&self) -> Vec<String> {
        match self {
            Self::Structural => Vec::new(),
            Self::Violations(violations) => {
                violations.iter().map(|violation| violation.text.clone()).collect()
            }
            Self::Unreadable { .. } => self.message().into_iter().collect(),
        }
    }

    /// The message of the server's condition; `None` if it sets none.
    pub fn message(&self) -> Option<String> {
        match self {
            Self::Structural => None,
            Self::Violations(violations) => Some(match violations.as_slice() {
                [only] => only.text.clone(),
                _ => format!("[{}]", self.texts().join(", ")),
            }),
            Self::Unreadable { version, error } => {
                let detail = match error {
                    ParseError::Unsupported { detail, .. } => detail.clone(),
                    ParseError::Malformed { .. } => error.to_string(),
                };
                Some(format!("failed to check validation schema for version {version}: {detail}"))
            }
        }
    }
}

/// Judges the `spec` of a CRD, as JSON of `apiextensions.k8s.io/v1`.
pub fn judge(spec: &Value) -> Verdict {
    let mut found = Vec::new();
    if spec["preserveUnknownFields"] == true {
        let mut report = Report::default();
        report.invalid(&Place::root("spec.preserveUnknownFields"), "true", "must be false");
        found.extend(report.into_sorted());
    }
    let versions = spec["versions"].as_array().map_or(&[][..], Vec::as_slice);
    for (index, version) in versions.iter().enumerate() {
        let document = &version["schema"]["openAPIV3Schema"];
        if document.is_null() {
            continue;
        }
        match Schema::parse(document) {
            Ok(schema) => {
                found.extend(violations(&schema, &format!("spec.versions[{index}].schema.openAPIV3Schema")));
            }
            Err(error) => {
                let version = version["name"].as_str().unwrap_or_default().to_owned();
                return Verdict::Unreadable { version, error };
            }
        }
    }
    // The server reports the same thing once.
    found.dedup();
    if found.is_empty() { Verdict::Structural } else { Verdict::Violations(found) }
}
