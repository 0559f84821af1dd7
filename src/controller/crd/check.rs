//! What is wrong with a CRD, before any of its objects is looked at.
//! It must not show a default's value, only its place.

use crate::domain::crd::Crd;
use crate::domain::json::Json;
use crate::domain::schema::rules::crd::{self, Verdict};

/// What is wrong with a CRD.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::controller) struct Judged {
    /// Violations of the structural schema rules, in the server's words.
    pub(in crate::controller) non_structural: Vec<String>,
    /// Places of defaults that are themselves invalid.
    pub(in crate::controller) invalid_defaults: Vec<String>,
}

/// Reads a CRD and judges it. There is none where a schema cannot be read: what is wrong with it is in the judgement.
pub(in crate::controller) fn judge(document: &Json) -> (Option<Crd>, Judged) {
    let verdict = crd::judge(&document["spec"]);
    let non_structural = match &verdict {
        Verdict::Structural => Vec::new(),
        Verdict::Violations(violations) => {
            violations.iter().map(|violation| violation.text.clone()).collect()
        }
        Verdict::Unreadable { .. } => verdict.message().into_iter().collect(),
    };
    match Crd::read(document) {
        Ok(crd) => {
            let invalid_defaults = crd.invalid_defaults().iter().map(ToString::to_string).collect();
            (Some(crd), Judged { non_structural, invalid_defaults })
        }
        Err(error) => {
            let non_structural = match non_structural.is_empty() {
                true => vec![error.to_string()],
                false => non_structural,
            };
            (None, Judged { non_structural, ..Judged::default() })
        }
    }
}
