//! Defaults of an upgrade that rules and clauses around them judge, which were there before.

use super::pair::{Changes, Pair};
use super::validations::rules;
use super::{judged_by_clause, read_by_rule};
use etch_core::impact::compare;
use kube_structural_schema::schema::Schema;

pub(super) fn check(pair: &Pair<'_>, changes: &mut Changes) {
    let (rules, keywords) = (rules(pair.old), judged_by_clause::kept(pair));
    if pair.is_in_clause() || rules.is_empty() && keywords.is_empty() {
        return;
    }
    // A schema that cannot be parsed is refused.
    let (Ok(old), Ok(new)) = (Schema::parse(pair.old), Schema::parse(pair.new)) else { return };
    let defaults = compare(&old, &new);
    read_by_rule::check(pair, &rules, &new, &defaults, changes);
    judged_by_clause::check(pair, &keywords, defaults, changes);
}
