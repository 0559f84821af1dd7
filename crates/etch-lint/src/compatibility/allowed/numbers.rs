//! The range of numbers, and what they are multiples of.

use serde_json::{Value, json};

use super::place::Allowed;
use crate::compatibility::keywords::{LARGEST_EXACT, number, text};
use crate::compatibility::ranges::{Limit, is_as_strict, is_divided, limit, range_of};

/// How many whole numbers are looked at one by one.
const MOST_VALUES: f64 = 256.0;

pub(super) fn all_fit(allowed: &Allowed<'_>, keyword: &str, schema: &Value) -> bool {
    let is_integer = allowed.kind() == Some("integer");
    let held = |is_least| held(allowed, is_least).into_iter();
    match keyword {
        "minimum" | "maximum" => {
            let is_least = keyword == "minimum";
            let new = limit(schema, is_least);
            new.is_some_and(|new| held(is_least).any(|held| is_as_strict(held, new, is_integer)))
        }
        "multipleOf" => number(schema, keyword).is_some_and(|new| {
            let mut held = allowed.held.iter().filter_map(|schema| number(schema, keyword));
            is_integer && new == 1.0 || held.any(|held| is_divided(held, new))
        }),
        "format" => range_of(text(schema, "type"), text(schema, keyword)).is_none_or(|(least, most)| {
            let is_within = |is_least, end| held(is_least).any(|(limit, _)| limit >= end);
            is_within(true, least) && is_within(false, -most)
        }),
        _ => false,
    }
}

/// All whole numbers, where they are few.
pub(super) fn values(allowed: &Allowed<'_>) -> Option<Vec<Value>> {
    let strictest = |is_least| {
        let cut = held(allowed, is_least).into_iter().map(|(limit, _)| limit.trunc());
        cut.filter(|limit| limit.abs() < LARGEST_EXACT).max_by(f64::total_cmp)
    };
    let (least, most) = (strictest(true)?, -strictest(false)?);
    (most - least < MOST_VALUES).then(|| (least as i64..=most as i64).map(|number| json!(number)).collect())
}

/// The limits of a side, with that of the format.
fn held(allowed: &Allowed<'_>, is_least: bool) -> Vec<Limit> {
    let of_format = range_of(text(allowed.held[0], "type"), text(allowed.held[0], "format"));
    let of_format = of_format.map(|(least, most)| (if is_least { least } else { -most }, false));
    allowed.held.iter().filter_map(|schema| limit(schema, is_least)).chain(of_format).collect()
}
