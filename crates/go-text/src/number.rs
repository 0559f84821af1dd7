//! JSON numbers as the API server holds them: `int64` where one was written and fits, `float64` otherwise.
//! What a number is, is decided once, where it is read: nothing rounds it later.
//!
//! Source: apimachinery `pkg/util/json`, and Go's conversions on amd64.

use std::fmt;

use serde_json::Number;

use super::strconv::{format_float, format_plain};

/// A JSON number as the API server holds it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Num {
    /// Written without a fraction or an exponent, and within 64 bits.
    Int(i64),
    /// Everything else.
    Float(f64),
}

impl Num {
    /// Reads a number; what fits no 64 bits with a sign becomes a float.
    pub fn of(number: &Number) -> Self {
        // A JSON text may have `-0` as well, an integer to Go: servers write `-0.0` so. Here it is the float.
        number.as_i64().map_or_else(|| Self::Float(number.as_f64().unwrap_or(f64::NAN)), Self::Int)
    }

    /// `float64(number)`
    pub fn as_f64(self) -> f64 {
        match self {
            Self::Int(int) => int as f64,
            Self::Float(float) => float,
        }
    }

    /// `strconv.FormatFloat(f, 'f', -1, 64)`, or the integer.
    pub fn digits(self) -> String {
        match self {
            Self::Int(int) => int.to_string(),
            Self::Float(float) => format_plain(float),
        }
    }
}

/// `%v`
impl fmt::Display for Num {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(int) => int.fmt(f),
            Self::Float(number) => f.write_str(&format_float(*number)),
        }
    }
}

/// Go's conversion of a float to an integer on amd64: what does not fit becomes the least integer.
pub fn truncate(float: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&float) { float as i64 } else { i64::MIN }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_integers_where_go_has_an_integer() {
        let number = |text: &str| Num::of(&text.parse().expect("a number"));
        assert_eq!(number("1"), Num::Int(1));
        assert_eq!(number("1.0"), Num::Float(1.0));
        assert_eq!(number("0.0"), Num::Float(0.0));
        assert_eq!(number("9223372036854775808"), Num::Float(9_223_372_036_854_775_808.0));
        assert_eq!(truncate(-1.9), -1);
        assert_eq!(truncate(1e19), i64::MIN);
        assert_eq!(truncate(f64::NAN), i64::MIN);
    }
}
