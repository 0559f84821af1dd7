//! ETCH205: paths below an extension that its schema does not have.

use super::super::rule::{Finding, Rule, Severity};
use super::at::at;
use etch_admission::Declaration;
use etch_admission::spec::Scope;
use kube_structural_schema::path::{Path, Step};
use kube_structural_schema::schema::{Additional, Schema};

pub(super) const RULE: Rule = Rule {
    code: "ETCH205",
    name: "embedded-path-unknown",
    severity: Severity::Warning,
    summary: "a path of a default, rule or reference is not in the schema, or a field of it not in the CRD",
    help: "\
Expressions are checked against the schema of the extension. The paths of `defaults`, `forEach` and
`references` are not, because a schema need not describe everything. If it describes an object and not the
field in it, the name is usually mistyped: the default is set where no client reads it, the rule never runs,
and the reference is never looked up.

A field of the schema that the CRD of a target does not keep at its path is lost: the API server drops it from
requests, and after Etch has set it by default.

Declare the field, or correct the path. `field` of a rule is not checked: it may name a field that is in no
schema.",
    check: None,
};

/// Where a path leads to in a schema.
pub(super) enum Reached<'s> {
    /// A schema.
    Schema(&'s Schema),
    /// Where anything may be.
    Anything,
    /// Nowhere; with the last place that is known.
    Nothing(Path),
}

/// The steps of a path with `[*]`; `None` if it cannot be read.
pub(super) fn steps(text: &str) -> Option<Vec<Step>> {
    Path::with_stars(text).ok().map(|path| path.steps().to_vec())
}

pub(super) fn reach<'s>(schema: &'s Schema, steps: &[Step]) -> Reached<'s> {
    let mut schema = schema;
    for (index, step) in steps.iter().enumerate() {
        let next = match step {
            Step::Field(name) | Step::Key(name) => schema.child(name),
            Step::Index(_) | Step::Items | Step::Values => {
                schema.items.as_deref().or_else(|| schema.additional_schema())
            }
        };
        match next {
            Some(next) => schema = next,
            None if is_open(schema) => return Reached::Anything,
            None => return Reached::Nothing(Path::from(steps[..index].to_vec())),
        }
    }
    Reached::Schema(schema)
}

/// Whether anything may be below a place.
fn is_open(schema: &Schema) -> bool {
    let says_nothing = schema.properties.iter().next().is_none() && schema.items.is_none();
    schema.preserve_unknown_fields
        || matches!(schema.additional, Some(Additional::Bool(_)))
        || says_nothing && schema.kind.as_str().is_empty()
}

pub(super) fn check(declared: &Declaration, found: &mut Vec<Finding>) {
    let document = declared.schema.as_ref().map(|schema| &schema.open_api_v3_schema);
    let Some(schema) = document.and_then(|document| Schema::parse(document).ok()) else { return };
    let mut check = |field: String, path: &str| {
        let Some(steps) = steps(path) else { return };
        if let Reached::Nothing(known) = reach(&schema, &steps) {
            let below = if known.steps().is_empty() { "the extension".to_owned() } else { known.to_string() };
            found.push(at(&RULE, field, format!("the schema has no such field below {below}")));
        }
    };
    let in_extension = |scope: Option<Scope>| scope.unwrap_or_default() == Scope::Extension;
    for (index, default) in declared.defaults.iter().enumerate() {
        if in_extension(default.scope) {
            check(format!("spec.defaults[{index}].path"), &default.path);
        }
    }
    for (index, rule) in declared.rules.iter().enumerate() {
        if let Some(path) = rule.for_each.as_deref().filter(|_| in_extension(rule.scope)) {
            check(format!("spec.rules[{index}].forEach"), path);
        }
    }
    for (index, reference) in declared.references.iter().enumerate() {
        check(format!("spec.references[{index}].path"), &reference.path);
    }
}
