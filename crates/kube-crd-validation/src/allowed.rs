//! Sameness of values, strict and as `enum` has it. Not for numbers that count as equal by value: here an
//! integer and a float are two things.

use serde_json::Value;

use go_text::{self as go, number::Num};
use kube_structural_schema::json::Json;

/// Whether a value is one of an enumeration's. Go converts it to the type of each: a float is cut to an
/// integer, and an integer becomes the text of the character with that number.
pub(super) fn is_allowed(value: &Value, allowed: &Json) -> bool {
    let number = |number| Num::of(number);
    match (value, &**allowed) {
        (Value::Null, _) | (_, Value::Null) => false,
        (Value::Number(value), Value::Number(allowed)) => match (number(value), number(allowed)) {
            (Num::Float(value), Num::Int(allowed)) => go::number::truncate(value) == allowed,
            (value, Num::Float(allowed)) => value.as_f64() == allowed,
            (Num::Int(value), Num::Int(allowed)) => value == allowed,
        },
        (Value::Number(value), Value::String(allowed)) => match number(value) {
            Num::Int(code) => {
                let letter =
                    u32::try_from(code).ok().and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER);
                let mut letters = allowed.chars();
                letters.next() == Some(letter) && letters.next().is_none()
            }
            Num::Float(_) => false,
        },
        (value, allowed) => is_same(value, allowed),
    }
}

/// `reflect.DeepEqual` of two decoded values: an integer and a float are never the same.
pub(super) fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => Num::of(a) == Num::of(b),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| is_same(a, b)))
        }
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn enum_values_are_converted_as_in_go() {
        let cases = [
            (json!(1), json!(1), true),
            (json!(1), json!(1.0), true),
            (json!(1.9), json!(1), true),
            (json!(1), json!(1.9), false),
            (json!(1e300), json!(i64::MIN), true),
            (json!(97), json!("a"), true),
            (json!(97), json!("aa"), false),
            (json!(97.0), json!("a"), false),
            (json!(-1), json!("\u{FFFD}"), true),
            (json!("1"), json!(1), false),
            (json!(true), json!(true), true),
            (json!([1]), json!([1]), true),
            (json!([1]), json!([1.0]), false),
            (json!({"a": null}), json!({"a": null}), true),
            (json!({"a": 1}), json!({"a": 1, "b": 1}), false),
            (json!(null), json!(null), false),
        ];
        for (value, allowed, expected) in cases {
            assert_eq!(is_allowed(&value, &Json::from(allowed.clone())), expected, "{value} in [{allowed}]");
        }
    }
}
