//! ETCH207: expressions that may cost more than a request may.

use super::super::rule::{Finding, Rule, Severity};
use super::at::at;
use crate::domain::admission::{Compiled, Declaration};
use crate::domain::validate::cel::RUNTIME_BUDGET;

pub(super) const RULE: Rule = Rule {
    code: "ETCH207",
    name: "embedded-cost",
    severity: Severity::Warning,
    summary: "an expression may cost more than it is allowed to",
    help: "\
The estimate is the API server's own: by the limits on lengths and numbers of items, what an expression costs at most. What no
schema describes, as `object` and `facts`, is taken to be as large as a request can be. For a rule of `x-kubernetes-validations`
the limit is that of a CRD's rule, which an API server would refuse. For `rules`, `defaults` and the others it is what all
expressions of a request may cost together, and an expression counts as often as `[*]` lets it be evaluated.

Etch serves such an expression, and stops it at run time: then the request is refused with the reason. Set maxItems,
maxLength and maxProperties where it looks.",
    check: None,
};

/// From here on the factor says nothing more.
const FACTORS: u64 = 100;

/// The expressions that stand for themselves. Those of the schema are judged with it.
pub(super) fn check(declared: &Declaration, found: &mut Vec<Finding>) {
    // Why it cannot be compiled has been found.
    let Ok(compiled) = Compiled::new(declared) else { return };
    let budget = RUNTIME_BUDGET.cast_unsigned();
    for (field, cost) in compiled.costs().iter().filter(|(_, cost)| *cost > budget) {
        let factor = match cost.div_ceil(budget) {
            factor if factor > FACTORS => format!("more than {FACTORS} times"),
            factor => format!("up to {factor} times"),
        };
        let message = format!("may cost {factor} what all expressions of a request may together");
        found.push(at(&RULE, field, message));
    }
}
