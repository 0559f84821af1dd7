//! JSON documents as API servers hold them: numbers are equal by value, and depth has a limit.
//!
//! API servers accept objects nested thousands of levels deep. What walks through a document recurses, so a
//! text that is nested deeper than [`DEPTH`] is not parsed; [`outline`] reads what identifies the object in
//! it.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

use go_text::json::marshal;
use go_text::strconv::format_plain;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value};

/// How many objects and arrays of a document may be open at once, the document itself included.
pub const DEPTH: usize = 1_000;

/// An owned JSON value.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Json(Value);

/// Why a text is not parsed.
#[derive(Debug, thiserror::Error)]
pub enum JsonError {
    /// It is nested deeper than [`DEPTH`].
    #[error("is nested more than {DEPTH} levels deep")]
    TooDeep,
    /// It is not JSON.
    #[error(transparent)]
    Malformed(#[from] serde_json::Error),
}

/// Whether a text of JSON is nested deeper than so many levels. It is read without recursion, and need not be
/// well-formed.
fn is_deeper(text: &[u8], levels: usize) -> bool {
    // Few texts have so many brackets, and counting them takes a fraction of the time.
    text.iter().filter(|byte| matches!(byte, b'{' | b'[')).count() > levels && depth(text) > levels
}

/// How many objects and arrays are open at once in a text of JSON.
fn depth(text: &[u8]) -> usize {
    let (mut open, mut deepest, mut in_string) = (0_usize, 0, false);
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        match (byte, in_string) {
            (b'\\', true) => drop(bytes.next()),
            (b'"', _) => in_string = !in_string,
            (b'{' | b'[', false) => {
                open += 1;
                deepest = deepest.max(open);
            }
            (b'}' | b']', false) => open = open.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// What identifies the object in a text that is too deep to be parsed: its `apiVersion` and `kind`, and what
/// is flat in its metadata: names, annotations, but no owners.
///
/// # Errors
/// The text is not a JSON object; the message holds a position and no value.
pub fn outline(text: &[u8]) -> serde_json::Result<Json> {
    type Fields<'a> = BTreeMap<String, &'a RawValue>;

    let flat = |fields: &Fields<'_>, levels: usize| -> Map<String, Value> {
        let flat = fields.iter().filter(|(_, text)| depth(text.get().as_bytes()) <= levels);
        flat.filter_map(|(name, text)| Some((name.clone(), serde_json::from_str(text.get()).ok()?))).collect()
    };
    let mut fields: Fields<'_> = serde_json::from_slice(text)?;
    fields.retain(|name, _| ["apiVersion", "kind", "metadata"].contains(&name.as_str()));
    let metadata = fields.get("metadata").and_then(|text| serde_json::from_str(text.get()).ok());
    let mut outline = flat(&fields, 0);
    // Labels, annotations and finalizers are one level.
    outline.insert("metadata".to_owned(), flat(&metadata.unwrap_or_default(), 1).into());
    Ok(Json(outline.into()))
}

impl Json {
    /// Parses one document.
    ///
    /// # Errors
    /// It is nested too deeply, malformed, or followed by something; the message holds a position and no
    /// value.
    pub fn parse(bytes: &[u8]) -> Result<Self, JsonError> {
        Self::parse_around(bytes, 0)
    }

    /// Parses one document around another one that stands in so many levels of it, and that has the limit.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn parse_around(bytes: &[u8], wrapping: usize) -> Result<Self, JsonError> {
        if is_deeper(bytes, DEPTH + wrapping) {
            return Err(JsonError::TooDeep);
        }
        let mut deserializer = serde_json::Deserializer::from_slice(bytes);
        // The limit that is built in is 128 levels.
        deserializer.disable_recursion_limit();
        let value = Value::deserialize(&mut deserializer)?;
        deserializer.end()?;
        Ok(Self(value))
    }

    /// The bytes of the document, without insignificant space.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(&self.0, &mut bytes);
        bytes
    }

    /// The document as Go's `encoding/json` writes it, for a server that compares it by its bytes.
    pub fn to_go_vec(&self) -> Vec<u8> {
        marshal(&self.0).into_bytes()
    }

    /// The value alone.
    pub fn into_inner(self) -> Value {
        self.0
    }
}

/// Whether two values mean the same: as JSON, with numbers equal by value (`1.0` and `1`).
pub fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => same_number(a, b),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}

fn same_number(a: &serde_json::Number, b: &serde_json::Number) -> bool {
    match (a.as_i64(), b.as_i64(), a.as_u64(), b.as_u64()) {
        (Some(a), Some(b), ..) => a == b,
        (.., Some(a), Some(b)) => a == b,
        _ => a.as_f64() == b.as_f64(),
    }
}

/// Whether a field anywhere in a value has this name.
pub fn has_field(value: &Value, name: &str) -> bool {
    match value {
        Value::Object(fields) => {
            fields.contains_key(name) || fields.values().any(|value| has_field(value, name))
        }
        Value::Array(items) => items.iter().any(|item| has_field(item, name)),
        _ => false,
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

/// Holds numbers as an API server does: an integer that does not fit 64 bits with a sign is a float there.
pub fn narrow(value: &mut Value) {
    replace_numbers(value, &|number| match number.as_i64() {
        None if number.is_u64() => number.as_f64().and_then(Number::from_f64),
        _ => None,
    });
}

/// A finite float as an API server holds it once it has written and read it: an integer if its digits are one
/// of 64 bits with a sign. A webhook gets it so, too.
pub fn stored_number(float: f64) -> Option<Number> {
    // Up to here, a float is the integer that its digits show.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if float.fract() != 0.0 {
        Number::from_f64(float)
    } else if float.abs() <= EXACT {
        Some(Number::from(float as i64))
    } else {
        let digits = (float.abs() < 1e19).then(|| format_plain(float).parse::<i64>().ok());
        digits.flatten().map(Number::from).or_else(|| Number::from_f64(float))
    }
}

/// Holds floats as [`stored_number`] does.
pub fn store_numbers(value: &mut Value) {
    replace_numbers(value, &|number| number.as_f64().filter(|_| number.is_f64()).and_then(stored_number));
}

/// Replaces the numbers for which `by` has another.
fn replace_numbers(value: &mut Value, by: &impl Fn(&Number) -> Option<Number>) {
    match value {
        Value::Number(number) => {
            if let Some(other) = by(number) {
                *number = other;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| replace_numbers(item, by)),
        Value::Object(fields) => fields.values_mut().for_each(|value| replace_numbers(value, by)),
        _ => {}
    }
}

/// Appends a value, without insignificant space.
pub fn write(value: &(impl Serialize + ?Sized), bytes: &mut Vec<u8>) {
    serde_json::to_writer(bytes, value).expect("JSON always has a text, and memory does not refuse bytes");
}

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        Self(value)
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// An object of that many levels, with brackets in a text that count for nothing.
    fn nested(levels: usize) -> String {
        let below = levels - 1;
        format!(r#"{{"s":"[{{\"[\\","a":{}{}}}"#, "[".repeat(below), "]".repeat(below))
    }

    #[test]
    fn a_thousand_levels_are_parsed_and_one_more_is_not() {
        let text = nested(DEPTH);
        let document = Json::parse(text.as_bytes()).expect("not too deep");
        assert!(document.clone() == document);
        assert_eq!(Json::parse(&document.to_vec()).expect("JSON"), document);
        let around = format!("[[{}]]", nested(DEPTH));
        assert!(Json::parse(around.as_bytes()).is_err() && Json::parse_around(around.as_bytes(), 2).is_ok());
        let error = Json::parse(nested(DEPTH + 1).as_bytes()).expect_err("too deep");
        assert_eq!(error.to_string(), "is nested more than 1000 levels deep");
        // Many objects beside each other are not deep.
        assert!(Json::parse(format!("[{}0]", "{},".repeat(5_000)).as_bytes()).is_ok());
    }

    #[test]
    fn an_outline_identifies_an_object_of_any_depth() {
        let text = format!(
            r#"{{"kind":"K","apiVersion":"g/v1","spec":{0},"metadata":{{"name":"n","uid":"u","labels":{{"a":"b"}},
                "annotations":{{"[":"\"{{"}},"managedFields":[{{"fieldsV1":{0}}}],"x":{0}}}}}"#,
            nested(50_000)
        );
        let metadata = json!({"name": "n", "uid": "u", "labels": {"a": "b"}, "annotations": {"[": "\"{"}});
        let expected = json!({"apiVersion": "g/v1", "kind": "K", "metadata": metadata});
        assert_eq!(*outline(text.as_bytes()).expect("an object"), expected);
        let odd = format!(r#"{{"kind":[1],"metadata":{}{}}}"#, "[".repeat(2_000), "]".repeat(2_000));
        assert_eq!(*outline(odd.as_bytes()).expect("an object"), json!({"metadata": {}}));
        assert!(outline(b"[]").is_err());
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
    fn whole_floats_are_integers_once_they_are_stored() {
        // As API server 1.37 sends them to webhooks.
        for (sent, stored) in [
            ("[1, 1.0, 1e3, 1E2, 0.1e1, -2.0]", "[1,1,1000,100,1,-2]"),
            ("[-0.0, -0, 0.0, 0e5]", "[0,0,0,0]"),
            ("[1.5, 1e-7, -0.5]", "[1.5,1e-7,-0.5]"),
            ("[9007199254740993.0, 12345678901234567.0]", "[9007199254740992,12345678901234568]"),
            ("[1234567890123456789.0, 9223372036854774784.0]", "[1234567890123456800,9223372036854775000]"),
            ("[9223372036854775807, -9223372036854775808]", "[9223372036854775807,-9223372036854775808]"),
            ("[9223372036854775808.0, 1e20, 1e300]", "[9.223372036854776e+18,1e+20,1e+300]"),
            (r#"{"a": {"b": [1.0, "1.0", true, null]}}"#, r#"{"a":{"b":[1,"1.0",true,null]}}"#),
        ] {
            let mut value = Json::parse(sent.as_bytes()).expect("JSON");
            store_numbers(&mut value);
            assert_eq!(String::from_utf8_lossy(&value.to_vec()), stored, "{sent}");
        }
    }

    #[test]
    fn malformed_text_is_an_error_without_the_text() {
        let error = Json::parse(br#"{"password": hunter2}"#).expect_err("not JSON");
        assert!(!error.to_string().contains("hunter2"), "{error}");
        assert!(Json::parse(b"{} {}").is_err());
    }
}
