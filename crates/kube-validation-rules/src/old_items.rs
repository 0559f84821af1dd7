//! The items of an older list, found again by their keys. They are not compared: the rules of an item decide
//! what a change means.

use std::collections::HashMap;

use serde_json::Value as Json;

/// The items of an older list by their keys.
pub(super) struct OldItems<'o> {
    keys: &'o [String],
    by_key: HashMap<Vec<KeyPart>, &'o Json>,
}

/// The value of a key: upstream distinguishes `1` from `1.0`.
#[derive(PartialEq, Eq, Hash)]
enum KeyPart {
    Bool(bool),
    Int(i64),
    Double(u64),
    Text(String),
}

impl<'o> OldItems<'o> {
    /// Items are found again only in lists of type map; of two with the same keys the first.
    pub(super) fn new(keys: &'o [String], old: Option<&'o Json>) -> Self {
        let mut by_key = HashMap::new();
        if let (false, Some(Json::Array(items))) = (keys.is_empty(), old) {
            for item in items {
                if let Some(key) = key_of(item, keys) {
                    by_key.entry(key).or_insert(item);
                }
            }
        }
        Self { keys, by_key }
    }

    pub(super) fn get(&self, item: &Json) -> Option<&'o Json> {
        if self.by_key.is_empty() {
            return None;
        }
        self.by_key.get(&key_of(item, self.keys)?).copied()
    }
}

fn key_of(item: &Json, keys: &[String]) -> Option<Vec<KeyPart>> {
    let item = item.as_object()?;
    keys.iter()
        .map(|key| match item.get(key)? {
            Json::Bool(value) => Some(KeyPart::Bool(*value)),
            Json::Number(number) => match number.as_i64() {
                Some(value) => Some(KeyPart::Int(value)),
                None => number.as_f64().map(|value| KeyPart::Double(value.to_bits())),
            },
            Json::String(text) => Some(KeyPart::Text(text.clone())),
            Json::Null | Json::Array(_) | Json::Object(_) => None,
        })
        .collect()
}
