//! `x-kubernetes-validations`: what they must contain, whether they compile, and what they may cost.
//!
//! Source: apiextensions-apiserver `pkg/apis/apiextensions/validation/validation.go`,
//! `ValidateCustomResourceDefinitionOpenAPISchema`.

use super::budget::{Budget, RULE_LIMIT, advice};
use super::json_path;
use super::options::Options;
use super::props::Props;
use super::report::Report;
use super::scope::{Scope, Undeclared};
use super::standing::Standing;
use crate::field::Field;
use kube_structural_schema::finding::Kind;
use kube_structural_schema::schema::{Rule, Schema};
use kube_validation_rules::{Decl, Judgement, Known, judge};

const KEYWORD: &str = "x-kubernetes-validations";
const REASONS: [&str; 4] =
    ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// Checks what a node's rules show without being compiled.
pub(super) fn check_texts(schema: &Props<'_>, at: &mut Field, report: &mut Report) {
    let mut structure: Option<Option<Schema>> = None;
    for (index, rule) in schema.rules.iter().enumerate() {
        let place = |name: &str| at.with(&format!("{KEYWORD}[{index}].{name}"));
        message(rule, &place, report);
        if !rule.message_expression.is_empty() && rule.message_expression.trim().is_empty() {
            report.required(place("messageExpression"), "messageExpression must be non-empty if specified");
        }
        if rule.reason.as_deref().is_some_and(|reason| !REASONS.contains(&reason)) {
            report.not_supported(place("reason"), &REASONS);
        }
        if rule.field_path.is_empty() {
            continue;
        }
        if rule.field_path.trim().is_empty() {
            report.invalid(place("fieldPath"), "must be non-empty if specified");
        }
        if has_line_break(&rule.field_path) {
            report.invalid(place("fieldPath"), "must not contain line breaks");
        }
        // A schema that cannot be read as a structure is refused elsewhere.
        let structure = structure.get_or_insert_with(|| Schema::parse(schema.document.0).ok());
        if let Some(structure) = structure
            && json_path::resolve(&rule.field_path, Some(structure), true).is_err()
        {
            report.invalid(place("fieldPath"), "must be a valid path");
        }
    }
}

fn message(rule: &Rule, place: &impl Fn(&str) -> String, report: &mut Report) {
    let (text, message) = (trimmed(&rule.rule), trimmed(&rule.message));
    if text.is_empty() {
        report.required(place("rule"), "rule is not specified");
    } else if !rule.message.is_empty() && message.is_empty() {
        report.invalid(place("message"), "must be non-empty if specified");
    } else if has_line_break(message) {
        report.invalid(place("message"), "must not contain line breaks");
    } else if has_line_break(text) && message.is_empty() {
        report.required(place("message"), "message must be specified if rule contains line breaks");
    }
}

fn trimmed(text: &str) -> &str {
    text.trim()
}

fn has_line_break(text: &str) -> bool {
    text.contains(['\n', '\r'])
}

/// Compiles and prices the rules of a node that is sound otherwise.
pub(super) fn check(
    schema: &Props<'_>,
    options: &Options<'_>,
    scope: &Scope<'_>,
    standing: &Standing<'_>,
    at: &mut Field,
    (report, budget): (&mut Report, &mut Budget),
) {
    if schema.rules.is_empty() {
        return;
    }
    let declaration = match scope.declaration() {
        Ok(declaration) => declaration,
        Err(Undeclared::Schema) => {
            let detail = "internal error: failed to construct type information for x-kubernetes-validations \
                rules: unable to convert structural schema to CEL declarations";
            return report.add(Kind::Internal, at.with(KEYWORD), detail);
        }
        Err(Undeclared::Element) => {
            let detail = "failed to convert to declType for CEL validation rules";
            return report.add(Kind::Internal, at.with(KEYWORD), detail);
        }
    };
    for (index, rule) in schema.rules.iter().enumerate() {
        let place = at.with(&format!("{KEYWORD}[{index}]"));
        let node = Node { at: declaration, scope, standing, options };
        check_rule(rule, &node, &place, report, budget);
    }
}

/// What the rules of a node have in common.
struct Node<'n> {
    at: Decl<'n>,
    scope: &'n Scope<'n>,
    standing: &'n Standing<'n>,
    options: &'n Options<'n>,
}

fn check_rule(rule: &Rule, node: &Node<'_>, place: &str, report: &mut Report, budget: &mut Budget) {
    let Node { at, scope, standing, options } = *node;
    let known = Known {
        rule: options.known_rules.contains(rule.rule.as_str()),
        message: options.known_messages.contains(rule.message_expression.as_str()),
    };
    let Judgement { error, uses_old, max_cost, message } = judge(rule, at, known, options.minor);
    let often = if error.is_some() { 0 } else { scope.cardinality.unwrap_or_else(|| at.max_cardinality()) };
    let cost = max_cost.saturating_mul(often);
    let rule_place = format!("{place}.rule");
    if options.limit_rules && cost > RULE_LIMIT {
        report.forbidden(&rule_place, advice("estimated rule cost", cost, RULE_LIMIT));
    }
    budget.spend(&rule_place, cost);
    if let Some(error) = error {
        report.invalid(&rule_place, error);
    }
    let message_place = format!("{place}.messageExpression");
    match message {
        Some(Err(error)) => report.invalid(message_place, error),
        Some(Ok(cost)) => {
            if options.limit_rules && cost > RULE_LIMIT {
                report
                    .forbidden(&message_place, advice("estimated messageExpression cost", cost, RULE_LIMIT));
            }
            budget.spend(&message_place, cost);
        }
        None => {}
    }
    if uses_old {
        if let Some(uncorrelatable) = &standing.uncorrelatable {
            let detail = format!(
                "oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelatable}"
            );
            report.invalid(rule_place, detail);
        }
    } else if rule.optional_old_self.is_some() {
        report.invalid(format!("{place}.optionalOldSelf"), "may not be set if oldSelf is not used in rule");
    }
}
