//! JSON documents of any depth: parsed, compared, copied and dropped without overflowing the stack.
//!
//! API servers accept objects nested 9,000 levels deep, and one such object must not fail the page it is
//! listed in.

use std::ops::{Deref, DerefMut};

use serde::{Deserialize, Deserializer};
use serde_json::Value;

pub use go_text::level;

/// An owned JSON value that may be nested deeper than the thread's stack would bear.
#[derive(Debug, Default)]
pub struct Json(Value);

impl Json {
    /// Parses one document.
    ///
    /// # Errors
    /// Malformed JSON, or anything after the document; the message holds a position and no value.
    pub fn parse(bytes: &[u8]) -> serde_json::Result<Self> {
        let mut deserializer = serde_json::Deserializer::from_slice(bytes);
        deserializer.disable_recursion_limit();
        let value = Value::deserialize(serde_stacker::Deserializer::new(&mut deserializer))?;
        let document = Self(value);
        deserializer.end()?;
        Ok(document)
    }

    /// The bytes of the document, without insignificant space.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(&self.0, &mut bytes);
        bytes
    }

    /// Gives the value away; the caller takes over the care for its depth.
    pub fn into_inner(mut self) -> Value {
        std::mem::take(&mut self.0)
    }
}

/// Whether two values mean the same: as JSON, with numbers equal by value (`1.0` and `1`).
pub fn same(a: &Value, b: &Value) -> bool {
    level(|| match (a, b) {
        (Value::Number(a), Value::Number(b)) => same_number(a, b),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    })
}

fn same_number(a: &serde_json::Number, b: &serde_json::Number) -> bool {
    match (a.as_i64(), b.as_i64(), a.as_u64(), b.as_u64()) {
        (Some(a), Some(b), ..) => a == b,
        (.., Some(a), Some(b)) => a == b,
        _ => a.as_f64() == b.as_f64(),
    }
}

/// Whether a value is what a program takes an absent field for anyway: null, false, 0, an empty text, list or
/// object.
pub fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

/// A copy of a value of any depth.
pub fn copy(value: &Value) -> Value {
    match value {
        // Whatever holds no other holders is copied faster as a whole.
        Value::Array(items) if items.iter().any(is_holder) => {
            level(|| Value::Array(items.iter().map(copy).collect()))
        }
        Value::Object(fields) if fields.values().any(is_holder) => {
            level(|| Value::Object(fields.iter().map(|(key, value)| (key.clone(), copy(value))).collect()))
        }
        shallow => shallow.clone(),
    }
}

fn is_holder(value: &Value) -> bool {
    value.is_array() || value.is_object()
}

/// Holds numbers as an API server does: an integer that does not fit 64 bits with a sign is a float there.
pub fn narrow(value: &mut Value) {
    match value {
        Value::Number(number) if number.as_i64().is_none() && number.is_u64() => {
            if let Some(float) = number.as_f64().and_then(serde_json::Number::from_f64) {
                *number = float;
            }
        }
        Value::Array(items) => level(|| items.iter_mut().for_each(narrow)),
        Value::Object(fields) => level(|| fields.values_mut().for_each(narrow)),
        _ => {}
    }
}

/// Appends a value of any depth, without insignificant space.
pub fn write(value: &Value, bytes: &mut Vec<u8>) {
    level(|| match value {
        Value::Array(items) => {
            bytes.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    bytes.push(b',');
                }
                write(item, bytes);
            }
            bytes.push(b']');
        }
        Value::Object(fields) => {
            bytes.push(b'{');
            for (index, (key, item)) in fields.iter().enumerate() {
                if index > 0 {
                    bytes.push(b',');
                }
                write_scalar(key, bytes);
                bytes.push(b':');
                write(item, bytes);
            }
            bytes.push(b'}');
        }
        scalar => write_scalar(scalar, bytes),
    });
}

/// Appends a value that holds no others.
pub fn write_scalar(value: &(impl serde::Serialize + ?Sized), bytes: &mut Vec<u8>) {
    serde_json::to_writer(bytes, value)
        .expect("a scalar always has a JSON form, and memory does not refuse bytes");
}

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        Self(value)
    }
}

impl Clone for Json {
    fn clone(&self) -> Self {
        Self(copy(&self.0))
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        same(&self.0, &other.0)
    }
}

impl Deref for Json {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.0
    }
}

impl DerefMut for Json {
    fn deref_mut(&mut self) -> &mut Value {
        &mut self.0
    }
}

impl<'de> Deserialize<'de> for Json {
    /// For documents inside others; the outer deserializer must bear the depth.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self)
    }
}

impl serde::Serialize for Json {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl Drop for Json {
    fn drop(&mut self) {
        dismantle(std::mem::take(&mut self.0));
    }
}

fn dismantle(value: Value) {
    match value {
        Value::Array(items) => level(|| items.into_iter().for_each(dismantle)),
        Value::Object(fields) => level(|| fields.into_iter().for_each(|(_, value)| dismantle(value))),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(levels: usize) -> Vec<u8> {
        let mut text = r#"{"a":["#.repeat(levels).into_bytes();
        text.extend(b"1");
        text.extend("]}".repeat(levels).into_bytes());
        text
    }

    #[test]
    fn a_document_of_twenty_thousand_levels_goes_through() {
        let text = nested(10_000);
        let document = Json::parse(&text).expect("well-formed");
        let twin = document.clone();
        assert!(document == twin);
        assert_eq!(twin.to_vec(), text);
    }

    #[test]
    fn numbers_are_equal_by_value() {
        let same_text = |a: &str, b: &str| Json::parse(a.as_bytes()).ok() == Json::parse(b.as_bytes()).ok();
        assert!(same_text("1.0", "1"));
        assert!(same_text("[18446744073709551615]", "[18446744073709551615]"));
        assert!(!same_text("9007199254740993", "9007199254740992"));
        assert!(!same_text("1", "true"));
    }

    #[test]
    fn integers_that_do_not_fit_are_floats() {
        let mut value = serde_json::json!({"a": [u64::MAX, i64::MAX, -1, 1.5, "x"]});
        narrow(&mut value);
        assert_eq!(value, serde_json::json!({"a": [18_446_744_073_709_551_615.0, i64::MAX, -1, 1.5, "x"]}));
    }

    #[test]
    fn malformed_text_is_an_error_without_the_text() {
        let error = Json::parse(br#"{"password": hunter2}"#).expect_err("not JSON");
        assert!(!error.to_string().contains("hunter2"), "{error}");
        assert!(Json::parse(b"{} {}").is_err());
    }
}
