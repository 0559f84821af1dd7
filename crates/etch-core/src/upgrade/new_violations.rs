//! Violations in the CRD itself that an upgrade brings and the API server nevertheless accepts.

use crate::crd::Crd;
use kube_structural_schema::json::Json;
use kube_structural_schema::schema::rules::crd::{Verdict, judge};

/// What is wrong with a CRD after an upgrade, and was not before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewViolations {
    /// Violations of the structural schema rules, in the server's words.
    pub non_structural: Vec<String>,
    /// Places of defaults that are themselves invalid.
    pub invalid_defaults: Vec<String>,
}

impl NewViolations {
    /// Whether there are none.
    pub fn is_none(&self) -> bool {
        self.non_structural.is_empty() && self.invalid_defaults.is_empty()
    }
}

/// Compares two states of a CRD, each as a document and as it was read; `None` if it cannot be read.
pub fn new_violations(old: (&Json, Option<&Crd>), new: (&Json, Option<&Crd>)) -> NewViolations {
    let (before, after) = (violations(old.0), violations(new.0));
    let places = |crd: Option<&Crd>| -> Vec<String> {
        crd.into_iter().flat_map(Crd::invalid_defaults).map(ToString::to_string).collect()
    };
    let (known, found) = (places(old.1), places(new.1));
    NewViolations {
        non_structural: after.into_iter().filter(|violation| !before.contains(violation)).collect(),
        invalid_defaults: found.into_iter().filter(|place| !known.contains(place)).collect(),
    }
}

fn violations(crd: &Json) -> Vec<String> {
    let verdict = judge(&crd["spec"]);
    match &verdict {
        Verdict::Structural => Vec::new(),
        Verdict::Violations(violations) => {
            violations.iter().map(|violation| violation.text.clone()).collect()
        }
        Verdict::Unreadable { .. } => verdict.message().into_iter().collect(),
    }
}
