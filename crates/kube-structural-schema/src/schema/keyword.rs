//! The values of single keywords, read as Go's JSON decoder reads them into typed fields.

use serde_json::{Map, Value};

use super::{ParseError, Place};
use crate::json::{self, Json};

type Parsed<T> = Result<T, ParseError>;

/// A keyword that is there and not null; Go decodes a null as absent.
pub(super) fn present<'a>(keywords: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    keywords.get(name).filter(|value| !value.is_null())
}

pub(super) fn text<'a>(value: &'a Value, at: &Place<'_>) -> Parsed<&'a str> {
    value.as_str().ok_or_else(|| ParseError::malformed(at, "a string"))
}

pub(super) fn flag(value: &Value, at: &Place<'_>) -> Parsed<bool> {
    value.as_bool().ok_or_else(|| ParseError::malformed(at, "a boolean"))
}

pub(super) fn number(value: &Value, at: &Place<'_>) -> Parsed<f64> {
    value.as_f64().ok_or_else(|| ParseError::malformed(at, "a number"))
}

/// An int64, written without fraction and exponent.
pub(super) fn integer(value: &Value, at: &Place<'_>) -> Parsed<i64> {
    value.as_i64().ok_or_else(|| ParseError::malformed(at, "a 64-bit integer"))
}

pub(super) fn texts(value: &Value, at: &Place<'_>) -> Parsed<Box<[String]>> {
    each(value, at, |item, at| match item {
        Value::Null => Ok(String::new()),
        item => text(item, at).map(str::to_owned),
    })
}

/// All items of a list; nulls are left to the reader of items.
pub(super) fn each<T>(
    value: &Value,
    at: &Place<'_>,
    read: impl Fn(&Value, &Place<'_>) -> Parsed<T>,
) -> Parsed<Box<[T]>> {
    let items = value.as_array().ok_or_else(|| ParseError::malformed(at, "a list"))?;
    items.iter().enumerate().map(|(index, item)| read(item, &at.index(index))).collect()
}

/// A value as the server holds it.
pub(super) fn decoded(value: &Value) -> Json {
    let mut value = value.clone();
    json::narrow(&mut value);
    value.into()
}
