//! What an unquoted scalar of YAML means to Kubernetes, which is not what YAML 1.2 specifies: `yes` is a
//! boolean, `010` is 8. Where it differs from kubectl, Etch judges a CRD that no server sees.
//!
//! Source: go.yaml.in/yaml/v2 `resolve.go` and sigs.k8s.io/yaml, which goes from there to JSON and back.

use std::borrow::Cow;

use serde_json::{Number, Value};

/// The value of an unquoted scalar; `None` if it has no form in JSON (`.nan`, `.inf`).
pub(super) fn resolve(text: &str) -> Option<Value> {
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return Some(true.into());
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Some(false.into());
        }
        "" | "~" | "null" | "Null" | "NULL" => return Some(Value::Null),
        ".nan" | ".NaN" | ".NAN" | ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" | "-.inf"
        | "-.Inf" | "-.INF" => return None,
        _ => {}
    }
    let number = match text.as_bytes()[0] {
        b'.' => float(text),
        b'0'..=b'9' | b'+' | b'-' => {
            let plain: Cow<'_, str> =
                if text.contains('_') { text.replace('_', "").into() } else { text.into() };
            integer(&plain).or_else(|| float(&plain))
        }
        _ => None,
    };
    Some(number.map_or_else(|| text.into(), Value::Number))
}

/// The key that an unquoted scalar is; none for nulls and what has no form in JSON.
pub(super) fn key(text: &str) -> Option<String> {
    if let Some(name) = not_finite(text) {
        return Some(name.to_owned());
    }
    match resolve(text)? {
        Value::Null => None,
        Value::String(text) => Some(text),
        Value::Number(number) if number.is_f64() => number.as_f64().map(float_key),
        value => Some(value.to_string()),
    }
}

/// A number without a form in JSON, as a key.
fn not_finite(text: &str) -> Option<&'static str> {
    match text {
        ".nan" | ".NaN" | ".NAN" => Some(".nan"),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Some(".inf"),
        "-.inf" | "-.Inf" | "-.INF" => Some("-.inf"),
        _ => None,
    }
}

/// A float as a key: with the digits of 32 bits, as `strconv.FormatFloat(key, 'g', -1, 32)`.
fn float_key(key: f64) -> String {
    let shortest = format!("{:e}", key as f32);
    let digits = shortest.split('e').next().unwrap_or_default().bytes().filter(u8::is_ascii_digit).count();
    // As many digits, but of two that are as near the even one.
    let scientific = format!("{:.*e}", digits.saturating_sub(1), f64::from(key as f32));
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..6).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
        }
        _ => (key as f32).to_string(),
    }
}

/// What `!!binary` stands for: a text in base64. Bytes that are not UTF-8 become replacement characters on
/// the way to JSON.
pub(super) fn binary(text: &str) -> Option<String> {
    let compact: String = text.chars().filter(|character| !matches!(character, '\r' | '\n')).collect();
    let bytes = base64(compact.as_bytes())?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Base64 with padding, as Go's `base64.StdEncoding`.
fn base64(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| {
        Some(match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        })
    };
    let (groups, rest) = text.as_chunks::<4>();
    if !rest.is_empty() {
        return None;
    }
    let mut bytes = Vec::with_capacity(groups.len() * 3);
    for (index, group) in groups.iter().enumerate() {
        let padding = group.iter().rev().take_while(|byte| **byte == b'=').count();
        if padding > 2 || padding > 0 && index + 1 < groups.len() {
            return None;
        }
        let mut bits = 0u32;
        for byte in &group[..4 - padding] {
            bits = (bits << 6) | u32::from(digit(*byte)?);
        }
        bits <<= 6 * padding;
        bytes.extend_from_slice(&bits.to_be_bytes()[1..4 - padding]);
    }
    Some(bytes)
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
        && resolve(text).is_some_and(|value| value.is_string())
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

/// A float in decimals. A whole one is written to JSON without its fraction, and is an integer from then on.
fn float(text: &str) -> Option<Number> {
    let is_decimal = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-');
    let has_digit =
        text.trim_start_matches(['+', '-', '.']).as_bytes().first().is_some_and(u8::is_ascii_digit);
    if !has_digit || !text.bytes().all(is_decimal) {
        return None;
    }
    let float: f64 = text.parse().ok()?;
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if float.fract() == 0.0 && (-LIMIT..LIMIT).contains(&float) {
        Some((float as i64).into())
    } else {
        Number::from_f64(float)
    }
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
            assert_eq!(resolve(text), Some(expected), "{text}");
        }
        assert_eq!(resolve(".NaN"), None);
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
        ];
        for (text, expected) in cases {
            assert_eq!(key(text).as_deref(), expected, "{text}");
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
