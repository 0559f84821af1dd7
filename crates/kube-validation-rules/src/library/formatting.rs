//! `'…'.format([…])`: texts with values put in.
//! The only locale is the server's, English.
//!
//! Source: cel-go `ext/formatting.go`.

use std::fmt::Write as _;

use super::args::text;
use super::convert;
use super::table::Table;
use crate::compare;
use crate::cost::CHARACTER;
use crate::fault::{Fault, Outcome};
use crate::price::{Estimate, Price, characters};
use crate::value::Value;
use go_text::strconv::quote;

/// Digits behind the point if a clause gives no precision.
const DEFAULT_PRECISION: usize = 6;

/// The most digits that this writes; more than any double has.
const MAX_PRECISION: usize = 1_100;

/// One part of a format text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Clause<'t> {
    /// Written as it is.
    Literal(&'t str),
    /// Replaced by the next value.
    Value {
        /// One of `sdfebxXo`.
        verb: char,
        precision: Option<usize>,
    },
}

pub(super) fn declare(table: &mut Table) {
    table.method("format", "string_format", "string, list<dyn> -> string", FORMAT, |args| {
        let clauses = clauses(text(args, 0)?).map_err(Fault::new)?;
        let mut values = compare::items(&args[1])?;
        let mut written = String::new();
        let mut index = 0;
        for clause in clauses {
            match clause {
                Clause::Literal(text) => written.push_str(text),
                Clause::Value { verb, precision } => {
                    let value =
                        values.next().ok_or_else(|| Fault::new(format!("index {index} out of range")))??;
                    index += 1;
                    written.push_str(&write(&value, verb, precision)?);
                }
            }
        }
        Ok(Value::text(written))
    });
}

const FORMAT: Price = Price::cel(
    |args, _| Ok(characters(&args[0], 1.0)),
    |call| Estimate::of(call.args[0].cel_size().scaled(CHARACTER)),
);

/// The parts of a format text.
///
/// # Errors
/// A clause is not one.
pub(crate) fn clauses(format: &str) -> Result<Vec<Clause<'_>>, &'static str> {
    let mut clauses = Vec::new();
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        if at > 0 {
            clauses.push(Clause::Literal(&rest[..at]));
        }
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            clauses.push(Clause::Literal("%"));
            rest = after;
            continue;
        }
        let mut precision = None;
        if let Some(after) = rest.strip_prefix('.') {
            let len = after.bytes().take_while(u8::is_ascii_digit).count();
            let digits = after[..len].parse().map_err(|_| "error while converting precision to integer")?;
            precision = Some(digits);
            rest = &after[len..];
        }
        let verb = rest.chars().next().ok_or("unexpected end of string")?;
        if !matches!(verb, 's' | 'd' | 'f' | 'e' | 'b' | 'x' | 'X' | 'o') {
            return Err("unrecognized formatting clause");
        }
        clauses.push(Clause::Value { verb, precision });
        rest = &rest[1..];
    }
    if !rest.is_empty() {
        clauses.push(Clause::Literal(rest));
    }
    Ok(clauses)
}

fn write(value: &Value<'_>, verb: char, precision: Option<usize>) -> Outcome<String> {
    let precision = precision.unwrap_or(DEFAULT_PRECISION);
    match (verb, value) {
        ('s', value) => as_text(value),
        ('d', Value::Int(_) | Value::Uint(_)) => convert::to_text(value),
        ('f' | 'e', value) => {
            let number = match value {
                Value::Double(number) => *number,
                Value::String(text) => match text.as_str() {
                    "NaN" => f64::NAN,
                    "Infinity" => f64::INFINITY,
                    "-Infinity" => f64::NEG_INFINITY,
                    _ => return Err(unfit(verb, value)),
                },
                _ => return Err(unfit(verb, value)),
            };
            if precision > MAX_PRECISION {
                return Err(Fault::new("precision is too large"));
            }
            Ok(if verb == 'f' { fixed(number, precision) } else { scientific(number, precision) })
        }
        ('b', Value::Int(number)) => Ok(signed(*number, |number| format!("{number:b}"))),
        ('b', Value::Uint(number)) => Ok(format!("{number:b}")),
        ('b', Value::Bool(value)) => Ok(u8::from(*value).to_string()),
        ('o', Value::Int(number)) => Ok(signed(*number, |number| format!("{number:o}"))),
        ('o', Value::Uint(number)) => Ok(format!("{number:o}")),
        ('x' | 'X', value) => {
            let lower = match value {
                Value::Int(number) => signed(*number, |number| format!("{number:x}")),
                Value::Uint(number) => format!("{number:x}"),
                Value::String(text) => hex(text.as_str().as_bytes()),
                Value::Bytes(bytes) => hex(bytes),
                _ => return Err(unfit(verb, value)),
            };
            Ok(if verb == 'X' { lower.to_uppercase() } else { lower })
        }
        (verb, value) => Err(unfit(verb, value)),
    }
}

/// Go writes a sign, not two's complement.
fn signed(number: i64, digits: impl Fn(u64) -> String) -> String {
    let sign = if number < 0 { "-" } else { "" };
    format!("{sign}{}", digits(number.unsigned_abs()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// English: groups of three digits.
fn fixed(number: f64, precision: usize) -> String {
    if let Some(named) = not_finite(number) {
        return named.to_owned();
    }
    let digits = format!("{:.precision$}", number.abs());
    let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
    let mut text = String::from(if number < 0.0 { "-" } else { "" });
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if !fraction.is_empty() {
        text.push('.');
        text.push_str(fraction);
    }
    text
}

/// English as Go's printer has it: `1.500000×10⁰³`. cel-go gives the precision as a width, on which there is
/// no precision, and so six digits.
fn scientific(number: f64, precision: usize) -> String {
    let text = match not_finite(number) {
        Some(named) => named.to_owned(),
        None => with_power(number),
    };
    format!("{text:>precision$}")
}

fn with_power(number: f64) -> String {
    // Without the sign of a negative zero.
    let text = format!("{:.DEFAULT_PRECISION$e}", number + 0.0);
    let Some((mantissa, exponent)) = text.split_once('e') else { return text };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let mut power: String = if exponent < 0 { "\u{207b}" } else { "" }.to_owned();
    power.extend(format!("{:02}", exponent.unsigned_abs()).chars().map(superscript));
    format!("{mantissa}\u{d7}10{power}")
}

fn superscript(digit: char) -> char {
    match digit {
        '0' => '\u{2070}',
        '1' => '\u{b9}',
        '2' => '\u{b2}',
        '3' => '\u{b3}',
        '4' => '\u{2074}',
        '5' => '\u{2075}',
        '6' => '\u{2076}',
        '7' => '\u{2077}',
        '8' => '\u{2078}',
        _ => '\u{2079}',
    }
}

fn not_finite(number: f64) -> Option<&'static str> {
    if number.is_nan() {
        Some("NaN")
    } else if number.is_infinite() {
        Some(if number > 0.0 { "\u{221e}" } else { "-\u{221e}" })
    } else {
        None
    }
}

/// A value of a type that a clause does not take.
fn unfit(verb: char, value: &Value<'_>) -> Fault {
    Fault::new(unfit_text(verb, value.type_name()))
}

/// The words about a type that a clause does not take.
pub(crate) fn unfit_text(verb: char, given: &str) -> String {
    let why = match verb {
        'd' => "decimal clause can only be used on integers",
        'o' => "octal clause can only be used on integers",
        'b' => "only integers and bools can be formatted as binary",
        'f' => "fixed-point clause can only be used on doubles",
        'e' => "scientific clause can only be used on doubles",
        's' => {
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, \
             durations, and timestamps"
        }
        _ => "only integers, byte buffers, and strings can be formatted as hex",
    };
    format!("error during formatting: {why}, was given {given}")
}

/// Whether a value, neither list nor map, is of a type that can be written.
fn is_printable(value: &Value<'_>) -> bool {
    use Value::*;
    matches!(
        value,
        Null | Int(_)
            | Uint(_)
            | Double(_)
            | Bool(_)
            | String(_)
            | Timestamp(_)
            | Bytes(_)
            | Duration(_)
            | Type(_)
    )
}

fn as_text(value: &Value<'_>) -> Outcome<String> {
    match value {
        Value::List(_) | Value::Array(_) | Value::Map(_) | Value::Object(_) => nested(value),
        plain if is_printable(plain) => convert::to_text(plain),
        other => Err(unfit('s', other)),
    }
}

/// A value within a list or map.
fn nested(value: &Value<'_>) -> Outcome<String> {
    Ok(match value {
        Value::List(_) | Value::Array(_) => {
            let items: Vec<String> =
                compare::items(value)?.map(|item| nested(&item?)).collect::<Outcome<_>>()?;
            format!("[{}]", items.join(", "))
        }
        Value::Map(map) => {
            entries(map.iter().map(|(key, value)| Ok((nested(&key.to_value())?, nested(value)?))))?
        }
        // Upstream's iteration over fields that the schema does not know ends in a panic.
        Value::Object(object) if object.keys().count() < object.len() => {
            const PANIC: &str = "runtime error: invalid memory address or nil pointer dereference";
            return Err(Fault::Internal(PANIC.into()));
        }
        Value::Object(object) => entries(object.keys().map(|key| {
            let value = object.find(&key)?.ok_or(Fault::new("could not find key"))?;
            Ok((nested(&key)?, nested(&value)?))
        }))?,
        Value::Double(number) if number.is_finite() => format!("{number:.DEFAULT_PRECISION$}"),
        Value::Double(_) => quote(&convert::to_text(value)?),
        Value::Timestamp(_) => format!("timestamp({})", quote(&convert::to_text(value)?)),
        Value::Duration(_) => format!("duration({})", quote(&convert::to_text(value)?)),
        Value::String(text) => quote(text.as_str()),
        Value::Bytes(_) => format!("b{}", quote(&convert::to_text(value)?)),
        other if is_printable(other) => as_text(other)?,
        other => {
            let words = format!("error during formatting: no formatting function for {}", other.type_name());
            return Err(Fault::new(words));
        }
    })
}

fn entries(entries: impl Iterator<Item = Outcome<(String, String)>>) -> Outcome<String> {
    let mut entries: Vec<(String, String)> = entries.collect::<Outcome<_>>()?;
    entries.sort();
    let entries: Vec<String> = entries.into_iter().map(|(key, value)| format!("{key}:{value}")).collect();
    Ok(format!("{{{}}}", entries.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_precision_of_a_power_is_a_width() {
        // As cel-go 0.29.2 wrote them.
        for (number, precision, expected) in [
            (1234.5678, 3, "1.234568\u{d7}10\u{2070}\u{b3}"),
            (0.1, 16, "  1.000000\u{d7}10\u{207b}\u{2070}\u{b9}"),
            (-0.0, 0, "0.000000\u{d7}10\u{2070}\u{2070}"),
            (f64::NAN, 5, "  NaN"),
        ] {
            assert_eq!(scientific(number, precision), expected);
        }
        assert_eq!(fixed(-0.0, 2), "0.00");
    }
}
