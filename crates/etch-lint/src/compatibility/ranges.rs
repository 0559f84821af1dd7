//! Limits and multiples of numbers as the API server compares values with them: an integer with the limit cut
//! to one, and any other number with the limit itself.
//!
//! Source: kube-openapi `pkg/validation/validate/validator.go`, `numberValidator`; `values.go`,
//! `MaximumNativeType`, `MultipleOfNativeType`, `IsValueValidAgainstRange`.

use serde_json::Value;

use super::keywords::{LARGEST_EXACT, is_set, number, text, without_sign};

/// A limit, and whether it is excluded itself. The greater, the stricter; one from above has another sign.
pub(super) type Limit = (f64, bool);

/// No integer is as large.
const BEYOND_INTEGERS: f64 = 9_223_372_036_854_775_808.0;

pub(super) fn limit(schema: &Value, is_least: bool) -> Option<Limit> {
    let (keyword, exclusive) =
        if is_least { ("minimum", "exclusiveMinimum") } else { ("maximum", "exclusiveMaximum") };
    let at = number(schema, keyword)?;
    Some((without_sign(if is_least { at } else { -at }), is_set(schema, exclusive)))
}

/// Whether a limit refuses all that another one does; `is_integer` if all values are whole. What a limit
/// beyond all integers refuses depends on the processor of the server.
pub(super) fn is_as_strict(held: Limit, new: Limit, is_integer: bool) -> bool {
    let is_comparable = held.0.abs() < BEYOND_INTEGERS && new.0.abs() < BEYOND_INTEGERS;
    let cut = |(at, is_out): Limit| first((without_sign(at.trunc()), is_out));
    // A manifest may have a whole number as 1.0, which is no integer to the server.
    let whole = |(at, is_out): Limit| if is_integer { first(next_whole(at, is_out)) } else { (at, is_out) };
    held == new || is_comparable && cut(held) >= cut(new) && whole(held) >= whole(new)
}

/// A limit of whole numbers, excluded or not, as the first one that is allowed.
fn first((at, is_out): Limit) -> Limit {
    if is_out && at.abs() < LARGEST_EXACT { (at + 1.0, false) } else { (at, is_out) }
}

fn next_whole(at: f64, is_out: bool) -> Limit {
    let up = without_sign(at.ceil());
    (up, is_out && up == at)
}

/// Whether all multiples of a number are multiples of another one.
pub(super) fn is_divided(old: f64, new: f64) -> bool {
    // Of a fraction no integer is a multiple.
    let (of_old, of_new) = (old.trunc(), new.trunc());
    let is_divided = of_old < 1.0 || of_new >= 1.0 && of_old % of_new == 0.0;
    let is_exact = old < LARGEST_EXACT && new < LARGEST_EXACT;
    old == new || new > 0.0 && is_exact && is_divided && is_multiple(old, new)
}

/// Whether a number is a multiple of another, up to what the server takes for rounding.
fn is_multiple(number: f64, of: f64) -> bool {
    const ROUNDING: f64 = 1e-9;
    let times = (number / of).round();
    times != 0.0 && (number / of - times).abs() < ROUNDING * times.abs()
}

/// Whether a limit is itself of the type and the format beside it: the server refuses all numbers if not.
pub(super) fn is_of_type(schema: &Value, keyword: &str) -> bool {
    let (kind, format) = (text(schema, "type"), text(schema, "format"));
    number(schema, keyword).is_none_or(|limit| {
        let is_integer = limit.fract() == 0.0 && (-BEYOND_INTEGERS..BEYOND_INTEGERS).contains(&limit);
        let is_in_range = range_of(kind, format).is_none_or(|(least, most)| (least..=most).contains(&limit));
        (kind != "integer" || is_integer) && is_in_range
    })
}

/// The least and the largest number of a format.
pub(super) fn range_of(kind: &str, format: &str) -> Option<(f64, f64)> {
    match (kind, format) {
        ("integer", "int32") => Some((i32::MIN.into(), i32::MAX.into())),
        ("number", "float") => Some((f32::MIN.into(), f32::MAX.into())),
        _ => None,
    }
}
