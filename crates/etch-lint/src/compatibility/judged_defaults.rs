//! Defaults of an upgrade that rules, clauses and enums around them judge, which were there before.

use super::pair::{Changes, Pair};
use super::validations::rules;
use super::{judged_by_clause, judged_by_enum, read_by_rule};
use etch_core::impact::compare;
use kube_structural_schema::schema::Schema;

pub(super) fn check(pair: &Pair<'_>, changes: &mut Changes) {
    if pair.is_in_clause() {
        return;
    }
    let rules = rules(pair.old);
    // A schema that cannot be parsed is refused.
    if !rules.is_empty()
        && let (Ok(old), Ok(new)) = (Schema::parse(pair.old), Schema::parse(pair.new))
    {
        read_by_rule::check(pair, &rules, &new, &compare(&old, &new), changes);
    }
    judged_by_clause::check(pair, changes);
    judged_by_enum::check(pair, changes);
}
