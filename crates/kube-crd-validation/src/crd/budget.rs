//! What the rules of one schema may cost together, and the advice where they cost more.
//!
//! Source: apiextensions-apiserver `pkg/apis/apiextensions/validation/cel_validation.go`, `TotalCost`, and
//! `getCostErrorMessage`.

use super::report::Report;

/// What one expression may cost.
pub(super) const RULE_LIMIT: u64 = 10_000_000;
/// What all expressions of a schema may cost together.
const SCHEMA_LIMIT: u64 = 100_000_000;

/// How many of the dearest expressions are named.
const NAMED: usize = 4;

/// The costs so far.
#[derive(Debug, Default)]
pub(super) struct Budget {
    total: u64,
    dearest: Vec<(String, u64)>,
}

impl Budget {
    /// Adds the cost of an expression.
    pub(super) fn spend(&mut self, at: &str, cost: u64) {
        self.total = self.total.saturating_add(cost);
        if cost < SCHEMA_LIMIT / 100 {
            return;
        }
        self.dearest.push((at.to_owned(), cost));
        self.dearest.sort_by_key(|(_, cost)| std::cmp::Reverse(*cost));
        self.dearest.truncate(NAMED);
    }

    /// Reports that the whole costs too much, if it does.
    pub(super) fn check(&self, at: &str, report: &mut Report) {
        if self.total <= SCHEMA_LIMIT {
            return;
        }
        for (at, _) in &self.dearest {
            let detail =
                "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
            report.forbidden(at, detail);
        }
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        report.forbidden(at, advice(what, self.total, SCHEMA_LIMIT));
    }
}

/// By how much something costs too much, and what to do.
pub(super) fn advice(what: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, \
         maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_factor_is_as_exact_as_it_is_useful() {
        let factor = |cost| advice("it", cost, 10_000_000).split(' ').nth(6).map(str::to_owned);
        assert_eq!(factor(10_000_001).as_deref(), Some("1.000000x"));
        assert_eq!(factor(25_000_000).as_deref(), Some("2.5x"));
        assert_eq!(factor(2_000_000_000).as_deref(), Some("more"));
    }
}
