//! ETCH201 and ETCH202: what keeps a declaration from being served.

use serde_json::Value;

use super::super::rule::{Finding, Rule, Severity};
use super::at::at;
use super::targets::TWICE;
use etch_admission::{Declaration, Problem, unknown_fields};

pub(super) const MALFORMED: Rule = Rule {
    code: "ETCH201",
    name: "embedded-malformed",
    severity: Severity::Error,
    summary: "an EmbeddedSchema cannot be served",
    help: "\
A field of the EmbeddedSchema is unknown or malformed: a path that cannot be parsed, a fact without a value, a
schema that is not structural or has an invalid default, a resource that no target has. The operator goes on
serving the last generation that it can serve, and reports Ready=False.

Correct the field that the finding names.",
    check: None,
};

pub(super) const EXPRESSION: Rule = Rule {
    code: "ETCH202",
    name: "embedded-expression",
    severity: Severity::Error,
    summary: "an expression of an EmbeddedSchema does not compile",
    help: "\
An expression uses a name that does not exist, mixes types, or is not CEL. The fields of `self` and `item` are
those of the schema, and `facts` has only the declared facts, so this rule finds a mistyped name before any
request.

The functions are those of CRD validation rules in Kubernetes 1.37. Etch does not serve such a generation.",
    check: None,
};

/// The fields that hold expressions.
const EXPRESSIONS: [&str; 7] = [
    ".rule",
    ".value",
    ".when",
    ".messageExpression",
    ".namespace",
    ".expression",
    ".x-kubernetes-validations",
];

/// What no generation of the operator can read.
pub(super) fn unreadable(problems: &[Problem], found: &mut Vec<Finding>) {
    found.extend(problems.iter().map(|Problem { field, problem }| at(&MALFORMED, field, problem)));
}

/// What is wrong with a declaration that can be read; what keeps it from being compiled is `broken`.
pub(super) fn check(
    spec: &Value,
    declared: &Declaration,
    broken: Option<&Vec<Problem>>,
    found: &mut Vec<Finding>,
) {
    let unknown = unknown_fields(spec, declared);
    for Problem { field, problem } in unknown.iter().chain(broken.into_iter().flatten()) {
        let is_expression =
            EXPRESSIONS.iter().any(|end| field.ends_with(end)) && !field.ends_with(".object.namespace");
        let target = field.strip_prefix("spec.targets[").and_then(|rest| rest.strip_suffix(']'));
        let is_target = target.is_some_and(|index| index.parse::<usize>().is_ok());
        let rule = match (is_expression, is_target) {
            (true, _) => &EXPRESSION,
            (_, true) => &TWICE,
            _ => &MALFORMED,
        };
        found.push(at(rule, field, problem));
    }
}
