//! Conversions between types: `int(x)`, `string(x)`, `timestamp(x)` and their like.
//! Of Kubernetes' own types it needs only how they are written.
//!
//! Source: cel-go `common/types`, `ConvertToType`.

use go_text::strconv::{format_float, parse_float};
use go_text::time::{self, Time};

use super::args::text;
use super::table::Table;
use crate::cost::CHARACTER;
use crate::fault::{Fault, Outcome};
use crate::price::{Estimate, ONE, Price, characters};
use crate::range::Range;
use crate::time::{MAX_SECONDS, MIN_SECONDS, span_text};
use crate::value::{TWO_63, Value};

/// The conversions that are done while a rule is compiled where their argument is a literal.
pub(crate) const NAMES: [&str; 10] =
    ["bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"];

/// The conversion of nanoseconds to a duration, which cel-go had before 0.28.
pub(super) const NANOSECONDS: &str = "int64_to_duration";

pub(super) fn declare(table: &mut Table) {
    table.function("bool", "bool_to_bool", "bool -> bool", ONE, identity);
    table.function("bool", "string_to_bool", "string -> bool", ONE, |args| match text(args, 0)? {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(Value::Bool(true)),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(Value::Bool(false)),
        _ => Err(impossible("string", "bool")),
    });
    table.function("bytes", "bytes_to_bytes", "bytes -> bytes", ONE, identity);
    table.function("bytes", "string_to_bytes", "string -> bytes", TEXT_TO_BYTES, |args| {
        Ok(Value::Bytes(text(args, 0)?.as_bytes().into()))
    });
    table.function("double", "double_to_double", "double -> double", ONE, identity);
    table.function("double", "int64_to_double", "int -> double", ONE, to_double);
    table.function("double", "string_to_double", "string -> double", ONE, to_double);
    table.function("double", "uint64_to_double", "uint -> double", ONE, to_double);
    table.function("duration", "duration_to_duration", "duration -> duration", ONE, identity);
    table.function("duration", "string_to_duration", "string -> duration", ONE, |args| {
        time::parse_duration(text(args, 0)?)
            .map(Value::Duration)
            .ok_or(impossible("string", "google.protobuf.Duration"))
    });
    // The last one of its name: cel-go has it no longer.
    table.function("duration", NANOSECONDS, "int -> duration", ONE, |args| match args[0] {
        Value::Int(nanoseconds) => Ok(Value::Duration(nanoseconds)),
        _ => Err(Fault::NoOverload),
    });
    table.function("dyn", "to_dyn", "A -> dyn", ONE, identity);
    table.function("int", "int64_to_int64", "int -> int", ONE, identity);
    for (id, signature) in [
        ("double_to_int64", "double -> int"),
        ("duration_to_int64", "duration -> int"),
        ("string_to_int64", "string -> int"),
        ("timestamp_to_int64", "timestamp -> int"),
        ("uint64_to_int64", "uint -> int"),
    ] {
        table.function("int", id, signature, ONE, to_int);
    }
    table.function("string", "string_to_string", "string -> string", ONE, identity);
    table.function("string", "bytes_to_string", "bytes -> string", BYTES_TO_TEXT, text_of);
    for (id, signature) in [
        ("bool_to_string", "bool -> string"),
        ("double_to_string", "double -> string"),
        ("duration_to_string", "duration -> string"),
        ("int64_to_string", "int -> string"),
        ("timestamp_to_string", "timestamp -> string"),
        ("uint64_to_string", "uint -> string"),
        ("ip_to_string", "ip -> string"),
        ("cidr_to_string", "cidr -> string"),
    ] {
        table.function("string", id, signature, ONE, text_of);
    }
    table.function("timestamp", "timestamp_to_timestamp", "timestamp -> timestamp", ONE, identity);
    table.function("timestamp", "int64_to_timestamp", "int -> timestamp", ONE, to_timestamp);
    table.function("timestamp", "string_to_timestamp", "string -> timestamp", ONE, to_timestamp);
    table.function("uint", "uint64_to_uint64", "uint -> uint", ONE, identity);
    for (id, signature) in [
        ("double_to_uint64", "double -> uint"),
        ("int64_to_uint64", "int -> uint"),
        ("string_to_uint64", "string -> uint"),
    ] {
        table.function("uint", id, signature, ONE, to_uint);
    }
}

const TEXT_TO_BYTES: Price = Price::cel(
    |args, _| Ok(characters(&args[0], 1.0)),
    |call| {
        let from = call.args[0].cel_size();
        // Upstream's product runs over.
        let bytes = Range { min: from.min, max: from.max.wrapping_mul(4) };
        Estimate::sized(from.scaled(CHARACTER), bytes)
    },
);

const BYTES_TO_TEXT: Price = Price {
    estimated: |call| {
        let from = call.args[0].cel_size();
        Estimate::sized(from.scaled(CHARACTER), Range { min: from.min / 4, max: from.max })
    },
    ..TEXT_TO_BYTES
};

fn text_of<'v>(args: &[Value<'v>]) -> Outcome<Value<'v>> {
    to_text(&args[0]).map(Value::text)
}

fn identity<'v>(args: &[Value<'v>]) -> Outcome<Value<'v>> {
    args.first().cloned().ok_or(Fault::NoOverload)
}

fn impossible(from: &str, to: &str) -> Fault {
    Fault::new(format!("type conversion error from '{from}' to '{to}'"))
}

fn to_double<'v>(args: &[Value<'v>]) -> Outcome<Value<'v>> {
    Ok(Value::Double(match &args[0] {
        Value::Int(value) => *value as f64,
        Value::Uint(value) => *value as f64,
        Value::String(text) => parse_float(text.as_str()).ok_or(impossible("string", "double"))?,
        _ => return Err(Fault::NoOverload),
    }))
}

fn to_int<'v>(args: &[Value<'v>]) -> Outcome<Value<'v>> {
    Ok(Value::Int(match &args[0] {
        // Both ends are left out, as upstream does.
        Value::Double(value) if *value > -TWO_63 && *value < TWO_63 => *value as i64,
        Value::Double(_) => return Err(Fault::new("integer overflow")),
        Value::Duration(nanos) => *nanos,
        Value::Timestamp(time) => time.seconds,
        Value::String(text) => text.as_str().parse().map_err(|_| impossible("string", "int"))?,
        Value::Uint(value) => i64::try_from(*value).map_err(|_| Fault::new("integer overflow"))?,
        _ => return Err(Fault::NoOverload),
    }))
}

fn to_uint<'v>(args: &[Value<'v>]) -> Outcome<Value<'v>> {
    Ok(Value::Uint(match &args[0] {
        Value::Double(value) if *value >= 0.0 && *value < TWO_63 * 2.0 => *value as u64,
        Value::Double(_) => return Err(Fault::new("unsigned integer overflow")),
        Value::Int(value) => u64::try_from(*value).map_err(|_| Fault::new("unsigned integer overflow"))?,
        Value::String(text) if !text.as_str().starts_with('+') => {
            text.as_str().parse().map_err(|_| impossible("string", "uint"))?
        }
        Value::String(_) => return Err(impossible("string", "uint")),
        _ => return Err(Fault::NoOverload),
    }))
}

fn to_timestamp<'v>(args: &[Value<'v>]) -> Outcome<Value<'v>> {
    let time = match &args[0] {
        Value::Int(seconds) => Time { seconds: *seconds, ..Time::UNIX_EPOCH },
        Value::String(text) => {
            Time::parse_rfc3339(text.as_str()).ok_or(impossible("string", "google.protobuf.Timestamp"))?
        }
        _ => return Err(Fault::NoOverload),
    };
    if (MIN_SECONDS..=MAX_SECONDS).contains(&time.seconds) {
        Ok(Value::Timestamp(time))
    } else {
        Err(Fault::new("timestamp overflow"))
    }
}

/// `string(x)`.
pub(crate) fn to_text(value: &Value<'_>) -> Outcome<String> {
    Ok(match value {
        Value::Null => "null".to_owned(),
        Value::String(text) => text.as_str().to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Bytes(bytes) => String::from_utf8(bytes.to_vec())
            .map_err(|_| Fault::new("invalid UTF-8 in bytes, cannot convert to string"))?,
        Value::Double(value) => format_float(*value),
        Value::Duration(nanos) => span_text(*nanos),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Timestamp(time) => time.to_rfc3339_nano(),
        Value::Kind(kind) => kind.to_text().ok_or(Fault::NoOverload)?,
        Value::Type(name) => (*name).to_owned(),
        _ => return Err(Fault::NoOverload),
    })
}
