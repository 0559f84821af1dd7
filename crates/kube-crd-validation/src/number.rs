//! `minimum`, `maximum`, `multipleOf` and the ranges of numeric formats, with the server's arithmetic.
//! Bounds are floats, and are cut to integers beside an integer.
//!
//! Source: kube-openapi `pkg/validation/validate/{validator,values}.go` and go-openapi/swag `conv`.

use super::violation::{Bound, What};
use go_text::{self as go, number::Num};
use kube_structural_schema::schema::Constraints;

/// Reports what a number violates.
///
/// `type_name` is the schema's only type if that is numeric, else empty; so is `format` if it is not one of
/// that type's.
pub(super) fn check<'v>(
    number: Num,
    constraints: &Constraints,
    type_name: &'v str,
    format: &'v str,
    mut report: impl FnMut(What<'v>),
) {
    let in_range = |number: Num| fits(number, type_name, format);
    let out_of_range = |of: Bound| What::Range { of, type_name, format };
    if !in_range(number) {
        report(out_of_range(Bound::Value));
    }
    if let Some(factor) = constraints.multiple_of {
        let comparable = in_range(Num::Float(factor));
        if !comparable {
            report(out_of_range(Bound::MultipleOf));
        }
        if let Some(what) = multiple_of(number, factor, comparable) {
            report(what);
        }
    }
    if let Some(min) = constraints.minimum {
        let exclusive = constraints.exclusive_minimum;
        let comparable = in_range(Num::Float(min));
        if !comparable {
            report(out_of_range(Bound::Minimum));
        }
        let (limit, below) = match number {
            Num::Int(int) if comparable => {
                let min = go::number::truncate(min);
                (Num::Int(min), int < min || exclusive && int == min)
            }
            other => (Num::Float(min), other.as_f64() < min || exclusive && other.as_f64() <= min),
        };
        if below {
            report(What::Minimum { limit, exclusive });
        }
    }
    if let Some(max) = constraints.maximum {
        let exclusive = constraints.exclusive_maximum;
        let comparable = in_range(Num::Float(max));
        if !comparable {
            report(out_of_range(Bound::Maximum));
        }
        let (limit, above) = match number {
            Num::Int(int) if comparable => {
                let max = go::number::truncate(max);
                (Num::Int(max), int > max || exclusive && int == max)
            }
            other => (Num::Float(max), other.as_f64() > max || exclusive && other.as_f64() >= max),
        };
        if above {
            report(What::Maximum { limit, exclusive });
        }
    }
}

/// Whether a float counts as an integer: no more than 2^53 - 1 away from zero, and a billionth of itself from
/// the next one.
pub(super) fn is_integer(float: f64) -> bool {
    const LARGEST: f64 = 9_007_199_254_740_991.0;
    let rounded = float.round();
    float.abs() <= LARGEST && ((float - rounded).abs() < 1e-9 * rounded.abs() || float == rounded)
}

fn multiple_of<'v>(number: Num, factor: f64, comparable: bool) -> Option<What<'v>> {
    if let (Num::Int(int), true) = (number, comparable) {
        let factor = go::number::truncate(factor);
        return match factor {
            ..=0 => Some(What::FactorNotPositive(Num::Int(factor))),
            _ => (int % factor != 0).then_some(What::MultipleOf(Num::Int(factor))),
        };
    }
    if factor <= 0.0 {
        return Some(What::FactorNotPositive(Num::Float(factor)));
    }
    let number = number.as_f64();
    let quotient = if factor < 1.0 { 1.0 / factor * number } else { number / factor };
    (!is_integer(quotient)).then_some(What::MultipleOf(Num::Float(factor)))
}

/// Whether a number can be written as one of the type and format. The server decides by the digits.
fn fits(number: Num, type_name: &str, format: &str) -> bool {
    match (type_name, format) {
        ("integer", "int32") => number.digits().parse::<i32>().is_ok(),
        ("integer", _) => matches!(number, Num::Int(_)) || number.digits().parse::<i64>().is_ok(),
        // Rounded to the nearest float of 32 bits it must be finite.
        (_, "float") => number.digits().parse::<f32>().is_ok_and(f32::is_finite),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::violation::Violation;

    fn shown(number: Num, type_name: &str, format: &str, constraints: &Constraints) -> Vec<String> {
        let mut shown = Vec::new();
        check(number, constraints, type_name, format, |what| {
            shown.push(Violation { path: "n".to_owned(), what }.message());
        });
        shown
    }

    #[test]
    fn bounds_are_cut_beside_an_integer_and_not_beside_a_float() {
        let bounds = Constraints { minimum: Some(1.5), maximum: Some(2.5), ..Constraints::default() };
        assert_eq!(shown(Num::Int(1), "number", "", &bounds), [""; 0]);
        assert_eq!(
            shown(Num::Float(1.0), "number", "", &bounds),
            ["n in body should be greater than or equal to 1.5"]
        );
        assert_eq!(
            shown(Num::Int(3), "number", "", &bounds),
            ["n in body should be less than or equal to 2"]
        );
        let beyond = Constraints { maximum: Some(1e19), ..Constraints::default() };
        assert_eq!(
            shown(Num::Int(5), "", "", &beyond),
            ["n in body should be less than or equal to -9223372036854775808"]
        );
        assert_eq!(
            shown(Num::Int(5), "integer", "", &beyond),
            ["Maximum boundary value must be of type integer (default format) in n"]
        );
    }

    #[test]
    fn exclusive_bounds_exclude_themselves() {
        let bounds = Constraints {
            minimum: Some(1.0),
            exclusive_minimum: true,
            maximum: Some(2.0),
            exclusive_maximum: true,
            ..Constraints::default()
        };
        for (number, expected) in [
            (Num::Int(1), &["n in body should be greater than 1"][..]),
            (Num::Float(1.0), &["n in body should be greater than 1"]),
            (Num::Float(1.5), &[]),
            (Num::Float(2.0), &["n in body should be less than 2"]),
            (Num::Int(2), &["n in body should be less than 2"]),
        ] {
            assert_eq!(shown(number, "number", "", &bounds), expected);
        }
    }

    #[test]
    fn factors_are_cut_like_bounds() {
        let half = Constraints { multiple_of: Some(0.5), ..Constraints::default() };
        assert_eq!(shown(Num::Float(1.5), "number", "", &half), [""; 0]);
        assert_eq!(
            shown(Num::Int(1), "number", "", &half),
            ["factor MultipleOf declared for n must be positive: 0"]
        );
        assert_eq!(
            shown(Num::Int(1), "integer", "", &half),
            ["MultipleOf value must be of type integer (default format) in n"]
        );
        let tenth = Constraints { multiple_of: Some(0.1), ..Constraints::default() };
        assert_eq!(shown(Num::Float(0.3), "number", "", &tenth), [""; 0]);
        assert_eq!(shown(Num::Float(0.35), "number", "", &tenth), ["n in body should be a multiple of 0.1"]);
    }

    #[test]
    fn formats_limit_what_fits() {
        let free = Constraints::default();
        let fits = |number, type_name, format| shown(number, type_name, format, &free).is_empty();
        assert!(fits(Num::Int(i64::from(i32::MAX)), "integer", "int32"));
        assert!(!fits(Num::Int(i64::from(i32::MAX) + 1), "integer", "int32"));
        assert!(!fits(Num::Float(1.5), "integer", ""));
        assert!(fits(Num::Float(3.4e38), "number", "float"));
        assert!(!fits(Num::Float(3.5e38), "number", "float"));
        assert!(fits(Num::Float(3.5e38), "number", "double"));
    }
}
