//! ETCH206: defaults that break a rule or the schema of the extension that they are set in.

use super::super::rule::{Finding, Rule, Severity};
use super::at::at;
use etch_admission::{Compiled, Declaration, broken_by_defaults};

pub(super) const RULE: Rule = Rule {
    code: "ETCH206",
    name: "embedded-default-breaks",
    severity: Severity::Warning,
    summary: "the defaults of an empty extension break a rule or the schema",
    help: "\
The rule sets the defaults in an empty extension, with the constants and fallbacks of facts. If the result is
invalid, and the extension without the defaults is not, the defaults are the cause: users who omit the field
are refused for a value that no user wrote. The rule does not set or check defaults that need a fact of the
cluster, or another field.

Correct the default, or the rule.",
    check: None,
};

pub(super) fn check(declared: &Declaration, found: &mut Vec<Finding>) {
    // The declaration applies to any object here: an object that meets `when` cannot be made up.
    let always = Declaration { when: None, required: None, ..declared.clone() };
    let Ok(compiled) = Compiled::new(&always) else { return };
    for broken in broken_by_defaults(&compiled) {
        let field = match broken.default {
            Some(index) => format!("spec.defaults[{index}]"),
            None => "spec.schema.openAPIV3Schema".to_owned(),
        };
        let message = format!("{} is set by default and refused: {}", broken.field, broken.requirement);
        found.push(at(&RULE, field, message));
    }
}
