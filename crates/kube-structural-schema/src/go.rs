//! Values as text, the way Go's `fmt`, `strconv` and `encoding/json` write them.
//! It must only be used for wording, and for the comparison that upstream makes by text.

use std::fmt::{self, Write as _};
use std::sync::LazyLock;

use serde_json::{Number, Value};

use crate::json::level;
use crate::pattern::Pattern;

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
        // A JSON text has `-0` as well, an integer to Go. Servers write no such thing, and here it is the float `-0.0`.
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
            Self::Float(float) => float.to_string(),
        }
    }
}

/// `%v`
impl fmt::Display for Num {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(int) => int.fmt(f),
            Self::Float(number) => f.write_str(&float(*number)),
        }
    }
}

/// Go's conversion of a float to an integer on amd64: what does not fit becomes the least integer.
pub fn truncate(float: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&float) { float as i64 } else { i64::MIN }
}

/// `%v` of a float.
pub fn float(float: f64) -> String {
    let scientific = format!("{float:e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..6).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{mantissa}e{sign}{:02}", exponent.abs())
        }
        _ => float.to_string(),
    }
}

/// `%v` of a decoded JSON value.
pub fn value(value: &Value) -> String {
    let mut text = String::new();
    write_value(value, &mut text);
    text
}

static PRINTABLE: LazyLock<Option<Pattern>> = LazyLock::new(|| Pattern::new(r"^[\pL\pM\pN\pP\pS]$").ok());

fn write_value(value: &Value, text: &mut String) {
    level(|| match value {
        Value::Null => text.push_str("<nil>"),
        Value::Bool(flag) => text.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => match Num::of(number) {
            Num::Int(int) => text.push_str(&int.to_string()),
            Num::Float(number) => text.push_str(&float(number)),
        },
        Value::String(string) => text.push_str(string),
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(' ');
                }
                write_value(item, text);
            }
            text.push(']');
        }
        Value::Object(fields) => {
            text.push_str("map[");
            for (index, (key, field)) in fields.iter().enumerate() {
                if index > 0 {
                    text.push(' ');
                }
                text.push_str(key);
                text.push(':');
                write_value(field, text);
            }
            text.push(']');
        }
    });
}

/// `json.Marshal` of a decoded JSON value. Equal values that Go holds as integer and float are written alike.
pub fn json(value: &Value) -> String {
    let mut text = String::new();
    write_json(value, &mut text);
    text
}

fn write_json(value: &Value, text: &mut String) {
    level(|| match value {
        Value::Number(number) => match Num::of(number) {
            Num::Int(int) => text.push_str(&int.to_string()),
            Num::Float(float) if float != 0.0 && !(1e-6..1e21).contains(&float.abs()) => {
                let scientific = format!("{float:e}");
                // Large exponents carry a sign.
                text.push_str(&if float.abs() > 1.0 { scientific.replace('e', "e+") } else { scientific });
            }
            Num::Float(float) => text.push_str(&float.to_string()),
        },
        Value::String(string) => write_json_string(string, text),
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_json(item, text);
            }
            text.push(']');
        }
        Value::Object(fields) => {
            text.push('{');
            for (index, (key, field)) in fields.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_json_string(key, text);
                text.push(':');
                write_json(field, text);
            }
            text.push('}');
        }
        scalar => text.push_str(&scalar.to_string()),
    });
}

fn write_json_string(string: &str, text: &mut String) {
    for letter in Value::from(string).to_string().chars() {
        match letter {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => escape(letter, text),
            _ => text.push(letter),
        }
    }
}

fn escape(letter: char, text: &mut String) {
    // Writing to a String cannot fail.
    let _ = write!(text, "\\u{:04x}", u32::from(letter));
}

/// `unicode.IsPrint`
pub fn is_printable(letter: char) -> bool {
    match letter {
        ' '..='~' => true,
        _ => PRINTABLE.as_ref().is_some_and(|printable| printable.matches(letter.encode_utf8(&mut [0; 4]))),
    }
}

/// `strconv.Quote`
pub fn quote(string: &str) -> String {
    let mut text = String::from('"');
    for letter in string.chars() {
        match letter {
            '"' | '\\' => text.extend(['\\', letter]),
            '\x07' => text.push_str("\\a"),
            '\x08' => text.push_str("\\b"),
            '\x0C' => text.push_str("\\f"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\x0B' => text.push_str("\\v"),
            ' '..='~' => text.push(letter),
            _ if letter.is_ascii() => {
                let _ = write!(text, "\\x{:02x}", u32::from(letter));
            }
            _ if is_printable(letter) => text.push(letter),
            _ if u32::from(letter) < 0x1_0000 => escape(letter, &mut text),
            _ => {
                let _ = write!(text, "\\U{:08x}", u32::from(letter));
            }
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn floats_are_written_as_in_go() {
        // (the float, `%v`, `json.Marshal`), as Go 1.26.8 prints them
        let cases = [
            (0.0, "0", "0"),
            (-0.0, "-0", "-0"),
            (1.5, "1.5", "1.5"),
            (100_000.0, "100000", "100000"),
            (1e6, "1e+06", "1000000"),
            (12_345_678.5, "1.23456785e+07", "12345678.5"),
            (1e20, "1e+20", "100000000000000000000"),
            (-1e21, "-1e+21", "-1e+21"),
            (0.0001, "0.0001", "0.0001"),
            (1e-5, "1e-05", "0.00001"),
            (1e-6, "1e-06", "0.000001"),
            (-2.5e-9, "-2.5e-09", "-2.5e-9"),
            (4_611_686_018_427_387_904.0, "4.611686018427388e+18", "4611686018427388000"),
        ];
        for (number, shown, marshalled) in cases {
            assert_eq!(float(number), shown);
            assert_eq!(super::json(&json!(number)), marshalled);
        }
    }

    #[test]
    fn values_are_written_as_in_go() {
        let document = json!({"b": [1, "x y", null], "a": {"<": true, "k": 2.0}});
        assert_eq!(value(&document), "map[a:map[<:true k:2] b:[1 x y <nil>]]");
        assert_eq!(super::json(&document), r#"{"a":{"\u003c":true,"k":2},"b":[1,"x y",null]}"#);
        assert_eq!(quote("a\"\\\n\x07\x7f é\u{ad}\u{10ffff}中"), r#""a\"\\\n\a\x7f é\u00ad\U0010ffff中""#);
    }

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
