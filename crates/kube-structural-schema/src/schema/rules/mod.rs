//! The structural rules: what the API server reports as `NonStructuralSchema`, with its paths and its words.
//!
//! Source: apiextensions-apiserver `pkg/apiserver/schema/{validation,complete}.go`, with the options of a
//! CRD.

mod completeness;
pub mod crd;
mod level;
mod metadata;
mod nested;
mod structure;
mod violation;

use super::{Place, Schema};
use crate::finding::Finding;

use violation::Report;
pub use violation::Violation;

/// All violations of one schema, in the server's order: by their text.
///
/// `root` is what the places start with, such as `spec.versions[0].schema.openAPIV3Schema`.
pub fn violations(schema: &Schema, root: &str) -> Vec<Violation> {
    let root = Place::root(root);
    let mut report = Report::default();
    structure::check(schema, level::Level::Root, &root, &mut report);
    completeness::check(schema, &root, &mut report);
    report.into_sorted()
}

/// All violations of one schema as plain findings below `openAPIV3Schema`.
pub fn structural_errors(schema: &Schema) -> Vec<Finding> {
    violations(schema, "openAPIV3Schema").into_iter().map(|violation| violation.finding).collect()
}

#[cfg(test)]
mod tests;
