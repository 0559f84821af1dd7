//! The range of numbers, and what they are multiples of.

use std::cmp::Ordering;

use serde_json::{Value, json};

use super::place::Allowed;
use crate::compatibility::keywords::{LARGEST_EXACT, is_set, number, text, without_sign};

/// How many whole numbers are looked at one by one.
const MOST_VALUES: f64 = 256.0;

/// A limit, and whether it is excluded itself. The greater, the stricter; a limit from above has its sign changed.
type Limit = (f64, bool);

pub(super) fn all_fit(allowed: &Allowed<'_>, keyword: &str, schema: &Value) -> bool {
    let is_integer = allowed.kind() == Some("integer");
    match keyword {
        "minimum" | "maximum" => {
            let is_least = keyword == "minimum";
            let Some(new) = limit(schema, is_least) else { return false };
            // The server refuses all integers where a limit beside their type is none.
            let is_exact = new.0.abs() < LARGEST_EXACT && (new.0.fract() == 0.0 || !is_integer);
            // The server also refuses all integers where a limit is none of their format.
            let of_format = range_of(allowed.kind().unwrap_or_default(), text(allowed.held[0], "format"));
            let at = if is_least { new.0 } else { -new.0 };
            let is_exact = is_exact && of_format.is_none_or(|(least, most)| (least..=most).contains(&at));
            is_exact && held(allowed, is_least).is_some_and(|held| is_as_strict(held, new, is_integer))
        }
        "multipleOf" => {
            number(schema, keyword).filter(|of| of.fract() == 0.0 && *of >= 1.0).is_some_and(|of| {
                let mut held = allowed.held.iter().filter_map(|schema| number(schema, keyword));
                is_integer && of == 1.0 || held.any(|held| held.fract() == 0.0 && held % of == 0.0)
            })
        }
        "format" => {
            let (format, kind) = (text(schema, keyword), text(schema, "type"));
            range_of(kind, format).is_none_or(|range| {
                let is_within = |is_least, limit| {
                    held(allowed, is_least).is_some_and(|held| is_as_strict(held, (limit, false), is_integer))
                };
                is_within(true, range.0) && is_within(false, -range.1)
            })
        }
        _ => false,
    }
}

/// All whole numbers, where they are few.
pub(super) fn values(allowed: &Allowed<'_>) -> Option<Vec<Value>> {
    let (least, most) = (held(allowed, true)?.0, -held(allowed, false)?.0);
    (most - least < MOST_VALUES && least.abs() < LARGEST_EXACT && most.abs() < LARGEST_EXACT)
        .then(|| (least as i64..=most as i64).map(|number| json!(number)).collect())
}

/// The strictest limit.
fn held(allowed: &Allowed<'_>, is_least: bool) -> Option<Limit> {
    let is_integer = allowed.kind() == Some("integer");
    let of_format = range_of(text(allowed.held[0], "type"), text(allowed.held[0], "format"));
    let of_format = of_format.map(|(least, most)| (if is_least { least } else { -most }, false));
    let own = allowed.held.iter().filter_map(|schema| limit(schema, is_least));
    // An integer is compared with the limit cut to one.
    let own = own.map(|limit| if is_integer { cut(limit) } else { limit });
    own.chain(of_format).max_by(order)
}

fn limit(schema: &Value, is_least: bool) -> Option<Limit> {
    let (keyword, exclusive) =
        if is_least { ("minimum", "exclusiveMinimum") } else { ("maximum", "exclusiveMaximum") };
    let at = number(schema, keyword)?;
    Some((without_sign(if is_least { at } else { -at }), is_set(schema, exclusive)))
}

/// Whether a limit refuses all that another does. Beside an integer the server cuts both.
fn is_as_strict(held: Limit, new: Limit, is_integer: bool) -> bool {
    let whole = |limit| match cut(limit) {
        (at, true) => (at + 1.0, false),
        limit => limit,
    };
    order(&whole(held), &whole(new)).is_ge() && (is_integer || order(&held, &new).is_ge())
}

fn cut((at, is_out): Limit) -> Limit {
    (without_sign(at.trunc()), is_out)
}

fn order(one: &Limit, other: &Limit) -> Ordering {
    one.0.total_cmp(&other.0).then(one.1.cmp(&other.1))
}

/// The least and the largest number of a format.
fn range_of(kind: &str, format: &str) -> Option<(f64, f64)> {
    match (kind, format) {
        ("integer", "int32") => Some((i32::MIN.into(), i32::MAX.into())),
        ("number", "float") => Some((f32::MIN.into(), f32::MAX.into())),
        _ => None,
    }
}
