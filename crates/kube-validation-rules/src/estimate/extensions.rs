//! The estimated prices of cel-go's functions on lists and sets.
//!
//! Source: cel-go `ext/{lists,sets,costs}.go`.

use super::coster::{Argument, Call, Coster};
use super::range::Range;
use super::units::CHARACTER;
use crate::cost::NEW_LIST;
use crate::tree::Expr;
use crate::value::Value;

/// The price of an overload, or none where it is not one of these.
pub(super) fn price<'t, 'm>(
    coster: &Coster<'t, 'm>,
    overload: &str,
    target: Option<&Argument<'t, 'm>>,
    args: &[Argument<'t, 'm>],
) -> Option<Call> {
    let size = |argument: &Argument<'t, 'm>| coster.estimate(argument);
    match (overload, target, args) {
        (
            "list_sets_contains_list" | "list_sets_intersects_list" | "list_sets_equivalent_list",
            _,
            [a, b],
        ) => {
            let factor = if overload == "list_sets_equivalent_list" { 2.0 } else { 1.0 };
            let cost = size(a).times(size(b)).scaled(factor).plus(Range::fixed(1));
            Some(Call { cost, size: None })
        }
        ("list_slice", Some(list), [start, end]) => {
            let (start, end) = (count(coster, start, 0), count(coster, end, size(list).max));
            Some(new_list(1.0, Range::fixed(end.wrapping_sub(start))))
        }
        ("lists_range", None, [length]) => Some(new_list(1.0, Range::fixed(count(coster, length, u64::MAX)))),
        ("list_reverse", Some(list), []) => Some(new_list(1.0, size(list))),
        ("list_flatten", Some(list), []) => Some(new_list(1.0, size(list))),
        ("list_flatten_int", Some(list), [depth]) => {
            Some(new_list(count(coster, depth, u64::MAX) as f64, size(list)))
        }
        ("list_distinct", Some(list), []) => Some(new_list(2.0, squared(size(list)))),
        (id, Some(list), []) if id.starts_with("list_") && id.ends_with("_sort") => {
            Some(new_list(sorting(id), squared(size(list))))
        }
        (id, Some(_), [keys]) if id.ends_with("_sortByAssociatedKeys") => {
            Some(new_list(sorting(id), squared(size(keys))))
        }
        _ => None,
    }
}

fn squared(size: Range) -> Range {
    size.times(size)
}

/// Texts are compared by their characters.
fn sorting(overload: &str) -> f64 {
    let texts = overload.starts_with("list_string_") || overload.starts_with("list_bytes_");
    if texts { 2.0 + CHARACTER } else { 2.0 }
}

fn new_list(factor: f64, size: Range) -> Call {
    Call { cost: size.scaled(factor).plus(Range::fixed(1 + NEW_LIST)), size: Some(size) }
}

/// The value of a literal, if it is one of the right type.
fn count(coster: &Coster<'_, '_>, argument: &Argument<'_, '_>, otherwise: u64) -> u64 {
    match argument.id.map(|id| coster.tree.get(id)) {
        Some(Expr::Literal(Value::Int(value))) => u64::try_from(*value).unwrap_or(0),
        _ => otherwise,
    }
}
