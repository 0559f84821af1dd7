//! ETCH208: expressions that may cost more than a request may.

use super::super::rule::{Finding, Rule, Severity};
use super::at::at;
use crate::domain::admission::Compiled;
use crate::domain::validate::cel::RUNTIME_BUDGET;

pub(super) const RULE: Rule = Rule {
    code: "ETCH208",
    name: "embedded-expression-cost",
    severity: Severity::Info,
    summary: "an expression may exceed the cost limit for a whole request",
    help: "\
The estimate is the API server's own for rules: by the limits on lengths and numbers of items, what an expression costs at most.
An expression counts as often as `[*]` lets it be evaluated. What has no limit, in the schema or in `object` and `facts`, is
taken to have 2,000 characters or items: going through such a list once is no finding, going through it for each of its items
is one.

Etch serves such an expression, and stops it at run time: an object that is that large is refused with the reason. Set
maxItems, maxLength and maxProperties where it looks. Of lists in `object` the finding is good to know, and no mistake.",
    check: None,
};

/// From here on the factor says nothing more.
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
