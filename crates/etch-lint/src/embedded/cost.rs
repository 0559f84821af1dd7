//! ETCH208: expressions that may cost more than a request may.

use super::super::rule::{Finding, Rule, Severity};
use super::at::at;
use etch_admission::Compiled;
use kube_validation_rules::RUNTIME_BUDGET;

pub(super) const RULE: Rule = Rule {
    code: "ETCH208",
    name: "embedded-expression-cost",
    severity: Severity::Info,
    summary: "an expression may exceed the cost limit for a whole request",
    help: "\
The estimate is the API server's own for rules: the highest cost of an expression within the limits on lengths
and numbers of items. An expression counts as often as `[*]` lets it run. What has no limit, in the schema or
in `object` and `facts`, counts as 2,000 characters or items: one loop over such a list is not a finding, a
loop inside another one is.

Etch serves such an expression, and stops it at run time: it refuses an object that is that large, with the
reason. Set maxItems, maxLength and maxProperties on the values that it reads. For lists in `object` the
finding is information, not a mistake.",
    check: None,
};

/// Beyond this the exact factor does not matter.
const FACTORS: u64 = 100;

/// The expressions that stand for themselves. Those of the schema are judged with it.
pub(super) fn check(compiled: &Compiled, found: &mut Vec<Finding>) {
    let budget = RUNTIME_BUDGET.cast_unsigned();
    for (field, cost) in compiled.costs().iter().filter(|(_, cost)| *cost > budget) {
        let factor = match cost.div_ceil(budget) {
            factor if factor > FACTORS => format!("more than {FACTORS} times"),
            factor => format!("up to {factor} times"),
        };
        let message = format!("may cost {factor} the limit for all expressions of a request together");
        found.push(at(&RULE, field, message));
    }
}
