//! One schema of a CRD, from its root.
//!
//! Source: apiextensions-apiserver `pkg/apis/apiextensions/validation/validation.go`,
//! `validateCustomResourceDefinitionValidation`.

use super::budget::Budget;
use super::document::Validation;
use super::keywords;
use super::options::Options;
use super::report::Report;
use super::scope::Scope;
use super::standing::Standing;
use super::walk::Walk;
use crate::defaults;
use crate::field::Field;
use kube_structural_schema::schema::rules::violations;
use kube_structural_schema::schema::{ParseError, Schema};

/// Checks a schema; `at` is the place of what holds `openAPIV3Schema`.
pub(super) fn check(
    validation: Option<&Validation<'_>>,
    has_status: bool,
    options: &Options<'_>,
    at: &str,
    report: &mut Report,
) {
    let Some(props) = validation.and_then(|validation| validation.schema.as_deref()) else { return };
    let at = format!("{at}.openAPIV3Schema");
    let before = report.0.len();
    if has_status {
        keywords::check_root(props, &at, report);
    }
    if props.nullable {
        report.forbidden(format!("{at}.nullable"), "nullable cannot be true at the root");
    }
    let mut unreadable = None;
    let mut structure = None;
    if options.require_structural {
        match Schema::parse(props.document.0) {
            Ok(schema) => structure = Some(schema),
            Err(ParseError::Unsupported { detail, .. }) => unreadable = Some(detail),
            Err(error) => unreadable = Some(error.to_string()),
        }
    }
    let structure = structure.filter(|schema| is_sound(schema, options, &at, report));
    let scope = structure.as_ref().map(|schema| Scope::root(schema, options.minor));
    let mut walk =
        Walk { options, schema: Report::default(), rules: Report::default(), budget: Budget::default() };
    let standing = Standing { scope: scope.as_ref(), ..Standing::default() };
    walk.node(props, true, &standing, &mut Field::new(&at));
    report.0.append(&mut walk.schema.0);
    report.0.append(&mut walk.rules.0);
    // The findings of the walk are more precise.
    if report.0.len() == before
        && let Some(detail) = unreadable
    {
        report.invalid(&at, detail);
    }
    walk.budget.check(&at, report);
}

/// Whether a schema is structural and its defaults are valid.
fn is_sound(schema: &Schema, options: &Options<'_>, at: &str, report: &mut Report) -> bool {
    let before = report.0.len();
    report.0.extend(violations(schema, at).into_iter().map(|violation| violation.finding));
    if report.0.len() == before {
        report.0.extend(defaults::check_all(schema, at, options.require_pruned_defaults).by_server);
    }
    report.0.len() == before
}
