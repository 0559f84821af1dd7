//! Rules about the defaults of a CRD, or of the Go types that it is made from: what a server refuses, what
//! surprises, and what is a matter of style.

mod breaks_parent_rule;
mod broken_clause;
mod clause_default;
mod compatibility;
mod embedded;
mod go;
pub mod go_types;
mod hidden_by_null;
mod immutable;
mod invalid;
mod kubectl;
mod list_map_key;
mod map_value;
mod non_structural;
mod null_default;
mod null_only;
mod nullable;
mod openapi;
mod openapi_v2;
mod optional_list_map_key;
mod parent_disagrees;
pub mod published;
mod refusal;
mod refused;
mod required;
mod required_object;
mod rule;
mod site;
mod spelling;
mod subject;
mod unpruned;
mod unpublished;
mod unreachable;
pub mod upgrade_plan;
mod version_or_image;
mod versions_disagree;

use etch_core::crd::CrdError;
use kube_crd_validation::crd::Release;
use kube_structural_schema::json::Json;
use kube_structural_schema::schema::DEEPEST;
use rule::{Report, in_order};
use subject::Subject;

pub use compatibility::{COMPATIBILITY_RULES, compatibility, crd_removed};
pub use embedded::EMBEDDED_RULES;
pub use go::{GO_RULES, lint_go};
pub use kubectl::{KUBECTL_RULES, as_applied, duplicate_key};
pub use openapi::{OPENAPI_RULES, TypeFinding, lint_openapi};
pub use refusal::{Part, Refusal};
pub use refused::refusals;
pub use rule::{Finding, GoPlace, Rule, Severity};
pub use unpublished::{PublishedFindings, lint_published};
pub use version_or_image::{floats, suggest_follow};

/// The rules about CRDs, in the order of their codes. A code is never given to another rule.
pub const RULES: [&Rule; 22] = [
    &non_structural::RULE,
    &invalid::RULE,
    &unpruned::RULE,
    &map_value::RULE,
    &unreachable::RULE,
    &parent_disagrees::RULE,
    &required::RULE,
    &list_map_key::RULE,
    &versions_disagree::RULE,
    &nullable::RULE,
    &clause_default::RULE,
    &version_or_image::RULE,
    &breaks_parent_rule::RULE,
    &immutable::RULE,
    &refused::RULE,
    &null_default::RULE,
    &optional_list_map_key::RULE,
    &null_only::RULE,
    &hidden_by_null::RULE,
    &required_object::RULE,
    &unpublished::RULE,
    &openapi_v2::RULE,
];

/// Why a CRD cannot be checked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LintError {
    /// It is not a CRD of `apiextensions.k8s.io/v1`.
    #[error(transparent)]
    Crd(#[from] CrdError),
    /// A schema far beyond any real one. Findings name places, and the places of such a schema would fill the
    /// memory.
    #[error("the schema of version {version} is nested more than {DEEPEST} levels deep")]
    TooDeep {
        /// The version.
        version: String,
    },
}

/// Applies every rule to a CRD; the server's errors about the CRD as a whole are in [`refusals`]. Findings
/// are in the order of the versions, then of places, then of codes.
///
/// # Errors
/// See [`LintError`]. A schema that cannot be read is a finding.
pub fn lint(crd: &Json) -> Result<Vec<Finding>, LintError> {
    let subject = Subject::read(crd)?;
    if let Some(version) = subject.versions.iter().find(|version| version.schema.depth() > DEEPEST) {
        return Err(LintError::TooDeep { version: version.name.clone() });
    }
    let mut findings = Vec::new();
    for rule in RULES {
        if let Some(check) = rule.check {
            check(&subject, &mut Report { rule, findings: &mut findings });
        }
    }
    for finding in &mut findings {
        finding.version_index = subject.version_index(&finding.version);
    }
    Ok(in_order(findings))
}

/// Applies every rule to an EmbeddedSchema, in view of the CRDs that are known: a target of another resource
/// is taken as it is. Findings are in the order of their places in the document.
pub fn lint_embedded(document: &Json, crds: &[Json]) -> Vec<Finding> {
    // A schema that cannot be judged as a CRD's was found not to be servable. No API server publishes the
    // schema of an extension.
    let is_about_publishing = |finding: &Finding| finding.rule.code == openapi_v2::RULE.code;
    let of_crd = |crd: &Json| {
        let mut by_rules = lint(crd).unwrap_or_default();
        by_rules.retain(|finding| !is_about_publishing(finding));
        (by_rules, refusals(crd, None, &Release::ALL))
    };
    embedded::check(document, crds, &of_crd)
}

/// The rule with a code or a name, in whatever case.
pub fn rule(code_or_name: &str) -> Option<&'static Rule> {
    let is_it = |text: &str| text.eq_ignore_ascii_case(code_or_name);
    rules().find(|rule| is_it(rule.code) || is_it(rule.name))
}

/// All rules, in the order of their codes.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    let of_crds = RULES.into_iter().chain(GO_RULES).chain(EMBEDDED_RULES);
    of_crds.chain(COMPATIBILITY_RULES).chain(KUBECTL_RULES)
}

#[cfg(test)]
mod tests;
