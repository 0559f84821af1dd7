//! Logs in JSON, read as strictly as any program may read them.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context, Result, ensure};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// The lines of a log, each of them one JSON object.
///
/// # Errors
/// A line is no JSON object, has a key twice at any depth, or holds a text that shows the inside of a Rust
/// value.
pub fn parse(log: &str) -> Result<Vec<Value>> {
    let lines = log.lines().map(|line| {
        let Strict(value) = serde_json::from_str(line).with_context(|| line.to_owned())?;
        ensure!(value.is_object(), "no object: {line}");
        ensure!(!shows_inside(&value), "a value as Rust formats it for debugging: {line}");
        Ok(value)
    });
    lines.collect()
}

/// How often each message was logged.
pub fn messages(lines: &[Value]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for line in lines {
        let message = line["fields"]["message"].as_str().unwrap_or_default();
        *counts.entry(message.to_owned()).or_default() += 1;
    }
    counts
}

/// Whether a text in it is a struct, a tuple or a list in the form of `{:?}`.
fn shows_inside(value: &Value) -> bool {
    match value {
        Value::String(text) => is_debug(text),
        Value::Array(items) => items.iter().any(shows_inside),
        Value::Object(fields) => fields.values().any(shows_inside),
        _ => false,
    }
}

fn is_debug(text: &str) -> bool {
    let named = text.match_indices(" { ").any(|(at, _)| {
        let word = text[..at].rsplit(|letter: char| !letter.is_alphanumeric()).next().unwrap_or_default();
        word.starts_with(|letter: char| letter.is_uppercase())
    });
    let wrapped = ["Some(", "Ok(", "Err("].iter().any(|start| text.contains(start));
    named || wrapped || text.starts_with("[\"") || text == "None"
}

/// A JSON value in which no object has a key twice.
struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader).map(Self)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(Strict(item)) = items.next_element()? {
            all.push(item);
        }
        Ok(all.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some((key, Strict(value))) = fields.next_entry::<String, Strict>()? {
            if all.contains_key(&key) {
                return Err(A::Error::custom(format!("the key {key:?} is there twice")));
            }
            all.insert(key, value);
        }
        Ok(all.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_read_strictly() {
        let good = r#"{"level":"INFO","fields":{"message":"pass ended","objects":600,"wait":1.5,"owner":null},"spans":[{"crd":"a","name":"b"}]}"#;
        assert_eq!(
            messages(&parse(good).expect("it is good")),
            BTreeMap::from([("pass ended".to_owned(), 1)])
        );
        for bad in [
            r#"{"span":{"name":"widgets.example.com","name":"crd"}}"#,
            r#"{"a":[{"b":1},{"c":{"d":1,"d":1}}]}"#,
            r#"{"fields":{"counts":"Counts { objects: 600, written: 1 }"}}"#,
            r#"{"fields":{"error":"Some(\"x\")"}}"#,
            r#"{"fields":{"ties":"[\"a\", \"b\"]"}}"#,
            r#"{"a":1} {"b":2}"#,
            "error: no such thing",
            "",
            "7",
        ] {
            assert!(parse(&format!("{good}\n{bad}\n{good}\n")).is_err(), "{bad}");
        }
    }
}
