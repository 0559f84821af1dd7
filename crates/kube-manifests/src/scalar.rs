//! What a scalar of YAML means to Kubernetes, which is not what YAML 1.2 specifies: `yes` is a boolean, `010`
//! is 8. Where it differs from kubectl, Etch judges a CRD that no server sees.
//!
//! Source: go.yaml.in/yaml/v2 `resolve.go` and sigs.k8s.io/yaml, which goes from there to JSON and back.

use std::str::Utf8Chunk;

use go_text::base64::{Alphabet, decode};
use kube_structural_schema::json::stored_number;
use serde_json::{Number, Value};

/// A number without a form in JSON.
const NOT_FINITE: &str = "a number that is not finite has no form in JSON";

/// A scalar as go-yaml resolves it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scalar {
    Null,
    Flag(bool),
    Integer(Number),
    Float(f64),
    Text(String),
}

impl Scalar {
    /// A scalar by its tag in the namespace of YAML, such as `int`. Without any tag it means what it looks
    /// like.
    ///
    /// # Errors
    /// It does not fit the tag.
    pub(super) fn tagged(text: &str, tag: &str) -> Result<Self, String> {
        match (tag, resolve(text)) {
            ("binary", _) => {
                return binary(text).map(Self::Text).ok_or_else(|| "!!binary is not in base64".to_owned());
            }
            ("null", scalar @ Self::Null)
            | ("bool", scalar @ Self::Flag(_))
            | ("int", scalar @ Self::Integer(_))
            | ("float", scalar @ Self::Float(_)) => return Ok(scalar),
            ("float", Self::Integer(number)) if number.is_i64() => {
                return number.as_f64().map(Self::Float).ok_or_else(|| NOT_FINITE.to_owned());
            }
            ("timestamp", Self::Text(text)) if is_timestamp(&text) => return Ok(Self::Text(text)),
            ("null" | "bool" | "int" | "float" | "timestamp", _) => {}
            _ => return Ok(Self::Text(text.to_owned())),
        }
        Err(format!("the value does not fit its tag !!{tag}"))
    }

    /// The scalar as a value of JSON. A whole float is written to JSON without its fraction, and is an
    /// integer from then on.
    pub(super) fn into_value(self) -> Result<Value, &'static str> {
        Ok(match self {
            Self::Null => Value::Null,
            Self::Flag(flag) => flag.into(),
            Self::Integer(number) => number.into(),
            Self::Float(float) => stored_number(float).ok_or(NOT_FINITE)?.into(),
            Self::Text(text) => text.into(),
        })
    }

    /// The scalar as a key.
    pub(super) fn into_key(self) -> Result<String, &'static str> {
        match self {
            Self::Null => Err("null is no key in JSON"),
            Self::Flag(flag) => Ok(flag.to_string()),
            Self::Integer(number) if number.is_i64() => Ok(number.to_string()),
            Self::Integer(_) => Err("an integer that does not fit 64 bits with a sign is no key to kubectl"),
            Self::Float(float) => Ok(float_key(float)),
            Self::Text(text) => Ok(text),
        }
    }
}

/// Whether kubectl takes a name for that of an anchor.
pub(super) fn is_anchor(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

/// What an unquoted scalar without a tag is.
pub(super) fn resolve(text: &str) -> Scalar {
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return Scalar::Flag(true);
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Scalar::Flag(false);
        }
        "" | "~" | "null" | "Null" | "NULL" => return Scalar::Null,
        ".nan" | ".NaN" | ".NAN" => return Scalar::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return Scalar::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return Scalar::Float(f64::NEG_INFINITY),
        _ => {}
    }
    let number = match text.as_bytes()[0] {
        b'.' => float(text),
        b'0'..=b'9' | b'+' | b'-' => {
            let plain = text.replace('_', "");
            integer(&plain).map(Scalar::Integer).or_else(|| float(&plain))
        }
        _ => None,
    };
    number.unwrap_or_else(|| Scalar::Text(text.to_owned()))
}

/// Whether `!!timestamp` may stand before it: a date, perhaps with a time behind it.
fn is_timestamp(text: &str) -> bool {
    let mut parts = text.splitn(3, '-');
    let mut next = || parts.next().unwrap_or_default();
    let (year, month, rest) = (next(), next(), next());
    let (day, time) = rest.split_at(rest.find(|digit: char| !digit.is_ascii_digit()).unwrap_or(rest.len()));
    let is_within =
        |part: &str, most: u32| part.parse().is_ok_and(|number: u32| (1..=most).contains(&number));
    year.len() == 4
        && year.bytes().all(|byte| byte.is_ascii_digit())
        && is_within(month, 12)
        && is_within(day, 31)
        && (time.is_empty() || time.starts_with(['T', 't', ' ']) && time.contains(':'))
}

/// A float as a key: with the digits of 32 bits, as `strconv.FormatFloat(key, 'g', -1, 32)`.
fn float_key(key: f64) -> String {
    let narrow = key as f32;
    if !narrow.is_finite() {
        return if key.is_nan() {
            ".nan"
        } else if key > 0.0 {
            ".inf"
        } else {
            "-.inf"
        }
        .to_owned();
    }
    let shortest = format!("{narrow:e}");
    let digits = shortest.split('e').next().unwrap_or_default().bytes().filter(u8::is_ascii_digit).count();
    // As many digits, but of two that are as near the even one.
    let scientific = format!("{:.*e}", digits.saturating_sub(1), f64::from(narrow));
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..6).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
        }
        _ => narrow.to_string(),
    }
}

/// What `!!binary` stands for: a text in base64. Each byte that is not UTF-8 becomes a replacement character
/// on the way to JSON.
pub(super) fn binary(text: &str) -> Option<String> {
    let bytes = decode(text.as_bytes(), Alphabet::Standard)?;
    let text = |chunk: Utf8Chunk<'_>| {
        chunk.valid().to_owned() + &char::REPLACEMENT_CHARACTER.to_string().repeat(chunk.invalid().len())
    };
    Some(bytes.utf8_chunks().map(text).collect())
}

/// Whether a text that stands there without quotes is read as this text, by kubectl and by readers of YAML
/// 1.2.
pub(crate) fn is_plain_text(text: &str) -> bool {
    let is_word =
        |character: char| character.is_alphanumeric() || matches!(character, '_' | '.' | '/' | '-' | '+');
    let begins = text
        .starts_with(|character: char| character.is_alphanumeric() || matches!(character, '_' | '/' | '.'));
    begins
        && text.chars().all(|character| is_word(character) || matches!(character, ' ' | '=' | '(' | ')' | '@' | ':'))
        && !text.contains(": ")
        && !text.ends_with([' ', ':'])
        && !text.starts_with("..")
        && matches!(resolve(text), Scalar::Text(_))
        // A float or a time to some readers.
        && !text.starts_with(|character: char| character.is_ascii_digit() || character == '.')
        && !matches!(text, "=" | "<<")
}

/// `strconv.ParseInt` and `ParseUint` with base 0. What starts with a zero is octal.
fn integer(text: &str) -> Option<Number> {
    let (negative, digits) = match text.as_bytes() {
        [b'-', ..] => (true, &text[1..]),
        [b'+', ..] => (false, &text[1..]),
        _ => (false, text),
    };
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &digits[2..]),
        [b'0', b'b' | b'B', ..] => (2, &digits[2..]),
        [b'0', b'o' | b'O', ..] => (8, &digits[2..]),
        [b'0', _, ..] => (8, &digits[1..]),
        _ => (10, digits),
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, radix).ok()?;
    if negative { 0i64.checked_sub_unsigned(magnitude).map(Number::from) } else { Some(magnitude.into()) }
}

/// A float in decimals.
fn float(text: &str) -> Option<Scalar> {
    let is_decimal = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-');
    let has_digit =
        text.trim_start_matches(['+', '-', '.']).as_bytes().first().is_some_and(u8::is_ascii_digit);
    if !has_digit || !text.bytes().all(is_decimal) {
        return None;
    }
    text.parse().ok().filter(|float: &f64| float.is_finite()).map(Scalar::Float)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn means_what_kubectl_reads() {
        let cases = [
            ("yes", json!(true)),
            ("Off", json!(false)),
            ("~", json!(null)),
            ("", json!(null)),
            ("010", json!(8)),
            ("08", json!(8)),
            ("0x1F", json!(31)),
            ("-0b101", json!(-5)),
            ("1_000", json!(1000)),
            ("1.0", json!(1)),
            ("1.50", json!(1.5)),
            (".5", json!(0.5)),
            ("1e3", json!(1000)),
            ("1e400", json!("1e400")),
            ("18446744073709551615", json!(u64::MAX)),
            ("-9223372036854775808", json!(i64::MIN)),
            ("2001-12-14", json!("2001-12-14")),
            ("1.2.3", json!("1.2.3")),
            ("1h", json!("1h")),
            ("+-1", json!("+-1")),
            ("-", json!("-")),
            ("0x", json!("0x")),
            ("1e", json!("1e")),
            ("tRUE", json!("tRUE")),
        ];
        for (text, expected) in cases {
            assert_eq!(resolve(text).into_value(), Ok(expected), "{text}");
        }
        assert_eq!(resolve(".NaN").into_value(), Err(NOT_FINITE));
    }

    #[test]
    fn keys_are_texts() {
        let cases = [
            ("y", Some("true")),
            ("8080", Some("8080")),
            ("a", Some("a")),
            ("~", None),
            (".inf", Some(".inf")),
            ("+.Inf", Some(".inf")),
            ("-.INF", Some("-.inf")),
            (".NaN", Some(".nan")),
            ("1.5", Some("1.5")),
            ("0.1", Some("0.1")),
            ("1234567.25", Some("1.2345672e+06")),
            ("0.00001", Some("1e-05")),
            ("1e22", Some("1e+22")),
            ("1e6", Some("1e+06")),
            ("123456.0", Some("123456")),
            ("16777217.0", Some("1.6777216e+07")),
            ("-0.0", Some("-0")),
            ("9223372036854775807", Some("9223372036854775807")),
            ("9223372036854775808", None),
        ];
        for (text, expected) in cases {
            assert_eq!(resolve(text).into_key().ok().as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn binaries_are_texts() {
        let cases = [
            ("aGVsbG8=", Some("hello")),
            ("aGVs\nbG8=", Some("hello")),
            ("aGk=", Some("hi")),
            ("aGkh", Some("hi!")),
            ("", Some("")),
            ("/w==", Some("\u{fffd}")),
            ("4oJh", Some("\u{fffd}\u{fffd}a")),
            ("aGk", None),
            ("a===", None),
            ("aGk=aGk=", None),
            ("a*k=", None),
        ];
        for (text, expected) in cases {
            assert_eq!(binary(text).as_deref(), expected, "{text}");
        }
    }
}
